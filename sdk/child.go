package kagzi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/session"
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

	StepRetry        *Retry        // for steps without their own policy (3 attempts)
	RunRetry         *Retry        // for the child itself, as in StartOptions (not retried)
	Retry            *Retry        // Deprecated: use StepRetry and RunRetry, as in StartOptions.
	StepTimeout      time.Duration // of one attempt of a step (600 s)
	HeartbeatTimeout time.Duration // lease between heartbeats, if longer than the server's (the server's)
	ExecutionTimeout time.Duration // of the whole child, from StartAt (none)
	Deadline         time.Time     // the earlier of this and ExecutionTimeout applies (none)

	StartAt  time.Time     // earliest start (now)
	Delay    time.Duration // start delay by the server's clock, instead of StartAt (none)
	Priority int           // -100 to 100, higher first within a queue; one run in eight goes by age (0)

	Tags           map[string]string // searchable (none)
	Requirements   map[string]string // as in StartOptions (none)
	ConcurrencyKey string            // at most ConcurrencyLimit runs of this type and key at a time (none)
	// ConcurrencyLimit is the limit for ConcurrencyKey (1). If runs of one key have different
	// limits, each run applies its own.
	ConcurrencyLimit int
	ConcurrencyScope ConcurrencyScope // as in StartOptions (ScopeSlot)

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
		StepRetry: o.StepRetry, RunRetry: o.RunRetry, Retry: o.Retry,
		StepTimeout: o.StepTimeout, HeartbeatTimeout: o.HeartbeatTimeout, ExecutionTimeout: o.ExecutionTimeout,
		Deadline: o.Deadline,
		StartAt:  o.StartAt, Delay: o.Delay, Priority: o.Priority, Tags: o.Tags, Requirements: o.Requirements,
		ConcurrencyKey: o.ConcurrencyKey, ConcurrencyLimit: o.ConcurrencyLimit,
		ConcurrencyScope: o.ConcurrencyScope, OnFailure: o.OnFailure,
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
	// as the code gave them
	workflowType, externalID string
	known                    time.Time     // local time when it was last known to run
	step                     *kagziv1.Step // its step with the outcome, nil before; guarded by the execution's mutex
	key                      int64         // place of the outcome in the order of results; 0 for one without a place
	live                     bool          // this activation was told of it
	branch                   *branch       // waits for the child in calls of First; nil before
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
	request := func() (*kagziv1.StartWorkflowRequest, error) {
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
	}
	c, err := b.startChild(ctx.scope(), name, workflowType, opts.ParentClose, request)
	if err != nil {
		return nil, err
	}
	c.workflowType, c.externalID = workflowType, opts.ExternalID
	return &Child[Out]{c}, nil
}

// Wait parks the run until the child has ended and returns its result. A child that ended without a
// result is a *RunError with its run id, status, type and external id. A child that continued as new has the result of
// its last run. During a cancellation of this run, errors.Is(err, ErrCancelled) is true. Wait may
// be called more than once.
//
// Use WaitAll to wait for many children: it wakes the run only once.
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
		Step: c.name, WorkflowType: c.workflowType, ExternalID: c.externalID,
		WithParent: d.GetMetadata()[metaCancelledWithParent] != "",
	}
}

func (b *branch) startChild(scope context.Context, name, workflowType string, policy ParentClosePolicy,
	request func() (*kagziv1.StartWorkflowRequest, error)) (*startedChild, error) {
	e := b.e
	c := b.call(scope, name, kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW, workflowType)
	defer b.release(c.name)
	switch {
	case !c.isOver() && !c.halted():
	case c.outcome == outcomeCancelled:
		return nil, cancelledError(c.name, nil, 0)
	case c.failure != nil:
		return nil, newStepError(c.name, c.failure, 1)
	default:
		child := newChild(c.record, c.name, e.since())
		e.lock()
		e.kids[c.name] = child
		e.mu.Unlock()
		return child, nil
	}
	e.lock()
	c.asCode()
	e.mu.Unlock()
	run, err := request()
	if err != nil {
		return nil, e.refuseChild(c, errorDetail(err))
	}
	child, refusal := e.sendChild(c, run, policy)
	if refusal != nil {
		return nil, e.refuseChild(c, refusal)
	}
	return child, nil
}

// newChild makes a child from its step.
func newChild(s *kagziv1.Step, name string, now time.Time) *startedChild {
	c := &startedChild{name: name, runID: s.GetChildRunId(), known: now, key: s.GetSettled()}
	switch s.GetStatus() {
	case kagziv1.StepStatus_STEP_STATUS_COMPLETED, kagziv1.StepStatus_STEP_STATUS_FAILED:
		c.step = s
	}
	return c
}

// refuseChild records that the server refused to start a child, and returns the error for the code,
// which every replay repeats.
func (e *execution) refuseChild(c *call, d *kagziv1.ErrorDetail) *StepError {
	d = &kagziv1.ErrorDetail{Code: d.GetCode(), Type: d.GetType(), Message: d.GetMessage(), NonRetryable: true,
		Metadata: map[string]string{verdictStep: c.name}}
	e.lock()
	defer e.mu.Unlock()
	e.judge(c, d)
	e.hand(c, outcomeReported)
	return newStepError(c.name, d, 1)
}

// sendChild asks the server to start a child, and returns the child or the server's refusal.
func (e *execution) sendChild(c *call, run *kagziv1.StartWorkflowRequest,
	policy ParentClosePolicy) (*startedChild, *kagziv1.ErrorDetail) {
	type answer struct {
		child   *startedChild
		refusal *kagziv1.ErrorDetail
	}
	answers := make(chan answer, 1)
	e.lock()
	op := e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_StartChild{
		StartChild: &kagziv1.StartChildRequest{
			StepName: c.name, LeaseToken: e.token(), Child: run, ParentClosePolicy: policy.wire(),
			Branch: c.b.path(),
		}}}, nil)
	op.Answer = func(r *kagziv1.SessionResponse) {
		started := r.GetStartedChild()
		child := newChild(started.GetStep(), c.name, time.Now())
		child.runID = cmp.Or(started.GetChildRunId(), child.runID)
		e.mu.Lock()
		child.key, child.live = e.recorded+op.Index, true
		e.kids[c.name] = child
		e.hand(c, outcomeReported)
		e.mu.Unlock()
		answers <- answer{child: child}
	}
	op.Refused = func(d *kagziv1.ErrorDetail) { answers <- answer{refusal: d} }
	e.mu.Unlock()
	a := await(e, answers)
	return a.child, a.refusal
}

// awaitAll returns when the children have ended, or with an error when the run is being cancelled.
func (b *branch) awaitAll(scope context.Context, children []*startedChild) error {
	e, own := b.e, onBranchGoroutine()
	b.enterOutsideSteps("a wait for child runs")
	e.lock()
	b.clock++
	b.comesToWait()
	b.ownResult = false // the result comes from outside
	c := b.newCall(scope, kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW, own)
	c.children = children
	ended := slices.ContainsFunc(children, func(child *startedChild) bool {
		return e.verdicts[child.name].GetCode() == kagziv1.ErrorCode_ERROR_CODE_CANCELLED
	})
	switch {
	case !c.clean && (ended || e.cancelled && !e.knownAtCancel(children)): // ended: by an earlier version of the SDK
		e.hand(c, outcomeCancelled)
	case e.childrenKnown(c):
	default:
		e.activate(c)
	}
	e.mu.Unlock()
	c.wait(func() bool { return c.state == callActive || c.state == callOver })
	if !c.isOver() && !c.halted() {
		c.awaitOpen(children)
	}
	if c.result() == outcomeCancelled {
		return cancelledError(children[0].name, nil, 0)
	}
	return nil
}

// childrenKnown gives a wait for children its result if all of them have ended. Needs e.mu.
func (e *execution) childrenKnown(c *call) bool {
	var key, settled int64
	live := false
	for _, child := range c.children {
		if child.step == nil {
			return false
		}
		key, live = max(key, child.key), live || child.live
		settled = max(settled, child.step.GetSettled())
	}
	if key == 0 { // no children, or results without a place in the order
		e.hand(c, outcomeRecorded)
		return true
	}
	e.queue(c, key, live, settled)
	return true
}

// knownAtCancel reports whether all children had ended when the cancellation took effect. Later ends do
// not count: in another replay the code may ask before they are known. Needs e.mu.
func (e *execution) knownAtCancel(children []*startedChild) bool {
	return !slices.ContainsFunc(children, func(child *startedChild) bool {
		ended := queued{key: child.key, live: child.live, settled: child.step.GetSettled()}
		return child.step == nil || child.key > 0 && e.cancelPlace.before(ended)
	})
}

// awaitOpen waits until all children have ended.
func (c *call) awaitOpen(children []*startedChild) {
	e := c.b.e
	for open := e.openChildren(children); len(open) > 0; open = e.openChildren(children) {
		c.await(&serverWait{
			question: func(hold bool) *kagziv1.SessionRequest { return awaitChildren(e, open, false, hold) },
			answered: func(r *kagziv1.SessionResponse, op *session.Operation) bool {
				return e.childrenEnded(r.GetAwaitedChildren().GetSteps(), open, op)
			},
			known:    open[0].known,
			children: open,
		})
		if c.isOver() {
			return
		}
	}
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

// childrenEnded takes the steps of children that have ended, and reports the results of the calls
// that wait for them; false if there are none. A stored step is never replaced, because branches read
// it without e.mu. Needs e.mu.
func (e *execution) childrenEnded(steps []*kagziv1.Step, asked []*startedChild, op *session.Operation) bool {
	byName := make(map[string]*kagziv1.Step, len(steps))
	for _, s := range steps {
		byName[s.GetName()] = s
	}
	for _, c := range asked {
		if s := byName[c.name]; s != nil && c.step == nil {
			c.step, c.key, c.live = s, e.recorded+op.Index, true
		}
	}
	for c := range e.open {
		if len(c.children) > 0 && c.state == callActive && e.childrenKnown(c) {
			c.outcome = outcomeReported
		}
	}
	return len(steps) > 0
}

func awaitChildren(e *execution, children []*startedChild, first, hold bool) *kagziv1.SessionRequest {
	r := &kagziv1.AwaitChildrenRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(), Any: first,
		Hold:        hold,
		ChildRunIds: make([]string, len(children)),
	}
	for i, c := range children {
		r.ChildRunIds[i] = c.runID
	}
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_AwaitChildren{AwaitChildren: r}}
}
