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

// ParentClosePolicy says what becomes of a child that is still open when its parent has ended.
type ParentClosePolicy int

// The policies for children of a parent that has ended. One that continues as new has not ended:
// its children that would end with it are those of the run that goes on.
const (
	ParentCloseAbandon   ParentClosePolicy = iota // it goes on
	ParentCloseCancel                             // it is CANCELLED
	ParentCloseTerminate                          // it is TERMINATED
)

// ChildOptions say how a child run is to be run. Every zero field means the default in brackets.
type ChildOptions struct {
	ParentClose ParentClosePolicy // (ParentCloseAbandon)
	ExternalID  string            // the application's own id; an open run that has it makes the start fail (none)
	Queue       string            // (the parent's)
	Version     string            // as in StartOptions (none)

	Retry            *Retry        // as in StartOptions
	StepTimeout      time.Duration // of one attempt of one step (600 s)
	HeartbeatTimeout time.Duration // lease without contact, longer than the server's (the server's)
	ExecutionTimeout time.Duration // of the whole child, from StartAt on (none)
	Deadline         time.Time     // the earlier of this and ExecutionTimeout holds (none)

	StartAt  time.Time     // not before (now)
	Delay    time.Duration // in place of StartAt: so long from when the server takes the start
	Priority int           // -100 to 100, higher first within a queue, until one has been due for a minute (0)

	Tags           map[string]string // searchable (none)
	Requirements   map[string]string // as in StartOptions (none)
	ConcurrencyKey string            // runs of this type with the same key: ConcurrencyLimit at a time (none)
	// (1 when there is a key); where runs name other limits for one key, each goes by its own
	ConcurrencyLimit int

	OnFailure      string // workflow type that is started when the child fails or times out (none)
	OnFailureQueue string // (the child's own queue)
}

func (p ParentClosePolicy) wire() kagziv1.ParentClosePolicy {
	if p < ParentCloseAbandon { // not 0, which would be the default: the server refuses what it does not know
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

// Child is a run that another has started and can wait for.
type Child[Out any] struct{ c *startedChild }

// RunID is the child's run id.
func (c *Child[Out]) RunID() string { return c.c.runID }

// startedChild is a Child with its type taken off.
type startedChild struct {
	name  string
	runID string
	known time.Time     // when it was still running, by our clock
	step  *kagziv1.Step // how it ended, nil before: guarded by the execution's mutex
}

// StartChild starts a run of a workflow type as a child of this one, and returns when that is on
// the server's disk. The name is that of a step, under the same rules; in a replay it stands for
// the same child. Out is the type of the child's result:
//
//	parcel, err := kagzi.StartChild[Parcel](ctx, "ship", "shipping", order, kagzi.ChildOptions{})
//
// A start that the server refuses is a *StepError with the server's code, such as CONFLICT when an
// open run has the external id, and is refused again in every replay. When the run is being
// cancelled errors.Is(err, ErrCancelled) holds.
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

// Wait returns the child's result, waiting for it as long as it takes; meanwhile the run is parked.
// A child that ended without a result is a *RunError with the child's run id and status; one that
// continued as new gives the result of its last run. When this run is being cancelled
// errors.Is(err, ErrCancelled) holds. It may be called more than once.
//
// To wait for many children use WaitAll, which wakes the run once. Beside a sibling that is at work
// the end of a child is noticed within 10 s.
func (c *Child[Out]) Wait(ctx Context) (Out, error) {
	outs, err := WaitAll(ctx, c)
	return outs[0], err
}

// RunChild is StartChild and Wait.
func RunChild[Out, In any](ctx Context, name, workflowType string, in In, opts ChildOptions) (Out, error) {
	c, err := StartChild[Out](ctx, name, workflowType, in, opts)
	if err != nil {
		var none Out
		return none, err
	}
	return c.Wait(ctx)
}

// WaitAll waits until all children have ended; the run is parked until the last one has. The
// results stand in the order of the children, with a zero value for one that failed; the error
// joins all errors, in that order, as in Map. When the run is being cancelled there are no results,
// and errors.Is(err, ErrCancelled) holds.
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

// metaChildRunID is where the server says of which run the output, or the failure, of a child's
// step is: of a child that has continued as new the step has the first run's id, and the result is
// the last one's.
const metaChildRunID = "child_run_id"

// output is the payload that the child's run has returned, as that returned it, and whose it is:
// the codec has bound the one to the other.
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

// childError is how a child ended without a result, as the step that started it has it.
func childError(c *startedChild, d *kagziv1.ErrorDetail) *RunError {
	return &RunError{
		RunID:  cmp.Or(d.GetMetadata()[metaChildRunID], c.step.GetChildRunId(), c.runID),
		Status: Status(cmp.Or(d.GetMetadata()["child_status"], string(StatusFailed))),
		Type:   d.GetType(), Message: d.GetMessage(), Code: errorCode(d.GetCode()), Stack: d.GetStack(),
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

// newChild is a child as the step that started it stands.
func newChild(s *kagziv1.Step, name string, now time.Time) *startedChild {
	c := &startedChild{name: name, runID: s.GetChildRunId(), known: now}
	switch s.GetStatus() {
	case kagziv1.StepStatus_STEP_STATUS_COMPLETED, kagziv1.StepStatus_STEP_STATUS_FAILED:
		c.step = s
	}
	return c
}

// refuseChild records that a child is not started, and returns the error that the code gets for it,
// now and in every replay.
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

// awaitOpen waits for children that run, and returns when it knows more of them; false when the run is being cancelled.
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

// childrenEnded takes the steps of children that have ended; false when there are none. What is
// known of a child stays, for branches that were told of it read it without e.mu. Needs e.mu.
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
