package storetest

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// What a worker does: it claims, and writes under its lease.

// claimParams asks for one run on behalf of each of the workers.
func (s *stage) claimParams(workers ...string) engine.ClaimParams {
	p := engine.ClaimParams{Namespace: space, Queue: queue, Types: []string{kind}, HistoryBytes: engine.HistoryBytes, Now: s.now}
	for _, w := range workers {
		p.Slots = append(p.Slots, engine.ClaimSlot{WorkerID: w, Token: s.token()})
	}
	return p
}

func (s *stage) claimWith(p engine.ClaimParams) engine.Claimed {
	s.Helper()
	claimed, err := s.store.Claim(s.ctx, p)
	s.must(err, "Claim")
	return claimed
}

// claim hands one due run to a worker; there must be one.
func (s *stage) claim(worker string) engine.Task {
	s.Helper()
	claimed := s.claimWith(s.claimParams(worker))
	equal(s, "claimed runs", len(claimed.Tasks), 1)
	return claimed.Tasks[0]
}

// claimNothing fails the case if there is a due run.
func (s *stage) claimNothing(worker string) engine.Claimed {
	s.Helper()
	claimed := s.claimWith(s.claimParams(worker))
	if len(claimed.Tasks) != 0 {
		s.Fatalf("claimed run %s, want none to be due", claimed.Tasks[0].Run.ID)
	}
	return claimed
}

// claimedIDs is which runs a claim of n grants of one worker hands out.
func (s *stage) claimedIDs(worker string, n int, changes ...func(*engine.ClaimParams)) []engine.ID {
	s.Helper()
	workers := make([]string, n)
	for i := range workers {
		workers[i] = worker
	}
	p := s.claimParams(workers...)
	for _, change := range changes {
		change(&p)
	}
	var ids []engine.ID
	for _, task := range s.claimWith(p).Tasks {
		ids = append(ids, task.Run.ID)
	}
	return ids
}

// held is a new run in the hands of worker w1, which is registered first if need be.
func (s *stage) held(changes ...func(*engine.StartRun)) engine.Lease {
	s.Helper()
	s.worker("w1")
	id := s.start(changes...)
	task := s.claim("w1")
	equal(s, "claimed run", task.Run.ID, id)
	return task.Lease
}

// holdMany is n new runs in the hands of a worker.
func (s *stage) holdMany(worker string, n int, changes ...func(*engine.StartRun)) {
	s.Helper()
	runs := make([]engine.StartRun, n)
	for i := range runs {
		runs[i] = s.newRun(changes...)
	}
	s.startAll(runs...)
	equal(s, "claimed runs", len(s.claimedIDs(worker, n)), n)
}

// commits is how many the store has made, if it says so.
func (s *stage) commits() (n uint64, known bool) {
	c, known := s.store.(engine.Commits)
	if known {
		n = c.CommitSizes().Commits
	}
	return n, known
}

func named(name string) engine.StepRef { return engine.StepRef{Name: name} }

func (s *stage) tryBegin(l engine.Lease, name string, changes ...func(*engine.BeginStepParams)) (engine.Begun, error) {
	p := engine.BeginStepParams{Lease: l, ID: s.id(), Name: name, Kind: engine.StepFunction, Now: s.now}
	for _, change := range changes {
		change(&p)
	}
	return s.store.BeginStep(s.ctx, p)
}

// begin begins a step, which must be one to execute.
func (s *stage) begin(l engine.Lease, name string, changes ...func(*engine.BeginStepParams)) engine.Step {
	s.Helper()
	begun, err := s.tryBegin(l, name, changes...)
	s.must(err, "BeginStep "+name)
	equal(s, "BeginStep "+name+" says execute", begun.Execute, true)
	return begun.Step
}

func asSleep(p *engine.BeginStepParams) { p.Kind = engine.StepSleep }

func stepPolicy(policy engine.RetryPolicy) func(*engine.BeginStepParams) {
	return func(p *engine.BeginStepParams) { p.RetryPolicy = &policy }
}

func beganAt(at time.Time) func(*engine.BeginStepParams) {
	return func(p *engine.BeginStepParams) { p.StartedAt = at }
}

func startedAt(at time.Time) func(*engine.FailStepParams) {
	return func(p *engine.FailStepParams) { p.StartedAt = at }
}

func startToClose(d time.Duration) func(*engine.BeginStepParams) {
	return func(p *engine.BeginStepParams) { p.StartToClose = d }
}

func (s *stage) tryComplete(l engine.Lease, name, output string) (engine.Step, error) {
	return s.store.CompleteStep(s.ctx, engine.CompleteStepParams{
		Lease: l, Step: named(name), ID: s.id(), Output: text(output), Now: s.now,
	})
}

func (s *stage) complete(l engine.Lease, name, output string) engine.Step {
	s.Helper()
	step, err := s.tryComplete(l, name, output)
	s.must(err, "CompleteStep "+name)
	return step
}

func (s *stage) tryFail(l engine.Lease, name, message string, changes ...func(*engine.FailStepParams)) (engine.Verdict, error) {
	p := engine.FailStepParams{Lease: l, Step: named(name), ID: s.id(), Failure: boom(message), Now: s.now, Roll: 0.5}
	for _, change := range changes {
		change(&p)
	}
	return s.store.FailStep(s.ctx, p)
}

func (s *stage) fail(l engine.Lease, name, message string, changes ...func(*engine.FailStepParams)) engine.Verdict {
	s.Helper()
	verdict, err := s.tryFail(l, name, message, changes...)
	s.must(err, "FailStep "+name)
	return verdict
}

// repeated is what the verdict is when its failure is reported again.
func repeated(v engine.Verdict) engine.Verdict {
	v.Failures = 0
	return v
}

func holding(p *engine.FailStepParams) { p.Hold = true }

func forGood(p *engine.FailStepParams) { p.Failure.NonRetryable = true }

func (s *stage) trySleep(l engine.Lease, name string, d time.Duration, changes ...func(*engine.SleepParams)) error {
	p := engine.SleepParams{Lease: l, Step: named(name), ID: s.id(), Duration: d, Now: s.now}
	for _, change := range changes {
		change(&p)
	}
	return s.store.Sleep(s.ctx, p)
}

func (s *stage) sleep(l engine.Lease, name string, d time.Duration, changes ...func(*engine.SleepParams)) {
	s.Helper()
	s.must(s.trySleep(l, name, d, changes...), "Sleep "+name)
}

func held(p *engine.SleepParams) { p.Hold = true }

func until(t time.Time) func(*engine.SleepParams) {
	return func(p *engine.SleepParams) { p.Duration, p.Until = 0, t }
}

func (s *stage) tryFinish(l engine.Lease, output string) error {
	return s.tryEnd(engine.CompleteRunParams{Lease: l, Output: text(output), Now: s.now})
}

func (s *stage) tryEnd(p engine.CompleteRunParams) error {
	_, err := s.store.CompleteRun(s.ctx, p)
	return err
}

func (s *stage) finish(l engine.Lease, output string) {
	s.Helper()
	s.must(s.tryFinish(l, output), "CompleteRun")
}

func (s *stage) tryFailRun(l engine.Lease, message string) (engine.RunVerdict, error) {
	return s.store.FailRun(s.ctx, engine.FailRunParams{Lease: l, Failure: boom(message), Now: s.now, Roll: 0.5})
}

func (s *stage) failRun(l engine.Lease, message string) engine.RunVerdict {
	s.Helper()
	verdict, err := s.tryFailRun(l, message)
	s.must(err, "FailRun")
	return verdict
}

func (s *stage) tryRelease(l engine.Lease, park bool) error {
	return s.store.Release(s.ctx, engine.ReleaseParams{Lease: l, Park: park, Now: s.now})
}

func (s *stage) release(l engine.Lease, park bool) {
	s.Helper()
	s.must(s.tryRelease(l, park), "Release")
}

func (s *stage) endParams(run engine.ID, reason string) engine.EndRunParams {
	return engine.EndRunParams{Namespace: space, RunID: run, Reason: reason, By: somebody, AuditID: s.id(), Now: s.now}
}

func (s *stage) cancel(run engine.ID) engine.RunEnd {
	s.Helper()
	end, err := s.store.CancelRun(s.ctx, s.endParams(run, "no longer wanted"))
	s.must(err, "CancelRun")
	return end
}

// failedForGood is the verdict about a run that is not tried again.
var failedForGood = engine.RunVerdict{Status: engine.RunFailed}
