package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	none := -1.0
	for _, c := range []struct {
		name   string
		policy RetryPolicy
		n      int
		jitter float64
		want   time.Duration
	}{
		{"the first retry waits the initial interval", RetryPolicy{Jitter: none}, 1, 0.9, time.Second},
		{"the second twice as long", RetryPolicy{Jitter: none}, 2, 0.9, 2 * time.Second},
		{"the third four times", RetryPolicy{Jitter: none}, 3, 0.9, 4 * time.Second},
		{"the seventh is cut at a minute", RetryPolicy{Jitter: none}, 7, 0.9, time.Minute},
		{"a jitter of 0 adds nothing", RetryPolicy{}, 1, 0, time.Second},
		{"the default jitter adds at most a tenth", RetryPolicy{}, 1, 0.5, 1050 * time.Millisecond},
		{"jitter comes on top of the maximum", RetryPolicy{Jitter: 1}, 20, 0.5, 90 * time.Second},
		{"a jitter over one counts as one", RetryPolicy{Jitter: 7}, 1, 0.5, 1500 * time.Millisecond},
		{"an interval of its own", RetryPolicy{InitialIntervalMS: 50, Jitter: none}, 2, 0, 100 * time.Millisecond},
		{"a coefficient of one never grows", RetryPolicy{Coefficient: 1, Jitter: none}, 50, 0, time.Second},
		{"a coefficient below one is the default", RetryPolicy{Coefficient: 0.5, Jitter: none}, 2, 0, 2 * time.Second},
		{"an initial interval over the maximum is cut", RetryPolicy{InitialIntervalMS: 120_000, Jitter: none}, 1, 0,
			time.Minute},
		{"a maximum of its own", RetryPolicy{MaximumIntervalMS: 3000, Jitter: none}, 3, 0, 3 * time.Second},
		{"nothing passes ten years", RetryPolicy{
			InitialIntervalMS: MaxDelay.Milliseconds(), MaximumIntervalMS: MaxDelay.Milliseconds(), Jitter: 1}, 9,
			1, MaxDelay},
		{"an infinite power is the maximum", RetryPolicy{Coefficient: 1e9, Jitter: none}, 10_000, 0, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.policy.Backoff(c.n, c.jitter); got != c.want {
				t.Errorf("Backoff(%d, %v) = %s, want %s", c.n, c.jitter, got, c.want)
			}
		})
	}
}

func TestBackoffIsNeverNegativeNorOverItsBound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	coefficients := []float64{0, 0.1, 1, 1.0001, 1.5, 2, 10, 1e3, 1e9, math.Inf(1), math.NaN(), -1}
	intervals := []int64{0, 1, 1000, 60_000, MaxDelay.Milliseconds(), math.MaxInt64, -1, math.MinInt64}
	jitters := []float64{-1, 0, 0.1, 1, 2}
	for n := 1; n <= 10_000; n++ {
		p := RetryPolicy{
			Coefficient:       coefficients[rnd.IntN(len(coefficients))],
			InitialIntervalMS: intervals[rnd.IntN(len(intervals))],
			MaximumIntervalMS: intervals[rnd.IntN(len(intervals))],
			Jitter:            jitters[rnd.IntN(len(jitters))],
		}
		for _, jitter := range []float64{0, rnd.Float64(), math.Nextafter(1, 0)} {
			got := p.Backoff(n, jitter)
			bound := MaxDelay
			if p.MaximumIntervalMS > 0 && p.MaximumIntervalMS < MaxDelay.Milliseconds()/2 {
				bound = time.Duration(math.Ceil(float64(p.MaximumIntervalMS)*(1+p.jitter()))) * time.Millisecond
			}
			if got < 0 || got > bound {
				t.Fatalf("Backoff(%d, %v) of %+v = %s, want 0 to %s", n, jitter, p, got, bound)
			}
		}
	}
}

func TestBackoffGrowsWithTheFailures(t *testing.T) {
	for _, p := range []RetryPolicy{{Jitter: -1}, {Jitter: -1, Coefficient: 1.1}, {Jitter: -1, Coefficient: 1e9}} {
		last := time.Duration(0)
		for n := 1; n <= 10_000; n++ {
			got := p.Backoff(n, 0)
			if got < last {
				t.Fatalf("Backoff(%d) of %+v = %s, less than %s before", n, p, got, last)
			}
			last = got
		}
	}
}

func TestAllows(t *testing.T) {
	plain := Failure{Message: "card declined: 51", Type: "card_declined"}
	for _, c := range []struct {
		name   string
		policy RetryPolicy
		n      int
		f      Failure
		want   bool
	}{
		{"the default allows a second attempt", RetryPolicy{}, 1, plain, true},
		{"the default allows a third attempt", RetryPolicy{}, 2, plain, true},
		{"the default allows no fourth attempt", RetryPolicy{}, 3, plain, false},
		{"one attempt means no retry", RetryPolicy{MaximumAttempts: 1}, 1, plain, false},
		{"two attempts mean one", RetryPolicy{MaximumAttempts: 2}, 1, plain, true},
		{"minus one is without end", RetryPolicy{MaximumAttempts: -1}, 1_000_000, plain, true},
		{"the failure says no", RetryPolicy{MaximumAttempts: -1}, 1, Failure{NonRetryable: true}, false},
		{"its type is named", RetryPolicy{NonRetryable: []string{"x", "card_declined"}}, 1, plain, false},
		{"a part of its type is not enough", RetryPolicy{NonRetryable: []string{"card_"}}, 1, plain, true},
		{"its message begins so", RetryPolicy{NonRetryable: []string{"card declined"}}, 1, plain, false},
		{"its message only holds it", RetryPolicy{NonRetryable: []string{"declined"}}, 1, plain, true},
		{"an empty entry names nothing", RetryPolicy{NonRetryable: []string{""}}, 1, Failure{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.policy.Allows(c.n, c.f); got != c.want {
				t.Errorf("Allows(%d, %+v) = %v, want %v", c.n, c.f, got, c.want)
			}
		})
	}
}

func ExampleRetryPolicy_Backoff() {
	p := RetryPolicy{Jitter: -1}
	for n := range 8 {
		fmt.Print(p.Backoff(n+1, 0), " ")
	}
	// Output: 1s 2s 4s 8s 16s 32s 1m0s 1m0s
}
