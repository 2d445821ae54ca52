package engine

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 123_456_789, time.UTC)

func TestClaimTurn(t *testing.T) {
	for name, c := range map[string]struct{ claims, runs, byAge int }{
		"one run a claim":                         {80, 1, 10},
		"three runs a claim":                      {80, 3, 29},
		"a hundred runs a claim pay at the next":  {9, 100, 100},
		"claims that find nothing change nothing": {80, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var turn ClaimTurn
			got := 0
			for i := range c.claims {
				n := turn.ByAge()
				if c.runs == 1 && (n == 1) != (i%ClaimByAgeEvery == ClaimByAgeEvery-1) {
					t.Errorf("run %d: %d by age, want every eighth", i+1, n)
				}
				got += n
				turn = turn.After(n, c.runs)
			}
			if got != c.byAge {
				t.Errorf("%d of %d runs by age, want %d", got, c.claims*c.runs, c.byAge)
			}
		})
	}
	if got := ClaimTurn(100).After(12, 1); got != 5 {
		t.Errorf("turn %d after a claim that found one run, want 5: what it owes is forgotten", got)
	}
}

func TestAfterStepFailed(t *testing.T) {
	once := &RetryPolicy{MaximumAttempts: 1, Jitter: -1}
	slow := &RetryPolicy{MaximumAttempts: 9, InitialIntervalMS: 5000, Jitter: -1}
	at := func(d time.Duration) Verdict {
		return Verdict{Retry: true, RetryAt: noon.Add(d).Truncate(time.Microsecond), Failures: 1}
	}
	third := at(20 * time.Second)
	third.Failures = 3
	for _, c := range []struct {
		name      string
		run, step *RetryPolicy
		n         int
		f         Failure
		want      Verdict
	}{
		{"without a policy the default applies", nil, nil, 1, Failure{}, at(time.Second)},
		{"the default's third failure is the last", nil, nil, 3, Failure{}, Verdict{}},
		{"the run's policy overrides the default", slow, nil, 3, Failure{}, third},
		{"the step's policy overrides the run's", slow, once, 1, Failure{}, Verdict{}},
		{"the step's policy overrides a stricter one of the run", once, slow, 1, Failure{}, at(5 * time.Second)},
		{"an empty step policy is the default, not the run's", once, &RetryPolicy{}, 1, Failure{},
			at(time.Second)},
		{"RetryAfter of a failure sets the delay", nil, nil, 1, Failure{RetryAfterMS: 42}, at(42 * time.Millisecond)},
		{"RetryAfter may exceed the maximum interval", nil, nil, 1, Failure{RetryAfterMS: 3_600_000}, at(time.Hour)},
		{"RetryAfter is at most ten years", nil, nil, 1, Failure{RetryAfterMS: 1 << 62}, at(MaxDelay)},
		{"RetryAfter allows no further attempt", nil, nil, 3, Failure{RetryAfterMS: 42}, Verdict{}},
		{"a non-retryable failure is not retried", nil, slow, 1, Failure{NonRetryable: true, RetryAfterMS: 42},
			Verdict{}},
		{"a failure type that the policy names is not retried", nil, &RetryPolicy{NonRetryable: []string{"fatal"}}, 1,
			Failure{Type: "fatal"},
			Verdict{}},
		{"a message prefix that the policy names is not retried", nil,
			&RetryPolicy{NonRetryable: []string{"no such"}}, 1,
			Failure{Message: "no such card"}, Verdict{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := AfterStepFailed(c.run, c.step, c.n, c.f, noon, 0); got != c.want {
				t.Errorf("AfterStepFailed = %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAfterStepFailedUsesTheJitterOfTheEffectivePolicy(t *testing.T) {
	got := AfterStepFailed(&RetryPolicy{Jitter: -1}, &RetryPolicy{Jitter: 1}, 1, Failure{}, noon, 0.5)
	if want := Micros(noon.Add(1500 * time.Millisecond)); !got.RetryAt.Equal(want) {
		t.Errorf("RetryAt = %s, want %s", got.RetryAt, want)
	}
}

func TestAfterRunFailed(t *testing.T) {
	if got := AfterRunFailed(nil, 1, Failure{RetryAfterMS: 5}, noon, 0); got.Retry {
		t.Errorf("a run without a policy is retried: %+v", got)
	}
	p := &RetryPolicy{Jitter: -1}
	for n, want := range map[int]Verdict{
		1: {Retry: true, RetryAt: Micros(noon.Add(time.Second)), Failures: 1},
		2: {Retry: true, RetryAt: Micros(noon.Add(2 * time.Second)), Failures: 2}, 3: {},
	} {
		if got := AfterRunFailed(p, n, Failure{}, noon, 0); got != want {
			t.Errorf("after failure %d: %+v, want %+v", n, got, want)
		}
	}
	if got := AfterRunFailed(p, 1, Failure{NonRetryable: true}, noon, 0); got.Retry {
		t.Errorf("a final failure of a run is retried: %+v", got)
	}
}

func TestPark(t *testing.T) {
	soon, later := noon.Add(time.Second), noon.Add(time.Minute)
	sleep := func(name string, at time.Time) Step {
		return Step{Name: name, Kind: StepSleep, Status: StepRunning, WakeAt: at}
	}
	retry := func(at time.Time) Step { return Step{Name: "r", Kind: StepFunction, Status: StepPending, RetryAt: at} }
	signal := func(awaited int64, limit time.Time) Step {
		return Step{Name: "s", Kind: StepSignal, Status: StepRunning, SignalName: "go", Awaited: awaited, WakeAt: limit}
	}
	child := func(awaited int64) Step {
		return Step{Name: "c", Kind: StepChild, Status: StepRunning, Awaited: awaited}
	}
	for _, c := range []struct {
		name string
		open []Step
		want Parked
	}{
		{"nothing to wait for is due now", nil, Parked{Status: RunPending, AvailableAt: noon}},
		{"a timer", []Step{sleep("nap", later)}, Parked{RunSleeping, later, "timer:nap"}},
		{"a retry", []Step{retry(later)}, Parked{RunPending, later, ""}},
		{"a retry that became due since the claim", []Step{retry(noon)}, Parked{RunPending, noon, ""}},
		{"a retry that was due at the claim is not waited for",
			[]Step{retry(noon.Add(-time.Second)), sleep("nap", later)}, Parked{RunSleeping, later, "timer:nap"}},
		{"the earlier of two timers", []Step{sleep("a", later), sleep("b", soon)},
			Parked{RunSleeping, soon, "timer:b"}},
		{"a retry before a timer", []Step{sleep("a", later), retry(soon)}, Parked{RunPending, soon, ""}},
		{"a timer before a retry", []Step{retry(later), sleep("a", soon)}, Parked{RunSleeping, soon, "timer:a"}},
		{"a function that runs is nothing to wait for",
			[]Step{{Name: "f", Kind: StepFunction, Status: StepRunning}, sleep("a", soon)},
			Parked{RunSleeping, soon, "timer:a"}},
		{"a timer that is over wakes at once, in the past", []Step{sleep("a", noon.Add(-time.Hour))},
			Parked{RunSleeping, noon.Add(-time.Hour), "timer:a"}},
		{"a timer that was over when it was set wakes as of then",
			[]Step{{Name: "a", Kind: StepSleep, Status: StepRunning, StartedAt: noon.Add(-time.Second),
				WakeAt: noon.Add(-time.Hour)}}, Parked{RunSleeping, noon.Add(-time.Second), "timer:a"}},
		{"a past timer wakes now if the clock was set back",
			[]Step{{Name: "a", Kind: StepSleep, Status: StepRunning, StartedAt: later, WakeAt: noon.Add(-time.Hour)}},
			Parked{RunSleeping, noon, "timer:a"}},
		{"a signal with a limit", []Step{signal(1, later)}, Parked{RunSleeping, later, "signal:go"}},
		{"a signal without a limit waits for ever", []Step{signal(1, time.Time{})},
			Parked{RunSleeping, time.Time{}, "signal:go"}},
		{"a timer beside a signal without a limit", []Step{signal(1, time.Time{}), sleep("a", later)},
			Parked{RunSleeping, later, "timer:a"}},
		{"waits that the code has not repeated are ignored",
			[]Step{signal(0, soon), child(0)}, Parked{Status: RunPending, AvailableAt: noon}},
		{"a child", []Step{child(1)}, Parked{RunSleeping, time.Time{}, "child:" + ID{}.String()}},
		{"what has ended is ignored", []Step{{Kind: StepFunction, Status: StepFailed, RetryAt: soon},
			{Kind: StepSleep, Status: StepCompleted, WakeAt: soon}}, Parked{Status: RunPending, AvailableAt: noon}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Park(c.open, noon.Add(-time.Second), noon); got != c.want {
				t.Errorf("Park = %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestMicros(t *testing.T) {
	local := noon.In(time.FixedZone("somewhere", 5*3600))
	if got := Micros(local); got.Location() != time.UTC || got.Nanosecond() != 123_456_000 ||
		!got.Equal(noon.Truncate(time.Microsecond)) {
		t.Errorf("Micros(%s) = %s", local, got)
	}
	if got := Micros(time.Time{}.In(local.Location())); !got.IsZero() {
		t.Errorf("Micros(zero) = %s, want zero", got)
	}
}

func TestMicrosUp(t *testing.T) {
	whole := time.Date(2026, 3, 1, 12, 0, 0, 5000, time.UTC)
	for _, c := range []struct{ t, want time.Time }{
		{time.Time{}, time.Time{}}, {whole, whole}, {whole.Add(1), whole.Add(time.Microsecond)}, {whole.Add(-1), whole},
	} {
		if got := MicrosUp(c.t); !got.Equal(c.want) {
			t.Errorf("MicrosUp(%v) = %v, want %v", c.t, got, c.want)
		}
	}
}

func TestMeets(t *testing.T) {
	offers := []Offer{{"gpu", "true"}, {"tool:jq", "1.7"}, {"tool:jq", "1.6"}, {"zone", ""}}
	for _, c := range []struct {
		name         string
		requirements map[string]string
		want         bool
	}{
		{"nothing asked", nil, true},
		{"one key with its value", map[string]string{"gpu": "true"}, true},
		{"another value", map[string]string{"gpu": "false"}, false},
		{"any value", map[string]string{"tool:jq": ""}, true},
		{"the second offer of a key", map[string]string{"tool:jq": "1.6"}, true},
		{"a key that is not there", map[string]string{"tpu": ""}, false},
		{"all of two", map[string]string{"gpu": "true", "zone": ""}, true},
		{"one of two", map[string]string{"gpu": "true", "tpu": ""}, false},
		{"a value where the offer has none", map[string]string{"zone": "a"}, false},
		{"keys and values count by case", map[string]string{"GPU": "true"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Meets(offers, c.requirements); got != c.want {
				t.Errorf("Meets(%v) = %v, want %v", c.requirements, got, c.want)
			}
		})
	}
}

func TestStatusesKnowWhichHaveEnded(t *testing.T) {
	for status, ended := range map[RunStatus]bool{
		RunPending: false, RunRunning: false, RunSleeping: false, RunCompleted: true, RunFailed: true,
		RunCancelled: true, RunTimedOut: true, RunTerminated: true,
	} {
		if status.Ended() != ended {
			t.Errorf("%s.Ended() = %v, want %v", status, status.Ended(), ended)
		}
		if status.String() == "UNKNOWN" {
			t.Errorf("status %d has no word", status)
		}
	}
}
