package runs

import (
	"errors"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var StartCases = []fixture.Case{
	{Name: "a start makes a PENDING run with all its fields", Run: func(s *fixture.F) {
		policy := engine.RetryPolicy{MaximumAttempts: 4, InitialIntervalMS: 10, Coefficient: 1.5, MaximumIntervalMS: 99,
			Jitter: -1, NonRetryable: []string{"a", "b"}}
		own := engine.RetryPolicy{MaximumAttempts: 2, InitialIntervalMS: 7, NonRetryable: []string{"\"c"}}
		want := s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest("req"), fixture.WithPriority(-7),
			fixture.WithPolicy(policy), fixture.WithOwnPolicy(own), fixture.Tagged("k", "v", "k2", "ü"),
			fixture.Requiring("gpu", "", "zone", "eu"))
		want.Version = "v2"
		want.AvailableAt = s.Now.Add(90 * time.Second)
		want.DeadlineAt, want.NamedDeadlineAt = s.Now.Add(time.Hour), s.Now.Add(2*time.Hour)
		want.Timeouts = engine.Timeouts{StartToClose: time.Second, Heartbeat: 2 * time.Minute, Execution: time.Hour}
		want.OnFailureWorkflow, want.OnFailureQueue = "cleanup", "failures"
		want.ConcurrencyKey, want.ConcurrencyLimit, want.ConcurrencyScope = "customer-1", 3, engine.ScopeOpen
		want.ParentRunID, want.ParentStepID = s.ID(), s.ID()
		want.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		want.Input = engine.Payload{Data: []byte("data"), Metadata: map[string]string{"content-type": "text/plain"}}

		fixture.Equal(s, "answer", s.TryStart(want), engine.Started{RunID: want.ID})
		want.Status, want.Attempts, want.Bytes = engine.RunPending, 1, int64(want.Input.Size())
		s.SameRun(s.Run(want.ID), want.Run)
	}},
	{Name: "a bare start leaves everything else unset", Run: func(s *fixture.F) {
		want := s.NewRun()
		want.Input = engine.Payload{}
		s.Started(want)
		want.Status, want.Attempts = engine.RunPending, 1
		got := s.Run(want.ID)
		s.SameRun(got, want.Run)
		if got.RetryPolicy != nil || got.RunRetryPolicy != nil || got.Error != nil {
			s.Fatalf("policies = %v %v, error = %v, want none", got.RetryPolicy, got.RunRetryPolicy, got.Error)
		}
	}},
	{Name: "runs of one call are answered in order", Run: func(s *fixture.F) {
		a, b, c := s.NewRun(), s.NewRun(fixture.InSpace("other")), s.NewRun(fixture.InQueue("second"))
		answers := s.StartAll(a, b, c)
		for i, want := range []engine.StartRun{a, b, c} {
			fixture.Equal(s, "answer", answers[i], engine.Started{RunID: want.ID})
		}
		_, err := s.Store.GetRun(s.Ctx, fixture.Space, b.ID)
		s.Refused(err, engine.ErrNotFound, "a run of another namespace")
		fixture.Equal(s, "queue", s.Run(c.ID).Queue, "second")
	}},
	{Name: "a repeated request gets the first answer", Run: func(s *fixture.F) {
		first := s.Start(fixture.WithRequest("req"))
		again := s.Started(s.NewRun(fixture.WithRequest("req")))
		fixture.Equal(s, "second answer", again, engine.Started{RunID: first, Repeated: true})
		fixture.Equal(s, "runs", s.CountRuns(), 1)
	}},
	{Name: "a repeated request gets its first answer after the run's end", Run: func(s *fixture.F) {
		s.Worker("w1")
		first := s.Start(fixture.WithRequest("req"), fixture.WithExternal("ext"))
		l := s.Claim("w1").Lease
		again := engine.Started{RunID: first, Repeated: true}
		fixture.Equal(s, "while RUNNING", s.Started(
			s.NewRun(fixture.WithRequest("req"), fixture.WithExternal("ext"))), again)
		s.Finish(l, "done")
		fixture.Equal(s, "when COMPLETED", s.Started(
			s.NewRun(fixture.WithRequest("req"), fixture.WithExternal("ext"))), again)
		s.Start(fixture.WithExternal("ext"))
		fixture.Equal(s, "when its external id has a newer run",
			s.Started(s.NewRun(fixture.WithRequest("req"), fixture.WithExternal("ext"))), again)
	}},
	{Name: "a repeated request with other content is a conflict", Run: func(s *fixture.F) {
		s.Start(fixture.WithRequest("req"), fixture.WithExternal("ext"))
		for what, change := range map[string]func(*engine.StartRun){
			"type":        fixture.OfType("other"),
			"queue":       fixture.InQueue("other"),
			"external id": fixture.WithExternal("other"),
			"no external": fixture.WithExternal(""),
			"input":       func(r *engine.StartRun) { r.Input = fixture.Text("other") },
			"metadata":    func(r *engine.StartRun) { r.Input.Metadata = map[string]string{"k": "v"} },
		} {
			answer := s.TryStart(s.NewRun(fixture.WithRequest("req"), fixture.WithExternal("ext"), change))
			s.Refused(answer.Err, engine.ErrConflict, "another "+what)
		}
		fixture.Equal(s, "runs", s.CountRuns(), 1)
	}},
	{Name: "a repeated request may differ outside its content", Run: func(s *fixture.F) {
		first := s.Start(fixture.WithRequest("req"))
		answer := s.TryStart(s.NewRun(fixture.WithRequest("req"), fixture.WithPriority(5),
			fixture.DueAt(s.Now.Add(time.Hour))))
		fixture.Equal(s, "answer", answer, engine.Started{RunID: first, Repeated: true})
	}},
	{Name: "request ids are separate by namespace", Run: func(s *fixture.F) {
		first := s.Start(fixture.WithRequest("req"))
		other := s.Started(s.NewRun(fixture.WithRequest("req"), fixture.InSpace("other")))
		if other.RunID == first || other.Repeated {
			s.Fatalf("the other namespace's answer is %+v, want a run of its own", other)
		}
	}},
	{Name: "an active external id returns its run", Run: func(s *fixture.F) {
		for _, reuse := range []engine.ExternalIDReuse{engine.ReuseWhenEnded, engine.ReuseNever} {
			ext := []string{"a", "b", "c"}[reuse]
			first := s.Start(fixture.WithExternal(ext), fixture.WithReuse(reuse))
			again := s.Started(s.NewRun(fixture.WithExternal(ext), fixture.WithReuse(reuse)))
			fixture.Equal(s, "answer", again, engine.Started{RunID: first, Existed: true})
		}
		fixture.Equal(s, "runs", s.CountRuns(), 2)
	}},
	{Name: "an external id is in use by RUNNING and SLEEPING runs", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithExternal("ext"))
		fixture.Equal(s, "while RUNNING", s.Started(s.NewRun(fixture.WithExternal("ext"))),
			engine.Started{RunID: l.RunID, Existed: true})
		s.Sleep(l, "nap", time.Hour)
		fixture.Equal(s, "while SLEEPING", s.Started(s.NewRun(fixture.WithExternal("ext"))),
			engine.Started{RunID: l.RunID, Existed: true})
	}},
	{Name: "ReuseReject refuses an active external id with its run", Run: func(s *fixture.F) {
		first := s.Start(fixture.WithExternal("ext"))
		answer := s.TryStart(s.NewRun(fixture.WithExternal("ext"), fixture.WithReuse(engine.ReuseReject)))
		s.Refused(answer.Err, engine.ErrExists, "start")
		if e, _ := errors.AsType[*engine.Error](answer.Err); e.SubjectID != first.String() ||
			e.Status != engine.RunPending {
			s.Fatalf("the error is about %q, which is %s, want run %s, which is PENDING", e.SubjectID, e.Status, first)
		}
	}},
	{Name: "an external id is free after its run's end", Run: func(s *fixture.F) {
		for _, reuse := range []engine.ExternalIDReuse{engine.ReuseWhenEnded, engine.ReuseReject} {
			first := s.Start(fixture.WithExternal("ext"))
			s.Cancel(first)
			second := s.Started(s.NewRun(fixture.WithExternal("ext"), fixture.WithReuse(reuse)))
			if second.Existed || second.RunID == first {
				s.Fatalf("answer = %+v, want a new run", second)
			}
			s.Cancel(second.RunID)
		}
	}},
	{Name: "ReuseNever returns the newest run of an external id", Run: func(s *fixture.F) {
		s.Cancel(s.Start(fixture.WithExternal("ext")))
		s.Pass(time.Second)
		newest := s.Start(fixture.WithExternal("ext"))
		s.Cancel(newest)
		answer := s.Started(s.NewRun(fixture.WithExternal("ext"), fixture.WithReuse(engine.ReuseNever)))
		fixture.Equal(s, "answer", answer, engine.Started{RunID: newest, Existed: true})
	}},
	{Name: "external ids are separate by namespace", Run: func(s *fixture.F) {
		first := s.Start(fixture.WithExternal("ext"))
		other := s.Started(s.NewRun(fixture.WithExternal("ext"), fixture.InSpace("other")))
		if other.RunID == first || other.Existed {
			s.Fatalf("the other namespace's answer is %+v, want a run of its own", other)
		}
	}},
	{Name: "an Existed answer is recorded for its request", Run: func(s *fixture.F) {
		first := s.Start(fixture.WithExternal("ext"))
		start := s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest("req"))
		fixture.Equal(s, "first answer", s.Started(start), engine.Started{RunID: first, Existed: true})
		s.Cancel(first)
		fixture.Equal(s, "repeated", s.Started(start), engine.Started{RunID: first, Existed: true, Repeated: true})
		start.Input = fixture.Text("other")
		s.Refused(s.TryStart(start).Err, engine.ErrConflict, "other content")
		fixture.Equal(s, "runs", s.CountRuns(), 1)
	}},
	{Name: "starts of one call are applied in order", Run: func(s *fixture.F) {
		a, b := s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest("r1")), s.NewRun(fixture.WithExternal("ext"))
		c, d := s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest("r1")),
			s.NewRun(fixture.WithExternal("ext"), fixture.WithReuse(engine.ReuseReject))
		answers := s.StartAll(a, b, c, d)
		fixture.Equal(s, "first", answers[0], engine.Started{RunID: a.ID})
		fixture.Equal(s, "second", answers[1], engine.Started{RunID: a.ID, Existed: true})
		fixture.Equal(s, "third", answers[2], engine.Started{RunID: a.ID, Repeated: true})
		s.Refused(answers[3].Err, engine.ErrExists, "fourth")
		fixture.Equal(s, "runs", s.CountRuns(), 1)
	}},
	{Name: "a refused start fails alone", Run: func(s *fixture.F) {
		s.Start(fixture.WithRequest("req"))
		good, bad, late := s.NewRun(), s.NewRun(fixture.WithRequest("req"), fixture.OfType("other")), s.NewRun()
		answers := s.StartAll(good, bad, late)
		s.Must(answers[0].Err, "first start")
		s.Refused(answers[1].Err, engine.ErrConflict, "second start")
		s.Must(answers[2].Err, "third start")
		s.Status(good.ID, engine.RunPending)
		s.Status(late.ID, engine.RunPending)
		_, err := s.Store.GetRun(s.Ctx, fixture.Space, bad.ID)
		s.Refused(err, engine.ErrNotFound, "the refused run")
	}},
	{Name: "a batch of a thousand starts is one call", Run: func(s *fixture.F) {
		runs := make([]engine.StartRun, engine.MaxBatch)
		for i := range runs {
			runs[i] = s.NewRun()
		}
		s.StartAll(runs...)
		fixture.Equal(s, "runs", s.CountRuns(), engine.MaxBatch)
	}},
	{Name: "a start under the external id of an open run of another type is refused", Run: func(s *fixture.F) {
		id := s.Start(fixture.WithExternal("ext"))
		other := s.NewRun(fixture.WithExternal("ext"), fixture.OfType("other"), fixture.WithRequest("r"))
		try := func() engine.Started {
			started, err := s.Store.StartRuns(s.Ctx, engine.StartRunsParams{Runs: []engine.StartRun{other}})
			s.Must(err, "StartRuns")
			return started[0]
		}
		for range 2 { // the refusal is not remembered as an answer
			s.Refused(try().Err, engine.ErrExists, "another type")
		}
		s.Cancel(id)
		fixture.Equal(s, "after its end", try(), engine.Started{RunID: other.ID})
	}},
	{Name: "a start under the external id of an open run says if its input differs", Run: func(s *fixture.F) {
		id := s.Start(fixture.WithExternal("ext"))
		same := s.NewRun(fixture.WithExternal("ext"))
		fixture.Equal(s, "the same input", s.Started(same), engine.Started{RunID: id, Existed: true})
		other := s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest("r"))
		other.Input = fixture.Text("other")
		fixture.Equal(s, "another input", s.Started(other), engine.Started{RunID: id, Existed: true, OtherInput: true})
		fixture.Equal(s, "again", s.Started(other),
			engine.Started{RunID: id, Existed: true, OtherInput: true, Repeated: true})
	}},
	{Name: "GetRunByExternalID returns the newest run", Run: func(s *fixture.F) {
		s.Cancel(s.Start(fixture.WithExternal("ext")))
		s.Pass(time.Millisecond)
		newest := s.Start(fixture.WithExternal("ext"))
		run, err := s.Store.GetRunByExternalID(s.Ctx, fixture.Space, "ext")
		s.Must(err, "GetRunByExternalID")
		fixture.Equal(s, "run", run.ID, newest)
		s.Payload("input", run.Input, fixture.Text("input"))
		s.Cancel(newest)
		run, err = s.Store.GetRunByExternalID(s.Ctx, fixture.Space, "ext")
		s.Must(err, "GetRunByExternalID of an ended run")
		fixture.Equal(s, "run", run.ID, newest)
		_, err = s.Store.GetRunByExternalID(s.Ctx, "other", "ext")
		s.Refused(err, engine.ErrNotFound, "another namespace")
		_, err = s.Store.GetRunByExternalID(s.Ctx, fixture.Space, "ex")
		s.Refused(err, engine.ErrNotFound, "a prefix")
	}},
	{Name: "an unknown run is not found", Run: func(s *fixture.F) {
		_, err := s.Store.GetRun(s.Ctx, fixture.Space, s.ID())
		s.Refused(err, engine.ErrNotFound, "GetRun")
		id := s.Start()
		_, err = s.Store.GetRun(s.Ctx, "other", id)
		s.Refused(err, engine.ErrNotFound, "GetRun in another namespace")
	}},
}
