package view

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// nameIn is what a schedule will be called.
func nameIn(values map[string]string) string {
	return cmp.Or(strings.TrimSpace(values["name"]), "for "+strings.TrimSpace(values["type"]))
}

// createSchedule is the request that the values of a form make. They have been checked.
func createSchedule(values map[string]string) *kagziv1.CreateWorkflowScheduleRequest {
	v := trimmed(values)
	return &kagziv1.CreateWorkflowScheduleRequest{
		WorkflowType: v["type"], TaskQueue: v["queue"], CronExpr: v["cron"], TimeZone: v["zone"], Name: v["name"],
		Input: payloadOf(v["input"]), OverlapPolicy: overlapOf(v["overlap"]), MaxCatchup: new(catchupOf(v["catchup"])),
	}
}

// updateSchedule is the request that changes what the values of a form say otherwise than the schedule; changed is false when that is nothing.
func updateSchedule(old *kagziv1.WorkflowSchedule, values map[string]string) (r *kagziv1.UpdateWorkflowScheduleRequest, changed bool) {
	v, r := trimmed(values), &kagziv1.UpdateWorkflowScheduleRequest{}
	for _, text := range []struct {
		field string
		was   string
		to    **string
	}{
		{"type", old.GetWorkflowType(), &r.WorkflowType}, {"queue", old.GetTaskQueue(), &r.TaskQueue}, {"cron", old.GetCronExpr(), &r.CronExpr},
		{"zone", old.GetTimeZone(), &r.TimeZone}, {"name", old.GetName(), &r.Name},
	} {
		if v[text.field] != text.was {
			*text.to, changed = new(v[text.field]), true
		}
	}
	if input, ok := v["input"]; ok && input != strings.TrimSpace(string(old.GetInput().GetData())) {
		r.Input, changed = payloadOf(input), true
		if r.Input == nil {
			r.Input = &kagziv1.Payload{} // no input, where none would leave it as it is
		}
	}
	if overlap := overlapOf(v["overlap"]); overlap != overlapOf(render.Overlap(old.GetOverlapPolicy())) {
		r.OverlapPolicy, changed = &overlap, true
	}
	if n := catchupOf(v["catchup"]); n != old.GetMaxCatchup() {
		r.MaxCatchup, changed = &n, true
	}
	return r, changed
}

func trimmed(values map[string]string) map[string]string {
	v := map[string]string{}
	for name, value := range values {
		v[name] = strings.TrimSpace(value)
	}
	return v
}

// catchupOf is how many missed ticks are made up for; an empty field is the usual number.
func catchupOf(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return usualCatchup
	}
	return int32(n)
}

// editable says that an input can be changed as text: there is none, or it is plain JSON.
func editable(p *kagziv1.Payload) bool {
	return len(p.GetData()) == 0 || p.GetMetadata()["encoding"] == "" && json.Valid(p.GetData())
}

// payloadOf is JSON as a payload; nil for none.
func payloadOf(text string) *kagziv1.Payload {
	if text == "" {
		return nil
	}
	return &kagziv1.Payload{Data: []byte(text), Metadata: map[string]string{"content-type": "application/json"}}
}
