package storetest

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// endVerb is CancelRun or TerminateRun, which differ in the status that they leave.
type endVerb struct {
	name   string
	status engine.RunStatus
	call   func(engine.Store, context.Context, engine.EndRunParams) (engine.RunEnd, error)
}

var endVerbs = []endVerb{
	{"CancelRun", engine.RunCancelled, engine.Store.CancelRun},
	{"TerminateRun", engine.RunTerminated, engine.Store.TerminateRun},
}

func (v endVerb) end(s *stage, run engine.ID, reason string) (engine.RunEnd, error) {
	return v.call(s.store, s.ctx, s.endParams(run, reason))
}

var cancelCases = []testCase{
	{"a PENDING, RUNNING or SLEEPING run can be ended", func(s *stage) {
		for _, verb := range endVerbs {
			sleeping := s.heldAgain()
			s.sleep(sleeping, "nap", time.Hour)
			running := s.heldNext()
			for _, run := range []engine.ID{s.start(), running.RunID, sleeping.RunID} {
				s.pass(time.Second)
				end, err := verb.end(s, run, "no longer wanted")
				s.must(err, verb.name)
				equal(s, "answer", end, engine.RunEnd{Status: verb.status, Changed: true})
				got := s.status(run, verb.status)
				s.failure("error", got.Error, engine.EndedByFailure(verb.status, "no longer wanted"))
				s.sameTime("finished at", got.FinishedAt, s.now)
				s.sameTime("available at", got.AvailableAt, time.Time{})
				equal(s, "waiting for", got.WaitingFor, "")
			}
			equal(s, "leases", len(s.heldBy("w1")), 0)
			if next := s.claimNothing("w1").NextDue; !next.IsZero() {
				s.Fatalf("an ended run is due at %s", clock(next))
			}
		}
	}},
	{"an empty reason gets a plain sentence", func(s *stage) {
		for _, verb := range endVerbs {
			run := s.start()
			_, err := verb.end(s, run, "")
			s.must(err, verb.name)
			s.failure("error", s.run(run).Error, engine.EndedByFailure(verb.status, ""))
		}
	}},
	{"ending a run again in the same way is fine and changes nothing", func(s *stage) {
		for _, verb := range endVerbs {
			run := s.start()
			_, err := verb.end(s, run, "first")
			s.must(err, verb.name)
			before := s.run(run)
			s.pass(time.Second)
			end, err := verb.end(s, run, "second")
			s.must(err, verb.name+" again")
			equal(s, "answer", end, engine.RunEnd{Status: verb.status})
			s.sameRun(s.run(run), before)
		}
	}},
	{"a run that ended otherwise is refused with its status", func(s *stage) {
		s.worker("w1")
		for _, verb := range endVerbs {
			for status, run := range s.endedRuns() {
				if status == verb.status {
					continue
				}
				before := s.run(run)
				_, err := verb.end(s, run, "x")
				s.refused(err, engine.ErrPrecondition, verb.name+" of a run that is "+status.String())
				s.explained(err, status, verb.name)
				s.sameRun(s.run(run), before)
			}
		}
	}},
	{"a run that is not there cannot be ended", func(s *stage) {
		run := s.start()
		for _, verb := range endVerbs {
			_, err := verb.end(s, s.id(), "x")
			s.refused(err, engine.ErrNotFound, verb.name+" of an unknown run")
			p := s.endParams(run, "x")
			p.Namespace = "other"
			_, err = verb.call(s.store, s.ctx, p)
			s.refused(err, engine.ErrNotFound, verb.name+" in another namespace")
		}
		s.status(run, engine.RunPending)
	}},
	{"the holder of an ended run learns what became of it", func(s *stage) {
		for _, verb := range endVerbs {
			l := s.heldAgain()
			s.begin(l, "pay")
			_, err := verb.end(s, l.RunID, "")
			s.must(err, verb.name)
			_, err = s.tryComplete(l, "pay", "paid")
			s.lost(err, verb.status, "CompleteStep")
			s.lost(s.tryFinish(l, "done"), verb.status, "CompleteRun")
			_, err = s.tryFailRun(l, "no")
			s.lost(err, verb.status, "FailRun")
			s.lost(s.tryRelease(l, false), verb.status, "Release")
			beat := s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held = []engine.Lease{l} })
			equal(s, "lost leases", len(beat.Lost), 1)
		}
	}},
	{"a result that counted before the end is answered OK after it", func(s *stage) {
		l := s.held()
		done := s.complete(l, "pay", "paid")
		s.cancel(l.RunID)
		s.sameStep(s.complete(l, "pay", "paid"), done)
		_, err := s.tryComplete(l, "pay", "other")
		s.refused(err, engine.ErrConflict, "CompleteStep with other content")
		s.status(l.RunID, engine.RunCancelled)
	}},
	{"an ended run says who held it", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "paid")
		s.cancel(l.RunID)
		run := s.run(l.RunID)
		equal(s, "worker", run.WorkerID, "w1")
		equal(s, "steps", run.Steps, 1)
		equal(s, "bytes of the steps", run.Bytes >= int64(len("input")+len("paid")), true)
	}},
}

// endedRuns is one run for each way to end. w1 is registered.
func (s *stage) endedRuns() map[engine.RunStatus]engine.ID {
	s.Helper()
	completed, failed := s.heldNext(), s.heldNext()
	s.finish(completed, "done")
	s.failRun(failed, "no")
	ended := map[engine.RunStatus]engine.ID{engine.RunCompleted: completed.RunID, engine.RunFailed: failed.RunID}
	for _, verb := range endVerbs {
		ended[verb.status] = s.start()
		_, err := verb.end(s, ended[verb.status], "")
		s.must(err, verb.name)
	}
	return ended
}
