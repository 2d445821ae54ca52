package kagzi

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/testing/protocmp"
)

func TestPoliciesOfAStart(t *testing.T) {
	a, b, c := &Retry{Attempts: 2, Initial: time.Second}, &Retry{Attempts: 3}, &Retry{Attempts: 4}
	wire := func(r *Retry) *kagziv1.RetryPolicy { return r.policy() }
	once := &kagziv1.RetryPolicy{MaximumAttempts: 1}
	for _, o := range []struct {
		name            string
		step, run, both *Retry
		steps, own      *kagziv1.RetryPolicy
	}{
		{"none", nil, nil, nil, nil, nil},
		{"StepRetry alone leaves the run one attempt", a, nil, nil, wire(a), once},
		{"RunRetry alone", nil, b, nil, nil, wire(b)},
		{"each", a, b, nil, wire(a), wire(b)},
		{"Retry is sent as ever", nil, nil, c, wire(c), nil},
		{"Retry stands in for RunRetry", a, nil, c, wire(a), wire(c)},
		{"Retry stands in for StepRetry", nil, b, c, wire(c), wire(b)},
		{"all", a, b, c, wire(a), wire(b)},
	} {
		t.Run(o.name, func(t *testing.T) {
			req, err := newStart("shop", "w", nil, StartOptions{StepRetry: o.step, RunRetry: o.run, Retry: o.both}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]*kagziv1.RetryPolicy{o.steps, o.own},
				[]*kagziv1.RetryPolicy{req.GetRetryPolicy(), req.GetRunRetryPolicy()}, protocmp.Transform()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	bad := &Retry{Attempts: -2}
	for want, o := range map[string]StartOptions{
		"option StepRetry.Attempts is -2, want 1 to 10000, or -1 for no end": {StepRetry: bad},
		"option RunRetry.Attempts is -2, want 1 to 10000, or -1 for no end":  {RunRetry: bad},
		"option Retry.Attempts is -2, want 1 to 10000, or -1 for no end":     {Retry: bad},
	} {
		if _, err := newStart("shop", "w", nil, o, time.Now()); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
