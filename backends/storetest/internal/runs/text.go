package runs

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// allBytes is every byte value, NUL and invalid UTF-8 included.
var allBytes = func() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}()

// hardText holds texts that text columns may get wrong: quotes, backslashes, combining marks, runes
// of 4 bytes, what looks like SQL or JSON.
var hardText = []string{
	"'", `"`, `\`, "%_", "a\tb\nc\r", "é", "e\u0301", "ß", "İı", "日本", "\U0001F9EA\U0001F468\u200d\U0001F469",
	"\u202eabc", "\x1b[31m",
	"'; drop table runs; --", `{"a":1}`, "null", "0", " ", "  trailing  ", "\uFEFF", "\uFFFD", "\U0010FFFF",
	"@run_id $1 ?1 :x",
}

var TextCases = []fixture.Case{
	{Name: "payloads are kept byte for byte", Run: func(s *fixture.F) {
		for _, data := range [][]byte{allBytes, {0}, {0xff, 0xfe}, []byte("\U0001F9EA\x00\U0010FFFF"),
			bytes.Repeat([]byte{0}, 100_000)} {
			payload := engine.Payload{Data: data, Metadata: map[string]string{
				"content-type": "application/x", "": "", "ключ": "\U0001F9EA"}}
			l := s.HeldAgainWith(payload)
			s.Payload("input of the run", s.Run(l.RunID).Input, payload)
			begun := s.Begin(l, "pay", func(p *engine.BeginStepParams) { p.Input = payload })
			s.Payload("input of the step", begun.Input, payload)
			_, err := s.Store.CompleteStep(s.Ctx, engine.CompleteStepParams{
				Lease: l, Step: fixture.Named("pay"), ID: s.ID(), Output: payload, Now: s.Now})
			s.Must(err, "CompleteStep")
			_, err = s.Store.CompleteStep(s.Ctx, engine.CompleteStepParams{
				Lease: l, Step: fixture.Named("ship"), ID: s.ID(), Output: payload, Now: s.Now})
			s.Must(err, "CompleteStep unannounced")
			for _, name := range []string{"pay", "ship"} {
				s.Payload("output of "+name, s.Step(l.RunID, name).Output, payload)
			}
			s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, Output: payload, Now: s.Now}), "CompleteRun")
			s.Payload("output of the run", s.Run(l.RunID).Output, payload)
			s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, Output: payload, Now: s.Now}), "CompleteRun repeated")
		}
	}},
	{Name: "a payload of MaxPayload comes back whole", Run: func(s *fixture.F) {
		big := engine.Payload{Data: bytes.Repeat(allBytes, engine.MaxPayload/len(allBytes))}
		l := s.HeldAgainWith(big)
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, Output: big, Now: s.Now}), "CompleteRun")
		run := s.Run(l.RunID)
		s.Payload("input", run.Input, big)
		s.Payload("output", run.Output, big)
	}},
	{Name: "an empty payload equals none", Run: func(s *fixture.F) {
		empty, none := engine.Payload{Data: []byte{}, Metadata: map[string]string{}}, engine.Payload{}
		s.Worker("w1")
		first := s.Start(fixture.WithRequest("req"), func(r *engine.StartRun) { r.Input = empty })
		again := s.Started(s.NewRun(fixture.WithRequest("req"), func(r *engine.StartRun) { r.Input = none }))
		fixture.Equal(s, "run of the repetition", again.RunID, first)
		l := s.Claim("w1").Lease
		complete := func(output engine.Payload) error {
			_, err := s.Store.CompleteStep(s.Ctx, engine.CompleteStepParams{
				Lease: l, Step: fixture.Named("pay"), ID: s.ID(), Output: output, Now: s.Now})
			return err
		}
		s.Must(complete(none), "CompleteStep")
		s.Must(complete(empty), "CompleteStep repeated")
		s.Payload("output", s.Step(l.RunID, "pay").Output, none)
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, Output: empty, Now: s.Now}), "CompleteRun")
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, Output: none, Now: s.Now}), "CompleteRun repeated")
		run := s.Run(l.RunID)
		s.Payload("input", run.Input, none)
		s.Payload("output", run.Output, none)
		fixture.Equal(s, "bytes", run.Bytes, 0)
	}},
	{Name: "text is kept unchanged in every field", Run: func(s *fixture.F) {
		for i, hard := range hardText {
			l := s.HeldAgainAs(hard, fixture.Tagged("k", hard))
			s.Fail(l, "step "+hard, hard, fixture.ForGood, func(p *engine.FailStepParams) {
				p.Failure.Type, p.Failure.Stack, p.Failure.Metadata = hard, hard, map[string]string{hard: hard}
				p.RetryPolicy = &engine.RetryPolicy{NonRetryable: []string{hard}}
			})
			step := s.Step(l.RunID, "step "+hard)
			want := engine.Failure{Type: hard, Message: hard, Stack: hard, Metadata: map[string]string{hard: hard},
				NonRetryable: true}
			s.Failure("error", step.Error, want)
			fixture.Equal(s, "policy", fixture.PolicyText(step.RetryPolicy),
				fixture.PolicyText(&engine.RetryPolicy{NonRetryable: []string{hard}}))
			fixture.Equal(s, "tags", fixture.MapText(s.Run(l.RunID).Tags),
				fixture.MapText(map[string]string{"k": hard}))
			_, err := s.Store.CancelRun(s.Ctx, s.EndParams(l.RunID, hard))
			s.Must(err, "CancelRun")
			run := s.Run(l.RunID)
			fixture.Equal(s, "reason", run.Error.Message, hard)
			fixture.Equal(s, "request id", run.RequestID, fmt.Sprintf("request %s", hard))
			runs := s.Listed(engine.RunFilter{Namespace: fixture.Space, Tags: map[string]string{"k": hard}})
			fixture.Equal(s, fmt.Sprintf("runs with tag %d", i), len(runs), 1)
		}
	}},
	{Name: "a cleaned failure is kept", Run: func(s *fixture.F) {
		for _, broken := range []string{"a\x00b", "\xff\xfe", strings.Repeat("\U0001F9EA", engine.MaxError),
			"tail\xf0\x9f"} {
			f := engine.Failure{Type: broken, Message: broken, Stack: broken,
				Metadata: map[string]string{broken: broken}, RetryAfterMS: -5}.Clean()
			l := s.HeldAgain()
			for range 2 {
				_, err := s.Store.FailRun(s.Ctx, engine.FailRunParams{Lease: l, Failure: f, Now: s.Now})
				s.Must(err, "FailRun")
			}
			s.Failure("error", s.Run(l.RunID).Error, f)
		}
	}},
	{Name: "every field of a failure is kept", Run: func(s *fixture.F) {
		f := engine.Failure{Code: 7, Type: "t", Message: "m", Stack: "s", NonRetryable: true, RetryAfterMS: 1 << 40,
			Subject: "order", SubjectID: "o-1", Metadata: map[string]string{"k": "v"}}
		l := s.Held()
		_, err := s.Store.FailRun(s.Ctx, engine.FailRunParams{Lease: l, Failure: f, Now: s.Now})
		s.Must(err, "FailRun")
		s.Failure("error", s.Run(l.RunID).Error, f)
	}},
	{Name: "names differ by case, accents and length", Run: func(s *fixture.F) {
		names := []string{"a", "A", "á", "a\u0301", "a ", "aa"}
		seen := map[engine.ID]bool{}
		l := s.Held()
		for _, name := range names {
			seen[s.Start(fixture.WithExternal(name), fixture.WithRequest(name))] = true
			s.Complete(l, name, name)
		}
		fixture.Equal(s, "runs", len(seen), len(names))
		for _, name := range names {
			run, err := s.Store.GetRunByExternalID(s.Ctx, fixture.Space, name)
			s.Must(err, "GetRunByExternalID")
			fixture.Equal(s, "external id", run.ExternalID, name)
			s.Payload("output", s.Step(l.RunID, name).Output, fixture.Text(name))
		}
	}},
	{Name: "names are ordered by byte", Run: func(s *fixture.F) {
		ordered := []string{"-a", ".a", "A", "B", "Z", "_", "a", "a-b", "a.b", "aB", "ab", "b", "z", "é"}
		for _, i := range []int{3, 7, 0, 12, 5, 9, 1, 11, 2, 8, 13, 4, 10, 6} {
			s.Start(fixture.OfType(ordered[i]), fixture.InQueue(ordered[i]))
		}
		types, _, err := s.Store.ListTypes(s.Ctx, fixture.Space, engine.Page{Limit: 50})
		s.Must(err, "ListTypes")
		depths, err := s.Store.GetQueueDepth(s.Ctx, fixture.Space, "", s.Now)
		s.Must(err, "GetQueueDepth")
		for i, want := range ordered {
			fixture.Equal(s, "type", types[i].Type, want)
			fixture.Equal(s, "queue", depths[i].Queue, want)
		}
	}},
	{Name: "names of maximum length fit", Run: func(s *fixture.F) {
		long := strings.Repeat("n", engine.MaxName)
		space := strings.Repeat("s", 63)
		r := s.NewRun(fixture.InSpace(space), fixture.InQueue(long), fixture.OfType(long), fixture.WithExternal(long),
			fixture.WithRequest(long[:engine.MaxRequestID]),
			fixture.Tagged(long[:engine.MaxLabelKey], long), fixture.Requiring(long[:engine.MaxLabelKey], long))
		s.Started(r)
		w := s.NewWorker(long[:engine.MaxWorkerID])
		w.Namespace, w.Queues, w.Types = space, []string{long}, []string{long}
		s.Register(w, true)
		p := s.ClaimParams(w.ID)
		p.Namespace, p.Queue, p.Types, p.Offers = space, long, []string{long},
			[]engine.Offer{{Key: long[:engine.MaxLabelKey], Value: long}}
		task := s.ClaimWith(p).Tasks[0]
		_, err := s.TryComplete(task.Lease, long, "x")
		s.Must(err, "CompleteStep")
	}},
	{Name: "times keep microseconds", Run: func(s *fixture.F) {
		s.Now = s.Now.Add(654321 * time.Microsecond).Truncate(time.Microsecond)
		l := s.Held(fixture.DueAt(s.Now.Add(-time.Microsecond)))
		run := s.Run(l.RunID)
		s.SameTime("created at", run.CreatedAt, s.Now)
		s.SameTime("started at", run.StartedAt, s.Now)
		step := s.Begin(l, "pay", func(p *engine.BeginStepParams) { p.StartedAt = s.Now.Add(-time.Microsecond) })
		s.SameTime("started at of the step", s.Step(l.RunID, "pay").StartedAt, s.Now.Add(-time.Microsecond))
		s.SameTime("created at of the step", step.CreatedAt, s.Now)
		s.Sleep(l, "nap", 0, fixture.Until(s.Now.Add(time.Microsecond)))
		s.SameTime("available at", s.Run(l.RunID).AvailableAt, s.Now.Add(time.Microsecond))
	}},
	{Name: "distant times are kept", Run: func(s *fixture.F) {
		far := s.Now.Add(engine.MaxDelay)
		id := s.Start(fixture.DueAt(far), func(r *engine.StartRun) { r.DeadlineAt = far })
		s.SameTime("available at", s.Run(id).AvailableAt, far)
		s.SameTime("deadline", s.Run(id).DeadlineAt, far)
	}},
	{Name: "large numbers are kept", Run: func(s *fixture.F) {
		policy := engine.RetryPolicy{MaximumAttempts: engine.MaxRetryAttempts,
			InitialIntervalMS: engine.MaxDelay.Milliseconds(),
			Coefficient:       1e9, MaximumIntervalMS: engine.MaxDelay.Milliseconds(), Jitter: 0.123456789012345}
		times := engine.Timeouts{StartToClose: engine.MaxDelay, Heartbeat: engine.MaxDelay, Execution: time.Millisecond}
		id := s.Start(fixture.WithPolicy(policy), fixture.WithTimeouts(times),
			fixture.WithPriority(-engine.MaxPriority),
			func(r *engine.StartRun) { r.ConcurrencyKey, r.ConcurrencyLimit = "k", engine.MaxConcurrencyLimit })
		run := s.Run(id)
		fixture.Equal(s, "policy", fixture.PolicyText(run.RetryPolicy), fixture.PolicyText(&policy))
		fixture.Equal(s, "timeouts", run.Timeouts, times)
		fixture.Equal(s, "priority", run.Priority, -engine.MaxPriority)
		fixture.Equal(s, "concurrency", run.ConcurrencyLimit, engine.MaxConcurrencyLimit)
	}},
	{Name: "the zero policy is a policy", Run: func(s *fixture.F) {
		run := s.Run(s.Start(fixture.WithPolicy(engine.RetryPolicy{})))
		if run.RetryPolicy == nil {
			s.Fatalf("the policy is gone; a run with one is retried, a run without is not")
		}
		s.Worker("w1")
		fixture.Equal(s, "retry", s.FailRun(s.Claim("w1").Lease, "no").Retry, true)
	}},
}
