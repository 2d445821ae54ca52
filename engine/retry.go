package engine

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// Defaults for fields that are not set.
const (
	DefaultAttempts        = 3
	DefaultInitialInterval = time.Second
	DefaultCoefficient     = 2.0
	DefaultMaximumInterval = time.Minute
	DefaultJitter          = 0.1
	DefaultStepTimeout     = 600 * time.Second
)

// RetryPolicy says how often and when failed code is retried. Its zero value is the default policy.
// Its methods apply the defaults.
type RetryPolicy struct {
	MaximumAttempts   int     `json:"maximum_attempts,omitempty"` // including the first; 0: 3; -1: no limit
	InitialIntervalMS int64   `json:"initial_interval_ms,omitempty"`
	Coefficient       float64 `json:"backoff_coefficient,omitempty"`
	MaximumIntervalMS int64   `json:"maximum_interval_ms,omitempty"`
	// fraction of the delay that is added at most; 0: 0.1; negative: none
	Jitter       float64  `json:"jitter,omitempty"`
	NonRetryable []string `json:"non_retryable,omitempty"` // error types, or prefixes of messages
}

// Allows says whether code that has failed n times may be retried after f.
func (p RetryPolicy) Allows(n int, f Failure) bool {
	if f.NonRetryable || p.isFinal(f) {
		return false
	}
	return p.attempts() < 0 || n < p.attempts()
}

// attempts returns how often the code may run, including the first time; negative: no limit.
func (p RetryPolicy) attempts() int { return cmp.Or(p.MaximumAttempts, DefaultAttempts) }

// firstPolicy returns the first policy that is not nil, else the default.
func firstPolicy(policies ...*RetryPolicy) RetryPolicy {
	if p := cmp.Or(policies...); p != nil {
		return *p
	}
	return RetryPolicy{}
}

// isFinal says whether NonRetryable lists the failure.
func (p RetryPolicy) isFinal(f Failure) bool {
	return slices.ContainsFunc(p.NonRetryable, func(entry string) bool {
		return entry != "" && (f.Type == entry || strings.HasPrefix(f.Message, entry))
	})
}

// Backoff returns the delay after the n-th failure: min(initial * coefficient^(n-1), maximum), plus
// the fraction Jitter of it times jitter, which is in [0,1). It computes in floating point and
// clamps before converting to a Duration, because an overflow there would become a negative delay.
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
