package scenario

import (
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// endedScenes returns the scenes of runs that ended before the beginning.
func endedScenes() []scene {
	return []scene{
		{Family, 65 * time.Minute, family(), named("gallery-release"), nil},
		{Overridden, 52 * time.Minute, altered("order", func(p *plan) {
			p.sure()
			p.undo = nil
			p.acts[2].failing, p.acts[2].mishap = 1, &declinedMishap
		}), named("order-70112"), fixed},
		{Chatty, 3 * time.Hour, altered("refund.approval", (*plan).sure), named("refund-10117"), signalsCome},
		{Big, 33 * time.Minute, sureOf("order"), func(m *kagziv1.StartWorkflowRequest) {
			m.ExternalId, m.Input = "order-yearly-stock", bigPayload()
		}, nil},
		{Text, 38 * time.Minute, sureOf("import.catalog"), func(m *kagziv1.StartWorkflowRequest) {
			m.ExternalId, m.Input = "catalog-by-mail", textPayload()
		}, nil},
		{Binary, 43 * time.Minute, altered("thumbnail", func(p *plan) { p.sure(); p.result = binaryPayload() }),
			named("logo"), nil},
		{Failed, 9 * time.Minute, altered("order", func(p *plan) {
			p.sure()
			p.acts[4].failing, p.acts[4].mishap = 1, &carrierMishap
		}), named("order-70344"), nil},
		{TimedOut, 70 * time.Minute, altered("report.nightly", func(p *plan) {
			p.sure()
			p.takes("snapshot", 9*time.Minute)
			p.limit = 5 * time.Minute
		}), nil, nil},
		{Cancelled, 58 * time.Minute, altered("order", func(p *plan) { p.sure(); p.takes("cool-off", time.Hour) }),
			named("order-70090"), func(d *Day, run string) {
				d.after(4*time.Minute, func(d *Day) {
					d.cancel(defaultNamespace, run, 0, "the customer changed their mind")
				})
			}},
		{Terminated, 85 * time.Minute, altered("import.catalog", func(p *plan) {
			p.sure()
			p.takes("parse", 9*time.Minute)
		}), prioritised(10), func(d *Day, run string) {
			d.after(6*time.Minute, func(d *Day) {
				_, err := d.runs.TerminateWorkflow(ctx,
					&kagziv1.TerminateWorkflowRequest{RunId: run, Reason: "it eats all the memory of data-1"})
				d.must("terminate a run", err)
				d.hear()
			})
		}},
		{Crashed, 140 * time.Minute, altered("report.nightly", func(p *plan) {
			p.sure()
			p.takes("snapshot", 20*time.Second)
		}), named("revenue-2026-10"), func(d *Day, _ string) {
			d.after(8*time.Second, func(d *Day) { d.crash("reports-1", 80*time.Second) })
		}},
		{Hostile, 22 * time.Hour, hostile(), hostileFields, hostileRest},
		{Pinned, 4 * time.Hour, sureOf("report.nightly"), named("audit-2026"), func(d *Day, run string) {
			_, err := d.runs.PinWorkflow(ctx, &kagziv1.PinWorkflowRequest{
				RunId: run, Pinned: true, Reason: "for the auditors"})
			d.must("pin a run", err)
		}},
	}
}

// family returns a run with three children, the second of which fails.
func family() *plan {
	bad := altered("thumbnail", func(p *plan) { p.sure(); p.acts[1].failing = 1 })
	return altered("import.catalog", func(p *plan) {
		p.acts = []act{
			{name: "collect", takes: 1500 * ms, output: rows},
			{name: "children", kind: child, starts: []string{"thumbnail", "thumbnail", "invoice.send"},
				tolerates: true},
			{name: "publish", takes: 2 * time.Second, output: done},
		}
		p.kids = map[int]*plan{0: sureOf("thumbnail"), 1: bad, 2: sureOf("invoice.send")}
	})
}

// fixed overrides the failed step of a run by hand, and retries the run.
func fixed(d *Day, run string) {
	d.after(10*time.Minute, func(d *Day) {
		reason := "charged by hand, see ticket 4411"
		_, err := d.runs.OverrideStep(ctx, &kagziv1.OverrideStepRequest{
			RunId: run, StepName: "charge-card", Reason: reason,
			Result: &kagziv1.OverrideStepRequest_Output{
				Output: jsonPayload(`{"charge":"by hand","amount_cents":4990}`)},
		})
		d.must("override a step", err)
		again, err := d.runs.RetryWorkflow(ctx, &kagziv1.RetryWorkflowRequest{RunId: run, Reason: reason})
		if d.must("retry a run", err) {
			d.pieceRuns[Retried] = again.NewRunId
			d.follow(again.NewRunId, sureOf("order"))
		}
	})
}

// signalsCome sends three signals, of which the code consumes one.
func signalsCome(d *Day, run string) {
	for i, text := range []string{`{"seen_by":"jonas"}`, `{"seen_by":"priya"}`, `{"approved":true,"by":"mira"}`} {
		name := "seen"
		if i == 2 {
			name = "approval"
		}
		d.after(time.Duration(i+1)*7*time.Minute, func(d *Day) {
			_, err := d.runs.SignalWorkflow(ctx, &kagziv1.SignalWorkflowRequest{
				RunId: run, Name: name, SignalId: name + "-" + string(rune('1'+i)), Payload: jsonPayload(text),
			})
			d.must("send a signal", err)
		})
	}
}

// nasty is text that harms a terminal that prints it unescaped: it clears the screen, sets the
// title, copies to the clipboard, colours, changes the text direction, hides, and breaks lines.
const nasty = "\x1b[2J\x1b]0;owned\a\x1b]52;c;b3duZWQ=\a[red::b]tag[-] \u202egnp.exe\u202c \u2066x\u2069 ze\u200bro \u009b31m 漢字 👩\u200d👩\u200d👧 a\u0301\r\nline\ttwo\x7f ${x} `id` ';--"

// hostile returns a plan that puts nasty into every field that a server accepts.
func hostile() *plan {
	return altered("order", func(p *plan) {
		p.undo = nil
		say := func(random, int) string { return `{"` + nasty + `":"` + nasty + `"}` }
		p.acts = []act{
			{name: "validate", takes: 300 * ms, output: say, input: nasty},
			{name: "wait-approval", kind: wait, signal: "approval", limit: time.Minute},
			{name: "charge", takes: 300 * ms, failing: 1, note: nasty, mishap: &mishap{
				kind: nasty, message: nasty, stack: nasty + "\n" + nasty, fatal: true,
				metadata: map[string]string{nasty: nasty},
			}},
		}
	})
}

func hostileFields(m *kagziv1.StartWorkflowRequest) {
	m.ExternalId = "order-with-an-odd-note"
	m.Input = &kagziv1.Payload{Data: []byte(`{"customer":"` + nasty + `"}`),
		Metadata: map[string]string{"content-type": nasty, nasty: nasty}}
	m.Tags = map[string]string{"customer": nasty}
}

// hostileRest sends what the run does not wait for.
func hostileRest(d *Day, run string) {
	d.after(time.Second, func(d *Day) {
		_, err := d.runs.SignalWorkflow(ctx, &kagziv1.SignalWorkflowRequest{
			RunId: run, Name: "odd", Payload: jsonPayload(nasty)})
		d.must("send a signal", err)
	})
}
