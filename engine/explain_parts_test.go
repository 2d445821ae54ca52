package engine

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAnExplanationNamesAFewOfVeryManyWorkers(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, change := range map[string]func(w *Worker){
		"free":            func(*Worker) {},
		"busy":            func(w *Worker) { w.Active = w.MaxConcurrent },
		"of another type": func(w *Worker) { w.Types = []string{"other"} },
		"on their way":    func(w *Worker) { w.Status = WorkerDraining },
	} {
		c := Circumstances{Run: Run{Queue: "orders", Type: "order", Status: RunPending,
			AvailableAt: now.Add(-time.Minute)}, NamespaceEnabled: true}
		for range 50 {
			w := Worker{ID: "w", Status: WorkerOnline, Types: []string{"order"}, MaxConcurrent: 2, LastHeartbeatAt: now}
			change(&w)
			c.Workers = append(c.Workers, w)
		}
		details := Explain(c, now).Details
		if len(details) > maxNamed+3 || !slices.Contains(details, "and 30 more workers") {
			t.Errorf("fifty workers that are %s are explained in %d lines: %q", name, len(details), details)
		}
	}
}

func TestBriefNamesTheTwoLargestUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 5 * time.Millisecond: "5ms", 1500 * time.Millisecond: "1s",
		61 * time.Second: "1m1s", time.Hour: "1h",
		25*time.Hour + time.Minute: "1d1h", 24 * time.Hour: "1d",
	} {
		if got := brief(d); got != want {
			t.Errorf("brief(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestExplainSaysOfARetryOnceWhatItIs(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	retried := func(name string, in time.Duration) Step {
		return Step{ID: NewID(now), Name: name, Status: StepPending, Failures: 1, RetryAt: now.Add(in),
			Error: &Failure{Message: name + " declined"}}
	}
	c := Circumstances{
		NamespaceEnabled: true,
		Run:              Run{ID: FirstID(now), Status: RunPending, AvailableAt: now.Add(38 * time.Second)},
		Steps:            []Step{retried("refund", time.Minute), retried("charge", 38*time.Second)},
	}
	got := Explain(c, now)
	if want := "retries charge, attempt 2 of 3 in 38s: charge declined"; got.Summary != want {
		t.Errorf("summary %q, want %q", got.Summary, want)
	}
	if want := []string{"step refund is retried in 1m: refund declined"}; !slices.Equal(got.Details, want) {
		t.Errorf("details %q, want %q", got.Details, want)
	}
}

// A run whose branches wait for several things is made to go on by each of them, so each is named,
// be it parked or at work.
func TestExplainNamesAllThatARunWaitsFor(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	id := func(n int) ID { return NewID(now.Add(time.Duration(n) * time.Second)) }
	first := id(10)
	steps := []Step{
		{ID: id(1), Name: "nap", Kind: StepSleep, Status: StepRunning, WakeAt: now.Add(time.Hour)},
		{ID: id(2), Name: "rest", Kind: StepSleep, Status: StepRunning, WakeAt: now.Add(2 * time.Hour)},
		{ID: id(3), Name: "approval", SignalName: "approval", Kind: StepSignal, Status: StepRunning, Awaited: 1},
		{ID: id(4), Name: "veto", SignalName: "veto", Kind: StepSignal, Status: StepRunning, Awaited: 1,
			WakeAt: now.Add(3 * time.Hour)},
		{ID: id(5), Name: "ship-1", Kind: StepChild, Status: StepRunning, Awaited: 2, ChildRunID: first},
		{ID: id(6), Name: "ship-2", Kind: StepChild, Status: StepRunning, Awaited: 2, ChildRunID: id(11)},
	}
	rest, signals, children := "timer rest fires in 2h",
		[]string{"it also waits for signal approval", "it also waits for signal veto, which times out in 3h"},
		"2 child runs have not ended yet, the first is "+first.String()
	for _, c := range []struct {
		name       string
		status     RunStatus
		waitingFor string
		until      time.Duration
		steps      []Step
		want       []string
	}{
		{"timer", RunSleeping, "timer:nap", time.Hour, steps, append([]string{children, rest}, signals...)},
		{"child", RunSleeping, "child:" + first.String(), 0, steps[2:],
			append([]string{"`kagzi workflow explain " + first.String() + "` shows what that run waits for"},
				signals...)},
		{"nothing", RunRunning, "", 0, steps[1:], append([]string{children, rest}, signals...)},
	} {
		run := Run{ID: FirstID(now), Status: c.status, WaitingFor: c.waitingFor}
		if c.until > 0 {
			run.AvailableAt = now.Add(c.until)
		}
		if got := Explain(Circumstances{NamespaceEnabled: true, Run: run, Steps: c.steps}, now).Details; !slices.Equal(
			got, c.want) {
			t.Errorf("of a run that is %s and waits for %s it says %q, want %q", c.status, c.name, got, c.want)
		}
	}
	// A child that the code has started and does not wait for does not keep a parked run waiting.
	run := Run{ID: FirstID(now), Status: RunSleeping, WaitingFor: "timer:nap", AvailableAt: now.Add(time.Hour)}
	if got := Explain(Circumstances{NamespaceEnabled: true, Run: run,
		Steps: []Step{steps[0], {ID: id(7), Kind: StepChild, Status: StepRunning, ChildRunID: first}}},
		now).Details; len(got) > 0 {
		t.Errorf("of a run that has left a child to itself it says %q", got)
	}
	// Of thousands the first tell enough.
	run = Run{ID: FirstID(now), Status: RunRunning}
	if got := Explain(Circumstances{NamespaceEnabled: true, Run: run, Steps: slices.Repeat(steps[1:2], 50)},
		now).Details; len(got) != maxNamed+1 || got[maxNamed] != "and 30 more waits" {
		t.Errorf("fifty waits are told in %d lines: %q", len(got), got)
	}
}

// A sleep that its run's cancellation has ended goes on in the record, and its end may be the next thing to happen.
func TestExplainSaysWhatCodeWaitsForThatCleansUp(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return now.Add(d) }
	ended := Step{ID: NewID(now), Name: "nap", Kind: StepSleep, Status: StepRunning, StartedAt: at(-time.Hour),
		WakeAt: at(time.Hour)}
	failed := Step{ID: NewID(now), Name: "nap too", Status: StepPending, Failures: 1, StartedAt: at(-time.Hour),
		RetryAt: at(time.Hour)}
	for _, c := range []struct {
		step    Step // beside it
		summary string
		next    time.Time
	}{
		// the grace
		{Step{Kind: StepChild, Status: StepRunning, Awaited: 1, ChildRunID: FirstID(now)},
			"waits for child run " + FirstID(now).String(), at(24 * time.Hour)},
		{Step{Kind: StepSignal, SignalName: "refunded", Status: StepRunning, Awaited: 1, WakeAt: at(2 * time.Hour)},
			"waits for signal refunded, times out in 2h", at(2 * time.Hour)},
		{Step{Name: "refund", Status: StepPending, Failures: 1, StartedAt: at(-time.Minute),
			RetryAt: at(2 * time.Hour)}, "retries refund, attempt 2 of 3 in 2h", at(2 * time.Hour)},
		{Step{Name: "rest", Kind: StepSleep, Status: StepRunning, StartedAt: at(-time.Minute),
			WakeAt: at(2 * time.Hour)}, "sleeps in rest, wakes in 2h", at(2 * time.Hour)},
		// it is under Cleanup, and the child left to itself
		{Step{Kind: StepChild, Status: StepRunning, ChildRunID: FirstID(now)}, "sleeps in nap, wakes in 1h",
			at(time.Hour)},
	} {
		c.step.ID = NewID(now)
		run := Run{ID: FirstID(now), Status: RunSleeping, WaitingFor: "timer:nap", AvailableAt: ended.WakeAt,
			CancelRequestedAt: at(-30 * time.Minute), GraceUntil: at(24 * time.Hour)}
		got := Explain(Circumstances{NamespaceEnabled: true, Run: run, Steps: []Step{ended, c.step}}, now)
		if got.Summary != c.summary || !got.NextAt.Equal(c.next) {
			t.Errorf("it says %q and next %v, want %q and %v", got.Summary, got.NextAt, c.summary, c.next)
		}
		if text := strings.Join(got.Details, "; "); strings.Contains(text, "nap") {
			t.Errorf("%q tells of the timer that has been ended: %s", got.Summary, text)
		}
		if c.next.Equal(ended.WakeAt) {
			continue
		}
		// The same of a retry, that may be the first as well.
		run.Status, run.WaitingFor = RunPending, ""
		got = Explain(Circumstances{NamespaceEnabled: true, Run: run, Steps: []Step{failed, c.step}}, now)
		if text := strings.Join(got.Details, "; "); got.Summary != c.summary || !got.NextAt.Equal(c.next) ||
			strings.Contains(text, "nap") {
			t.Errorf("with a retry that has been ended it says %q, %s and next %v, want %q and %v", got.Summary, text,
				got.NextAt, c.summary, c.next)
		}
	}
	// A delay because workers were lost is none of these.
	run := Run{ID: FirstID(now), Status: RunPending, AvailableAt: at(4 * time.Second), LeaseLosses: 4,
		CancelRequestedAt: at(-time.Minute), GraceUntil: at(time.Hour)}
	rest := Step{ID: NewID(now), Name: "rest", Kind: StepSleep, Status: StepRunning, StartedAt: at(-time.Second),
		WakeAt: at(time.Minute)}
	if got, want := Explain(Circumstances{NamespaceEnabled: true, Run: run, Steps: []Step{ended, rest}}, now).Summary,
		"lost 4 workers in a row, runs again in 4s"; got != want {
		t.Errorf("after losses it says %q, want %q", got, want)
	}
}

func TestADeadlineThatIsToBeNeverIsFarOff(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	if got := in(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), now); got != "in 106751d23h" {
		t.Errorf("the year 9999 is %q, want all the days that a duration can hold", got)
	}
}

// diverged is a report of one build.
func diverged(at time.Time) []Divergence {
	d := Divergence{BuildID: "one", ReportedAt: at, Made: []Call{{Name: "bill", Kind: StepFunction}}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		d.Owed = append(d.Owed, Call{Name: name, Kind: StepFunction})
	}
	return []Divergence{d}
}

func TestMatchWorker(t *testing.T) {
	run := Run{Queue: "orders", Type: "order", Requirements: map[string]string{"gpu": "", "zone": "eu"},
		Divergences: []Divergence{{BuildID: "old"}}}
	for _, c := range []struct {
		name   string
		change func(w *Worker, c *Circumstances)
		want   WorkerMatch
	}{
		{"free", func(*Worker, *Circumstances) {}, WorkerMatch{CanRun: true}},
		{"offline", func(w *Worker, _ *Circumstances) { w.Status = WorkerOffline }, WorkerMatch{Reason: "is offline"}},
		{"draining", func(w *Worker, _ *Circumstances) { w.Status = WorkerDraining },
			WorkerMatch{Reason: "is draining and takes nothing new"}},
		{"of another queue", func(w *Worker, _ *Circumstances) { w.Queues = []string{"mail", "sms"} },
			WorkerMatch{Reason: "does not serve queue orders: it serves mail, sms"}},
		{"of another type", func(w *Worker, _ *Circumstances) { w.Types = []string{"refund"} },
			WorkerMatch{Reason: "serves the queue, but not type order: it serves refund"}},
		{"without a capability", func(w *Worker, _ *Circumstances) { w.Capabilities = nil; w.Labels["zone"] = "us" },
			WorkerMatch{Reason: "does not offer gpu, zone=eu"}},
		{"whose build has diverged", func(w *Worker, _ *Circumstances) { w.BuildID = "old" },
			WorkerMatch{Reason: "has build old, whose code has diverged from the run's history"}},
		{"full", func(w *Worker, _ *Circumstances) { w.Active = 2 },
			WorkerMatch{CanRun: true, Busy: true, Reason: "runs 2 of 2"}},
		{"of a full queue", func(w *Worker, c *Circumstances) { w.QueueLimit, c.RunningInQueue = 3, 3 },
			WorkerMatch{CanRun: true, Busy: true,
				Reason: "has to wait: 3 of at most 3 runs of its queue are running"}},
		{"of a full type", func(w *Worker, c *Circumstances) {
			w.TypeLimits, c.RunningOfType = map[string]int{"order": 1}, 1
		}, WorkerMatch{CanRun: true, Busy: true, Reason: "has to wait: 1 of at most 1 runs of type order are running"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := Worker{ID: "w", Status: WorkerOnline, Queues: []string{"orders"}, Types: []string{"order"}, BuildID: "new",
				Labels: map[string]string{"zone": "eu"}, Capabilities: map[string]string{"gpu": "a100"}, MaxConcurrent: 2,
				Active: 1}
			circumstances := Circumstances{Run: run}
			c.change(&w, &circumstances)
			if got := MatchWorker(&circumstances, &w); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
