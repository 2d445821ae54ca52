package storetest

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var storeCases = []testCase{
	{"a fresh store is healthy and says what it is", func(s *stage) {
		s.must(s.store.Health(s.ctx), "Health")
		s.must(s.store.Failure(), "Failure")
		select {
		case <-s.store.Fatal():
			s.Fatalf("Fatal is closed")
		default:
		}
		d, err := s.store.Describe(s.ctx)
		s.must(err, "Describe")
		if d.Backend != "sqlite" && d.Backend != "postgres" && d.Backend != "memory" || d.Version == "" || d.Database == "" || d.Bytes <= 0 || d.Schema < 1 {
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
	{"its clock shows whole microseconds in UTC", func(s *stage) {
		now := s.store.Now()
		s.sameTime("Now", now, engine.Micros(now))
		if off := time.Since(now).Abs(); off > time.Minute {
			s.Fatalf("Now is %s away from this machine's clock", off)
		}
	}},
	{"a fresh store is empty", func(s *stage) {
		runs, info, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space}, engine.Page{Limit: 10, Count: true})
		s.must(err, "ListRuns")
		equal(s, "runs", len(runs), 0)
		equal(s, "page info", info, engine.PageInfo{})
		stats, err := s.store.GetStats(s.ctx, "", s.now)
		s.must(err, "GetStats")
		equal(s, "statuses counted", len(stats.ByStatus), 0)
		equal(s, "workers", stats.Workers, 0)
		s.sameTime("oldest due", stats.OldestDue, time.Time{})
		live, err := s.store.LiveWorkers(s.ctx)
		s.must(err, "LiveWorkers")
		equal(s, "live workers", len(live), 0)
	}},
	{"calls after Close are refused as unavailable", func(s *stage) {
		l := s.held()
		s.must(s.store.Close(), "Close")
		_, err := s.store.StartRuns(s.ctx, engine.StartRunsParams{Runs: []engine.StartRun{s.newRun()}})
		s.refused(err, engine.ErrUnavailable, "StartRuns")
		_, err = s.tryComplete(l, "pay", "paid")
		s.refused(err, engine.ErrUnavailable, "CompleteStep")
		_, err = s.store.Claim(s.ctx, s.claimParams("w1"))
		s.refused(err, engine.ErrUnavailable, "Claim")
		_, err = s.store.GetRun(s.ctx, space, l.RunID)
		s.refused(err, engine.ErrUnavailable, "GetRun")
		_, err = s.tryHeartbeat("w1")
		s.refused(err, engine.ErrUnavailable, "Heartbeat")
		if s.store.Health(s.ctx) == nil {
			s.Fatalf("a closed store says that it is healthy")
		}
	}},
	{"Close waits for the writes that have begun", func(s *stage) {
		const callers = 20
		runs := make([]engine.StartRun, callers)
		for i := range runs {
			runs[i] = s.newRun()
		}
		answers := make(chan error, callers)
		for _, run := range runs {
			go func() {
				_, err := s.store.StartRuns(s.ctx, engine.StartRunsParams{Runs: []engine.StartRun{run}})
				answers <- err
			}()
		}
		s.must(s.store.Close(), "Close")
		for range callers {
			if err := <-answers; err != nil {
				s.refused(err, engine.ErrUnavailable, "StartRuns beside Close")
			}
		}
	}},
	{"a caller that gave up learns the outcome by repeating", func(s *stage) {
		l := s.held()
		gone, cancel := context.WithCancel(s.ctx)
		cancel()
		p := engine.CompleteStepParams{Lease: l, Step: named("pay"), ID: s.id(), Output: text("paid"), Now: s.now}
		_, _ = s.store.CompleteStep(gone, p) // either way
		step, err := s.store.CompleteStep(s.ctx, p)
		s.must(err, "CompleteStep repeated")
		s.payload("output", step.Output, text("paid"))
		equal(s, "attempts", len(s.attempts(l.RunID, "pay")), 1)
	}},
}
