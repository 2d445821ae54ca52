package kagzi

import (
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Retry says how often and when failed code runs again. As an option of a step it is the step's policy; in
// StartOptions it is the policy of the run's steps and of the run itself. A zero field means the default
// in brackets. Only failures of the code count: sleeps, drained and lost workers cost nothing.
//
// After the n-th failure the delay is Initial * Coefficient^(n-1), at most Max, plus a random part of up to Jitter of it.
type Retry struct {
	Attempts    int           // the first one included; -1 without end, 1 no retry (3)
	Initial     time.Duration // (1 s)
	Max         time.Duration // (60 s)
	Coefficient float64       // at least 1 (2)
	Jitter      float64       // 0 to 1; negative means none (0.1)
	// NonRetryable names errors that are final: those whose type equals an entry, or whose message starts with one.
	NonRetryable []string
}

func (r Retry) applyStep(o *stepOptions) { o.retry = r.policy() }

func (r Retry) policy() *kagziv1.RetryPolicy {
	return &kagziv1.RetryPolicy{
		MaximumAttempts:    narrow(r.Attempts),
		InitialIntervalMs:  wholeMs(r.Initial),
		BackoffCoefficient: r.Coefficient,
		MaximumIntervalMs:  wholeMs(r.Max),
		NonRetryableErrors: r.NonRetryable,
		Jitter:             max(r.Jitter, -1),
	}
}

// wholeMs rounds away from 0, which means the default, so that a short duration is a short one, and one below 0 is refused.
func wholeMs(d time.Duration) int64 {
	if d < 0 {
		return min(d.Milliseconds(), -1)
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
