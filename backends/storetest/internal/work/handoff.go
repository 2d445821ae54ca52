package work

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var HandOffCases = []fixture.Case{
	{Name: "a run handed off at its start equals a claimed one", Run: func(s *fixture.F) {
		s.Worker("w1")
		e := s.Listen()
		start := s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest("req"), fixture.WithPriority(-7),
			fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 4}),
			fixture.Tagged("k", "v"), fixture.Requiring("gpu", ""))
		start.Version, start.DeadlineAt, start.NamedDeadlineAt = "v2", s.Now.Add(time.Hour), s.Now.Add(2*time.Hour)
		start.Timeouts = engine.Timeouts{StartToClose: time.Second, Heartbeat: 2 * time.Minute, Execution: time.Hour}
		start.OnFailureWorkflow, start.OnFailureQueue = "cleanup", "failures"
		start.ParentRunID, start.ParentStepID = s.ID(), s.ID()
		start.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		start.Input = engine.Payload{Data: []byte("data"), Metadata: map[string]string{"content-type": "text/plain"}}
		w := s.Pollers("w1")
		fixture.Equal(s, "answer", s.StartFor(w, start)[0], engine.Started{RunID: start.ID})
		for _, task := range w.Given() {
			e.Hears("a start that is taken", notifyRun(start.ID))
			fixture.Equal(s, "leases of the worker", len(s.HeldBy("w1")), 1)
			s.ClaimNothing("w1")
			fixture.Equal(s, "freed with its worker", s.Offline("w1", engine.OfflineLost), 0)
			s.SameTime("the end of its own heartbeat timeout", s.FreeLost(s.Now).Next,
				s.Now.Add(start.Timeouts.Heartbeat))
			s.Worker("w1")
			s.Complete(task.Lease, "pay", "paid")
			s.Finish(task.Lease, "done")
			s.Status(start.ID, engine.RunCompleted)
			return
		}
		s.Status(start.ID, engine.RunPending)
	}},
	{Name: "a run that is due already is claimed before a new one", Run: func(s *fixture.F) {
		s.Worker("w1")
		first := s.Start()
		s.Pass(time.Second)
		second := s.NewRun(fixture.WithPriority(9))
		s.NobodyGets("an older run is due", second)
		s.SameIDs("claimed", s.ClaimedIDs("w1", 2), []engine.ID{second.ID, first})
	}},
	{Name: "a due run of another of the worker's types comes first", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Start(fixture.OfType("other"), fixture.Requiring("gpu", ""))
		w := s.Pollers("w1")
		w.Types = []string{fixture.Kind, "other"}
		s.StartFor(w, s.NewRun())
		fixture.Equal(s, "given", len(w.Given()), 0)
	}},
	{Name: "due runs of other queues or types do not come first", Run: func(s *fixture.F) {
		s.Worker("w1")
		given := func() int {
			w := s.Pollers("w1")
			s.StartFor(w, s.NewRun())
			return len(w.Given())
		}
		before := given()
		s.Start(fixture.InSpace("elsewhere"))
		s.Start(fixture.InQueue("second"))
		s.Start(fixture.OfType("other"))
		fixture.Equal(s, "given although others are due", given(), before)
	}},
	{Name: "a single waiting poller gets the first of many runs", Run: func(s *fixture.F) {
		s.Worker("w1")
		later, low, high := s.NewRun(fixture.DueAt(s.Now.Add(time.Hour)), fixture.WithPriority(9)), s.NewRun(),
			s.NewRun(fixture.WithPriority(5))
		w := s.Pollers("w1")
		s.StartFor(w, later, low, high)
		for _, task := range w.Given() {
			fixture.Equal(s, "run that was given", task.Run.ID, high.ID)
			s.SameIDs("left to a claim", s.ClaimedIDs("w1", 3), []engine.ID{low.ID})
		}
	}},
	{Name: "a run with a concurrency key is not handed off", Run: func(s *fixture.F) {
		s.Worker("w1")
		keyed := s.NewRun(fixture.WithPriority(5))
		keyed.ConcurrencyKey, keyed.ConcurrencyLimit = "k", 1
		s.NobodyGets("it has a key, or comes after one that has", keyed, s.NewRun())
	}},
	{Name: "a worker that is not ONLINE gets nothing", Run: func(s *fixture.F) {
		s.NobodyGets("the worker is unknown", s.NewRun())
		s.Worker("w1")
		s.Claim("w1")
		s.Offline("w1", engine.OfflineDeregistered)
		s.Worker("w2")
		s.Claim("w2")
		s.NobodyGets("the worker is OFFLINE", s.NewRun())
	}},
	{Name: "nothing is handed off after a run that could not be", Run: func(s *fixture.F) {
		for _, worker := range []string{"w1", "w2"} {
			s.Worker(worker)
			s.Start()
			s.Finish(s.Claim(worker).Lease, "done")
		}
		s.Offline("w1", engine.OfflineDeregistered)
		first, second := s.NewRun(), s.NewRun()
		w := s.Pollers("w1", "w2")
		s.StartFor(w, first, second)
		var given, want []engine.ID
		for _, start := range []engine.StartRun{first, second} {
			if t := w.Taken[start.ID]; t != nil && !t.Returned {
				given = append(given, start.ID)
			}
		}
		if len(given) > 0 {
			want = []engine.ID{first.ID, second.ID}[:len(given)]
		}
		s.SameIDs("given", given, want)
		s.SameIDs("left to a claim", s.ClaimedIDs("w2", 2), []engine.ID{first.ID, second.ID}[len(given):])
	}},
	{Name: "a start that makes no run aborts its match", Run: func(s *fixture.F) {
		s.Worker("w1")
		first := s.Start(fixture.WithExternal("ext"), fixture.WithRequest("req"))
		task := s.Claim("w1")
		for what, again := range map[string]engine.StartRun{
			"a repetition":          s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest("req")),
			"an external id":        s.NewRun(fixture.WithExternal("ext")),
			"one that is not to be": s.NewRun(fixture.WithExternal("ext"), fixture.WithReuse(engine.ReuseReject)),
		} {
			s.NobodyGets(what, again)
			_, err := s.Store.GetRun(s.Ctx, fixture.Space, again.ID)
			s.Refused(err, engine.ErrNotFound, "the run of "+what)
		}
		s.Finish(task.Lease, "done")
		s.Status(first, engine.RunCompleted)
	}},
	{Name: "hand-offs and claims never get the same run", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range fixture.Rounds(3) {
			w := s.Pollers(slices.Repeat([]string{"w1"}, fixture.Racers/2)...)
			starts, claims := make([]engine.StartRun, fixture.Racers), make([]engine.ClaimParams, fixture.Racers)
			for i := range starts {
				starts[i], claims[i] = s.NewRun(), s.ClaimParams("w1", "w1")
			}
			var mu sync.Mutex
			got := map[engine.ID][]string{}
			for _, err := range fixture.AtOnce(2*fixture.Racers, func(i int) error {
				if i < fixture.Racers {
					_, err := s.Store.StartRuns(s.Ctx, engine.StartRunsParams{Runs: starts[i : i+1], Handoff: w})
					return err
				}
				claimed, err := s.Store.Claim(context.WithoutCancel(s.Ctx), claims[i-fixture.Racers])
				mu.Lock()
				defer mu.Unlock()
				for _, task := range claimed.Tasks {
					got[task.Run.ID] = append(got[task.Run.ID], fmt.Sprintf("claim %d", i-fixture.Racers))
				}
				return err
			}) {
				s.Must(err, "StartRuns or Claim")
			}
			for _, task := range w.Given() {
				got[task.Run.ID] = append(got[task.Run.ID], "a hand-off")
			}
			for _, id := range s.ClaimedIDs("w1", 2*fixture.Racers) {
				got[id] = append(got[id], "the last claim")
			}
			fixture.Equal(s, "runs that somebody got", len(got), fixture.Racers)
			for id, who := range got {
				if len(who) > 1 {
					s.Fatalf("run %s was given to %q", id, who)
				}
				s.Status(id, engine.RunRunning)
			}
		}
	}},
}
