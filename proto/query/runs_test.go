package query

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	runID    = "01a1f826-e120-7000-a8d4-f6eb6d272421"
	parentID = "01a1f826-e120-7000-a8d4-f6eb6d272400"
)

// someRun is a run that failed in 90 s, an hour ago.
func someRun() *kagziv1.Workflow {
	return &kagziv1.Workflow{RunId: runID, ExternalId: "order-17", WorkflowType: "order.eu", TaskQueue: "orders",
		Status:    kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED,
		CreatedAt: stamp(-time.Hour), StartedAt: stamp(-time.Hour), FinishedAt: stamp(-time.Hour + 90*time.Second),
		Attempts: 3, Note: "packing", Tags: map[string]string{"team": "pay"},
		Error: &kagziv1.ErrorDetail{Type: "CardError", Message: "card declined by Bank"}, ParentRunId: proto.String(parentID)}
}

func runQuery(t *testing.T, text string) *Query[*kagziv1.Workflow] {
	t.Helper()
	q, err := Runs.Parse(text, noon)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return q
}

func TestAQuerySelectsRuns(t *testing.T) {
	run := someRun()
	for text, want := range map[string]bool{
		"id = 01A1F8": true, "id = " + runID: true, "id = order-17": false, "id = 01a*2421": true, "id != 01a1": false,
		"search = order": true, "search = 01A1": true, "search = Order": false, "search in (x, order-)": true,
		"text = DECLINED": true, `text = "by bank"`: true, "text = cardError": true, "text = packing": true, "text = paid": false,
		"text = card*bank": true, "external_id = order-1": false, "external_id = order-*": true, "external_id = none": false,
		"worker = none": true, `worker = "none"`: false, "worker != none": false, "worker in (none, w1)": true, "type = none": false,
		"parent = " + strings.ToUpper(parentID): true, "parent != none": true, "schedule = none": true,
		"status = failed or status = running": true, "not status in (failed, timed-out)": false,
		"error = *declined*": true, "error_type = CardError and attempts >= 3": true,
		"duration > 1m": true, "duration > 2m": false, "duration <= 90s": true, "duration = none": false,
		"age > 30m": true, "age > 1d": false, "created > -2h and created < -30m": true, "finished != none": true,
		"wake_up = none": true, "tag.team = pay": true, "tag.team != pay": false, "tag.team = p*": true, "tag.x = x": false,
		"paused = false and pinned != true": true,
	} {
		if got := runQuery(t, text).Matches(run); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	open := &kagziv1.Workflow{CreatedAt: stamp(-time.Hour), StartedAt: stamp(-time.Minute)}
	if !runQuery(t, "duration >= 1m and duration < 61s").Matches(open) || runQuery(t, "duration = none").Matches(open) {
		t.Error("the duration of an open run does not last until now")
	}
	if !runQuery(t, "duration = none").Matches(&kagziv1.Workflow{}) {
		t.Error("a run that has not started has a duration")
	}
}

func TestAnEmptyValueOfARunIsAMistake(t *testing.T) {
	for text, want := range map[string]string{
		`id = ""`:            `position 6: expected a value that is not empty, found ""`,
		`type in (a, "")`:    `position 13: expected a value that is not empty, found ""`,
		`external_id = ""`:   `position 15: expected a value that is not empty, or none, found ""`,
		`duration > -1h`:     `position 12: expected a duration such as 90s, 1h30m or 7d, found "-1h"`,
		`duration = 1h`:      `position 12: expected none, or one of <, <=, >, >= with a duration, found "1h"`,
		`status = scheduled`: `position 10: expected one of PENDING, `,
	} {
		if _, err := Runs.Parse(text, noon); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if runQuery(t, `tag.team = ""`).Matches(someRun()) {
		t.Error("a tag may be empty, but this one is not")
	}
}

// TestNarrow compares the request and what is left of a query: "fields | rest | wide".
func TestNarrow(t *testing.T) {
	at := func(text string) *timestamppb.Timestamp {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return timestamppb.New(when)
	}
	type request = kagziv1.ListWorkflowsRequest
	failed, running := kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING
	for text, want := range map[string]struct {
		request    *request
		rest, wide string
	}{
		"": {&request{}, "", ""},
		"status in (failed, RUNNING) and type = a and queue in (q, r)": {&request{
			Statuses: []kagziv1.WorkflowStatus{failed, running}, WorkflowTypes: []string{"a"}, TaskQueues: []string{"q", "r"}},
			"", ""},
		`(worker = w and schedule = s) and tag."k" = v and parent = ` + parentID: {&request{WorkerId: proto.String("w"),
			ScheduleId: proto.String("s"), Tags: map[string]string{"k": "v"}, ParentRunId: proto.String(parentID)}, "", ""},
		"search = ab":                 {&request{Search: proto.String("ab")}, "", ""},
		"id = ab and type = t":        {&request{Search: proto.String("ab"), WorkflowTypes: []string{"t"}}, "id = ab", ""},
		"external_id = o and id = ab": {&request{Search: proto.String("o")}, "external_id = o and id = ab", "id = ab"},
		"created > 2026-11-01 and created >= 2026-11-02 and created < 2026-11-20 and created <= 2026-11-10": {&request{
			CreatedAfter: at("2026-11-01T23:59:59.999999Z"), CreatedBefore: at("2026-11-10T00:00:00.000001Z")}, "", ""},
		"created < 2026-11-01T00:00:00.0000005Z": {&request{CreatedBefore: at("2026-11-01T00:00:00.000001Z")},
			"created < 2026-11-01T00:00:00.0000005Z", ""},
		"created > 1970-01-01": {&request{}, "", ""},
		"created < 0001-01-01": {&request{}, "created < 0001-01-01", "created < 0001-01-01"},
		"type = a and (note = x or age > 1h)": {&request{WorkflowTypes: []string{"a"}}, "(note = x or age > 1h)",
			"(note = x or age > 1h)"},
		"type = a and type = b":        {&request{WorkflowTypes: []string{"a"}}, "type = b", "type = b"},
		"type = a* and queue = q":      {&request{TaskQueues: []string{"q"}}, "type = a*", "type = a*"},
		"not type = a and worker = w":  {&request{WorkerId: proto.String("w")}, "not type = a", "not type = a"},
		"type != a":                    {&request{}, "type != a", "type != a"},
		`type = "a b"`:                 {&request{}, `type = "a b"`, `type = "a b"`},
		`tag.a = "" and worker = none`: {&request{}, `tag.a = "" and worker = none`, `tag.a = "" and worker = none`},
		"parent = 01a1":                {&request{}, "parent = 01a1", "parent = 01a1"},
		"type = a or type = b":         {&request{}, "type = a or type = b", "type = a or type = b"},
	} {
		got := &request{}
		rest, wide := Narrow(runQuery(t, text), got)
		if !proto.Equal(got, want.request) || rest.String() != want.rest || wide.String() != want.wide {
			t.Errorf("%s asks for %v, leaves %q, of it %q wide; want %v, %q, %q", text, got, rest, wide, want.request, want.rest,
				want.wide)
		}
	}
}

func TestNarrowNeverWidensARequest(t *testing.T) {
	worker := "w"
	r := &kagziv1.ListWorkflowsRequest{WorkflowType: proto.String("x"), WorkerId: &worker,
		CreatedAfter: timestamppb.New(noon)}
	before := proto.CloneOf(r)
	rest, _ := Narrow(runQuery(t, "type = a and worker = v and created > -1h"), r)
	if !proto.Equal(r, before) || rest.String() != "type = a and worker = v" {
		t.Errorf("the request is %v, the rest %q", r, rest)
	}
}

func TestAQueryOfPartsIsWhole(t *testing.T) {
	q := runQuery(t, "  type = a or not (queue = q and schedule = nightly) ")
	if got := q.Operand(); got != "(type = a or not (queue = q and schedule = nightly))" {
		t.Errorf("operand %s", got)
	}
	if got := runQuery(t, "type = a and queue = q").Operand(); got != "type = a and queue = q" {
		t.Errorf("operand %s", got)
	}
	if q.Place("queue") != 19 || q.Place("worker") >= 0 || !q.Uses("schedule") || q.Relative() {
		t.Errorf("queue at %d, worker at %d, relative %v", q.Place("queue"), q.Place("worker"), q.Relative())
	}
	for text, want := range map[string]bool{"created > -1h": true, "not age > 1h": true, "created > 2026-01-01": false} {
		if got := runQuery(t, text).Relative(); got != want {
			t.Errorf("%s depends on the time: %v", text, got)
		}
	}
	if err := q.Resolve("schedule", func(name string) (string, error) { return strings.ToUpper(name), nil }); err != nil {
		t.Fatal(err)
	}
	if q.Matches(&kagziv1.Workflow{TaskQueue: "q", ScheduleId: proto.String("NIGHTLY")}) ||
		!q.Matches(&kagziv1.Workflow{TaskQueue: "q", ScheduleId: proto.String("nightly")}) {
		t.Error("the schedule is not compared as it was resolved")
	}
}

func FuzzQuotedTextMeansItself(f *testing.F) {
	for _, s := range []string{"a", `a"b\`, "a*b", `\*`, "*", "注\x1b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" || strings.ToValidUTF8(text, "") != text {
			return
		}
		q, err := Runs.Parse("note = "+Quote(text), noon)
		if err != nil {
			if len(text) > MaxText/4 {
				return
			}
			t.Fatal(err)
		}
		if !q.Matches(&kagziv1.Workflow{Note: text}) || q.Matches(&kagziv1.Workflow{Note: text + "x"}) {
			t.Errorf("%s does not mean %q", Quote(text), text)
		}
		if all, err := Runs.Parse("note = "+QuotePattern(text+"*"), noon); err != nil ||
			!all.Matches(&kagziv1.Workflow{Note: text + "x"}) {
			t.Errorf("%s does not mean what begins with %q", QuotePattern(text+"*"), text)
		}
	})
}
