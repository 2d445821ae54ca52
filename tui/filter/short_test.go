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
)

func mustShort(t *testing.T, text string) Short {
	t.Helper()
	s, err := ParseShort(text)
	if err != nil {
		t.Fatalf("ParseShort(%q): %v", text, err)
	}
	return s
}

func compileShort(t *testing.T, text string) (Short, Query) {
	t.Helper()
	s := mustShort(t, text)
	q, err := s.Compile("ns", now)
	if err != nil {
		t.Fatalf("Compile(%q): %v", text, err)
	}
	return s, q
}

func TestShort_asks_the_server_for_what_it_can_do(t *testing.T) {
	s, q := compileShort(
		t,
		`status:failed,timed-out type:order,refund queue:emails worker:w1 parent:01a1f826-e120-7000-a8d4-f6eb6d272421 schedule:s1 since:24h until:2026-11-20T11:00 tag.team=pay label.tier:gold id:018F`)
	want := &kagziv1.ListWorkflowsRequest{
		Namespace: "ns",
		Statuses: []kagziv1.WorkflowStatus{
			kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT},
		WorkflowTypes: []string{"order", "refund"}, TaskQueues: []string{"emails"},
		// only the server may ignore the case of run ids: that of external ids matters
		WorkerId: new("w1"), ParentRunId: new("01a1f826-e120-7000-a8d4-f6eb6d272421"),
		ScheduleId: new("s1"), Search: new("018F"),
		CreatedAfter:  timestamppb.New(now.Add(-24*time.Hour - time.Microsecond)),
		CreatedBefore: timestamppb.New(now.Add(-time.Hour)),
		Tags:          map[string]string{"team": "pay", "tier": "gold"},
	}
	if diff := cmp.Diff(want, q.Request, protocmp.Transform()); diff != "" {
		t.Fatal(diff)
	}
	if s.Local() != "" {
		t.Fatalf("Local() = %q, want none", s.Local())
	}
}

func TestShort_keeps_locally_what_the_server_cannot_do(t *testing.T) {
	runs := []*kagziv1.Workflow{
		{Namespace: "ns", RunId: "01a", ExternalId: "order-1", WorkflowType: "order.eu", TaskQueue: "q",
			Note: "Shipping to Ada", Tags: map[string]string{"a": "xyz"}},
		{Namespace: "ns", RunId: "01b", ExternalId: "order-10", WorkflowType: "order.us", TaskQueue: "q",
			Error: &kagziv1.ErrorDetail{Message: "card DECLINED"}},
		{Namespace: "ns", RunId: "02", ExternalId: "x", WorkflowType: "noise", TaskQueue: "other"},
	}
	for text, want := range map[string]struct {
		runs  []string
		local string
	}{
		"type:order*":              {[]string{"01a", "01b"}, "type:order*"},
		"type:*.us,noi*":           {[]string{"01b", "02"}, "type:*.us,noi*"},
		"!type:noise":              {[]string{"01a", "01b"}, "!type:noise"},
		"!queue:q":                 {[]string{"02"}, "!queue:q"},
		"declined":                 {[]string{"01b"}, "declined"},
		`"to ada"`:                 {[]string{"01a"}, `"to ada"`},
		"!order":                   {[]string{"02"}, "!order"},
		"ext:order-1":              {[]string{"01a"}, ""},
		"ext:order-*":              {[]string{"01a", "01b"}, ""},
		"ext:*10,x":                {[]string{"01b", "02"}, "ext:*10,x"},
		"id:01 ext:order-10":       {[]string{"01b"}, "ext:order-10"},
		"id:order-10":              {[]string{"01b"}, ""},
		"id:order":                 {[]string{"01a", "01b"}, ""},
		"id:Order":                 {nil, ""},
		"id:01B":                   {[]string{"01b"}, ""},
		"id:02,order-1":            {[]string{"01a", "01b", "02"}, "id:02,order-1"},
		"!id:order":                {[]string{"02"}, "!id:order"},
		"tag.a=x*":                 {[]string{"01a"}, "tag.a=x*"},
		"!tag.a=xyz":               {[]string{"01b", "02"}, "!tag.a=xyz"},
		"type:order.eu type:noise": {nil, "type:noise"},
		"":                         {[]string{"01a", "01b", "02"}, ""},
	} {
		s, q := compileShort(t, text)
		var kept []string
		for _, r := range runs {
			if q.Matches(r) {
				kept = append(kept, r.RunId)
			}
		}
		if !slices.Equal(kept, want.runs) {
			t.Errorf("%q keeps %v, want %v", text, kept, want.runs)
		}
		if s.Local() != want.local {
			t.Errorf("%q is matched locally on %q, want %q", text, s.Local(), want.local)
		}
	}
}

func TestShort_two_moments_of_a_side_are_both_met(t *testing.T) {
	_, q := compileShort(t, "since:24h since:1h until:30m until:45m")
	if got, want := q.Request.CreatedAfter.AsTime(), now.Add(-time.Hour-time.Microsecond); !got.Equal(want) {
		t.Errorf("after %v, want %v", got, want)
	}
	if got, want := q.Request.CreatedBefore.AsTime(), now.Add(-45*time.Minute); !got.Equal(want) {
		t.Errorf("before %v, want %v", got, want)
	}
}

func TestShort_accepts_the_long_form(t *testing.T) {
	s, q := compileShort(t, `status = "FAILED" and tag.a = "b"`)
	if s.Long == "" || len(q.Request.Statuses) != 1 || q.Request.Tags["a"] != "b" {
		t.Fatalf("got %+v", s)
	}
	if _, err := ParseShort(`status = "DONE"`); err == nil || !strings.Contains(err.Error(), "position 10") {
		t.Fatalf("error of the long form = %v, want one that says where", err)
	}
}

func TestShort_errors_say_what_was_expected(t *testing.T) {
	for text, want := range map[string]string{
		"status:done":         "a status (pending,",
		"staus:failed":        "one of status:",
		"since:yesterday":     "a time (24h",
		"!since:24h":          "no ! in front of since",
		"since:1h,2h":         "one moment",
		"type:":               "a value",
		"type:a,":             "a value",
		"tag.x":               "as in tag.team=pay",
		`type:"a`:             `the closing "`,
		`"\`:                  `the closing "`,
		"! a":                 "a term after !",
		"http://example.com/": "quote it to search",
		"a\xffb":              "UTF-8",
	} {
		_, err := ParseShort(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseShort(%q): %v, want %q in it", text, err, want)
		}
	}
}

func TestMatches_agrees_with_what_a_request_says(t *testing.T) {
	failed := kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED
	run := &kagziv1.Workflow{
		Namespace: "default", RunId: "01ab", ExternalId: "ext-1", Status: failed, WorkflowType: "t", TaskQueue: "q",
		CreatedAt: timestamppb.New(now),
		Tags:      map[string]string{"k": "v", "l": "w"}, ScheduleId: new("s"), ParentRunId: new("p"),
		WorkerId: new("w"),
	}
	before, after := timestamppb.New(now.Add(-time.Second)), timestamppb.New(now.Add(time.Second))
	for name, try := range map[string]struct {
		request *kagziv1.ListWorkflowsRequest
		want    bool
	}{
		"nothing asked":     {&kagziv1.ListWorkflowsRequest{}, true},
		"another namespace": {&kagziv1.ListWorkflowsRequest{Namespace: "x"}, false},
		"its status":        {&kagziv1.ListWorkflowsRequest{StatusFilter: &failed}, true},
		"another status":    {&kagziv1.ListWorkflowsRequest{Statuses: []kagziv1.WorkflowStatus{1}}, false},
		"one of two types": {&kagziv1.ListWorkflowsRequest{
			WorkflowTypes: []string{"x"}, WorkflowType: new("t")}, true},
		"another type":        {&kagziv1.ListWorkflowsRequest{WorkflowType: new("x")}, false},
		"another queue":       {&kagziv1.ListWorkflowsRequest{TaskQueues: []string{"x"}}, false},
		"created between":     {&kagziv1.ListWorkflowsRequest{CreatedAfter: before, CreatedBefore: after}, true},
		"created at the edge": {&kagziv1.ListWorkflowsRequest{CreatedAfter: timestamppb.New(now)}, false},
		"created too late":    {&kagziv1.ListWorkflowsRequest{CreatedBefore: timestamppb.New(now)}, false},
		"both tags":           {&kagziv1.ListWorkflowsRequest{Tags: map[string]string{"k": "v", "l": "w"}}, true},
		"a tag it has not":    {&kagziv1.ListWorkflowsRequest{Tags: map[string]string{"m": ""}}, false},
		"its run id, begun":   {&kagziv1.ListWorkflowsRequest{Search: new("01A")}, true},
		"its external id":     {&kagziv1.ListWorkflowsRequest{Search: new("ext")}, true},
		"another id":          {&kagziv1.ListWorkflowsRequest{Search: new("02")}, false},
		"its relations": {&kagziv1.ListWorkflowsRequest{
			ScheduleId: new("s"), ParentRunId: new("p"), WorkerId: new("w")}, true},
		"another worker": {&kagziv1.ListWorkflowsRequest{WorkerId: new("x")}, false},
	} {
		if got := Matches(try.request, run); got != try.want {
			t.Errorf("%s: %t, want %t", name, got, try.want)
		}
	}
}

func TestComplete(t *testing.T) {
	known := Known{Types: []string{"order", "order.eu", "x,y"}, Queues: []string{"emails"}, Tags: []string{"team"}}
	for text, want := range map[string][]string{
		"st":                 {"status:"},
		"status:failed,r":    {"status:failed,running"},
		"a !ty":              {"a !type:"},
		"type:or":            {"type:order", "type:order.eu"},
		"type:x":             nil,
		`type:"x`:            {`type:"x,y"`},
		"queue:":             {"queue:emails"},
		"tag.":               {"tag.team="},
		"":                   nil,
		"status:failed type": {"status:failed type:"},
		"nothing:x":          nil,
	} {
		if got := Complete(text, known); !slices.Equal(got, want) {
			t.Errorf("Complete(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestKeyOf(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "worker": "", "worker:": "worker", "!worker:a": "worker", "status:failed,r": "status",
		"status:failed sched": "", "a:b schedule:n": "schedule",
	} {
		if got := KeyOf(text); got != want {
			t.Errorf("KeyOf(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzParseShort(f *testing.F) {
	for _, s := range []string{
		`status:failed,open type:order* !queue:"a b" id:018f ext:o-1 since:24h until:2026-11-20T10:00 tag.team=pay label."odd key":x,y free "te\"xt"`,
		`status = "FAILED" and created > -24h`, `tag.a=b and tag.c=d`, `tag.a="*"`, `type in x`, `!`, `!!a`,
		`tag."a ="="\xff"`, `a:b`, `in`, `"and"`,
	} {
		f.Add(s)
	}
	run := &kagziv1.Workflow{Namespace: "default", RunId: "01ab", WorkflowType: "order"}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseShort(text)
		if err != nil {
			_ = err.Error()
			return
		}
		again, err := ParseShort(s.String())
		if err != nil {
			t.Fatalf("%q printed as %q: %v", text, s, err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Fatalf("%q printed as %q: %s", text, s, diff)
		}
		_ = s.Local()
		Complete(text, Known{Types: []string{text}})
		if q, err := s.Compile("", now); err == nil {
			q.Matches(run)
		}
	})
}

func TestAMistypedNameIsAnsweredWithTheOneThatWasMeant(t *testing.T) {
	for text, want := range map[string]string{
		"typ:order":                      "position 1: did you mean type:? expected one of ",
		"status:faild":                   "position 8: did you mean failed? expected a status ",
		"status:failed,opne":             "position 15: did you mean open? expected a status ",
		"since:24h queu:emails":          "position 11: did you mean queue:? expected ",
		"x:y":                            "position 1: expected one of ",
		`status = "FALED"`:               "position 10: did you mean FAILED? expected one of ",
		`type = "a" and creatd > -1h`:    "position 16: did you mean created? expected a field ",
		`status in ("COMPLETED", "ALL")`: "position 25: expected one of ",
	} {
		_, err := ParseShort(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q…", text, err, want)
		}
	}
}
