package kagzi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
)

// Retry is a retry policy. As an option of Step it applies to that step; StartOptions has one for
// steps without their own, StepRetry, and one for the run itself, RunRetry. A field that is zero has
// the default in brackets. Only failures of the code count as attempts; sleeps, drains and lost
// workers do not.
//
// The delay after the n-th failure is min(Initial * Coefficient^(n-1), Max), plus a random part of
// up to Jitter of it.
type Retry struct {
	Attempts    int           // including the first; 1 means no retry, -1 no limit (3)
	Initial     time.Duration // (1 s)
	Max         time.Duration // (60 s)
	Coefficient float64       // at least 1 (2)
	Jitter      float64       // 0 to 1; a negative value means none (0.1)
	// NonRetryable lists errors that are final: an entry matches an error's type or the start of
	// its message. At most 64 entries of up to 255 bytes.
	NonRetryable []string
}

func (r Retry) applyStep(o *stepOptions) {
	o.retry = r.policy()
	if err := r.check("Retry"); err != nil {
		o.wrong = err
	}
}

const (
	maxAttempts     = 10_000
	maxDelay        = 10 * 365 * 24 * time.Hour
	maxNonRetryable = 64
)

// check rejects values that the server would refuse, which it would do only after the step failed. It
// names the option that the policy is.
func (r Retry) check(option string) error {
	switch {
	case r.Attempts < -1 || r.Attempts > maxAttempts:
		return fmt.Errorf("option %s.Attempts is %d, want 1 to %d, or -1 for no end", option, r.Attempts, maxAttempts)
	case r.Initial < 0 || r.Initial > maxDelay:
		return fmt.Errorf("option %s.Initial is %v, want 0 to 10 years", option, r.Initial)
	case r.Max < 0 || r.Max > maxDelay:
		return fmt.Errorf("option %s.Max is %v, want 0 to 10 years", option, r.Max)
	case r.Coefficient != 0 && !(r.Coefficient >= 1 && r.Coefficient <= 1e9):
		return fmt.Errorf("option %s.Coefficient is %v, want 1 to 1e9", option, r.Coefficient)
	case !(r.Jitter <= 1):
		return fmt.Errorf("option %s.Jitter is %v, want 0 to 1, or less than 0 for none", option, r.Jitter)
	case len(r.NonRetryable) > maxNonRetryable:
		return fmt.Errorf("option %s.NonRetryable has %d entries, want at most %d", option, len(r.NonRetryable),
			maxNonRetryable)
	}
	for i, entry := range r.NonRetryable {
		if len(entry) > convert.MaxErrorType || !utf8.ValidString(entry) || strings.ContainsRune(entry, 0) {
			return fmt.Errorf("option %s.NonRetryable[%d] is %.300q, want UTF-8 without NUL of at most %d bytes", option, i,
				entry, convert.MaxErrorType)
		}
	}
	return nil
}

func (r Retry) policy() *kagziv1.RetryPolicy {
	return &kagziv1.RetryPolicy{
		MaximumAttempts:    convert.Narrow(r.Attempts),
		InitialIntervalMs:  convert.WholeMs(r.Initial),
		BackoffCoefficient: r.Coefficient,
		MaximumIntervalMs:  convert.WholeMs(r.Max),
		NonRetryableErrors: slices.Clone(r.NonRetryable),
		Jitter:             max(r.Jitter, -1),
	}
}

// clone returns a policy that shares nothing with r.
func (r *Retry) clone() *Retry {
	if r == nil {
		return nil
	}
	c := *r
	c.NonRetryable = slices.Clone(r.NonRetryable)
	return &c
}

// policies returns what a start or a schedule sends for its options StepRetry, RunRetry and Retry,
// which stands in for each of the two that is not set. A server applies a policy of steps that comes
// alone to the run, too, so without RunRetry a StepRetry is sent with one attempt of the run.
func policies(step, run, both *Retry) (ofSteps, ofRun *kagziv1.RetryPolicy) {
	if step, run = cmp.Or(step, both), cmp.Or(run, both); step != nil {
		ofSteps = step.policy()
	}
	switch {
	case run == nil && step != nil:
		ofRun = &kagziv1.RetryPolicy{MaximumAttempts: 1}
	case run != nil && run != step: // one for both is sent as servers before RunRetry take it
		ofRun = run.policy()
	}
	return ofSteps, ofRun
}

// checkPolicies is check for the options of policies.
func checkPolicies(step, run, both *Retry) error {
	for _, o := range []struct {
		name   string
		policy *Retry
	}{{"StepRetry", step}, {"RunRetry", run}, {"Retry", both}} {
		if o.policy != nil {
			if err := o.policy.check(o.name); err != nil {
				return err
			}
		}
	}
	return nil
}
