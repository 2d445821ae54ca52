package simulate

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
)

var (
	watchedRun   = engine.ID{1}
	watchedOther = engine.ID{2}
	watchedAt    = time.Now()
)

// row is a run as the change leaves it, without lease and steps.
func row(id engine.ID, status engine.RunStatus, change ...func(r *memory.Run)) *memory.Run {
	r := &memory.Run{Run: engine.Run{ID: id, Type: "t", Status: status, Attempts: 1,
		AvailableAt: watchedAt.Add(-time.Second)}}
	for _, do := range change {
		do(r)
	}
	return r
}

// held gives the run a lease.
func held(token byte, change ...func(r *memory.Run)) *memory.Run {
	return row(watchedRun, engine.RunRunning,
		append([]func(*memory.Run){func(r *memory.Run) { r.Lease = &memory.Lease{Token: engine.Token{token}} }},
			change...)...)
}

// steps gives a run different steps.
func steps(steps ...engine.Step) func(r *memory.Run) {
	return func(r *memory.Run) {
		names := map[string]bool{}
		for i := range steps {
			s := steps[i]
			s.ID = engine.ID{byte(i + 1)}
			r.Steps = append(r.Steps, &s)
			names[s.Name] = true
		}
		r.Run.Steps = int64(len(names))
	}
}

func attempts(n int) func(r *memory.Run) { return func(r *memory.Run) { r.Attempts = n } }
func losses(n int) func(r *memory.Run)   { return func(r *memory.Run) { r.LeaseLosses = n } }
func due(at time.Time) func(r *memory.Run) {
	return func(r *memory.Run) { r.AvailableAt = at }
}
func keyed(r *memory.Run) { r.ConcurrencyKey, r.ConcurrencyLimit = "k", 1 }

func call(verb string, params any) *memory.Call {
	return &memory.Call{Verb: verb, Params: params, Write: true}
}

// claimed is a claim that handed out runs in this order.
func claimed(ids ...engine.ID) *memory.Call {
	var c engine.Claimed
	for _, id := range ids {
		c.Tasks = append(c.Tasks, engine.Task{Run: engine.Run{ID: id}})
	}
	return &memory.Call{Verb: "Claim", Write: true, Params: engine.ClaimParams{Now: watchedAt}, Answer: c}
}

func sleeps(token byte) *memory.Call {
	return call("Sleep", engine.SleepParams{Lease: engine.Lease{RunID: watchedRun, Token: engine.Token{token}}})
}

// failed is a FailStep that was told whether there is another attempt.
func failed(retry bool) *memory.Call {
	c := call("FailStep", engine.FailStepParams{Lease: engine.Lease{RunID: watchedRun, Token: engine.Token{1}}})
	c.Answer = engine.Verdict{Retry: retry}
	return c
}

// TestWatch applies one change after the other; the last one is under test. Each case has a twin
// that is correct.
func TestWatch(t *testing.T) {
	type change struct {
		call     *memory.Call
		old, new *memory.Run
	}
	claim := change{claimed(watchedRun), row(watchedRun, engine.RunPending), held(1)}
	result := func(text string) engine.Step {
		return engine.Step{Name: "s", Kind: engine.StepFunction, Status: engine.StepCompleted, Latest: true,
			FinishedAt: watchedAt, Output: engine.Payload{Data: []byte(text)}}
	}
	timer := func(status engine.StepStatus, wake time.Time) engine.Step {
		return engine.Step{Name: "s", Kind: engine.StepSleep, Status: status, Latest: true, WakeAt: wake}
	}
	running := engine.Step{Name: "s", Status: engine.StepRunning, Latest: true}
	earlier := engine.Step{Name: "s", Status: engine.StepFailed}
	ended := func(change ...func(r *memory.Run)) *memory.Run {
		return row(watchedRun, engine.RunCompleted, append([]func(*memory.Run){func(r *memory.Run) {
			r.FinishedAt, r.Output, r.FinalToken = watchedAt, engine.Payload{Data: []byte("out")}, engine.Token{1}
		}}, change...)...)
	}
	spared := ended(func(r *memory.Run) { r.Pinned = true })
	for _, test := range []struct {
		name    string
		changes []change
		want    int // the broken invariant; 0: all hold
	}{
		{"a run is started", []change{{call("StartRuns", nil), nil, row(watchedRun, engine.RunPending)}}, 0},
		{"a run is started with two attempts", []change{
			{call("StartRuns", nil), nil, row(watchedRun, engine.RunPending, attempts(2))}}, 8},
		{"a run is started with a loss", []change{
			{call("StartRuns", nil), nil, row(watchedRun, engine.RunPending, losses(1))}}, 8},
		{"a run is started with a failure", []change{
			{call("StartRuns", nil), nil, row(watchedRun, engine.RunPending, func(r *memory.Run) { r.Failures = 1 })}},
			8},
		{"a run is deleted", []change{{call("Prune", nil), ended(), nil}}, 4},

		{"a run is handed out", []change{claim}, 0},
		{"a run is handed out when it is due", []change{
			{claimed(watchedRun), row(watchedRun, engine.RunPending, due(watchedAt)), held(1)}}, 0},
		{"a run is handed out before it is due",
			[]change{{claimed(watchedRun), row(watchedRun, engine.RunPending, due(watchedAt.Add(1))), held(1)}}, 10},
		{"a run is handed out that is paused", []change{
			{claimed(watchedRun), row(watchedRun, engine.RunPending, due(time.Time{})), held(1)}}, 10},
		{"a run is handed out that is held", []change{claim, {claimed(watchedRun), held(1), held(2)}}, 5},
		{"a run is handed out again", []change{claim, {sleeps(1), held(1), row(watchedRun, engine.RunSleeping)},
			{claimed(watchedRun), row(watchedRun, engine.RunSleeping), held(2)}}, 0},
		{"a run is handed out under a token that it had",
			[]change{claim, {sleeps(1), held(1), row(watchedRun, engine.RunSleeping)},
				{claimed(watchedRun), row(watchedRun, engine.RunSleeping), held(1)}}, 5},
		{"a run is running and nobody holds it",
			[]change{{call("StartRuns", nil), nil, row(watchedRun, engine.RunRunning)}}, 13},
		{"a run is held and not running", []change{
			claim, {sleeps(1), held(1), held(1, func(r *memory.Run) { r.Status = engine.RunSleeping })}}, 13},

		{"the holder writes", []change{claim, {sleeps(1), held(1), held(1)}}, 0},
		{"somebody writes under a token that nobody had", []change{claim, {sleeps(9), held(1), held(1)}}, 5},
		{"somebody writes under a token that another run had",
			[]change{{claimed(watchedOther), row(watchedOther, engine.RunPending), row(watchedOther, engine.RunRunning,
				func(r *memory.Run) { r.Lease = &memory.Lease{Token: engine.Token{7}} })}, {sleeps(7), nil, nil}}, 5},
		{"somebody repeats a write under a token that the run had",
			[]change{claim, {sleeps(1), held(1), row(watchedRun, engine.RunSleeping)}, {sleeps(1), nil, nil}}, 0},
		{"somebody changes a run that another holds",
			[]change{claim, {sleeps(1), held(1), row(watchedRun, engine.RunSleeping)},
				{claimed(watchedRun), row(watchedRun, engine.RunSleeping), held(2)}, {sleeps(1), held(2), held(2)}}, 5},
		{"somebody changes a run that nobody holds",
			[]change{claim, {sleeps(1), held(1), row(watchedRun, engine.RunSleeping)},
				{sleeps(1), row(watchedRun, engine.RunSleeping), row(watchedRun, engine.RunSleeping)}}, 5},

		{"the holder changes another run", []change{
			claim, {sleeps(1), row(watchedOther, engine.RunSleeping), row(watchedOther, engine.RunPending)}}, 0},
		{"the holder starts another run", []change{claim, {sleeps(1), nil, row(watchedOther, engine.RunPending)}}, 0},

		{"an ended run is spared", []change{{call("PinRun", nil), ended(), spared}}, 0},
		{"an ended run runs again", []change{{call("RetryRun", nil), ended(), row(watchedRun, engine.RunPending)}}, 4},
		{"an ended run has another result", []change{
			{call("X", nil), ended(), ended(func(r *memory.Run) { r.Output.Data = []byte("else") })}}, 4},
		{"an ended run ended at another time", []change{
			{call("X", nil), ended(), ended(func(r *memory.Run) { r.FinishedAt = watchedAt.Add(1) })}}, 4},
		{"an ended run ended under another token",
			[]change{{call("X", nil), ended(), ended(func(r *memory.Run) { r.FinalToken = engine.Token{2} })}}, 4},
		{"an ended run continues", []change{{call("X", nil), ended(),
			ended(func(r *memory.Run) { r.ContinuedAs = watchedOther })}}, 4},
		{"an ended run has an error", []change{{
			call("X", nil), ended(), ended(func(r *memory.Run) { r.Error = &engine.Failure{} })}}, 4},
		{"an ended run has another error", []change{
			{call("X", nil), ended(func(r *memory.Run) { r.Error = &engine.Failure{Message: "a"} }),
				ended(func(r *memory.Run) { r.Error = &engine.Failure{Message: "b"} })}}, 4},
		{"a run that has not ended changes", []change{
			{call("X", nil), row(watchedRun, engine.RunPending), ended()}}, 0},

		{"a step has its result", []change{{call("X", nil), row(watchedRun, engine.RunPending, steps(result("v"))),
			row(watchedRun, engine.RunPending, steps(result("v")))}}, 0},
		{"a step's result changes", []change{{call("X", nil), row(watchedRun, engine.RunPending, steps(result("v"))),
			row(watchedRun, engine.RunPending, steps(result("w")))}}, 3},
		{"a step's result is of another time", []change{
			{call("X", nil), row(watchedRun, engine.RunPending, steps(result("v"))),
				row(watchedRun, engine.RunPending, steps(result("v")), func(r *memory.Run) {
					r.Steps[0].FinishedAt = watchedAt.Add(1)
				})}}, 3},
		{"a step's result is taken back", []change{
			{call("X", nil), row(watchedRun, engine.RunPending, steps(result("v"))),
				row(watchedRun, engine.RunPending, steps(running))}}, 3},
		{"a step is deleted", []change{{call("X", nil), row(watchedRun, engine.RunPending, steps(running)),
			row(watchedRun, engine.RunPending)}}, 3},
		{"a step has two results", []change{{call("X", nil), nil,
			row(watchedRun, engine.RunPending, steps(result("v"), func() engine.Step {
				s := result("w")
				s.Latest = false
				return s
			}()))}}, 3},
		{"a step has an earlier attempt", []change{
			{call("X", nil), nil, row(watchedRun, engine.RunPending, steps(earlier, running))}}, 0},
		{"a step has two latest attempts", []change{
			{call("X", nil), nil, row(watchedRun, engine.RunPending, steps(running, running))}}, 13},
		{"a step has no latest attempt", []change{
			{call("X", nil), nil, row(watchedRun, engine.RunPending, steps(earlier))}}, 13},
		{"a run counts a step too many", []change{
			{call("X", nil), nil, row(watchedRun, engine.RunPending, steps(running), func(r *memory.Run) {
				r.Run.Steps++
			})}}, 13},
		{"a run ends with a step at work", []change{
			{call("X", nil), row(watchedRun, engine.RunPending, steps(running)), ended(steps(running))}}, 13},

		{"a timer ends", []change{{call("X", nil),
			row(watchedRun, engine.RunSleeping, steps(timer(engine.StepRunning, watchedAt))),
			row(watchedRun, engine.RunPending, steps(timer(engine.StepCompleted, watchedAt)))}}, 0},
		{"a timer ends early", []change{{call("X", nil),
			row(watchedRun, engine.RunSleeping, steps(timer(engine.StepRunning, watchedAt.Add(time.Hour)))),
			row(watchedRun, engine.RunPending, steps(timer(engine.StepCompleted, watchedAt.Add(time.Hour))))}}, 10},

		{"a step fails and is tried again", []change{claim, {failed(true), held(1), held(1, attempts(2))}}, 0},
		{"a step fails for good", []change{claim, {failed(false), held(1), held(1)}}, 0},
		{"a step fails for good and an attempt is counted",
			[]change{claim, {failed(false), held(1), held(1, attempts(2))}}, 8},
		{"a step is tried again and no attempt is counted", []change{claim, {failed(true), held(1), held(1)}}, 8},
		{"a step fails and two attempts are counted",
			[]change{{call("FailRun", nil), held(1), held(1, attempts(3))}}, 8},
		{"a step fails and an attempt is taken", []change{{call("FailRun", nil), held(1, attempts(2)), held(1)}}, 8},
		{"steps run out of time", []change{{call("TimeoutSteps", nil), held(1), held(1, attempts(3))}}, 0},
		{"steps run out of time and an attempt is taken",
			[]change{{call("TimeoutSteps", nil), held(1, attempts(2)), held(1)}}, 8},
		{"a sleep counts an attempt", []change{claim, {sleeps(1), held(1), held(1, attempts(2))}}, 8},
		{"a sleep counts a loss", []change{claim, {sleeps(1), held(1), held(1, losses(1))}}, 8},
		{"a sleep forgets losses", []change{claim, {sleeps(1), held(1, losses(1)), held(1)}}, 0},
		{"a worker is lost", []change{claim, {call("ForceOfflineWorker", nil), held(1),
			row(watchedRun, engine.RunPending, losses(1))}}, 0},
		{"a run has lost all the workers that it may",
			[]change{claim, {call("FreeLost", nil), held(1, losses(engine.MaxLeaseLosses-1)),
				row(watchedRun, engine.RunFailed, losses(engine.MaxLeaseLosses))}}, 0},
		{"a run fails for its losses too soon", []change{
			claim, {call("FreeLost", nil), held(1), row(watchedRun, engine.RunFailed, losses(1))}}, 8},

		{"one run at a time has a key", []change{
			{claimed(watchedRun), row(watchedRun, engine.RunPending, keyed), held(1, keyed)},
			{sleeps(1), held(1, keyed), row(watchedRun, engine.RunSleeping, keyed)},
			{claimed(watchedRun), row(watchedRun, engine.RunSleeping, keyed), held(2, keyed)}}, 0},
		{"two runs have a key of one", []change{
			{claimed(watchedRun), row(watchedRun, engine.RunPending, keyed), held(1, keyed)},
			{claimed(watchedOther), row(watchedOther, engine.RunPending, keyed),
				row(watchedOther, engine.RunRunning, keyed, func(r *memory.Run) {
					r.Lease = &memory.Lease{Token: engine.Token{2}}
				})}}, 15},
	} {
		report := &Report{Counts: map[string]int{}}
		w := newWatch(report, false)
		for _, c := range test.changes {
			var changes []memory.Change
			if c.old != nil || c.new != nil {
				changes = append(changes, memory.Change{Old: c.old, New: c.new})
			}
			w.heed(c.call, changes)
		}
		var want []int
		if test.want > 0 {
			want = []int{test.want}
		}
		if got := report.Broken(); !slices.Equal(got, want) {
			t.Errorf("%s: broken = %v, want %v; %v", test.name, got, want, report.Violations)
		}
	}
}

func TestRefusedCallsAreCountedAndNotChecked(t *testing.T) {
	report := &Report{Counts: map[string]int{}}
	w := newWatch(report, true)
	refused := sleeps(9)
	refused.Err = errors.New("the lease is lost")
	w.heed(refused, nil)
	if len(report.Violations) > 0 || report.Counts["refused: Sleep"] != 1 || report.Counts["done: Sleep"] != 0 ||
		len(report.Log) != 1 {
		t.Errorf("violations %v, counts %v, log %q; want it counted as refused", report.Violations, report.Counts,
			report.Log)
	}
	w.heed(call("PauseRun", nil), nil)
	w.heed(&memory.Call{Verb: "GetRun"}, nil)
	if report.Counts["done: PauseRun"] != 1 || report.Counts["done: GetRun"] != 0 || len(report.Log) != 2 {
		t.Errorf("counts %v, log %q; want the write counted, and the read not", report.Counts, report.Log)
	}
}

// TestEachLimitOfAKeyIsHeldInTheOrderOfTheClaim: of two runs of a key, the second may run beside
// another and the first may not.
func TestEachLimitOfAKeyIsHeldInTheOrderOfTheClaim(t *testing.T) {
	change := func(id engine.ID, limit int) memory.Change {
		key := func(r *memory.Run) { r.ConcurrencyKey, r.ConcurrencyLimit = "k", limit }
		return memory.Change{Old: row(id, engine.RunPending, key),
			New: row(id, engine.RunRunning, key, func(r *memory.Run) {
				r.Lease = &memory.Lease{Token: engine.Token(id)}
			})}
	}
	for _, test := range []struct {
		order []engine.ID
		want  int
	}{{[]engine.ID{watchedRun, watchedOther}, 0}, {[]engine.ID{watchedOther, watchedRun}, 1}} {
		for _, changes := range [][]memory.Change{
			{change(watchedRun, 1), change(watchedOther, 2)}, {change(watchedOther, 2), change(watchedRun, 1)}} {
			report := &Report{Counts: map[string]int{}}
			newWatch(report, false).heed(claimed(test.order...), changes)
			if got := len(report.Violations); got != test.want {
				t.Errorf("handed out in the order %v: %v, want %d", test.order, report.Violations, test.want)
			}
		}
	}
}
