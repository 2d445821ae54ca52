package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAnUpdateNamesOnlyWhatIsOtherwise(t *testing.T) {
	old := &kagziv1.WorkflowSchedule{
		ScheduleId: "s", Name: "nightly", WorkflowType: "report", TaskQueue: "reports", CronExpr: "@daily",
		TimeZone: "UTC", MaxCatchup: 100,
		Input: &kagziv1.Payload{Data: []byte(`{"a":1}`)},
	}
	same := map[string]string{
		"type": "report", "queue": "reports", "cron": "@daily", "zone": "UTC", "name": " nightly ", "overlap": "allow",
		"catchup": "100", "input": "{\"a\":1}\n",
	}
	tests := []struct {
		name   string
		change map[string]string
		want   *kagziv1.UpdateWorkflowScheduleRequest
	}{
		{"nothing", nil, nil},
		{"the expression", map[string]string{"cron": "@hourly"},
			&kagziv1.UpdateWorkflowScheduleRequest{CronExpr: new("@hourly")}},
		{"the zone to none", map[string]string{"zone": ""}, &kagziv1.UpdateWorkflowScheduleRequest{TimeZone: new("")}},
		{"the overlap", map[string]string{"overlap": "skip"},
			&kagziv1.UpdateWorkflowScheduleRequest{OverlapPolicy: kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP.Enum()}},
		{"no catch-up", map[string]string{"catchup": "0"},
			&kagziv1.UpdateWorkflowScheduleRequest{MaxCatchup: new(int32(0))}},
		{"the input", map[string]string{"input": "2"}, &kagziv1.UpdateWorkflowScheduleRequest{
			Input: &kagziv1.Payload{Data: []byte("2"), Metadata: map[string]string{"content-type": "application/json"}},
		}},
		{"the input away", map[string]string{"input": ""},
			&kagziv1.UpdateWorkflowScheduleRequest{Input: &kagziv1.Payload{}}},
		{"the type and the name", map[string]string{"type": "bill", "name": ""},
			&kagziv1.UpdateWorkflowScheduleRequest{WorkflowType: new("bill"), Name: new("")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			values := map[string]string{}
			for k, v := range same {
				values[k] = v
			}
			for k, v := range test.change {
				values[k] = v
			}
			got, changed := updateSchedule(old, values)
			if changed != (test.want != nil) {
				t.Fatalf("changed = %t, want %t: %v", changed, test.want != nil, got)
			}
			if diff := cmp.Diff(test.want, got, protocmp.Transform()); changed && diff != "" {
				t.Fatalf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnInputThatIsNoPlainJSONIsLeftAlone(t *testing.T) {
	for _, input := range []*kagziv1.Payload{
		{Data: []byte("\x00\x01")},
		{Data: []byte("{}"), Metadata: map[string]string{"encoding": "sealed"}},
	} {
		if editable(input) {
			t.Errorf("%v can be edited as text", input)
		}
		old := &kagziv1.WorkflowSchedule{Input: input, MaxCatchup: 1}
		if got, changed := updateSchedule(old, map[string]string{"overlap": "allow", "catchup": "1"}); changed {
			t.Errorf("a form without the input changes %v", got)
		}
	}
	if !editable(nil) || !editable(&kagziv1.Payload{Data: []byte(`{"a":1}`)}) {
		t.Error("plain JSON and no input cannot be edited")
	}
}
