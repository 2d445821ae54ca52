package runs

import (
	"bytes"
	"slices"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// PlacesMoved fills a new store with runs that have places of keys of ScopeOpen, in each way of
// waiting, and with runs that wait for a place. After each move nothing has changed: the same runs
// have the places, and one that ends lets the next run in. move closes the given store and opens
// the next, in which no lease is kept; check fails the test if the rows of a store contradict each
// other.
func PlacesMoved(t fixture.T, store engine.Store, move func(engine.Store, time.Time) engine.Store,
	check func()) {
	t.Helper()
	const limit = 5
	s := fixture.New(t, store)
	s.Worker("w1")
	key := open("k", limit)
	s.Finish(s.HeldNext(key), "") // gives its place back, and stays in the table
	running := s.HeldNext(key)
	sleeping, paused, retrying, before := s.HeldNext(key), s.HeldNext(key), s.HeldNext(key, retried), s.HeldNext(key)
	s.Sleep(sleeping, "nap", 24*time.Hour)
	s.Await(paused, "approval", "approval")
	s.Pause(paused.RunID)
	s.FailRun(retrying, "no")
	continuing := continueAs(s, before, func(r *engine.StartRun) {
		r.CreatedAt, r.AvailableAt = s.Now, s.Now.Add(24*time.Hour)
	})
	holders := []engine.ID{sleeping.RunID, running.RunID, paused.RunID, retrying.RunID, continuing}
	var line []engine.ID
	for range holders {
		line = append(line, s.Start(key))
		s.ClaimNothing("w1")
		s.Pass(time.Millisecond)
	}
	slot := s.HeldNext(fixture.Keyed("slot", 1))
	behind := s.Start(open("slot", 1), fixture.WithPriority(9))
	s.ClaimNothing("w1")

	for round := range holders {
		check()
		s.Store = move(s.Store, s.Now)
		check()
		s.Register(s.NewWorker("w1"), true)
		s.Offline("w1", engine.OfflineForced) // what it held is due again, also if the move kept its leases
		s.Register(s.NewWorker("w1"), true)
		s.Pass(time.Hour)
		c, err := s.Store.ExplainInputs(s.Ctx, fixture.Space, line[len(line)-1])
		s.Must(err, "ExplainInputs")
		fixture.Equal(s, "places", c.PlacesOfKey, limit)
		for _, id := range slices.Concat(c.HoldersOfKey, s.ClaimedIDs("w1", 2*limit)) {
			if !slices.Contains(holders, id) && id != behind {
				s.Fatalf("after move %d run %s has a place, want only %v", round+1, id, holders)
			}
		}
		for _, id := range line[round:] {
			fixture.Equal(s, "waits", s.Run(id).Gated, true)
		}
		fixture.Equal(s, "waits after its lease", s.Run(slot.RunID).Gated, true)
		fixture.Equal(s, "was let in", s.Run(behind).HasPlace, true)
		s.Cancel(holders[round])
		next := line[round]
		s.SameIDs("let in", s.ClaimedIDs("w1", 2*limit), []engine.ID{next})
		holders[round] = next
	}
	for _, id := range append(holders, behind, slot.RunID) {
		s.Cancel(id)
	}
	check()
}

// samePlaces fails the case unless these runs, and no others, have the places of a run's key.
func samePlaces(s *fixture.F, of engine.ID, places int, holders ...engine.ID) {
	s.Helper()
	c, err := s.Store.ExplainInputs(s.Ctx, fixture.Space, of)
	s.Must(err, "ExplainInputs")
	fixture.Equal(s, "places", c.PlacesOfKey, places)
	slices.SortFunc(holders, func(a, b engine.ID) int { return bytes.Compare(a[:], b[:]) })
	s.SameIDs("holders", c.HoldersOfKey, holders)
}

// OpenKeyKeptCases are about places of keys of ScopeOpen when runs are deleted or imported.
var OpenKeyKeptCases = []fixture.Case{
	{Name: "retention gives no place back and takes none", Run: func(s *fixture.F) {
		s.Worker("w1")
		key := open("k", 2)
		before := s.HeldNext(key)
		next := continueAs(s, before) // the run that has ended had the place that this one has
		s.Sleep(s.Claim("w1").Lease, "nap", 48*time.Hour)
		for range 3 {
			s.Finish(s.HeldNext(key), "")
		}
		asleep := s.HeldNext(key)
		s.Sleep(asleep, "nap", 24*time.Hour)
		waits := s.Start(key)
		s.ClaimNothing("w1")
		s.Pass(time.Hour)
		fixture.Equal(s, "pruned while the chain goes on", s.Prune(s.Now, 99), 3)
		samePlaces(s, waits, 2, next, asleep.RunID)
		s.ClaimNothing("w1")
		fixture.Equal(s, "gated", s.Run(waits).Gated, true)

		s.Cancel(next)
		s.Pass(time.Hour)
		fixture.Equal(s, "pruned with the chain", s.Prune(s.Now, 99), 2)
		samePlaces(s, waits, 1, asleep.RunID)
		fixture.Equal(s, "let in", s.Claim("w1").Run.ID, waits)
		third := s.Start(key)
		s.ClaimNothing("w1")
		samePlaces(s, third, 2, asleep.RunID, waits)
	}},
	{Name: "imported runs take places when they are claimed", Run: func(s *fixture.F) {
		s.Worker("w1")
		key := open("k", 2)
		asleep := s.HeldNext(key)
		s.Sleep(asleep, "nap", 24*time.Hour)
		ended := s.HeldNext(key)
		s.Finish(ended, "")
		var imported []engine.ID
		for _, id := range []engine.ID{asleep.RunID, asleep.RunID, ended.RunID} {
			run := s.Run(id)
			run.ID, run.Origin, run.RequestID, run.Steps = s.ID(), engine.OriginImport, "", 0
			_, err := s.Store.ImportRuns(s.Ctx, engine.ImportRunsParams{Namespace: fixture.Space, By: fixture.Somebody,
				AuditID: s.ID(), Now: s.Now, Runs: []engine.ImportedRun{{Run: run}}})
			s.Must(err, "ImportRuns")
			imported = append(imported, run.ID)
		}
		samePlaces(s, imported[0], 1, asleep.RunID)
		s.Resume(imported[0])
		s.Resume(imported[1])
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, imported[0])
		s.ClaimNothing("w1")
		fixture.Equal(s, "gated", s.Run(imported[1]).Gated, true)
		samePlaces(s, imported[1], 2, asleep.RunID, imported[0])
		s.Cancel(asleep.RunID)
		fixture.Equal(s, "let in", s.Claim("w1").Run.ID, imported[1])
	}},
}
