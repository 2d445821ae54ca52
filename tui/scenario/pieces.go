package scenario

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Piece names a run that every day has at its beginning, for tests and demos.
type Piece string

// The pieces. Those of the first group are open at the beginning.
const (
	Waiting    Piece = "waiting"    // PENDING: no worker serves its type
	Busy       Piece = "busy"       // PENDING: all workers of its queue are busy
	FanOut     Piece = "fan-out"    // RUNNING with 100 parallel steps
	Growing    Piece = "growing"    // RUNNING, with a new step every few seconds
	Sleeping   Piece = "sleeping"   // SLEEPING on a timer
	Signalled  Piece = "signalled"  // SLEEPING, waiting for the signal "approval"
	Parent     Piece = "parent"     // SLEEPING, waiting for the child Retrying
	Retrying   Piece = "retrying"   // PENDING: its fourth attempt failed
	Paused     Piece = "paused"     // by a person
	Cancelling Piece = "cancelling" // cancelled with a grace; its code cleans up
	Gated      Piece = "gated"      // PENDING: its concurrency key has no free slot
	Delayed    Piece = "delayed"    // PENDING: starts in two hours
	Draining   Piece = "draining"   // RUNNING on a worker that drains

	Family     Piece = "family"     // COMPLETED with three children, one of which failed
	Overridden Piece = "overridden" // FAILED, with a step that a person overrode
	Retried    Piece = "retried"    // COMPLETED: the retry of Overridden
	Chatty     Piece = "chatty"     // COMPLETED after three signals
	Big        Piece = "big"        // COMPLETED, with an input of 300 KiB
	Text       Piece = "text"       // COMPLETED, with an input that is no JSON
	Binary     Piece = "binary"     // COMPLETED, with an input that is not JSON
	Failed     Piece = "failed"     // FAILED with a stack, after its code undid what it had done
	TimedOut   Piece = "timed-out"  // TIMED_OUT
	Cancelled  Piece = "cancelled"  // CANCELLED with a reason
	Terminated Piece = "terminated" // TERMINATED with a reason
	Crashed    Piece = "crashed"    // COMPLETED after its worker was lost
	Hostile    Piece = "hostile"    // FAILED, with text in every field that could harm a terminal
	Pinned     Piece = "pinned"     // COMPLETED and pinned
)

// ID returns the run id of a piece.
func (d *Day) ID(p Piece) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pieceRuns[p]
}

// scene describes how a piece comes about.
type scene struct {
	piece  Piece
	before time.Duration // the beginning: when it is started
	plan   *plan
	tweak  func(*kagziv1.StartWorkflowRequest)
	then   func(d *Day, run string) // called after the start
}

// altered returns a changed copy of a plan of the catalog.
func altered(kind string, change func(*plan)) *plan {
	p := *planOf(kind)
	p.acts = append([]act(nil), p.acts...)
	p.answer = nil
	change(&p)
	return &p
}

// takes sets how long the act with a name takes.
func (p *plan) takes(name string, d time.Duration) {
	for i := range p.acts {
		if p.acts[i].name == name {
			p.acts[i].takes, p.acts[i].upTo = d, 0
		}
	}
}

// sure removes all chance of failure from a plan.
func (p *plan) sure() {
	for i := range p.acts {
		p.acts[i].odds, p.acts[i].during = 0, ""
	}
}

// sureOf returns a plan of the catalog that never fails.
func sureOf(kind string) *plan { return altered(kind, (*plan).sure) }

// rehearse plans the scenes, and other state that must exist at the beginning.
func (d *Day) rehearse() {
	for _, s := range append(openScenes(), endedScenes()...) {
		d.at(d.begin.Add(-s.before), func(d *Day) { d.play(s) })
	}
	d.at(d.begin.Add(-6*time.Minute), func(d *Day) { d.deploy("mailer-2", 10*time.Minute) })
	d.at(d.begin.Add(-4*time.Minute), func(d *Day) {
		_, err := d.admin.DrainWorker(ctx, &kagziv1.DrainWorkerRequest{WorkerId: "orders-0"})
		d.must("drain orders-0", err)
		d.beat(d.worker("orders-0"))
	})
	for i := range 8 {
		d.at(d.begin.Add(-time.Duration(9-i)*time.Hour), func(d *Day) {
			p := planOf("order")
			run := d.start(d.request(p, "staging"), p)
			if i < 6 {
				d.after(20*time.Minute, func(d *Day) { d.cancel("staging", run, 0, "nobody deployed a worker") })
			}
		})
	}
}

func (d *Day) play(s scene) {
	r := d.request(s.plan, defaultNamespace)
	if s.tweak != nil {
		s.tweak(r)
	}
	if s.piece == Delayed {
		r.StartAt = timestamppb.New(d.begin.Add(2 * time.Hour))
	}
	run := d.start(r, s.plan)
	if s.piece != "" && d.pieceRuns[s.piece] == "" {
		d.pieceRuns[s.piece] = run
	}
	if s.then != nil {
		s.then(d, run)
	}
}

func (d *Day) cancel(namespace, run string, grace time.Duration, reason string) {
	r := &kagziv1.CancelWorkflowRequest{Namespace: namespace, RunId: run, Reason: reason}
	if grace > 0 {
		r.Grace = durationpb.New(grace)
	}
	_, err := d.runs.CancelWorkflow(ctx, r)
	d.must("cancel a run", err)
	d.hear()
}

// named sets the external id of a run.
func named(id string) func(*kagziv1.StartWorkflowRequest) {
	return func(m *kagziv1.StartWorkflowRequest) { m.ExternalId = id }
}

// openScenes returns the scenes of runs that are open at the beginning.
func openScenes() []scene {
	scenes := []scene{
		{FanOut, 110 * time.Second, batch(), named("photos-2026-autumn"), nil},
		{Growing, 4 * time.Minute, backfill(), named("revenue-backfill"), nil},
		{Sleeping, 50 * time.Minute, altered("order", func(p *plan) { p.sure(); p.takes("cool-off", 24*time.Hour) }),
			named("order-hold-1"), nil},
		{Sleeping, 12 * time.Minute, altered("order", func(p *plan) {
			p.sure()
			p.takes("cool-off", 30*time.Minute)
		}), nil, nil},
		{Signalled, 95 * time.Minute, sureOf("refund.approval"), named("refund-10231"), nil},
		{Signalled, 41 * time.Minute, sureOf("refund.approval"), nil, nil},
		{Signalled, 7 * time.Minute, altered("refund.approval", func(p *plan) {
			p.sure()
			p.acts[1].limit = 0
		}), nil, nil},
		{Parent, 80 * time.Second, parentOf(declinedMail()), named("order-with-gift"), nil},
		{Retrying, 75 * time.Second, limited(), named("crm-globex"), nil},
		{Paused, 26 * time.Minute, altered("import.catalog", func(p *plan) {
			p.sure()
			p.takes("parse", 5*time.Minute)
		}), named("catalog-supplier-7"),
			func(d *Day, run string) {
				d.after(3*time.Minute, func(d *Day) {
					_, err := d.runs.PauseWorkflow(ctx,
						&kagziv1.PauseWorkflowRequest{RunId: run, Now: true,
							Reason: "the feed is broken, the supplier looks into it"})
					d.must("pause a run", err)
					d.hear()
				})
			}},
		{Cancelling, 3 * time.Minute, altered("import.catalog", func(p *plan) {
			p.sure()
			p.takes("parse", 10*time.Minute)
			p.undo = []act{{name: "drop-staging-tables", takes: 4 * time.Minute, output: done,
				note: "dropping what was imported"}}
		}), named("catalog-full"), func(d *Day, run string) {
			d.after(150*time.Second, func(d *Day) { d.cancel(defaultNamespace, run, 5*time.Minute, "the wrong feed") })
		}},
		{"", 100 * time.Second, altered("sync.crm", func(p *plan) {
			p.sure()
			p.takes("merge", 6*time.Minute)
		}), nil, nil},
		{Gated, 70 * time.Second, sureOf("sync.crm"), nil, nil},
		{Gated, 30 * time.Second, sureOf("sync.crm"), nil, nil},
		{Delayed, 15 * time.Minute, sureOf("invoice.send"), named("invoice-reminder"), nil},
		{Draining, 270 * time.Second, altered("order", func(p *plan) {
			p.sure()
			p.takes("charge-card", time.Second)
			p.takes("ship", 9*time.Minute)
			p.acts = slices.Delete(p.acts, 3, 4)
		}), nil, holdOn},
	}
	for i := range 5 {
		scenes = append(scenes, scene{Waiting, time.Duration(330-50*i) * time.Second, planOf("onboarding"), nil, nil})
	}
	for i := range mediaSlots - 1 {
		scenes = append(scenes, scene{"", time.Duration(105-i) * time.Second,
			altered("thumbnail", func(p *plan) {
				p.sure()
				p.takes("resize", time.Duration(225+20*i)*time.Second)
			}), nil, nil})
	}
	for i := range 3 {
		scenes = append(scenes, scene{Busy, time.Duration(40-9*i) * time.Second, sureOf("thumbnail"), nil, nil})
	}
	return scenes
}

// holdOn makes the worker that will drain claim a run that was just started.
func holdOn(d *Day, _ string) { d.poll(d.worker("orders-0"), false) }

// batch returns a plan with 100 parallel steps.
func batch() *plan {
	return altered("thumbnail", func(p *plan) {
		p.acts = []act{
			{name: "list-photos", takes: 1800 * ms, output: func(random, int) string { return `{"photos":100}` }},
			{name: "resize", times: 100, takes: 12 * time.Second, upTo: 5 * time.Minute, odds: 0.01,
				mishap: &mishap{kind: "OutOfMemory", message: "vips: out of memory while decoding a 108 megapixel image"},
				output: resized, note: "resizing 100 photos"},
			{name: "publish-gallery", takes: 2 * time.Second, output: done},
		}
	})
}

// backfill returns a plan with many steps, one after the other.
func backfill() *plan {
	return altered("report.nightly", func(p *plan) {
		p.acts = nil
		for day := range 60 {
			p.acts = append(p.acts, act{
				name: fmt.Sprintf("day-%02d", day+1), takes: 4 * time.Second, upTo: 11 * time.Second, output: rows,
				note: fmt.Sprintf("day %d of 60", day+1),
			})
		}
	})
}

// parentOf returns an order that waits for a child.
func parentOf(kid *plan) *plan {
	return altered("order", func(p *plan) {
		p.sure()
		p.acts = append(p.acts[:3:3], act{name: "gift-card", kind: child, starts: []string{kid.kind}},
			act{name: "confirm", takes: 200 * ms, output: done})
		p.kids = map[int]*plan{0: kid}
	})
}

// declinedMail returns a mail that is retried again and again.
func declinedMail() *plan {
	return altered("invoice.send", func(p *plan) {
		p.sure()
		p.retry = &kagziv1.RetryPolicy{MaximumAttempts: 10, InitialIntervalMs: 4000, BackoffCoefficient: 2,
			MaximumIntervalMs: 120_000}
		p.acts[1].failing = 6
	})
}

// limited returns a run that an external service rate-limits.
func limited() *plan {
	return altered("sync.crm", func(p *plan) {
		p.sure()
		p.key = func(random) string { return "crm:globex" }
		p.retry = &kagziv1.RetryPolicy{MaximumAttempts: 10, InitialIntervalMs: 5000, BackoffCoefficient: 2,
			MaximumIntervalMs: 60_000}
		p.takes("pull-contacts", 1200*ms)
		p.acts[0].failing = 7
		p.acts[0].mishap = &mishap{kind: "RateLimited", message: "crm: 429 Too Many Requests (quota of tenant globex)",
			stack: rateMishap.stack}
	})
}

// prioritised sets the priority of a run.
func prioritised(n int32) func(*kagziv1.StartWorkflowRequest) {
	return func(m *kagziv1.StartWorkflowRequest) { m.Priority = proto.Int32(n) }
}
