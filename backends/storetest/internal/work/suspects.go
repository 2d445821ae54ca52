package work

import (
	"fmt"
	"slices"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// SuspectCases are about runs that a lost worker held together.
var SuspectCases = []fixture.Case{
	{Name: "a worker lost with several runs counts no loss", Run: func(s *fixture.F) {
		leases := s.HeldTogether("w1", 7)
		s.Pass(time.Minute)
		lostAt := s.Now
		fixture.Equal(s, "freed", s.Offline("w1", engine.OfflineLost), 7)
		for _, l := range leases {
			run := s.Status(l.RunID, engine.RunPending)
			fixture.Equal(s, "losses", run.LeaseLosses, 0)
			fixture.Equal(s, "suspect", run.Suspect, engine.Suspect{Of: 7, Worker: "w1", At: lostAt})
			if run.AvailableAt.Before(lostAt) || !run.AvailableAt.Before(lostAt.Add(engine.LossJitter)) {
				s.Fatalf("available %s after the loss, want a part of %s", run.AvailableAt.Sub(lostAt),
					engine.LossJitter)
			}
		}
		s.Worker("w1")
		next := s.ClaimNothing("w1").NextDue
		first := slices.MinFunc(leases, func(a, b engine.Lease) int {
			return s.Run(a.RunID).AvailableAt.Compare(s.Run(b.RunID).AvailableAt)
		})
		s.SameTime("next due", next, s.Run(first.RunID).AvailableAt)
	}},
	{Name: "half of the suspects are in hand of one worker", Run: func(s *fixture.F) {
		s.HeldTogether("w1", 7)
		s.LoseTogether("w1")
		fixture.Equal(s, "claimed by w1", len(s.ClaimLeases("w1", 10)), 3)
		s.Worker("w2")
		fixture.Equal(s, "claimed by w2", len(s.ClaimLeases("w2", 10)), 3)
		claimed := s.ClaimWith(s.ClaimParams("w1", "w2"))
		fixture.Equal(s, "claimed by workers that hold half", len(claimed.Tasks), 0)
		fixture.Equal(s, "limited", claimed.Limited, true)
		s.SameTime("next due", claimed.NextDue, s.Now.Add(engine.SuspectRetry))
		s.Worker("w3")
		claimed = s.ClaimWith(s.ClaimParams("w1", "w3", "w3"))
		fixture.Equal(s, "claimed by a third", len(claimed.Tasks), 1)
		fixture.Equal(s, "worker of the last", claimed.Tasks[0].Run.WorkerID, "w3")
	}},
	{Name: "suspects keep no other run waiting", Run: func(s *fixture.F) {
		s.HeldTogether("w1", 4)
		s.LoseTogether("w1")
		s.ClaimLeases("w1", 10)
		fresh := s.Start()
		s.SameIDs("claimed beside suspects", s.ClaimedIDs("w1", 10), []engine.ID{fresh})
	}},
	{Name: "suspects come before other runs", Run: func(s *fixture.F) {
		l := s.HeldTogether("w1", 2)
		s.Start(fixture.WithPriority(100))
		s.LoseTogether("w1")
		id := s.Claim("w1").Run.ID
		if id != l[0].RunID && id != l[1].RunID {
			s.Fatalf("claimed run %s, want a suspect", id)
		}
	}},
	{Name: "each further loss halves the suspects", Run: func(s *fixture.F) {
		all := s.HeldTogether("w1", 16)
		for _, n := range []int{8, 4, 2, 1} {
			s.LoseTogether("w1")
			held := s.ClaimLeases("w1", 20)
			fixture.Equal(s, "in hand", len(held), n)
			for _, l := range all { // the others wait, so that the next claim is about the same
				if run := s.Run(l.RunID); run.Status == engine.RunPending && !run.Paused {
					s.Pause(l.RunID)
				}
				fixture.Equal(s, "losses", s.Run(l.RunID).LeaseLosses, 0)
			}
			all = held
		}
		last := all[0].RunID
		s.SuspectOf(last, 2)
		s.LoseTogether("w1")
		fixture.Equal(s, "losses of the only suspect", s.Run(last).LeaseLosses, 1)
		s.SuspectOf(last, 1)
	}},
	{Name: "halved suspects are alone with those of other losses", Run: func(s *fixture.F) {
		s.HeldTogether("w1", 8)
		s.HeldTogether("w2", 2)
		s.LoseTogether("w1")
		fixture.Equal(s, "in hand", len(s.ClaimLeases("w1", 4)), 4)
		s.LoseTogether("w1") // four suspects again, four that were not in hand
		s.LoseTogether("w2")
		s.Pass(time.Second)
		again := 0
		for _, l := range s.ClaimLeases("w1", 20) {
			if s.Run(l.RunID).Suspect.Again {
				again++
			}
		}
		held := len(s.HeldBy("w1"))
		if again > 2 || again > 0 && held > 2 || again == 0 && held > 5 {
			s.Fatalf("w1 holds %d suspects, %d of them of a loss with suspects in hand", held, again)
		}
	}},
	{Name: "only the suspect counts the loss beside other runs", Run: func(s *fixture.F) {
		l := s.HeldTogether("w1", 1)[0]
		s.LoseTogether("w1")
		s.SuspectOf(l.RunID, 1)
		fixture.Equal(s, "losses of a run that was alone", s.Run(l.RunID).LeaseLosses, 1)
		s.Claim("w1")
		others := s.HeldTogether("w1", 6)
		lostAt := s.Now
		s.Lose("w1")
		run := s.Run(l.RunID)
		fixture.Equal(s, "losses", run.LeaseLosses, 2)
		fixture.Equal(s, "suspect", run.Suspect, engine.Suspect{Of: 1, Worker: "w1", At: lostAt, Again: true})
		s.SameTime("available at", run.AvailableAt, s.Now.Add(time.Second))
		for _, o := range others {
			fixture.Equal(s, "losses of another", s.Run(o.RunID).LeaseLosses, 0)
			s.SuspectOf(o.RunID, 6)
		}
		s.Pass(time.Hour)
		s.Worker("w2")
		ids := s.ClaimedIDs("w2", 10)
		if len(ids) != 3 && !slices.Equal(ids, []engine.ID{l.RunID}) {
			s.Fatalf("claimed %v, want three of the others or the only suspect alone", ids)
		}
	}},
	{Name: "a suspect that records is none any more", Run: func(s *fixture.F) {
		for i, record := range []struct {
			what string
			do   func(l engine.Lease)
		}{
			{"a result", func(l engine.Lease) { s.Complete(l, "pay", "paid") }},
			{"a result of a step that was begun", func(l engine.Lease) {
				s.Begin(l, "pay")
				s.Complete(l, "pay", "paid")
			}},
			{"a failure", func(l engine.Lease) { s.Fail(l, "pay", "no", fixture.Holding) }},
			{"a signal that it takes", func(l engine.Lease) {
				s.Signal(l.RunID, "paid", "yes")
				s.Await(l, "paid?", "paid")
			}},
			{"a timer that it waits for", func(l engine.Lease) { s.Sleep(l, "nap", time.Hour) }},
			{"a signal that it waits for", func(l engine.Lease) { s.Await(l, "paid?", "paid") }},
			{"a failure of the run", func(l engine.Lease) { s.FailRun(l, "no") }},
			{"its end", func(l engine.Lease) { s.Finish(l, "done") }},
			{"its cancellation", func(l engine.Lease) { s.Cancel(l.RunID) }},
		} {
			worker := fmt.Sprint("w", i)
			s.HeldTogether(worker, 2, fixture.WithPolicy(engine.RetryPolicy{InitialIntervalMS: 3_600_000}))
			s.LoseTogether(worker)
			first := s.ClaimLeases(worker, 2)
			fixture.Equal(s, "in hand before "+record.what, len(first), 1)
			record.do(first[0])
			fixture.Equal(s, "suspect after "+record.what, s.Run(first[0].RunID).Suspect, engine.Suspect{})
			second := s.ClaimLeases(worker, 2)
			fixture.Equal(s, "claimed after "+record.what, len(second), 1)
			s.Finish(second[0], "done")
		}
	}},
	{Name: "a record of a suspect notifies its queue's slots", Run: func(s *fixture.F) {
		s.HeldTogether("w1", 2)
		s.LoseTogether("w1")
		l := s.ClaimLeases("w1", 2)[0]
		ear := s.Listen()
		s.Complete(l, "pay", "paid")
		ear.Hears("CompleteStep of a suspect", engine.Notification{
			Kind: engine.NotifySlot, Namespace: fixture.Space, Name: fixture.Queue})
	}},
	{Name: "a suspect in hand for ten minutes is none any more", Run: func(s *fixture.F) {
		s.HeldTogether("w1", 4)
		s.LoseTogether("w1")
		first := s.ClaimLeases("w1", 4)
		fixture.Equal(s, "in hand", len(first), 2)
		s.Pass(engine.SuspectFor - time.Microsecond)
		s.ClaimNothing("w1")
		s.Pass(time.Microsecond)
		second := s.ClaimLeases("w1", 4)
		fixture.Equal(s, "claimed after ten minutes", len(second), 2)
		s.Heartbeat("w1")
		s.LoseTogether("w1")
		for _, l := range first {
			s.SuspectOf(l.RunID, 2) // with the other, beside the two suspects
			fixture.Equal(s, "again", s.Run(l.RunID).Suspect.Again, false)
		}
		for _, l := range second {
			fixture.Equal(s, "again", s.Run(l.RunID).Suspect.Again, true)
		}
	}},
	{Name: "a suspect that is given back stays one", Run: func(s *fixture.F) {
		s.HeldTogether("w1", 2)
		s.LoseTogether("w1")
		l := s.ClaimLeases("w1", 2)[0]
		s.Release(l, false)
		s.SuspectOf(l.RunID, 2)
		s.Pause(l.RunID)
		other := s.ClaimLeases("w1", 2)
		fixture.Equal(s, "claimed beside a paused one", len(other), 1)
		s.Resume(l.RunID)
		s.ClaimNothing("w1")
		s.Finish(other[0], "done")
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, l.RunID)
	}},
	{Name: "suspects keep to limits and concurrency keys", Run: func(s *fixture.F) {
		keyed := func(r *engine.StartRun) { r.ConcurrencyKey, r.ConcurrencyLimit = "customer", 2 }
		s.HeldTogether("w1", 2, keyed)
		s.HeldTogether("w1", 4)
		s.LoseTogether("w1")
		s.Worker("w2")
		limited := func(p *engine.ClaimParams) { p.QueueLimit = 1 }
		fixture.Equal(s, "claimed with a limit", len(s.ClaimedIDs("w1", 6, limited)), 1)
		fixture.Equal(s, "claimed by w1", len(s.ClaimLeases("w1", 6)), 2)
		fixture.Equal(s, "claimed by w2", len(s.ClaimLeases("w2", 6)), 3)
	}},
	{Name: "a suspect waits for a slot of its key", Run: func(s *fixture.F) {
		keyed := func(r *engine.StartRun) { r.ConcurrencyKey, r.ConcurrencyLimit = "customer", 1 }
		l := s.HeldTogether("w1", 1, keyed)[0]
		s.HeldTogether("w1", 1)
		gated := s.Start(keyed)
		s.ClaimNothing("w1")
		s.Lose("w1")
		s.Worker("w2")
		fixture.Equal(s, "claimed before the suspects are due", s.Claim("w2").Run.ID, gated)
		s.Pass(engine.LossJitter)
		s.ClaimedIDs("w1", 2)
		run := s.Run(l.RunID)
		if !run.Gated && run.Status != engine.RunPending {
			s.Fatalf("run is %s, gated %t; its key has no slot", run.Status, run.Gated)
		}
		s.SuspectOf(l.RunID, 2)
	}},
	{Name: "a hundred innocent runs are half in hand at once", Run: func(s *fixture.F) {
		all := s.HeldTogether("w1", 100)
		s.Pass(30 * time.Second)
		s.LoseTogether("w1")
		first := s.ClaimLeases("w1", 100)
		fixture.Equal(s, "in hand again", len(first), 50)
		s.Pass(engine.SuspectFor)
		fixture.Equal(s, "in hand after ten minutes", len(first)+len(s.ClaimLeases("w1", 100)), 100)
		for _, l := range all {
			fixture.Equal(s, "losses", s.Run(l.RunID).LeaseLosses, 0)
		}
	}},
	{Name: "one crashing run fails and its neighbours complete", Run: func(s *fixture.F) {
		leases := s.HeldTogether("w1", 7)
		crashing := leases[3].RunID
		losses := 1
		s.LoseTogether("w1")
		for round := 0; s.Run(crashing).Status != engine.RunFailed; round++ {
			if round == 100 {
				s.Fatalf("the crashing run is %s after %d losses", s.Run(crashing).Status, losses)
			}
			held := s.ClaimLeases("w1", 10)
			if slices.ContainsFunc(held, func(l engine.Lease) bool { return l.RunID == crashing }) {
				losses++
				s.Lose("w1")
			} else {
				for _, l := range held {
					s.Finish(l, "done")
				}
			}
			s.Pass(3 * time.Minute)
		}
		for l := s.ClaimLeases("w1", 10); len(l) > 0; l = s.ClaimLeases("w1", 10) {
			for _, one := range l {
				s.Finish(one, "done")
			}
		}
		for _, l := range leases {
			if l.RunID != crashing {
				fixture.Equal(s, "losses of a neighbour", s.Status(l.RunID, engine.RunCompleted).LeaseLosses, 0)
			}
		}
		s.Failure("error", s.Status(crashing, engine.RunFailed).Error, engine.CrashedFailure())
		if most := 4 + engine.MaxLeaseLosses; losses > most {
			s.Fatalf("it took %d losses, want %d at most", losses, most)
		}
	}},
}
