package storetest

import (
	"errors"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var startCases = []testCase{
	{"a start makes a PENDING run with all that it was told", func(s *stage) {
		policy := engine.RetryPolicy{MaximumAttempts: 4, InitialIntervalMS: 10, Coefficient: 1.5, MaximumIntervalMS: 99, Jitter: -1, NonRetryable: []string{"a", "b"}}
		want := s.newRun(withExternal("ext"), withRequest("req"), withPriority(-7), withPolicy(policy), tagged("k", "v", "k2", "ü"), requiring("gpu", "", "zone", "eu"))
		want.Version = "v2"
		want.AvailableAt = s.now.Add(90 * time.Second)
		want.DeadlineAt, want.NamedDeadlineAt = s.now.Add(time.Hour), s.now.Add(2*time.Hour)
		want.Timeouts = engine.Timeouts{StartToClose: time.Second, Heartbeat: 2 * time.Minute, Execution: time.Hour}
		want.OnFailureWorkflow, want.OnFailureQueue = "cleanup", "failures"
		want.ConcurrencyKey, want.ConcurrencyLimit = "customer-1", 3
		want.ParentRunID, want.ParentStepID = s.id(), s.id()
		want.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		want.Input = engine.Payload{Data: []byte("data"), Metadata: map[string]string{"content-type": "text/plain"}}

		equal(s, "answer", s.tryStart(want), engine.Started{RunID: want.ID})
		want.Status, want.Attempts, want.Bytes = engine.RunPending, 1, int64(want.Input.Size())
		s.sameRun(s.run(want.ID), want.Run)
	}},
	{"a bare start leaves everything else unset", func(s *stage) {
		want := s.newRun()
		want.Input = engine.Payload{}
		s.started(want)
		want.Status, want.Attempts = engine.RunPending, 1
		got := s.run(want.ID)
		s.sameRun(got, want.Run)
		if got.RetryPolicy != nil || got.Error != nil {
			s.Fatalf("policy = %v, error = %v, want none", got.RetryPolicy, got.Error)
		}
	}},
	{"runs of one call are answered each in its place", func(s *stage) {
		a, b, c := s.newRun(), s.newRun(inSpace("other")), s.newRun(inQueue("second"))
		answers := s.startAll(a, b, c)
		for i, want := range []engine.StartRun{a, b, c} {
			equal(s, "answer", answers[i], engine.Started{RunID: want.ID})
		}
		_, err := s.store.GetRun(s.ctx, space, b.ID)
		s.refused(err, engine.ErrNotFound, "a run of another namespace")
		equal(s, "queue", s.run(c.ID).Queue, "second")
	}},
	{"a repeated request gets the first answer", func(s *stage) {
		first := s.start(withRequest("req"))
		again := s.started(s.newRun(withRequest("req")))
		equal(s, "second answer", again, engine.Started{RunID: first, Repeated: true})
		equal(s, "runs", s.countRuns(), 1)
	}},
	{"a repeated request gets the first answer whatever has become of the run", func(s *stage) {
		s.worker("w1")
		first := s.start(withRequest("req"), withExternal("ext"))
		l := s.claim("w1").Lease
		again := engine.Started{RunID: first, Repeated: true}
		equal(s, "while RUNNING", s.started(s.newRun(withRequest("req"), withExternal("ext"))), again)
		s.finish(l, "done")
		equal(s, "when COMPLETED", s.started(s.newRun(withRequest("req"), withExternal("ext"))), again)
		s.start(withExternal("ext"))
		equal(s, "when its external id has a newer run", s.started(s.newRun(withRequest("req"), withExternal("ext"))), again)
	}},
	{"a repeated request with other content is a conflict", func(s *stage) {
		s.start(withRequest("req"), withExternal("ext"))
		for what, change := range map[string]func(*engine.StartRun){
			"type":        ofType("other"),
			"queue":       inQueue("other"),
			"external id": withExternal("other"),
			"no external": withExternal(""),
			"input":       func(r *engine.StartRun) { r.Input = text("other") },
			"metadata":    func(r *engine.StartRun) { r.Input.Metadata = map[string]string{"k": "v"} },
		} {
			answer := s.tryStart(s.newRun(withRequest("req"), withExternal("ext"), change))
			s.refused(answer.Err, engine.ErrConflict, "another "+what)
		}
		equal(s, "runs", s.countRuns(), 1)
	}},
	{"a repeated request may differ in what is no content", func(s *stage) {
		first := s.start(withRequest("req"))
		answer := s.tryStart(s.newRun(withRequest("req"), withPriority(5), dueAt(s.now.Add(time.Hour))))
		equal(s, "answer", answer, engine.Started{RunID: first, Repeated: true})
	}},
	{"request ids are of a namespace", func(s *stage) {
		first := s.start(withRequest("req"))
		other := s.started(s.newRun(withRequest("req"), inSpace("other")))
		if other.RunID == first || other.Repeated {
			s.Fatalf("the other namespace's answer is %+v, want a run of its own", other)
		}
	}},
	{"an active external id returns its run", func(s *stage) {
		for _, reuse := range []engine.ExternalIDReuse{engine.ReuseWhenEnded, engine.ReuseNever} {
			ext := []string{"a", "b", "c"}[reuse]
			first := s.start(withExternal(ext), withReuse(reuse))
			again := s.started(s.newRun(withExternal(ext), withReuse(reuse)))
			equal(s, "answer", again, engine.Started{RunID: first, Existed: true})
		}
		equal(s, "runs", s.countRuns(), 2)
	}},
	{"an external id stays taken while its run is RUNNING and SLEEPING", func(s *stage) {
		l := s.held(withExternal("ext"))
		equal(s, "while RUNNING", s.started(s.newRun(withExternal("ext"))), engine.Started{RunID: l.RunID, Existed: true})
		s.sleep(l, "nap", time.Hour)
		equal(s, "while SLEEPING", s.started(s.newRun(withExternal("ext"))), engine.Started{RunID: l.RunID, Existed: true})
	}},
	{"an active external id refuses with ReuseReject and names the run and its status", func(s *stage) {
		first := s.start(withExternal("ext"))
		answer := s.tryStart(s.newRun(withExternal("ext"), withReuse(engine.ReuseReject)))
		s.refused(answer.Err, engine.ErrExists, "start")
		if e, _ := errors.AsType[*engine.Error](answer.Err); e.SubjectID != first.String() || e.Status != engine.RunPending {
			s.Fatalf("the error is about %q, which is %s, want run %s, which is PENDING", e.SubjectID, e.Status, first)
		}
	}},
	{"after the end an external id is free again", func(s *stage) {
		for _, reuse := range []engine.ExternalIDReuse{engine.ReuseWhenEnded, engine.ReuseReject} {
			first := s.start(withExternal("ext"))
			s.cancel(first)
			second := s.started(s.newRun(withExternal("ext"), withReuse(reuse)))
			if second.Existed || second.RunID == first {
				s.Fatalf("answer = %+v, want a new run", second)
			}
			s.cancel(second.RunID)
		}
	}},
	{"with ReuseNever the newest run of an external id is returned for good", func(s *stage) {
		s.cancel(s.start(withExternal("ext")))
		s.pass(time.Second)
		newest := s.start(withExternal("ext"))
		s.cancel(newest)
		answer := s.started(s.newRun(withExternal("ext"), withReuse(engine.ReuseNever)))
		equal(s, "answer", answer, engine.Started{RunID: newest, Existed: true})
	}},
	{"external ids are of a namespace", func(s *stage) {
		first := s.start(withExternal("ext"))
		other := s.started(s.newRun(withExternal("ext"), inSpace("other")))
		if other.RunID == first || other.Existed {
			s.Fatalf("the other namespace's answer is %+v, want a run of its own", other)
		}
	}},
	{"an existed answer is remembered for its request", func(s *stage) {
		first := s.start(withExternal("ext"))
		start := s.newRun(withExternal("ext"), withRequest("req"))
		equal(s, "first answer", s.started(start), engine.Started{RunID: first, Existed: true})
		s.cancel(first)
		equal(s, "repeated", s.started(start), engine.Started{RunID: first, Existed: true, Repeated: true})
		start.Input = text("other")
		s.refused(s.tryStart(start).Err, engine.ErrConflict, "other content")
		equal(s, "runs", s.countRuns(), 1)
	}},
	{"starts of one call are applied in their order", func(s *stage) {
		a, b := s.newRun(withExternal("ext"), withRequest("r1")), s.newRun(withExternal("ext"))
		c, d := s.newRun(withExternal("ext"), withRequest("r1")), s.newRun(withExternal("ext"), withReuse(engine.ReuseReject))
		answers := s.startAll(a, b, c, d)
		equal(s, "first", answers[0], engine.Started{RunID: a.ID})
		equal(s, "second", answers[1], engine.Started{RunID: a.ID, Existed: true})
		equal(s, "third", answers[2], engine.Started{RunID: a.ID, Repeated: true})
		s.refused(answers[3].Err, engine.ErrExists, "fourth")
		equal(s, "runs", s.countRuns(), 1)
	}},
	{"a refused start fails alone", func(s *stage) {
		s.start(withRequest("req"))
		good, bad, late := s.newRun(), s.newRun(withRequest("req"), ofType("other")), s.newRun()
		answers := s.startAll(good, bad, late)
		s.must(answers[0].Err, "first start")
		s.refused(answers[1].Err, engine.ErrConflict, "second start")
		s.must(answers[2].Err, "third start")
		s.status(good.ID, engine.RunPending)
		s.status(late.ID, engine.RunPending)
		_, err := s.store.GetRun(s.ctx, space, bad.ID)
		s.refused(err, engine.ErrNotFound, "the refused run")
	}},
	{"a batch of a thousand starts is one call", func(s *stage) {
		runs := make([]engine.StartRun, engine.MaxBatch)
		for i := range runs {
			runs[i] = s.newRun()
		}
		s.startAll(runs...)
		equal(s, "runs", s.countRuns(), engine.MaxBatch)
	}},
	{"a run is found by its external id, the newest one", func(s *stage) {
		s.cancel(s.start(withExternal("ext")))
		s.pass(time.Millisecond)
		newest := s.start(withExternal("ext"))
		run, err := s.store.GetRunByExternalID(s.ctx, space, "ext")
		s.must(err, "GetRunByExternalID")
		equal(s, "run", run.ID, newest)
		s.payload("input", run.Input, text("input"))
		s.cancel(newest)
		run, err = s.store.GetRunByExternalID(s.ctx, space, "ext")
		s.must(err, "GetRunByExternalID of an ended run")
		equal(s, "run", run.ID, newest)
		_, err = s.store.GetRunByExternalID(s.ctx, "other", "ext")
		s.refused(err, engine.ErrNotFound, "another namespace")
		_, err = s.store.GetRunByExternalID(s.ctx, space, "ex")
		s.refused(err, engine.ErrNotFound, "a prefix")
	}},
	{"an unknown run is not found", func(s *stage) {
		_, err := s.store.GetRun(s.ctx, space, s.id())
		s.refused(err, engine.ErrNotFound, "GetRun")
		id := s.start()
		_, err = s.store.GetRun(s.ctx, "other", id)
		s.refused(err, engine.ErrNotFound, "GetRun in another namespace")
	}},
}

// countRuns is how many runs the namespace has.
func (s *stage) countRuns() int {
	s.Helper()
	_, info, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space}, engine.Page{Limit: 1, Count: true})
	s.must(err, "ListRuns")
	return int(info.Total)
}
