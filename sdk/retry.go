package kagzi

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
	// NonRetryable names errors that are final: those whose type equals an entry, or whose message starts with one. It has at most 64 entries
	// of up to 255 bytes.
	NonRetryable []string
}

func (r Retry) applyStep(o *stepOptions) {
	o.retry = r.policy()
	if err := r.check(); err != nil {
		o.wrong = err
	}
}

const (
	maxAttempts     = 10_000
	maxDelay        = 10 * 365 * 24 * time.Hour
	maxNonRetryable = 64
)

// check names what a server would refuse: of a step it would do so only once the step has failed.
func (r Retry) check() error {
	switch {
	case r.Attempts < -1 || r.Attempts > maxAttempts:
		return fmt.Errorf("option Retry.Attempts is %d, want 1 to %d, or -1 for no end", r.Attempts, maxAttempts)
	case r.Initial < 0 || r.Initial > maxDelay:
		return fmt.Errorf("option Retry.Initial is %v, want 0 to 10 years", r.Initial)
	case r.Max < 0 || r.Max > maxDelay:
		return fmt.Errorf("option Retry.Max is %v, want 0 to 10 years", r.Max)
	case r.Coefficient != 0 && !(r.Coefficient >= 1 && r.Coefficient <= 1e9):
		return fmt.Errorf("option Retry.Coefficient is %v, want 1 to 1e9", r.Coefficient)
	case !(r.Jitter <= 1):
		return fmt.Errorf("option Retry.Jitter is %v, want 0 to 1, or less than 0 for none", r.Jitter)
	case len(r.NonRetryable) > maxNonRetryable:
		return fmt.Errorf("option Retry.NonRetryable has %d entries, want at most %d", len(r.NonRetryable), maxNonRetryable)
	}
	for i, entry := range r.NonRetryable {
		if len(entry) > maxErrorType || !utf8.ValidString(entry) || strings.ContainsRune(entry, 0) {
			return fmt.Errorf("option Retry.NonRetryable[%d] is %.300q, want UTF-8 without NUL of at most %d bytes", i, entry, maxErrorType)
		}
	}
	return nil
}

func (r Retry) policy() *kagziv1.RetryPolicy {
	return &kagziv1.RetryPolicy{
		MaximumAttempts:    narrow(r.Attempts),
		InitialIntervalMs:  wholeMs(r.Initial),
		BackoffCoefficient: r.Coefficient,
		MaximumIntervalMs:  wholeMs(r.Max),
		NonRetryableErrors: slices.Clone(r.NonRetryable),
		Jitter:             max(r.Jitter, -1),
	}
}
