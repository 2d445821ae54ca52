package world

import (
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// endedScenes are those whose run has ended before the beginning.
func endedScenes() []scene {
	return []scene{
		{Family, 65 * time.Minute, family(), named("gallery-release"), nil},
		{Overridden, 52 * time.Minute, altered("order", func(p *plan) {
			p.sure()
			p.undo = nil
			p.acts[2].failing, p.acts[2].mishap = 1, &declinedMishap
		}), named("order-70112"), mended},
		{Chatty, 3 * time.Hour, altered("refund.approval", (*plan).sure), named("refund-10117"), signalsCome},
		{Big, 33 * time.Minute, sureOf("order"), func(m *kagziv1.Workflow) { m.ExternalId, m.Input = "order-yearly-stock", bigPayload() }, nil},
		{Text, 38 * time.Minute, sureOf("import.catalog"), func(m *kagziv1.Workflow) { m.ExternalId, m.Input = "catalog-by-mail", textPayload() }, nil},
		{Binary, 43 * time.Minute, sureOf("thumbnail"), named("logo"), func(w *World, r *run) {
			w.after(time.Minute, func() {
				r.Output = binaryPayload()
				w.changed(r)
			})
		}},
		{Failed, 9 * time.Minute, altered("order", func(p *plan) { p.sure(); p.acts[4].failing, p.acts[4].mishap = 1, &carrierMishap }), named("order-70344"), nil},
		{TimedOut, 70 * time.Minute, altered("report.nightly", func(p *plan) { p.sure(); p.takes("snapshot", 9*time.Minute); p.limit = 5 * time.Minute }), nil, nil},
		{Cancelled, 58 * time.Minute, altered("order", func(p *plan) { p.sure(); p.takes("cool-off", time.Hour) }), named("order-70090"), func(w *World, r *run) {
			w.after(4*time.Minute, func() { _ = w.stop(r, cancelled, "CancelWorkflow", "the customer changed their mind") })
		}},
		{Terminated, 85 * time.Minute, altered("import.catalog", func(p *plan) { p.sure(); p.takes("parse", 9*time.Minute) }), prioritised(10), func(w *World, r *run) {
			w.after(6*time.Minute, func() { _ = w.stop(r, terminated, "TerminateWorkflow", "it eats all the memory of data-1") })
		}},
		{Crashed, 140 * time.Minute, altered("report.nightly", func(p *plan) { p.sure(); p.takes("snapshot", 20*time.Second) }), named("revenue-2026-10"), func(w *World, _ *run) {
			w.after(8*time.Second, func() { w.crash("reports-1", 80*time.Second) })
		}},
		{Hostile, 22 * time.Hour, hostile(), hostileFields, hostileRest},
		{Pinned, 4 * time.Hour, sureOf("report.nightly"), named("audit-2026"), func(w *World, r *run) { r.Pinned = true }},
	}
}

// family is a run with three children, the second of which fails.
func family() *plan {
	bad := altered("thumbnail", func(p *plan) { p.sure(); p.acts[1].failing = 1 })
	return altered("import.catalog", func(p *plan) {
		p.acts = []act{
			{name: "collect", takes: 1500 * ms, output: rows},
			{name: "children", kind: child, starts: []string{"thumbnail", "thumbnail", "invoice.send"}, tolerates: true},
			{name: "publish", takes: 2 * time.Second, output: done},
		}
		p.kids = map[int]*plan{0: sureOf("thumbnail"), 1: bad, 2: sureOf("invoice.send")}
	})
}

// mended has a person put the failed step right, and try the run again.
func mended(w *World, r *run) {
	w.after(10*time.Minute, func() {
		reason := "charged by hand, see ticket 4411"
		if _, err := w.override(r, &kagziv1.OverrideStepRequest{
			StepName: "charge-card", Reason: reason, Result: &kagziv1.OverrideStepRequest_Output{Output: jsonPayload(`{"charge":"by hand","amount_cents":4990}`)},
		}); err != nil {
			return
		}
		if again, err := w.retry(r, &kagziv1.RetryWorkflowRequest{Reason: reason}); err == nil {
			w.cast[Retried] = again.NewRunId
		}
	})
}

// signalsCome has people send three signals, of which the code takes one.
func signalsCome(w *World, r *run) {
	for i, text := range []string{`{"seen_by":"jonas"}`, `{"seen_by":"priya"}`, `{"approved":true,"by":"mira"}`} {
		name := "seen"
		if i == 2 {
			name = "approval"
		}
		w.after(time.Duration(i+1)*7*time.Minute, func() {
			w.deliver(r, &kagziv1.Signal{Name: name, SignalId: name + "-" + string(rune('1'+i)), Payload: jsonPayload(text)})
		})
	}
}

// nasty is text that means harm to whoever prints it as it is: it clears the screen, sets the title, copies to the clipboard, colours,
// turns the direction of reading, hides, and breaks lines.
const nasty = "\x1b[2J\x1b]0;owned\a\x1b]52;c;b3duZWQ=\a[red::b]tag[-] \u202egnp.exe\u202c \u2066x\u2069 ze\u200bro \u009b31m 漢字 👩\u200d👩\u200d👧 a\u0301\r\nline\ttwo\x7f ${x} `id` ';--"

// hostile is a plan whose code says nasty things.
func hostile() *plan {
	return altered("order", func(p *plan) {
		p.version = nasty
		p.undo = nil
		say := func(luck, int) string { return `{"` + nasty + `":"` + nasty + `"}` }
		p.acts = []act{
			{name: "validate" + nasty, takes: 300 * ms, output: say, input: nasty, note: nasty},
			{name: "wait" + nasty, kind: wait, signal: nasty, limit: time.Minute},
			{name: "charge" + nasty, takes: 300 * ms, failing: 1, mishap: &mishap{kind: nasty, message: nasty, stack: nasty + "\n" + nasty, fatal: true}},
		}
	})
}

func hostileFields(m *kagziv1.Workflow) {
	m.ExternalId = nasty
	m.Input = &kagziv1.Payload{Data: []byte(`{"customer":"` + nasty + `"}`), Metadata: map[string]string{"content-type": nasty, nasty: nasty}}
	m.Tags = map[string]string{nasty: nasty}
	m.OnFailureWorkflow, m.OnFailureTaskQueue = nasty, nasty
}

// hostileRest fills, after the run's end, the fields without which it would never have run.
func hostileRest(w *World, r *run) {
	w.after(time.Second, func() { w.deliver(r, &kagziv1.Signal{Name: nasty, SignalId: nasty, Payload: jsonPayload(nasty)}) })
	w.after(5*time.Minute, func() {
		r.WorkflowType, r.TaskQueue, r.Note, r.ConcurrencyKey = nasty, nasty, nasty, nasty
		r.Requirements = map[string]string{nasty: nasty}
		name := nasty
		r.WorkerId = &name
		r.Error.Metadata = map[string]string{nasty: nasty}
		w.changed(r)
	})
}
