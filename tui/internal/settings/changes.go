package settings

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Changes returns the request that makes a schedule what it is to be.
func Changes(was, is *kagziv1.WorkflowSchedule) (r *kagziv1.UpdateWorkflowScheduleRequest, changed bool) {
	r = &kagziv1.UpdateWorkflowScheduleRequest{}
	for _, text := range []struct {
		was, is string
		to      **string
	}{{was.GetWorkflowType(), is.GetWorkflowType(), &r.WorkflowType},
		{was.GetTaskQueue(), is.GetTaskQueue(), &r.TaskQueue},
		{was.GetCronExpr(), is.GetCronExpr(), &r.CronExpr}, {was.GetTimeZone(), is.GetTimeZone(), &r.TimeZone},
		{was.GetName(), is.GetName(), &r.Name}, {was.GetVersion(), is.GetVersion(), &r.Version},
		{was.GetOnFailureWorkflow(), is.GetOnFailureWorkflow(), &r.OnFailureWorkflow},
		{was.GetOnFailureTaskQueue(), is.GetOnFailureTaskQueue(), &r.OnFailureTaskQueue},
		{was.GetConcurrencyKey(), is.GetConcurrencyKey(), &r.ConcurrencyKey}} {
		if text.was != text.is {
			*text.to, changed = new(text.is), true
		}
	}
	differs := func(d bool, set func()) {
		if d {
			set()
			changed = true
		}
	}
	differs(was.GetMaxCatchup() != is.GetMaxCatchup(), func() { r.MaxCatchup = new(is.GetMaxCatchup()) })
	differs(was.GetJitterMs() != is.GetJitterMs(), func() { r.JitterMs = new(is.GetJitterMs()) })
	differs(was.GetOverlapPolicy() != is.GetOverlapPolicy(), func() { r.OverlapPolicy = new(is.GetOverlapPolicy()) })
	differs(!proto.Equal(was.GetInput(), is.GetInput()), func() { r.Input = cmp.Or(is.GetInput(), &kagziv1.Payload{}) })
	differs(!sameTags(was.GetTags(), is.GetTags()), func() { r.Tags = &kagziv1.ScheduleTags{Tags: is.GetTags()} })
	steps, run := samePolicy(was.GetRetryPolicy(), is.GetRetryPolicy()),
		samePolicy(was.GetRunRetryPolicy(), is.GetRunRetryPolicy())
	differs(!steps || !run, func() { // a policy of steps alone is for the run, too
		if r.RunRetryPolicy = is.GetRunRetryPolicy(); !steps || r.RunRetryPolicy == nil {
			r.RetryPolicy = cmp.Or(is.GetRetryPolicy(), &kagziv1.RetryPolicy{})
		}
	})
	differs(!sameTimeouts(was.GetTimeouts(), is.GetTimeouts()), func() {
		r.Timeouts = cmp.Or(is.GetTimeouts(), &kagziv1.TimeoutConfig{})
	})
	if is.GetConcurrencyKey() != "" { // without one there is neither limit nor scope
		differs(was.GetConcurrencyLimit() != is.GetConcurrencyLimit(),
			func() { r.ConcurrencyLimit = new(is.GetConcurrencyLimit()) })
		differs(was.GetConcurrencyScope() != is.GetConcurrencyScope() &&
			is.GetConcurrencyScope() != kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_UNSPECIFIED,
			func() { r.ConcurrencyScope = new(is.GetConcurrencyScope()) })
	}
	return r, changed
}

func samePolicy(a, b *kagziv1.RetryPolicy) bool {
	return proto.Equal(cmp.Or(a, &kagziv1.RetryPolicy{}), cmp.Or(b, &kagziv1.RetryPolicy{}))
}

func sameTimeouts(a, b *kagziv1.TimeoutConfig) bool {
	return proto.Equal(cmp.Or(a, &kagziv1.TimeoutConfig{}), cmp.Or(b, &kagziv1.TimeoutConfig{}))
}

func sameTags(a, b map[string]string) bool { return tagLines(a) == tagLines(b) }
