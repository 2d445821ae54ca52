package storetest

import (
	"reflect"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// What stands around a run: signals, children, and people who steer.

func (s *stage) trySignal(run engine.ID, name, data string, changes ...func(*engine.SignalRunParams)) (engine.Signalled, error) {
	p := engine.SignalRunParams{Namespace: space, RunID: run, Name: name, Payload: text(data), Now: s.now}
	for _, change := range changes {
		change(&p)
	}
	return s.store.SignalRun(s.ctx, p)
}

func (s *stage) signal(run engine.ID, name, data string, changes ...func(*engine.SignalRunParams)) engine.Signalled {
	s.Helper()
	answer, err := s.trySignal(run, name, data, changes...)
	s.must(err, "SignalRun "+name)
	return answer
}

func signalID(id string) func(*engine.SignalRunParams) {
	return func(p *engine.SignalRunParams) { p.SignalID = id }
}

func (s *stage) signals(run engine.ID) []engine.Signal {
	s.Helper()
	list, _, err := s.store.ListSignals(s.ctx, space, run, engine.Page{Limit: engine.MaxPage})
	s.must(err, "ListSignals")
	return list
}

func (s *stage) tryAwait(l engine.Lease, step, signal string, changes ...func(*engine.AwaitSignalParams)) (engine.AwaitedSignal, error) {
	p := engine.AwaitSignalParams{Lease: l, Step: step, Signal: signal, ID: s.id(), Now: s.now}
	for _, change := range changes {
		change(&p)
	}
	return s.store.AwaitSignal(s.ctx, p)
}

func (s *stage) await(l engine.Lease, step, signal string, changes ...func(*engine.AwaitSignalParams)) engine.AwaitedSignal {
	s.Helper()
	got, err := s.tryAwait(l, step, signal, changes...)
	s.must(err, "AwaitSignal "+signal)
	return got
}

func atMost(d time.Duration) func(*engine.AwaitSignalParams) {
	return func(p *engine.AwaitSignalParams) { p.Timeout = d }
}

func holdingOn(p *engine.AwaitSignalParams) { p.Hold = true }

func (s *stage) tryChild(l engine.Lease, step string, changes ...func(*engine.StartRun)) (engine.Step, error) {
	return s.store.StartChild(s.ctx, engine.StartChildParams{Lease: l, Step: step, ID: s.id(), Child: s.newRun(changes...), Now: s.now})
}

// child starts a child, of type "child" so that a claim of parents does not take it, and returns its id.
func (s *stage) child(l engine.Lease, step string, changes ...func(*engine.StartRun)) engine.ID {
	s.Helper()
	made, err := s.tryChild(l, step, append([]func(*engine.StartRun){ofType("child")}, changes...)...)
	s.must(err, "StartChild "+step)
	equal(s, "kind of the step", made.Kind, engine.StepChild)
	return made.ChildRunID
}

func closing(policy engine.ParentClose) func(*engine.StartRun) {
	return func(r *engine.StartRun) { r.ParentClose = policy }
}

// childWorker registers a worker that serves nothing but children.
func (s *stage) childWorker() {
	s.Helper()
	w := s.newWorker("nurse")
	w.Types = []string{"child"}
	s.register(w, true)
}

// claimChild hands the next due child to its worker, which must be this one.
func (s *stage) claimChild(id engine.ID) engine.Lease {
	s.Helper()
	p := s.claimParams("nurse")
	p.Types = []string{"child"}
	claimed := s.claimWith(p)
	equal(s, "claimed children", len(claimed.Tasks), 1)
	equal(s, "claimed child", claimed.Tasks[0].Run.ID, id)
	return claimed.Tasks[0].Lease
}

func (s *stage) tryAwaitChildren(l engine.Lease, changes func(*engine.AwaitChildrenParams), children ...engine.ID) ([]engine.Step, error) {
	p := engine.AwaitChildrenParams{Lease: l, Children: children, Now: s.now}
	if changes != nil {
		changes(&p)
	}
	return s.store.AwaitChildren(s.ctx, p)
}

func (s *stage) awaitChildren(l engine.Lease, children ...engine.ID) []engine.Step {
	s.Helper()
	steps, err := s.tryAwaitChildren(l, nil, children...)
	s.must(err, "AwaitChildren")
	return steps
}

// due fails the case unless the run waits to be claimed at this moment.
func (s *stage) due(run engine.ID) {
	s.Helper()
	r := s.run(run)
	if r.Status != engine.RunPending && r.Status != engine.RunSleeping || r.AvailableAt.IsZero() || r.AvailableAt.After(s.now) {
		s.Fatalf("the run is %s and due at %s, want it due now, at %s", r.Status, clock(r.AvailableAt), clock(s.now))
	}
}

// parked fails the case unless the run waits for that, until a moment or, when that is unset, until something happens.
func (s *stage) parked(run engine.ID, waitingFor string, until time.Time) {
	s.Helper()
	r := s.status(run, engine.RunSleeping)
	equal(s, "waiting for", r.WaitingFor, waitingFor)
	s.sameTime("available at", r.AvailableAt, until)
}

func (s *stage) steer(run engine.ID, reason string) engine.SteerParams {
	return engine.SteerParams{Namespace: space, RunID: run, Reason: reason, By: somebody, AuditID: s.id(), Now: s.now}
}

func (s *stage) pause(run engine.ID) engine.Run {
	s.Helper()
	r, err := s.store.PauseRun(s.ctx, s.steer(run, "hold on"))
	s.must(err, "PauseRun")
	return r
}

func (s *stage) resume(run engine.ID) engine.Run {
	s.Helper()
	r, err := s.store.ResumeRun(s.ctx, s.steer(run, "go on"))
	s.must(err, "ResumeRun")
	return r
}

func (s *stage) cancelWithin(run engine.ID, grace time.Duration) engine.RunEnd {
	s.Helper()
	p := s.endParams(run, "please stop")
	p.Grace = grace
	end, err := s.store.CancelRun(s.ctx, p)
	s.must(err, "CancelRun")
	return end
}

func (s *stage) expire() engine.Expired {
	s.Helper()
	e, err := s.store.EndExpired(s.ctx, engine.EndExpiredParams{Now: s.now, Limit: 100})
	s.must(err, "EndExpired")
	return e
}

func (s *stage) sameExpired(got, want engine.Expired) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Fatalf("expired %+v, want %+v", got, want)
	}
}

func (s *stage) tryRetry(run engine.ID, changes ...func(*engine.RetryRunParams)) (engine.Started, error) {
	p := engine.RetryRunParams{SteerParams: s.steer(run, "once more"), ID: s.id()}
	for _, change := range changes {
		change(&p)
	}
	return s.store.RetryRun(s.ctx, p)
}

func (s *stage) retry(run engine.ID, changes ...func(*engine.RetryRunParams)) engine.Started {
	s.Helper()
	answer, err := s.tryRetry(run, changes...)
	s.must(err, "RetryRun")
	return answer
}

func (s *stage) audit(subject string) []engine.AuditEvent {
	s.Helper()
	list, _, err := s.store.ListAuditEvents(s.ctx, engine.AuditFilter{Namespace: space, SubjectID: subject}, engine.Page{Limit: engine.MaxPage})
	s.must(err, "ListAuditEvents")
	return list
}

// failed is a run that has ended as FAILED, after these steps.
func (s *stage) failed(steps ...string) engine.ID {
	s.Helper()
	l := s.held()
	for _, name := range steps {
		s.complete(l, name, name+" done")
	}
	s.failRun(l, "no")
	s.status(l.RunID, engine.RunFailed)
	return l.RunID
}
