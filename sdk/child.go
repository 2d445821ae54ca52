package kagzi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// ParentClosePolicy selects what happens to an open child when its parent ends.
type ParentClosePolicy int

// Policies for the children of a parent that ends. Continuing as new is not an end: the children
// then belong to the run that the parent continues as.
const (
	ParentCloseAbandon   ParentClosePolicy = iota // the child continues
	ParentCloseCancel                             // the child is cancelled, within the parent's grace if it has one
	ParentCloseTerminate                          // the child becomes TERMINATED
)

// ChildOptions configures a child run. A field that is zero has the default in brackets.
type ChildOptions struct {
	ParentClose ParentClosePolicy // (ParentCloseAbandon)
	ExternalID  string            // if an open run has the same id, the start fails with CONFLICT (none)
	Queue       string            // (the parent's)
	Version     string            // as in StartOptions (none)

	Retry            *Retry        // as in StartOptions
	StepTimeout      time.Duration // of one attempt of a step (600 s)
	HeartbeatTimeout time.Duration // lease between heartbeats, if longer than the server's (the server's)
	ExecutionTimeout time.Duration // of the whole child, from StartAt (none)
	Deadline         time.Time     // the earlier of this and ExecutionTimeout applies (none)

	StartAt  time.Time     // earliest start (now)
	Delay    time.Duration // start delay by the server's clock, instead of StartAt (none)
	Priority int           // -100 to 100, higher first within a queue; one run in eight goes by age (0)

	Tags           map[string]string // searchable (none)
	Requirements   map[string]string // as in StartOptions (none)
	ConcurrencyKey string            // at most ConcurrencyLimit runs of this type and key are RUNNING (none)
	// ConcurrencyLimit is the limit for ConcurrencyKey (1). If runs of one key have different
	// limits, each run applies its own.
	ConcurrencyLimit int

	OnFailure      string // workflow type started when the child fails or times out (none)
	OnFailureQueue string // (the child's own queue)
}

func (p ParentClosePolicy) wire() kagziv1.ParentClosePolicy {
	if p < ParentCloseAbandon { // 0 would be the default; the server rejects unknown values
		return kagziv1.ParentClosePolicy(p)
	}
	return kagziv1.ParentClosePolicy(p + 1)
}

func (o ChildOptions) start(parentQueue string) StartOptions {
	return StartOptions{
		ExternalID: o.ExternalID, ExternalIDReuse: ReuseReject, Queue: cmp.Or(o.Queue, parentQueue), Version: o.Version,
		Retry:       o.Retry,
		StepTimeout: o.StepTimeout, HeartbeatTimeout: o.HeartbeatTimeout, ExecutionTimeout: o.ExecutionTimeout,
		Deadline: o.Deadline,
		StartAt:  o.StartAt, Delay: o.Delay, Priority: o.Priority, Tags: o.Tags, Requirements: o.Requirements,
		ConcurrencyKey: o.ConcurrencyKey, ConcurrencyLimit: o.ConcurrencyLimit, OnFailure: o.OnFailure,
		OnFailureQueue: o.OnFailureQueue,
	}
}

// Child is a child run that its parent can wait for.
type Child[Out any] struct{ c *startedChild }

// RunID returns the child's run id.
func (c *Child[Out]) RunID() string { return c.c.runID }

// startedChild is a Child without its type parameter.
type startedChild struct {
	name  string
	runID string
	known time.Time     // local time when it was last known to run
	step  *kagziv1.Step // its step with the outcome, nil before; guarded by the execution's mutex
}

// StartChild starts a run of a workflow type as a child of this run. It returns when the start is
// on the server's disk. The name follows the rules of step names, and a replay returns the same
// child. Out is the type of the child's result:
//
//	parcel, err := kagzi.StartChild[Parcel](ctx, "ship", "shipping", order, kagzi.ChildOptions{})
//
// If the server refuses the start, the error is a *StepError with the server's code, such as
// CONFLICT when an open run has the external id; every replay returns the same error. During a
// cancellation, errors.Is(err, ErrCancelled) is true.
func StartChild[Out, In any](ctx Context, name, workflowType string, in In, opts ChildOptions) (*Child[Out], error) {
	b := ctx.workflow()
	c, err := b.startChild(ctx.scope(), name, opts.ParentClose, func() (*kagziv1.StartWorkflowRequest, error) {
		e := b.e
		input, err := encode(e.w.options.Codec, in, inputInfo(workflowType, opts.ExternalID))
		if err != nil {
			return nil, fmt.Errorf("input of workflow type %s: %w", workflowType, err)
		}
		warnLarge(e.w.log, "input", input, "type", workflowType)
		request, err := newStart(e.task.GetNamespace(), workflowType, input, opts.start(e.info.Queue), e.now())
		if err != nil {
			return nil, fmt.Errorf("start of workflow type %s: %w", workflowType, err)
		}
		request.ParentRunId = e.info.RunID
		return request, nil
	})
	if err != nil {
		return nil, err
	}
	return &Child[Out]{c}, nil
}

// Wait parks the run until the child has ended and returns its result. A child that ended without a
// result is a *RunError with its run id and status. A child that continued as new has the result of
// its last run. During a cancellation of this run, errors.Is(err, ErrCancelled) is true. Wait may
// be called more than once.
//
// Use WaitAll to wait for many children: it wakes the run only once. While another branch is
// active, the end of a child is noticed within 10 s.
func (c *Child[Out]) Wait(ctx Context) (Out, error) {
	outs, err := WaitAll(ctx, c)
	return outs[0], err
}

// RunChild calls StartChild and then Wait.
func RunChild[Out, In any](ctx Context, name, workflowType string, in In, opts ChildOptions) (Out, error) {
	c, err := StartChild[Out](ctx, name, workflowType, in, opts)
	if err != nil {
		var none Out
		return none, err
	}
	return c.Wait(ctx)
}

// WaitAll parks the run until all children have ended. Results are in the order of the children,
// with the zero value for a child that failed. The error joins the errors of all failed children,
// in the same order. During a cancellation of this run it returns no results, and errors.Is(err,
// ErrCancelled) is true.
func WaitAll[Out any](ctx Context, children ...*Child[Out]) ([]Out, error) {
	b := ctx.workflow()
	outs, all := make([]Out, len(children)), make([]*startedChild, len(children))
	for i, c := range children {
		all[i] = c.c
	}
	if err := b.awaitAll(ctx.scope(), all); err != nil {
		return outs, err
	}
	var errs []error
	for i, c := range all {
		out, err := childResult[Out](b.e, c)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		outs[i] = *out
	}
	if len(errs) == 1 {
		return outs, errs[0]
	}
	return outs, errors.Join(errs...)
}

func childResult[Out any](e *execution, c *startedChild) (*Out, error) {
	if c.step.GetStatus() == kagziv1.StepStatus_STEP_STATUS_FAILED {
		return nil, childError(c, c.step.GetError())
	}
	output, info := c.output()
	if c.step.GetOverriddenBy() != "" {
		output, info = c.step.GetOutput(), e.payloadInfo(PayloadStep, c.name)
	}
	out, err := decode[Out](e.w.options.Codec, output, info)
	if err != nil {
		e.failAndExit(unreadableResult(c.name, err))
	}
	return out, nil
}

// metaChildRunID names the run that a child's output or failure comes from. After a child continued
// as new, its step has the id of the first run but the result of the last one.
const metaChildRunID = "child_run_id"

// metaCancelledWithParent marks the failure of a child that was cancelled because this run is being
// cancelled.
const metaCancelledWithParent = "cancelled_with_parent"

// output returns the payload that the child's run returned, and the run that the codec bound it to.
func (c *startedChild) output() (*kagziv1.Payload, PayloadInfo) {
	p := c.step.GetOutput()
	info := PayloadInfo{Kind: PayloadOutput, RunID: cmp.Or(
		p.GetMetadata()[metaChildRunID], c.step.GetChildRunId(), c.runID)}
	if _, named := p.GetMetadata()[metaChildRunID]; named {
		metadata := maps.Clone(p.GetMetadata())
		delete(metadata, metaChildRunID)
		p = &kagziv1.Payload{Data: p.GetData(), Metadata: metadata}
	}
	return p, info
}

// childError returns how a child ended without a result, according to the step that started it.
func childError(c *startedChild, d *kagziv1.ErrorDetail) *RunError {
	return &RunError{
		RunID:  cmp.Or(d.GetMetadata()[metaChildRunID], c.step.GetChildRunId(), c.runID),
		Status: Status(cmp.Or(d.GetMetadata()["child_status"], string(StatusFailed))),
		Type:   d.GetType(), Message: d.GetMessage(), Code: errorCode(d.GetCode()), Stack: d.GetStack(),
		WithParent: d.GetMetadata()[metaCancelledWithParent] != "",
	}
}

func (b *branch) startChild(scope context.Context, name string, policy ParentClosePolicy,
	request func() (*kagziv1.StartWorkflowRequest, error)) (*startedChild, error) {
	e := b.e
	name, recorded := b.claim(scope, name, kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW)
	defer b.release(name)
	if recordedAs(recorded, kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW) {
		return newChild(recorded, name, e.since), nil
	}
	e.lock()
	refusal := e.verdicts.calls[name]
	e.mu.Unlock()
	switch {
	case refusal != nil:
		return nil, newStepError(name, refusal, 1)
	case b.cancelled(scope):
		return nil, cancelledError(name, nil, 0)
	}
	b.begin()
	defer b.end()
	run, err := request()
	if err != nil {
		return nil, e.refuseChild(name, errorDetail(err))
	}
	started, refusal := e.sendChild(name, run, policy)
	if refusal != nil {
		return nil, e.refuseChild(name, refusal)
	}
	c := newChild(started.GetStep(), name, time.Now())
	c.runID = cmp.Or(started.GetChildRunId(), c.runID)
	return c, nil
}

// newChild makes a child from its step.
func newChild(s *kagziv1.Step, name string, now time.Time) *startedChild {
	c := &startedChild{name: name, runID: s.GetChildRunId(), known: now}
	switch s.GetStatus() {
	case kagziv1.StepStatus_STEP_STATUS_COMPLETED, kagziv1.StepStatus_STEP_STATUS_FAILED:
		c.step = s
	}
	return c
}

// refuseChild records that the server refused to start a child, and returns the error for the code,
// which every replay repeats.
func (e *execution) refuseChild(name string, d *kagziv1.ErrorDetail) *StepError {
	d = &kagziv1.ErrorDetail{Code: d.GetCode(), Type: d.GetType(), Message: d.GetMessage(), NonRetryable: true,
		Metadata: map[string]string{verdictStep: name}}
	e.lock()
	defer e.mu.Unlock()
	e.judge(name, d)
	return newStepError(name, d, 1)
}

// sendChild asks the server to start a child, and returns its answer or its refusal.
func (e *execution) sendChild(name string, run *kagziv1.StartWorkflowRequest,
	policy ParentClosePolicy) (*kagziv1.StartChildResponse, *kagziv1.ErrorDetail) {
	type answer struct {
		started *kagziv1.StartChildResponse
		refusal *kagziv1.ErrorDetail
	}
	answers := make(chan answer, 1)
	e.lock()
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_StartChild{StartChild: &kagziv1.StartChildRequest{
		StepName: name, LeaseToken: e.task.GetLeaseToken(), Child: run, ParentClosePolicy: policy.wire(),
	}}}, func(r *kagziv1.SessionResponse) {
		answers <- answer{started: r.GetStartedChild()}
	}).Refused = func(d *kagziv1.ErrorDetail) { answers <- answer{refusal: d} }
	e.mu.Unlock()
	a := await(e, answers)
	return a.started, a.refusal
}

// awaitAll returns when the children have ended, or with an error when the run is being cancelled.
func (b *branch) awaitAll(scope context.Context, children []*startedChild) error {
	e := b.e
	b.enterOutsideSteps("a wait for child runs")
	for _, c := range children {
		if scope != context.Context(e.grace) && b.endedByCancellation(c.name) {
			return cancelledError(c.name, nil, 0)
		}
	}
	for {
		open := e.openChildren(children)
		if len(open) == 0 {
			return nil
		}
		if !b.awaitOpen(scope, open) {
			e.endByCancellation(open[0].name)
			return cancelledError(open[0].name, nil, 0)
		}
	}
}

// awaitOpen waits until at least one of the open children has ended. It returns false when the run
// is being cancelled.
func (b *branch) awaitOpen(scope context.Context, open []*startedChild) bool {
	e := b.e
	b.arrive()
	if b.cancelled(scope) {
		return false
	}
	b.begin()
	defer b.end()
	w := &serverWait{
		question: func(hold bool) *kagziv1.SessionRequest { return awaitChildren(e, open, false, hold) },
		answered: func(r *kagziv1.SessionResponse) bool {
			return e.childrenEnded(open, r.GetAwaitedChildren().GetSteps())
		},
		known:    open[0].known,
		children: open,
	}
	return b.await(scope, w)
}

func (e *execution) openChildren(children []*startedChild) []*startedChild {
	e.mu.Lock()
	defer e.mu.Unlock()
	var open []*startedChild
	for _, c := range children {
		if c.step == nil {
			open = append(open, c)
		}
	}
	return open
}

// childrenEnded stores the steps of children that have ended; false if there are none. A stored
// step is never replaced, because branches read it without e.mu. Needs e.mu.
func (e *execution) childrenEnded(open []*startedChild, steps []*kagziv1.Step) bool {
	byName := make(map[string]*kagziv1.Step, len(steps))
	for _, s := range steps {
		byName[s.GetName()] = s
	}
	for _, c := range open {
		if s := byName[c.name]; s != nil && c.step == nil {
			c.step = s
		}
	}
	return len(steps) > 0
}

func awaitChildren(e *execution, children []*startedChild, first, hold bool) *kagziv1.SessionRequest {
	r := &kagziv1.AwaitChildrenRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(), Any: first,
		Hold:        hold,
		ChildRunIds: make([]string, len(children)),
	}
	for i, c := range children {
		r.ChildRunIds[i] = c.runID
	}
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_AwaitChildren{AwaitChildren: r}}
}
