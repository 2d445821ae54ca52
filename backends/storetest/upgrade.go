package storetest

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// An upgrade is a story in two parts. LeaveWork is what a server leaves in its database when it stops in the middle of its work;
// testdata/NNNN_name.sql of each backend is what the code of that schema made of it. TakeUpWork goes on from there.

// LeaveWork fills a fresh store with runs in every state and with what stands around them. It does the same each time.
func LeaveWork(t T, store engine.Store) {
	s := newStage(t, store)
	s.leaveHeld()
	s.leaveAround()
	s.leaveDue()
	s.leaveDueAround()
	s.leaveKeys()
}

// TakeUpWork goes on, an hour later, with the work of a database that LeaveWork filled under this schema.
func TakeUpWork(t T, store engine.Store, schema int) {
	s := newStage(t, store)
	s.minted.n = 1000 // beyond what was minted there
	s.pass(time.Hour)
	s.findEnded()
	s.keepLeases()
	if schema >= 2 {
		s.takeUpAround()
	}
	s.takeUpDue()
	if schema >= 2 {
		s.findAroundEnded()
	}
	if schema >= 3 {
		s.takeUpKeys()
	}
}

// odd is a payload that a careless copy would spoil.
func odd() engine.Payload {
	return engine.Payload{Data: []byte("it's \x00\xff;\r\n -- 100 % çà"), Metadata: map[string]string{"content-type": `"a\b"`}}
}

// working is a new run in the hands of w1, of this external id, whose step "charge" is behind it.
func (s *stage) working(id string, changes ...func(*engine.StartRun)) engine.Lease {
	s.Helper()
	run := s.newRun(append(changes, withExternal(id))...)
	s.started(run)
	p := s.claimParams("w1")
	p.Types = []string{run.Type}
	claimed := s.claimWith(p)
	equal(s, "claimed runs", len(claimed.Tasks), 1)
	equal(s, "claimed run", claimed.Tasks[0].Run.ID, run.ID)
	s.complete(claimed.Tasks[0].Lease, "charge", "charged for "+id)
	return claimed.Tasks[0].Lease
}

// leaveHeld leaves runs that have ended, runs that wait for their time, and two that a worker is at.
func (s *stage) leaveHeld() {
	s.worker("w1")
	s.finish(s.working("completed", withRequest("first"), tagged("customer", "it's"), func(r *engine.StartRun) { r.Input = odd() }), "done")
	s.started(s.newRun(withExternal("completed"), withRequest("second"), withReuse(engine.ReuseNever), func(r *engine.StartRun) { r.Input = odd() }))
	s.failRun(s.working("failed"), `it's "no" \ çà`)
	s.cancel(s.working("cancelled").RunID)
	s.sleep(s.working("asleep"), "nap", 30*time.Minute)
	s.fail(s.working("retrying", withPolicy(engine.RetryPolicy{MaximumAttempts: 3})), "ship", "boom")
	s.begin(s.working("at work", withTimeouts(engine.Timeouts{Heartbeat: time.Hour, Execution: 48 * time.Hour})), "ship", startToClose(24*time.Hour))
	s.working("keyed", ofType("keyed"), keyed("customer", 1))
}

// leaveDue leaves runs that a worker can have.
func (s *stage) leaveDue() {
	l := s.working("released")
	s.start(withExternal("new"), withPriority(3), requiring("gpu", ""))
	s.start(withExternal("delayed"), dueAt(s.now.Add(30*time.Minute)))
	s.start(withExternal("second of the key"), ofType("keyed"), keyed("customer", 1))
	s.release(l, false)
}

// found is the newest run of an external id.
func (s *stage) found(id string) engine.Run {
	s.Helper()
	run, err := s.store.GetRunByExternalID(s.ctx, space, id)
	s.must(err, "GetRunByExternalID "+id)
	return run
}

// heldAs is the lease under which w1 has the run of an external id.
func (s *stage) heldAs(id string) engine.Lease {
	s.Helper()
	run := s.found(id).ID
	for _, l := range s.heldBy("w1") {
		if l.RunID == run {
			return l
		}
	}
	s.Fatalf("nobody has the lease of run %q", id)
	return engine.Lease{}
}

// findEnded holds what has ended to what it was.
func (s *stage) findEnded() {
	done := s.status(s.found("completed").ID, engine.RunCompleted)
	s.payload("output", done.Output, text("done"))
	s.payload("input", done.Input, odd())
	equal(s, "tag", done.Tags["customer"], "it's")
	s.payload("output of the step", s.step(done.ID, "charge").Output, text("charged for completed"))
	for _, request := range []string{"first", "second"} {
		again := s.started(s.newRun(withExternal("completed"), withRequest(request), withReuse(engine.ReuseNever), func(r *engine.StartRun) { r.Input = odd() }))
		equal(s, "run of the "+request+" request", again.RunID, done.ID)
	}
	s.failure("error", s.status(s.found("failed").ID, engine.RunFailed).Error, boom(`it's "no" \ çà`))
	s.status(s.found("cancelled").ID, engine.RunCancelled)
}

// keepLeases ends the runs that the worker was at, under the leases that it had.
func (s *stage) keepLeases() {
	leases := s.heldBy("w1")
	beat := s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held = leases })
	equal(s, "leases lost", len(beat.Lost), 0)
	l := s.heldAs("at work")
	equal(s, "status of the step", s.step(l.RunID, "ship").Status, engine.StepRunning)
	s.complete(l, "ship", "shipped")
	s.finish(l, "done")
	s.status(l.RunID, engine.RunCompleted)
}

// takeUpDue hands out all that is due, once, and ends it.
func (s *stage) takeUpDue() {
	ofKey := func(p *engine.ClaimParams) { p.Types = []string{"keyed"} }
	equal(s, "runs of a key that is taken", s.takeUpAll(ofKey), 0)
	s.finish(s.heldAs("keyed"), "done")
	equal(s, "runs of a key that is free", s.takeUpAll(ofKey), 1)
	s.takeUpAll(func(*engine.ClaimParams) {})
	s.status(s.found("new").ID, engine.RunPending)
	equal(s, "runs for a worker with that capability", s.takeUpAll(func(p *engine.ClaimParams) { p.Offers = []engine.Offer{{Key: "gpu", Value: "a"}} }), 1)
	for _, id := range []string{"new", "asleep", "retrying", "released", "delayed", "second of the key"} {
		s.status(s.found(id).ID, engine.RunCompleted)
	}
}

// takeUpAll ends the runs that are due for such a worker and says how many they were.
func (s *stage) takeUpAll(change func(*engine.ClaimParams)) (n int) {
	s.Helper()
	for {
		p := s.claimParams("w1", "w1", "w1")
		change(&p)
		tasks := s.claimWith(p).Tasks
		if len(tasks) == 0 {
			return n
		}
		n += len(tasks)
		for _, task := range tasks {
			s.replay(task)
		}
	}
}

// replay ends a run, whose history must be what was recorded.
func (s *stage) replay(task engine.Task) {
	s.Helper()
	for _, step := range task.History {
		if step.Name == "charge" {
			s.payload("output of the step", step.Output, text("charged for "+task.Run.ExternalID))
		}
	}
	s.replayAround(task)
	s.complete(task.Lease, "ship", "shipped")
	s.finish(task.Lease, "done")
}
