package runs

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var StoreCases = []fixture.Case{
	{Name: "a new store is healthy and describes itself", Run: func(s *fixture.F) {
		s.Must(s.Store.Health(s.Ctx), "Health")
		s.Must(s.Store.Failure(), "Failure")
		select {
		case <-s.Store.Fatal():
			s.Fatalf("Fatal is closed")
		default:
		}
		d, err := s.Store.Describe(s.Ctx)
		s.Must(err, "Describe")
		if d.Backend == "" || d.Version == "" || d.Database == "" || d.Bytes <= 0 || d.Schema < 1 {
			s.Fatalf("description = %+v, want every field", d)
		}
		told := map[string]bool{}
		for _, f := range d.Facts {
			if f.Name == "" || f.Value == "" || told[f.Name] {
				s.Fatalf("facts = %+v, want names that differ and values", d.Facts)
			}
			told[f.Name] = true
		}
		if len(told) == 0 {
			s.Fatalf("a store tells nothing about itself")
		}
		switch d.Notifications {
		case "in-process", "listen", "polling":
		default:
			s.Fatalf("notifications = %q, want in-process, listen or polling", d.Notifications)
		}
	}},
	{Name: "Now returns whole microseconds in UTC", Run: func(s *fixture.F) {
		now := s.Store.Now()
		s.SameTime("Now", now, engine.Micros(now))
		if off := time.Since(now).Abs(); off > time.Minute {
			s.Fatalf("Now is %s away from this machine's clock", off)
		}
	}},
	{Name: "a new store is empty", Run: func(s *fixture.F) {
		runs, info, err := s.Store.ListRuns(s.Ctx, engine.RunFilter{Namespace: fixture.Space},
			engine.Page{Limit: 10, Count: true})
		s.Must(err, "ListRuns")
		fixture.Equal(s, "runs", len(runs), 0)
		fixture.Equal(s, "page info", info, engine.PageInfo{})
		stats, err := s.Store.GetStats(s.Ctx, "", s.Now)
		s.Must(err, "GetStats")
		fixture.Equal(s, "statuses counted", len(stats.ByStatus), 0)
		fixture.Equal(s, "workers", stats.Workers, 0)
		s.SameTime("oldest due", stats.OldestDue, time.Time{})
		live, err := s.Store.LiveWorkers(s.Ctx)
		s.Must(err, "LiveWorkers")
		fixture.Equal(s, "live workers", len(live), 0)
	}},
	{Name: "calls after Close are refused as unavailable", Run: func(s *fixture.F) {
		l := s.Held()
		s.Must(s.Store.Close(), "Close")
		_, err := s.Store.StartRuns(s.Ctx, engine.StartRunsParams{Runs: []engine.StartRun{s.NewRun()}})
		s.Refused(err, engine.ErrUnavailable, "StartRuns")
		_, err = s.TryComplete(l, "pay", "paid")
		s.Refused(err, engine.ErrUnavailable, "CompleteStep")
		_, err = s.Store.Claim(s.Ctx, s.ClaimParams("w1"))
		s.Refused(err, engine.ErrUnavailable, "Claim")
		_, err = s.Store.GetRun(s.Ctx, fixture.Space, l.RunID)
		s.Refused(err, engine.ErrUnavailable, "GetRun")
		_, err = s.TryHeartbeat("w1")
		s.Refused(err, engine.ErrUnavailable, "Heartbeat")
		if s.Store.Health(s.Ctx) == nil {
			s.Fatalf("a closed store says that it is healthy")
		}
	}},
	{Name: "Close waits for the writes that have begun", Run: func(s *fixture.F) {
		const callers = 20
		runs := make([]engine.StartRun, callers)
		for i := range runs {
			runs[i] = s.NewRun()
		}
		answers := make(chan error, callers)
		for _, run := range runs {
			go func() {
				_, err := s.Store.StartRuns(s.Ctx, engine.StartRunsParams{Runs: []engine.StartRun{run}})
				answers <- err
			}()
		}
		s.Must(s.Store.Close(), "Close")
		for range callers {
			if err := <-answers; err != nil {
				s.Refused(err, engine.ErrUnavailable, "StartRuns beside Close")
			}
		}
	}},
	{Name: "a caller that gave up learns the outcome by repeating", Run: func(s *fixture.F) {
		l := s.Held()
		gone, cancel := context.WithCancel(s.Ctx)
		cancel()
		p := engine.CompleteStepParams{Lease: l, Step: fixture.Named("pay"), ID: s.ID(), Output: fixture.Text("paid"),
			Now: s.Now}
		_, _ = s.Store.CompleteStep(gone, p) // the result does not matter
		step, err := s.Store.CompleteStep(s.Ctx, p)
		s.Must(err, "CompleteStep repeated")
		s.Payload("output", step.Output, fixture.Text("paid"))
		fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, "pay")), 1)
	}},
}
