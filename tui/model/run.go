package model

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// Part is what can be known of a run beside itself and its steps.
type Part uint8

const (
	Signals  Part = 1 << iota // those that it got
	Audit                     // what people did to it
	Children                  // the runs that it started
)

// detailEvery is the least time between two readings of a part of a run.
const detailEvery = time.Second

// Run is one run with all attempts of its steps, as they change. Make it, then Show it.
type Run struct {
	base
	id     string
	stream follower[kagziv1.WatchWorkflowEvent]
	again  *timer // until a run that has ended is read again

	run      *kagziv1.Workflow
	steps    []*kagziv1.Step // by sequence and attempt
	complete bool            // the first snapshot has come
	seen     map[string]bool // ids of the attempts in the snapshot that is coming
	edition  int             // counts changes of the run, its steps and its parts

	parts     Part
	explained *kagziv1.ExplainWorkflowResponse
	signals   []*kagziv1.Signal
	audit     []*kagziv1.AuditEvent
	children  *Collection[*kagziv1.Workflow]
	explain   *reader[*kagziv1.ExplainWorkflowResponse]
	signal    *reader[*kagziv1.ListSignalsResponse]
	log       *reader[*kagziv1.ListAuditEventsResponse]
	next      *timer // when the explanation says that something happens

	lanes  cached[[]Lane]
	events cached[[]Event]
}

// cached is something that is worked out when somebody looks after a change.
type cached[T any] struct {
	edition int // 0: never
	value   T
}

// NewRun follows a run by its run id.
func NewRun(l *Link, id string) *Run {
	r := &Run{id: id, edition: 1}
	r.base = join(l, r.heard)
	r.stream = follower[kagziv1.WatchWorkflowEvent]{
		tasks: r.tasks, ends: true, message: r.event, changed: r.stateChanged,
		open: func(ctx context.Context) (grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent], error) {
			return l.api.WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{Namespace: l.Namespace(), RunId: id})
		},
	}
	r.children = newChildren(l, id)
	r.children.Changed = r.change
	r.explain = detail(r, func(ctx context.Context, namespace string) (*kagziv1.ExplainWorkflowResponse, error) {
		return l.api.ExplainWorkflow(ctx, &kagziv1.ExplainWorkflowRequest{Namespace: namespace, RunId: id})
	}, r.setExplanation)
	r.signal = detail(r, func(ctx context.Context, namespace string) (*kagziv1.ListSignalsResponse, error) {
		return l.api.ListSignals(ctx, &kagziv1.ListSignalsRequest{
			Namespace: namespace, RunId: id, Page: &kagziv1.PageRequest{PageSize: collectionMost}})
	}, func(answer *kagziv1.ListSignalsResponse) { r.signals = answer.GetSignals() })
	r.log = detail(r, func(ctx context.Context, namespace string) (*kagziv1.ListAuditEventsResponse, error) {
		return l.api.ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{
			Namespace: namespace, SubjectId: &id, Page: &kagziv1.PageRequest{PageSize: collectionMost}})
	}, func(answer *kagziv1.ListAuditEventsResponse) { r.audit = answer.GetEvents() })
	return r
}

// detail makes the reader of a part of a run. A reading that goes wrong leaves what was there: the
// run itself tells of trouble.
func detail[T any](r *Run, call func(ctx context.Context, namespace string) (T, error), set func(T)) *reader[T] {
	return &reader[T]{
		tasks: r.tasks, every: detailEvery,
		prepare: func() func(context.Context) (T, error) {
			namespace := r.link.Namespace()
			return func(ctx context.Context) (T, error) { return call(ctx, namespace) }
		},
		done: func(answer T, err error) {
			if err == nil {
				set(answer)
				r.altered()
			}
		},
	}
}

// Show follows the run from now on.
func (r *Run) Show() {
	r.shown = true
	if r.link.Ready() {
		r.stream.start()
	}
	r.readParts()
}

// Hide keeps everything as it is until the next Show.
func (r *Run) Hide() {
	r.shown = false
	r.stream.halt()
	r.again.stop()
	r.again = nil
	r.next.stop()
	r.next = nil
	r.children.Hide()
	r.explain.stop()
	r.signal.stop()
	r.log.stop()
}

// Close ends the model and waits for what it has under way.
func (r *Run) Close() {
	r.children.Close()
	r.base.Close()
}

// Refresh reads everything again now.
func (r *Run) Refresh() {
	r.stream.start()
	r.readParts()
}

// SetParts says which parts are on the screen; the others are not read.
func (r *Run) SetParts(parts Part) {
	r.parts = parts
	r.readParts()
}

// ID is the run's id.
func (r *Run) ID() string { return r.id }

// Workflow is the run with its payloads; nil until it has come.
func (r *Run) Workflow() *kagziv1.Workflow { return r.run }

// Steps are all attempts by sequence and attempt. Do not change them.
func (r *Run) Steps() []*kagziv1.Step { return r.steps }

// Step is an attempt by its id; nil when there is none.
func (r *Run) Step(id string) *kagziv1.Step {
	if i := slices.IndexFunc(r.steps, func(s *kagziv1.Step) bool { return s.GetStepId() == id }); i >= 0 {
		return r.steps[i]
	}
	return nil
}

// Attempts are those of one step, oldest first.
func (r *Run) Attempts(name string) []*kagziv1.Step {
	var attempts []*kagziv1.Step
	for _, s := range r.steps {
		if s.GetName() == name {
			attempts = append(attempts, s)
		}
	}
	return attempts
}

// Loaded says that the run and all its steps have come.
func (r *Run) Loaded() bool { return r.complete }

// State is how its stream stands; Ended when the run has ended, Gone when there is no such run, or not any more.
func (r *Run) State() State { return r.stream.state }

// Gone says that there is no such run, or not any more: what was known of it stays.
func (r *Run) Gone() bool { return r.stream.state.Phase == Gone }

// Err is why there is nothing to show; nil when there is something.
func (r *Run) Err() error {
	if r.run != nil {
		return nil
	}
	if err := r.stream.state.Err; err != nil {
		return err
	}
	return r.failure(false)
}

// Explanation says why the run is where it is; nil when it has ended or that is not known yet.
func (r *Run) Explanation() *kagziv1.ExplainWorkflowResponse { return r.explained }

// Signals are those that the run got, in their order. They are read while the part is on the screen.
func (r *Run) Signals() []*kagziv1.Signal { return r.signals }

// Audit is what people did to the run, newest first. It is read while the part is on the screen.
func (r *Run) Audit() []*kagziv1.AuditEvent { return r.audit }

// Children are the runs that this one started, newest first. They are read while the part is on the screen.
func (r *Run) Children() *Collection[*kagziv1.Workflow] { return r.children }

// Lanes are the rows of the timeline: one for each step.
func (r *Run) Lanes() []Lane {
	if r.lanes.edition != r.edition {
		r.lanes = cached[[]Lane]{r.edition, Lanes(r.steps)}
	}
	return r.lanes.value
}

// Events are what has happened to the run, oldest first, as far as steps, signals and the audit that are read tell.
func (r *Run) Events() []Event {
	if r.events.edition != r.edition {
		r.events = cached[[]Event]{r.edition, Events(r.run, r.steps, r.signals, r.audit)}
	}
	return r.events.value
}

func (r *Run) heard(c Change) {
	switch {
	case !r.shown:
	case c.Moved:
		r.stream.halt() // the page is about a run of the namespace that was left
	case c.Back:
		r.stream.start()
		r.readParts()
	case r.stream.state.Phase == Ended || r.Gone():
		if anyRun(c, func(run *kagziv1.Workflow) bool { return run.GetRunId() == r.id }) && r.again == nil {
			// it has ended, but a step may be overridden or the run be pinned
			r.again = r.tasks.after(detailEvery, func() {
				r.again = nil
				r.stream.start()
				r.readParts()
			})
		}
	}
}

// stateChanged deals with another state of the stream.
func (r *Run) stateChanged() {
	if r.stream.state.Phase == Ended {
		r.readParts()
	}
	r.change()
}

// event deals with what the stream brought.
func (r *Run) event(e *kagziv1.WatchWorkflowEvent, _ time.Time, first bool) {
	if first {
		r.seen = map[string]bool{}
	}
	if e.GetWorkflow() != nil {
		r.run = e.GetWorkflow()
	}
	for _, s := range e.GetSteps() {
		r.putStep(s)
		if r.seen != nil {
			r.seen[s.GetStepId()] = true
		}
	}
	if e.GetSnapshotDone() {
		r.steps = slices.DeleteFunc(r.steps, func(s *kagziv1.Step) bool {
			return r.seen != nil && !r.seen[s.GetStepId()]
		})
		r.seen, r.complete = nil, true
	}
	if r.complete {
		r.readParts()
	}
	r.altered()
}

// putStep brings an attempt to its place. Attempts mostly come in their order.
func (r *Run) putStep(s *kagziv1.Step) {
	order := func(a, b *kagziv1.Step) int {
		return cmp.Or(cmp.Compare(a.GetSequence(), b.GetSequence()),
			cmp.Compare(a.GetAttemptNumber(), b.GetAttemptNumber()))
	}
	if n := len(r.steps); n == 0 || order(r.steps[n-1], s) < 0 {
		r.steps = append(r.steps, s)
		return
	}
	i, found := slices.BinarySearchFunc(r.steps, s, order)
	if found {
		r.steps[i] = s
		return
	}
	r.steps = slices.Insert(r.steps, i, s)
}

// altered notes that what is worked out is out of date.
func (r *Run) altered() {
	r.edition++
	r.change()
}

// readParts reads what may have changed of the parts on the screen, and the explanation.
func (r *Run) readParts() {
	if !r.shown || !r.link.Ready() {
		return
	}
	switch {
	case r.run == nil || r.Gone():
	case render.Ended(r.run.GetStatus()):
		r.explain.stop()
		r.next.stop()
		r.explained, r.next = nil, nil
	default:
		r.explain.want()
	}
	if r.parts&Signals != 0 {
		r.signal.want()
	}
	if r.parts&Audit != 0 {
		r.log.want()
	}
	if r.parts&Children != 0 {
		r.children.Show()
	} else {
		r.children.Hide()
	}
}

// setExplanation takes it, and asks again when what it says is to happen should have.
func (r *Run) setExplanation(e *kagziv1.ExplainWorkflowResponse) {
	r.next.stop()
	r.next = nil
	r.explained = e
	if e.GetNextAt() == nil {
		return
	}
	if left := e.GetNextAt().AsTime().Sub(r.link.Now()); left > 0 {
		r.next = r.tasks.after(left, func() {
			r.next = nil
			r.explain.want()
		})
	}
}
