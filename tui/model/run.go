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

// Part is optional data of a run beside the run itself and its steps.
type Part uint8

const (
	Signals  Part = 1 << iota // received by the run
	Audit                     // actions by people
	Children                  // runs that it started
)

// detailEvery is the least time between two loads of a part of a run.
const detailEvery = time.Second

// Run follows one run with all attempts of its steps. Create it, then call Show.
type Run struct {
	base
	id     string
	stream follower[kagziv1.WatchWorkflowEvent]
	again  *timer // until an ended run is loaded again

	run      *kagziv1.Workflow
	steps    []*kagziv1.Step // by sequence and attempt
	complete bool            // the first snapshot is complete
	seen     map[string]bool // ids of the attempts in the snapshot so far
	edition  int             // counts changes of the run, its steps and its parts

	parts     Part
	explained *kagziv1.ExplainWorkflowResponse
	signals   []*kagziv1.Signal
	audit     []*kagziv1.AuditEvent
	children  *Collection[*kagziv1.Workflow]
	explain   *reader[*kagziv1.ExplainWorkflowResponse]
	signal    *reader[*kagziv1.ListSignalsResponse]
	log       *reader[*kagziv1.ListAuditEventsResponse]
	next      *timer // when the explanation expects a change

	lanes  cached[[]Lane]
	events cached[[]Event]
}

// cached is a derived value that is computed on first use after a change.
type cached[T any] struct {
	edition int // 0: not computed
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

// detail returns the reader of a part of a run. A failed load keeps the old data: the run's own
// stream reports errors.
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

// Show starts to follow the run.
func (r *Run) Show() {
	r.shown = true
	if r.link.Ready() {
		r.stream.start()
	}
	r.readParts()
}

// Hide stops updates until the next Show.
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

// Close ends the model and waits for its calls.
func (r *Run) Close() {
	r.children.Close()
	r.base.Close()
}

// Refresh reloads everything now.
func (r *Run) Refresh() {
	r.stream.start()
	r.readParts()
}

// SetParts sets the parts that are on the screen; the others are not loaded.
func (r *Run) SetParts(parts Part) {
	r.parts = parts
	r.readParts()
}

// ID returns the run's id.
func (r *Run) ID() string { return r.id }

// Workflow returns the run with its payloads; nil until loaded.
func (r *Run) Workflow() *kagziv1.Workflow { return r.run }

// Steps returns all attempts by sequence and attempt. Do not change them.
func (r *Run) Steps() []*kagziv1.Step { return r.steps }

// Step returns an attempt by its id; nil if there is none.
func (r *Run) Step(id string) *kagziv1.Step {
	if i := slices.IndexFunc(r.steps, func(s *kagziv1.Step) bool { return s.GetStepId() == id }); i >= 0 {
		return r.steps[i]
	}
	return nil
}

// Attempts returns the attempts of one step, oldest first.
func (r *Run) Attempts(name string) []*kagziv1.Step {
	var attempts []*kagziv1.Step
	for _, s := range r.steps {
		if s.GetName() == name {
			attempts = append(attempts, s)
		}
	}
	return attempts
}

// Loaded reports whether the run and all its steps are loaded.
func (r *Run) Loaded() bool { return r.complete }

// State returns the state of the stream: Ended after the run ended, Gone if it does not exist or
// was deleted.
func (r *Run) State() State { return r.stream.state }

// Gone reports that the run does not exist or was deleted. Loaded data is kept.
func (r *Run) Gone() bool { return r.stream.state.Phase == Gone }

// Err returns why there is nothing to show; nil if there is something.
func (r *Run) Err() error {
	if r.run != nil {
		return nil
	}
	if err := r.stream.state.Err; err != nil {
		return err
	}
	return r.failure(false)
}

// Explanation says what the run does or waits for; nil if it has ended or is not loaded.
func (r *Run) Explanation() *kagziv1.ExplainWorkflowResponse { return r.explained }

// Signals returns the signals that the run received, in order. They are loaded while the part is on
// the screen.
func (r *Run) Signals() []*kagziv1.Signal { return r.signals }

// Audit returns the actions of people on the run, newest first. They are loaded while the part is
// on the screen.
func (r *Run) Audit() []*kagziv1.AuditEvent { return r.audit }

// Children returns the runs that this one started, newest first. They are loaded while the part is
// on the screen.
func (r *Run) Children() *Collection[*kagziv1.Workflow] { return r.children }

// Lanes returns the rows of the timeline: one for each step.
func (r *Run) Lanes() []Lane {
	if r.lanes.edition != r.edition {
		r.lanes = cached[[]Lane]{r.edition, Lanes(r.steps)}
	}
	return r.lanes.value
}

// Events returns what happened to the run, oldest first, as far as the loaded parts show.
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
		r.stream.halt() // the run belongs to the previous namespace
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

// stateChanged handles a change of the stream's state.
func (r *Run) stateChanged() {
	if r.stream.state.Phase == Ended {
		r.readParts()
	}
	r.change()
}

// event handles a message of the stream.
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

// putStep inserts or replaces an attempt. Attempts mostly arrive in order.
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

// altered marks derived values as stale.
func (r *Run) altered() {
	r.edition++
	r.change()
}

// readParts reloads the parts on the screen and the explanation.
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

// setExplanation stores the explanation, and asks again when the change that it predicts is due.
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
