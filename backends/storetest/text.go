package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// allBytes is every byte there is, NUL and invalid UTF-8 among them.
var allBytes = func() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}()

// hardText is what text columns get wrong: quotes, backslashes, combining marks, runes of 4 bytes, what looks like SQL or JSON.
var hardText = []string{
	"'", `"`, `\`, "%_", "a\tb\nc\r", "é", "e\u0301", "ß", "İı", "日本", "\U0001F9EA\U0001F468\u200d\U0001F469", "\u202eabc", "\x1b[31m",
	"'; drop table runs; --", `{"a":1}`, "null", "0", " ", "  trailing  ", "\uFEFF", "\uFFFD", "\U0010FFFF", "@run_id $1 ?1 :x",
}

var textCases = []testCase{
	{"payloads are kept byte for byte", func(s *stage) {
		for _, data := range [][]byte{allBytes, {0}, {0xff, 0xfe}, []byte("\U0001F9EA\x00\U0010FFFF"), bytes.Repeat([]byte{0}, 100_000)} {
			payload := engine.Payload{Data: data, Metadata: map[string]string{"content-type": "application/x", "": "", "ключ": "\U0001F9EA"}}
			l := s.heldAgainWith(payload)
			s.payload("input of the run", s.run(l.RunID).Input, payload)
			begun := s.begin(l, "pay", func(p *engine.BeginStepParams) { p.Input = payload })
			s.payload("input of the step", begun.Input, payload)
			_, err := s.store.CompleteStep(s.ctx, engine.CompleteStepParams{Lease: l, Step: named("pay"), ID: s.id(), Output: payload, Now: s.now})
			s.must(err, "CompleteStep")
			_, err = s.store.CompleteStep(s.ctx, engine.CompleteStepParams{Lease: l, Step: named("ship"), ID: s.id(), Output: payload, Now: s.now})
			s.must(err, "CompleteStep unannounced")
			for _, name := range []string{"pay", "ship"} {
				s.payload("output of "+name, s.step(l.RunID, name).Output, payload)
			}
			s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, Output: payload, Now: s.now}), "CompleteRun")
			s.payload("output of the run", s.run(l.RunID).Output, payload)
			s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, Output: payload, Now: s.now}), "CompleteRun repeated")
		}
	}},
	{"a payload of MaxPayload comes back whole", func(s *stage) {
		big := engine.Payload{Data: bytes.Repeat(allBytes, engine.MaxPayload/len(allBytes))}
		l := s.heldAgainWith(big)
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, Output: big, Now: s.now}), "CompleteRun")
		run := s.run(l.RunID)
		s.payload("input", run.Input, big)
		s.payload("output", run.Output, big)
	}},
	{"an empty payload and none are the same", func(s *stage) {
		empty, none := engine.Payload{Data: []byte{}, Metadata: map[string]string{}}, engine.Payload{}
		s.worker("w1")
		first := s.start(withRequest("req"), func(r *engine.StartRun) { r.Input = empty })
		again := s.started(s.newRun(withRequest("req"), func(r *engine.StartRun) { r.Input = none }))
		equal(s, "run of the repetition", again.RunID, first)
		l := s.claim("w1").Lease
		complete := func(output engine.Payload) error {
			_, err := s.store.CompleteStep(s.ctx, engine.CompleteStepParams{Lease: l, Step: named("pay"), ID: s.id(), Output: output, Now: s.now})
			return err
		}
		s.must(complete(none), "CompleteStep")
		s.must(complete(empty), "CompleteStep repeated")
		s.payload("output", s.step(l.RunID, "pay").Output, none)
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, Output: empty, Now: s.now}), "CompleteRun")
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, Output: none, Now: s.now}), "CompleteRun repeated")
		run := s.run(l.RunID)
		s.payload("input", run.Input, none)
		s.payload("output", run.Output, none)
		equal(s, "bytes", run.Bytes, 0)
	}},
	{"text is kept as it is, wherever it stands", func(s *stage) {
		for i, hard := range hardText {
			l := s.heldAgainAs(hard, tagged("k", hard))
			s.fail(l, "step "+hard, hard, forGood, func(p *engine.FailStepParams) {
				p.Failure.Type, p.Failure.Stack, p.Failure.Metadata = hard, hard, map[string]string{hard: hard}
				p.RetryPolicy = &engine.RetryPolicy{NonRetryable: []string{hard}}
			})
			step := s.step(l.RunID, "step "+hard)
			want := engine.Failure{Type: hard, Message: hard, Stack: hard, Metadata: map[string]string{hard: hard}, NonRetryable: true}
			s.failure("error", step.Error, want)
			equal(s, "policy", policyText(step.RetryPolicy), policyText(&engine.RetryPolicy{NonRetryable: []string{hard}}))
			equal(s, "tags", mapText(s.run(l.RunID).Tags), mapText(map[string]string{"k": hard}))
			_, err := s.store.CancelRun(s.ctx, s.endParams(l.RunID, hard))
			s.must(err, "CancelRun")
			run := s.run(l.RunID)
			equal(s, "reason", run.Error.Message, hard)
			equal(s, "request id", run.RequestID, fmt.Sprintf("request %s", hard))
			runs := s.listed(engine.RunFilter{Namespace: space, Tags: map[string]string{"k": hard}})
			equal(s, fmt.Sprintf("runs with tag %d", i), len(runs), 1)
		}
	}},
	{"a failure that was cleaned is kept, however broken it came", func(s *stage) {
		for _, broken := range []string{"a\x00b", "\xff\xfe", strings.Repeat("\U0001F9EA", engine.MaxError), "tail\xf0\x9f"} {
			f := engine.Failure{Type: broken, Message: broken, Stack: broken, Metadata: map[string]string{broken: broken}, RetryAfterMS: -5}.Clean()
			l := s.heldAgain()
			for range 2 {
				_, err := s.store.FailRun(s.ctx, engine.FailRunParams{Lease: l, Failure: f, Now: s.now})
				s.must(err, "FailRun")
			}
			s.failure("error", s.run(l.RunID).Error, f)
		}
	}},
	{"every part of a failure is kept", func(s *stage) {
		f := engine.Failure{Code: 7, Type: "t", Message: "m", Stack: "s", NonRetryable: true, RetryAfterMS: 1 << 40,
			Subject: "order", SubjectID: "o-1", Metadata: map[string]string{"k": "v"}}
		l := s.held()
		_, err := s.store.FailRun(s.ctx, engine.FailRunParams{Lease: l, Failure: f, Now: s.now})
		s.must(err, "FailRun")
		s.failure("error", s.run(l.RunID).Error, f)
	}},
	{"case, accents and length make different names", func(s *stage) {
		names := []string{"a", "A", "á", "a\u0301", "a ", "aa"}
		seen := map[engine.ID]bool{}
		l := s.held()
		for _, name := range names {
			seen[s.start(withExternal(name), withRequest(name))] = true
			s.complete(l, name, name)
		}
		equal(s, "runs", len(seen), len(names))
		for _, name := range names {
			run, err := s.store.GetRunByExternalID(s.ctx, space, name)
			s.must(err, "GetRunByExternalID")
			equal(s, "external id", run.ExternalID, name)
			s.payload("output", s.step(l.RunID, name).Output, text(name))
		}
	}},
	{"names are ordered byte by byte", func(s *stage) {
		ordered := []string{"-a", ".a", "A", "B", "Z", "_", "a", "a-b", "a.b", "aB", "ab", "b", "z", "é"}
		for _, i := range []int{3, 7, 0, 12, 5, 9, 1, 11, 2, 8, 13, 4, 10, 6} {
			s.start(ofType(ordered[i]), inQueue(ordered[i]))
		}
		types, _, err := s.store.ListTypes(s.ctx, space, engine.Page{Limit: 50})
		s.must(err, "ListTypes")
		depths, err := s.store.GetQueueDepth(s.ctx, space, "", s.now)
		s.must(err, "GetQueueDepth")
		for i, want := range ordered {
			equal(s, "type", types[i].Type, want)
			equal(s, "queue", depths[i].Queue, want)
		}
	}},
	{"the longest names fit", func(s *stage) {
		long := strings.Repeat("n", engine.MaxName)
		space := strings.Repeat("s", 63)
		r := s.newRun(inSpace(space), inQueue(long), ofType(long), withExternal(long), withRequest(long[:engine.MaxRequestID]),
			tagged(long[:engine.MaxLabelKey], long), requiring(long[:engine.MaxLabelKey], long))
		s.started(r)
		w := s.newWorker(long[:engine.MaxWorkerID])
		w.Namespace, w.Queues, w.Types = space, []string{long}, []string{long}
		s.register(w, true)
		p := s.claimParams(w.ID)
		p.Namespace, p.Queue, p.Types, p.Offers = space, long, []string{long}, []engine.Offer{{Key: long[:engine.MaxLabelKey], Value: long}}
		task := s.claimWith(p).Tasks[0]
		_, err := s.tryComplete(task.Lease, long, "x")
		s.must(err, "CompleteStep")
	}},
	{"times keep microseconds", func(s *stage) {
		s.now = s.now.Add(654321 * time.Microsecond).Truncate(time.Microsecond)
		l := s.held(dueAt(s.now.Add(-time.Microsecond)))
		run := s.run(l.RunID)
		s.sameTime("created at", run.CreatedAt, s.now)
		s.sameTime("started at", run.StartedAt, s.now)
		step := s.begin(l, "pay", func(p *engine.BeginStepParams) { p.StartedAt = s.now.Add(-time.Microsecond) })
		s.sameTime("started at of the step", s.step(l.RunID, "pay").StartedAt, s.now.Add(-time.Microsecond))
		s.sameTime("created at of the step", step.CreatedAt, s.now)
		s.sleep(l, "nap", 0, until(s.now.Add(time.Microsecond)))
		s.sameTime("available at", s.run(l.RunID).AvailableAt, s.now.Add(time.Microsecond))
	}},
	{"times far away are kept", func(s *stage) {
		far := s.now.Add(engine.MaxDelay)
		id := s.start(dueAt(far), func(r *engine.StartRun) { r.DeadlineAt = far })
		s.sameTime("available at", s.run(id).AvailableAt, far)
		s.sameTime("deadline", s.run(id).DeadlineAt, far)
	}},
	{"numbers keep their size", func(s *stage) {
		policy := engine.RetryPolicy{MaximumAttempts: engine.MaxRetryAttempts, InitialIntervalMS: engine.MaxDelay.Milliseconds(),
			Coefficient: 1e9, MaximumIntervalMS: engine.MaxDelay.Milliseconds(), Jitter: 0.123456789012345}
		times := engine.Timeouts{StartToClose: engine.MaxDelay, Heartbeat: engine.MaxDelay, Execution: time.Millisecond}
		id := s.start(withPolicy(policy), withTimeouts(times), withPriority(-engine.MaxPriority),
			func(r *engine.StartRun) { r.ConcurrencyKey, r.ConcurrencyLimit = "k", engine.MaxConcurrencyLimit })
		run := s.run(id)
		equal(s, "policy", policyText(run.RetryPolicy), policyText(&policy))
		equal(s, "timeouts", run.Timeouts, times)
		equal(s, "priority", run.Priority, -engine.MaxPriority)
		equal(s, "concurrency", run.ConcurrencyLimit, engine.MaxConcurrencyLimit)
	}},
	{"the zero policy is a policy", func(s *stage) {
		run := s.run(s.start(withPolicy(engine.RetryPolicy{})))
		if run.RetryPolicy == nil {
			s.Fatalf("the policy is gone; a run with one is retried, a run without is not")
		}
		s.worker("w1")
		equal(s, "retry", s.failRun(s.claim("w1").Lease, "no").Retry, true)
	}},
}

// heldAgainWith is a new run with this input in the hands of w1, whether that is registered or not.
func (s *stage) heldAgainWith(input engine.Payload) engine.Lease {
	s.Helper()
	s.register(s.newWorker("w1"), true)
	return s.heldNext(func(r *engine.StartRun) { r.Input = input })
}

// heldAgainAs is a new run with this request, likewise.
func (s *stage) heldAgainAs(request string, changes ...func(*engine.StartRun)) engine.Lease {
	s.Helper()
	s.register(s.newWorker("w1"), true)
	return s.heldNext(append(changes, withRequest("request "+request))...)
}
