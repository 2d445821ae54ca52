package engine

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// What holds where nothing was said.
const (
	DefaultAttempts        = 3
	DefaultInitialInterval = time.Second
	DefaultCoefficient     = 2.0
	DefaultMaximumInterval = time.Minute
	DefaultJitter          = 0.1
	DefaultStepTimeout     = 600 * time.Second
)

// RetryPolicy says how often and when failed code is tried again. Its zero value is the default policy.
// Read it through its methods, which know the defaults.
type RetryPolicy struct {
	MaximumAttempts   int     `json:"maximum_attempts,omitempty"` // the first included; 0: 3; -1: without end
	InitialIntervalMS int64   `json:"initial_interval_ms,omitempty"`
	Coefficient       float64 `json:"backoff_coefficient,omitempty"`
	MaximumIntervalMS int64   `json:"maximum_interval_ms,omitempty"`
	// part of the delay, added on top; 0: 0.1; negative: none
	Jitter       float64  `json:"jitter,omitempty"`
	NonRetryable []string `json:"non_retryable,omitempty"` // an error's type, or the beginning of its message
}

// Allows says whether code that has now failed n times may be tried again after f.
func (p RetryPolicy) Allows(n int, f Failure) bool {
	if f.NonRetryable || p.rules(f) {
		return false
	}
	return p.attempts() < 0 || n < p.attempts()
}

// attempts is how often the code may run, the first time included; negative: without end.
func (p RetryPolicy) attempts() int { return cmp.Or(p.MaximumAttempts, DefaultAttempts) }

// firstPolicy is the first of these that is set, else the default.
func firstPolicy(policies ...*RetryPolicy) RetryPolicy {
	if p := cmp.Or(policies...); p != nil {
		return *p
	}
	return RetryPolicy{}
}

// rules says whether the policy itself names the failure as final.
func (p RetryPolicy) rules(f Failure) bool {
	return slices.ContainsFunc(p.NonRetryable, func(entry string) bool {
		return entry != "" && (f.Type == entry || strings.HasPrefix(f.Message, entry))
	})
}

// Backoff is the delay after the n-th failure: min(initial * coefficient^(n-1), maximum), and up to the jitter's part
// of it on top; jitter in [0,1) decides how much. Everything is computed in floating point and clamped before it
// becomes a Duration, because an overflow there would turn into a negative delay.
func (p RetryPolicy) Backoff(n int, jitter float64) time.Duration {
	initial, maximum := float64(p.InitialIntervalMS), float64(p.MaximumIntervalMS)
	if initial <= 0 {
		initial = float64(DefaultInitialInterval.Milliseconds())
	}
	if maximum <= 0 {
		maximum = float64(DefaultMaximumInterval.Milliseconds())
	}
	coefficient := p.Coefficient
	if coefficient < 1 {
		coefficient = DefaultCoefficient
	}
	delay := math.Min(initial*math.Pow(coefficient, float64(n-1)), maximum)
	if math.IsNaN(delay) {
		delay = maximum
	}
	delay += delay * p.jitter() * jitter
	return time.Duration(math.Min(delay, float64(MaxDelay.Milliseconds())) * float64(time.Millisecond))
}

func (p RetryPolicy) jitter() float64 {
	switch {
	case p.Jitter < 0:
		return 0
	case p.Jitter == 0:
		return DefaultJitter
	}
	return math.Min(p.Jitter, 1)
}
