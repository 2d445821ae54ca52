package engine

import (
	"testing"
	"time"
)

func TestADeadlineGivenAtTheStartHoldsForSuccessors(t *testing.T) {
	begun, now := noon.Truncate(time.Second), noon.Truncate(time.Second).Add(10*time.Minute)
	in := func(d time.Duration) time.Time { return begun.Add(d) }
	hour := Timeouts{Execution: time.Hour}
	for _, c := range []struct {
		name             string
		run, next        Run
		continues, again time.Time // the deadlines of the continuation and of the run tried again
	}{
		{"none", Run{}, Run{}, time.Time{}, time.Time{}},
		{"a named one", Run{DeadlineAt: in(time.Hour)}, Run{}, in(time.Hour), in(time.Hour)},
		{"beside other timeouts", Run{DeadlineAt: in(time.Hour)}, Run{Timeouts: Timeouts{Heartbeat: time.Minute}},
			in(time.Hour), in(time.Hour)},
		{"beside a longer limit", Run{DeadlineAt: in(time.Hour)}, Run{Timeouts: Timeouts{Execution: 2 * time.Hour}},
			in(time.Hour), in(time.Hour)},
		{"beside a shorter limit", Run{DeadlineAt: in(time.Hour)}, Run{Timeouts: Timeouts{Execution: time.Minute}},
			in(11 * time.Minute), in(time.Hour)},
		{"earlier than the run's own limit", Run{DeadlineAt: in(30 * time.Minute), Timeouts: hour}, Run{},
			in(30 * time.Minute), in(30 * time.Minute)},
		{"a limit alone starts again", Run{DeadlineAt: in(time.Hour), Timeouts: hour}, Run{}, in(70 * time.Minute),
			in(70 * time.Minute)},
		{"a limit that started later starts again", Run{DeadlineAt: in(65 * time.Minute), Timeouts: hour}, Run{},
			in(70 * time.Minute), in(70 * time.Minute)},
		{"the next run has another limit", Run{DeadlineAt: in(time.Hour), Timeouts: hour},
			Run{Timeouts: Timeouts{Heartbeat: time.Minute}}, time.Time{}, in(70 * time.Minute)},
		{"later than the run's own limit", Run{DeadlineAt: in(time.Hour), NamedDeadlineAt: in(65 * time.Minute),
			Timeouts: hour}, Run{}, in(65 * time.Minute), in(65 * time.Minute)},
		{"later than the next run's limit", Run{DeadlineAt: in(time.Hour), NamedDeadlineAt: in(3 * time.Hour),
			Timeouts: hour}, Run{}, in(70 * time.Minute), in(70 * time.Minute)},
		{"later, and the next run has no limit",
			Run{DeadlineAt: in(time.Hour), NamedDeadlineAt: in(3 * time.Hour), Timeouts: hour},
			Run{Timeouts: Timeouts{Heartbeat: time.Minute}}, in(3 * time.Hour), in(70 * time.Minute)},
		{"before its limit, which was counted from later",
			Run{DeadlineAt: in(65 * time.Minute), NamedDeadlineAt: in(65 * time.Minute), Timeouts: hour}, Run{},
			in(65 * time.Minute), in(65 * time.Minute)},
		{"a continuation's own", Run{DeadlineAt: in(time.Hour)}, Run{DeadlineAt: in(2 * time.Hour)}, in(2 * time.Hour),
			in(time.Hour)},
		{"one that has passed", Run{DeadlineAt: in(time.Minute)}, Run{}, in(time.Minute), time.Time{}},
		{"one that has passed, with a limit", Run{DeadlineAt: in(time.Minute), Timeouts: hour}, Run{}, in(time.Minute),
			in(70 * time.Minute)},
	} {
		c.run.CreatedAt, c.next.CreatedAt, c.next.AvailableAt = begun, now, now
		if got := Continuation(&c.run, StartRun{Run: c.next}, now).DeadlineAt; !got.Equal(c.continues) {
			t.Errorf("%s: a continuation's deadline is %s, want %s", c.name, got, c.continues)
		}
		if got := RetryOf(&c.run, &RetryRunParams{SteerParams: SteerParams{Now: now}}).DeadlineAt; !got.Equal(c.again) {
			t.Errorf("%s: the deadline of a run tried again is %s, want %s", c.name, got, c.again)
		}
	}
}

// A policy that a continuation names alone is for steps and run, as in a start.
func TestAContinuationsPolicies(t *testing.T) {
	a, b, c := &RetryPolicy{MaximumAttempts: 1}, &RetryPolicy{MaximumAttempts: 2}, &RetryPolicy{MaximumAttempts: 3}
	for _, want := range []struct {
		name              string
		next              Run
		steps, run, asOne *RetryPolicy
	}{
		{"none named", Run{}, a, b, b},
		{"one for both", Run{RetryPolicy: c}, c, nil, c},
		{"the run's", Run{RunRetryPolicy: c}, a, c, c},
		{"each", Run{RetryPolicy: c, RunRetryPolicy: a}, c, a, a},
	} {
		got := Continuation(&Run{RetryPolicy: a, RunRetryPolicy: b}, StartRun{Run: want.next}, noon)
		if got.RetryPolicy != want.steps || got.RunRetryPolicy != want.run || got.OwnPolicy() != want.asOne {
			t.Errorf("%s: it has %v for steps and %v for the run", want.name, got.RetryPolicy, got.RunRetryPolicy)
		}
	}
}
