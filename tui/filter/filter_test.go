package filter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func compile(t *testing.T, text string) Query {
	t.Helper()
	q, err := query.Runs.Parse(text, now)
	if err != nil {
		t.Fatal(err)
	}
	return Compile(q, "ns")
}

func TestCompile_asks_by_the_fields_that_every_server_knows(t *testing.T) {
	q := compile(t, `status = "FAILED" and type in ("a",'b') and created > -24h AND tag.customer = "x" and `+
		`queue = q and worker = w1 and schedule = s1 and search = "ord"`)
	want := &kagziv1.ListWorkflowsRequest{
		Namespace:     "ns",
		Statuses:      []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED},
		WorkflowTypes: []string{"a", "b"},
		TaskQueues:    []string{"q"},
		CreatedAfter:  timestamppb.New(now.Add(-24 * time.Hour)),
		Tags:          map[string]string{"customer": "x"},
		WorkerId:      new("w1"), ScheduleId: new("s1"), Search: new("ord"),
	}
	if diff := cmp.Diff(want, q.Request, protocmp.Transform()); diff != "" || q.Keep != nil {
		t.Fatal(diff, q.Keep != nil)
	}
	if diff := cmp.Diff(&kagziv1.ListWorkflowsRequest{Namespace: "ns"}, compile(t, " \n ").Request,
		protocmp.Transform()); diff != "" {
		t.Fatal(diff)
	}
}

func TestCompile_keeps_what_is_meant_among_what_a_prefix_finds(t *testing.T) {
	runs := []*kagziv1.Workflow{{RunId: "01a", ExternalId: "order-1"}, {RunId: "01b", ExternalId: "order-10"},
		{RunId: "02", ExternalId: "01a"}}
	for text, want := range map[string][]string{
		`external_id = "order-1"`: {"01a"}, `id = "01"`: {"01a", "01b"}, `id = "01A"`: {"01a"}} {
		q := compile(t, text)
		var kept []string
		for _, r := range runs {
			if q.Keep != nil && q.Keep(r) {
				kept = append(kept, r.RunId)
			}
		}
		if !slices.Equal(kept, want) || q.Request.Query != "" || q.Request.GetSearch() == "" {
			t.Errorf("%s keeps %v of %v, want %v", text, kept, q.Request, want)
		}
	}
}

func TestCompile_sends_the_query_for_what_no_field_asks(t *testing.T) {
	const text = `type = a and (status = failed or duration > 1h)`
	want := &kagziv1.ListWorkflowsRequest{Namespace: "ns", Query: text}
	q := compile(t, text)
	if diff := cmp.Diff(want, q.Request, protocmp.Transform()); diff != "" || q.Keep != nil {
		t.Fatal(diff)
	}
}

func TestShort_asks_the_server_from_the_beginning_of_1970(t *testing.T) {
	if _, q := compileShort(t, "since:1970-01-01"); q.Request.CreatedAfter != nil || q.Keep != nil {
		t.Errorf("since:1970-01-01 asks for %v", q.Request)
	}
	if _, q := compileShort(t, "until:0001-01-01"); q.Matches(&kagziv1.Workflow{Namespace: "ns",
		CreatedAt: timestamppb.New(now)}) {
		t.Error("until:0001-01-01 matches a run of today")
	}
}

func TestShort_takes_the_whole_language(t *testing.T) {
	run := &kagziv1.Workflow{Namespace: "ns", RunId: "01a", WorkflowType: "order", TaskQueue: "q",
		Tags: map[string]string{"team": "pay"}, CreatedAt: timestamppb.New(now.Add(-time.Hour))}
	for text, want := range map[string]struct {
		matches bool
		local   string
	}{
		"type = order or type = refund":                    {true, "type = order or type = refund"},
		"queue = q and not (type = order or tag.team = x)": {false, "not (type = order or tag.team = x)"},
		"queue = q and type = o* and tag.team in (pay)":    {true, "type = o*"},
		"(queue = q or queue = r) and created > -2h":       {true, "(queue = q or queue = r)"},
		"not tag.team = pay":                               {false, "not tag.team = pay"},
		"type = order and search = 01":                     {true, ""},
		"age > 2h":                                         {false, "age > 2h"},
		"tag.team = pay":                                   {true, ""},
	} {
		s, q := compileShort(t, text)
		if q.Matches(run) != want.matches || s.Local() != want.local {
			t.Errorf("%s matches: %v, locally by %q; want %v, %q", text, q.Matches(run), s.Local(), want.matches, want.local)
		}
	}
}

func TestShort_refuses_schedules_that_only_a_server_can_name(t *testing.T) {
	for _, text := range []string{"!schedule:nightly", "schedule:a,b", "type = x or schedule = nightly",
		"schedule != nightly"} {
		if _, err := mustShort(t, text).Compile("ns", now); err == nil || !strings.Contains(err.Error(), "schedule's id") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"schedule:nightly", "type:x schedule:nightly !queue:q", "schedule = none",
		"!schedule:01a1f826-e120-7000-a8d4-f6eb6d272421"} {
		compileShort(t, text)
	}
}
