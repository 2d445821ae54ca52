package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// leaveAround leaves runs that wait for others or were steered, and a schedule that has fired. It came with schema 2.
func (s *stage) leaveAround() {
	s.await(s.working("awaiting"), "approval", "approve")
	l := s.working("signalled")
	s.signal(l.RunID, "hello", "hi", signalID("s1"))
	s.await(l, "greeting", "hello")
	s.signal(l.RunID, "bye", "so long")
	s.sleep(l, "nap", 30*time.Minute)

	s.childWorker()
	parent := s.working("parent")
	s.awaitChildren(parent, s.child(parent, "child", withExternal("child")))

	s.failRun(s.working("failed again"), "no")
	next := s.newRun(withExternal("continued"), dueAt(s.now.Add(30*time.Minute)))
	s.must(s.tryEnd(engine.CompleteRunParams{Lease: s.working("continued"), Output: text("so far"), ContinueAs: &next, Now: s.now}), "CompleteRun")
	l = s.working("cancelling")
	s.must(s.store.SetRunNote(s.ctx, engine.SetNoteParams{Lease: l, Note: "half of it", Now: s.now}), "SetRunNote")
	s.cancelWithin(l.RunID, 24*time.Hour)
}

// leaveDueAround leaves, of these, what a worker can have, and what is kept from the workers.
func (s *stage) leaveDueAround() {
	p := s.claimParams("w1")
	p.Types = []string{"keyed"}
	equal(s, "runs of a key that is taken", len(s.claimWith(p).Tasks), 0)
	s.start(withExternal("paused"))
	s.pause(s.found("paused").ID)
	s.retry(s.found("failed again").ID)
	plan := s.plan(func(p *engine.Schedule) { p.Name = "minutely" })
	s.pass(time.Minute)
	equal(s, "runs of the first tick", s.fire(s.fireParams(plan.ID, 1)).Runs, 1)
}

// takeUpAround goes on with what leaveAround and leaveDueAround left.
func (s *stage) takeUpAround() {
	run := s.found("awaiting").ID
	s.parked(run, s.found("awaiting").WaitingFor, time.Time{})
	s.signal(run, "approve", "yes")
	s.due(run)
	run = s.found("signalled").ID
	equal(s, "signals", len(s.signals(run)), 2)
	equal(s, "repeated signal", s.signal(run, "hello", "hi", signalID("s1")).Repeated, true)

	parent := s.found("parent").ID
	s.finish(s.claimChild(s.found("child").ID), "grown up")
	s.due(parent)

	beat := s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held = s.heldBy("w1") })
	equal(s, "runs whose code is told to stop", len(beat.Cancelling), 1)
	l := s.heldAs("cancelling")
	equal(s, "note", s.run(l.RunID).Note, "half of it")
	s.finish(l, "cleaned up")
	s.status(l.RunID, engine.RunCancelled)

	s.resume(s.found("paused").ID)
	plan, err := s.store.GetSchedule(s.ctx, space, "minutely")
	s.must(err, "GetSchedule")
	equal(s, "runs of the next tick", s.fire(s.fireParams(plan.ID, 1)).Runs, 1)
	equal(s, "runs of the schedule", len(s.firedRuns(plan.ID)), 2)
	equal(s, "audit events of the run that was paused and resumed", len(s.audit(s.found("paused").ID.String())), 2)
}

// replayAround asks for what such a run waited for.
func (s *stage) replayAround(task engine.Task) {
	s.Helper()
	switch task.Run.ExternalID {
	case "awaiting":
		s.payload("signal", s.await(task.Lease, "approval", "approve").Step.Output, text("yes"))
	case "signalled":
		s.payload("consumed signal", s.step(task.Run.ID, "greeting").Output, text("hi"))
		s.payload("signal", s.await(task.Lease, "parting", "bye").Step.Output, text("so long"))
	case "parent":
		children := s.awaitChildren(task.Lease, s.found("child").ID)
		equal(s, "children", len(children), 1)
		s.payload("output of the child", children[0].Output, text("grown up"))
	}
}

// findAroundEnded holds the ends of what was taken up.
func (s *stage) findAroundEnded() {
	for _, id := range []string{"awaiting", "signalled", "parent", "child", "paused", "continued", "failed again"} {
		s.status(s.found(id).ID, engine.RunCompleted)
	}
	plan, err := s.store.GetSchedule(s.ctx, space, "minutely")
	s.must(err, "GetSchedule")
	for _, run := range s.firedRuns(plan.ID) {
		s.status(run.ID, engine.RunCompleted)
	}
}

// leaveKeys leaves API keys. They came with schema 3.
func (s *stage) leaveKeys() {
	s.key("root", engine.RoleAdmin)
	s.key("press", engine.RoleWorker, func(k *engine.APIKey) { k.Queues, k.Types = []string{queue}, []string{kind} })
	s.revoke(s.key("leaked", engine.RoleClient).ID)
}

func (s *stage) takeUpKeys() {
	var names []string
	for _, k := range s.keyring() {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	s.sameText("keys that open", strings.Join(names, " "), "press root")
}
