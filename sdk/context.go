package kagzi

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Context is the context of a workflow function or of one of its branches. It ends when the run is
// being cancelled (context.Cause is ErrCancelled) and when this worker no longer holds the run.
// Only the SDK makes one.
//
// Every function of this package that takes a Context may end the calling goroutine: see
// "Suspension" in the package documentation.
type Context interface {
	context.Context
	workflow() *branch
	scope() context.Context // ends calls that are made with this Context
}

type workflowContext struct {
	context.Context
	b *branch
}

func (c *workflowContext) workflow() *branch      { return c.b }
func (c *workflowContext) scope() context.Context { return c.Context }

// RunInfo describes the run of a workflow function. It is the same in every replay, except Attempt,
// WorkerID and, when the parent of this run continues as new, ParentRunID.
type RunInfo struct {
	RunID        string
	WorkflowType string
	Namespace    string
	Queue        string
	Version      string
	ExternalID   string            // "" when the run was started without one
	Attempt      int               // 1 plus retried failures of the run; sleeps and lost workers do not count
	Tags         map[string]string // read-only
	Deadline     time.Time         // zero when the run has none
	ParentRunID  string            // "" without a parent; may change, so do not use it in step names
	ScheduleID   string            // "" unless a schedule started the run
	ScheduledAt  time.Time         // the tick of the schedule that started the run; else zero
	FailedRunID  string            // in a failure handler: the run that failed
	WorkerID     string            // the worker that runs the code now
}

// Info returns what the run was started with, and which worker runs it.
func Info(ctx Context) RunInfo { return ctx.workflow().e.stay.Load().info }

func newRunInfo(w *Worker, t *kagziv1.Task) RunInfo {
	info := RunInfo{
		RunID:        t.GetRunId(),
		WorkflowType: t.GetWorkflowType(),
		Namespace:    t.GetNamespace(),
		Queue:        t.GetTaskQueue(),
		Version:      t.GetVersion(),
		ExternalID:   t.GetExternalId(),
		Attempt:      int(t.GetAttempt()),
		Tags:         t.GetTags(),
		ParentRunID:  t.GetParentRunId(),
		ScheduleID:   t.GetScheduleId(),
		FailedRunID:  t.GetFailedRunId(),
		WorkerID:     w.ID(),
	}
	if t.DeadlineAt != nil {
		info.Deadline = t.DeadlineAt.AsTime()
	}
	if t.ScheduledAt != nil {
		info.ScheduledAt = t.ScheduledAt.AsTime()
	}
	return info
}

// Now returns the current time of the server's clock, in UTC. The time is recorded, so replays
// return the same; each call is one durable write.
func Now(ctx Context) time.Time {
	b := ctx.workflow()
	return record(b, "kagzi:now", func() time.Time { return b.e.now().UTC() })
}

// Random returns the branch's random number generator. Its seed is recorded at the first call, so
// replays draw the same numbers. Do not share it between goroutines.
func Random(ctx Context) *rand.Rand {
	b := ctx.workflow()
	b.seed("Random")
	return b.random
}

// NewUUID returns a random UUID (version 4) that is the same in every replay.
func NewUUID(ctx Context) uuid.UUID {
	b := ctx.workflow()
	b.seed("NewUUID")
	var id uuid.UUID
	_, _ = b.uuids.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// The seed is recorded rather than derived from the run's id: a retry has another id but keeps step
// results, and with them needs the same random numbers.
func (b *branch) seed(what string) {
	b.enterOutsideSteps(what)
	if b.random != nil {
		return
	}
	s := record(b, "kagzi:seed", func() []byte {
		s := make([]byte, 64)
		_, _ = crand.Read(s) // never fails
		return s
	})
	var seeds [2][32]byte
	copy(seeds[0][:], s)
	copy(seeds[1][:], s[min(32, len(s)):])
	b.random, b.uuids = rand.New(rand.NewChaCha8(seeds[0])), rand.NewChaCha8(seeds[1])
}

// record is a step whose value the SDK computes in place. It runs even during a cancellation,
// whatever its Context: code that checked its Context and then calls Now must see the same in every
// replay.
func record[T any](b *branch, name string, value func() T) T {
	if path := b.path(); path != "" {
		name += "/" + path
	}
	e := b.e
	name, recorded := b.recordOf(name)
	defer b.release(name)
	info := e.payloadInfo(PayloadStep, name)
	if recorded.GetStatus() == kagziv1.StepStatus_STEP_STATUS_COMPLETED {
		v, err := decode[T](e.w.options.Codec, recorded.GetOutput(), info)
		if err != nil {
			e.failAndExit(unreadableResult(name, err))
		}
		return *v
	}
	v := value()
	if e.replay != nil {
		return v
	}
	p, err := encode(e.w.options.Codec, v, info)
	if err != nil {
		e.failAndExit(fmt.Errorf("step %s: %w", name, err))
	}
	e.lock()
	e.send(completeStep(e, name, b.path(), p, time.Now()), nil)
	e.mu.Unlock()
	return v
}

// recordOf takes the name of one of the SDK's own records, and returns its record.
func (b *branch) recordOf(name string) (string, *kagziv1.Step) {
	e := b.e
	e.lock()
	name, recorded, err := b.claim(name, kagziv1.StepKind_STEP_KIND_FUNCTION, "")
	var lines []heldLine
	if recorded == nil {
		lines = b.fresh()
	}
	e.release()
	e.mu.Unlock()
	if err != nil {
		e.failAndExit(NonRetryable(err))
	}
	writeLines(lines)
	if e.replay != nil {
		e.replay.called(b, name, kagziv1.StepKind_STEP_KIND_FUNCTION, "")
	}
	return name, recorded
}

// ContinueAsNew ends the run and starts the next one, of the same type and with in as its input, in
// one commit. An endless loop uses it to keep its history short. The workflow function must return
// its error; without that it has no effect:
//
//	return kagzi.ContinueAsNew[Out](ctx, next)
//
// The next run begins with an empty history. It inherits the external id, the queue, the policies,
// the tags, the parent (which gets the last run's result), the children with ParentCloseCancel or
// ParentCloseTerminate, and the signals that this run has not received, in order. This run ends
// COMPLETED without an output.
//
// The error also works when it is wrapped or returned by a branch. Returned by a step, it fails the
// step for good, because a step cannot end its run. If the function returns something else after
// calling ContinueAsNew, that result counts and the log has a warning. During a cancellation the
// error is ErrCancelled.
func ContinueAsNew[Out, In any](ctx Context, in In) (Out, error) {
	var none Out
	b, scope := ctx.workflow(), ctx.scope()
	e := b.e
	b.enter()
	if e.cancelIsDue(scope) {
		return none, ErrCancelled
	}
	info := inputInfo(e.info.WorkflowType, e.info.ExternalID)
	if e.w.options.Codec != nil {
		info.signals = startOfSignals(e.start(), e.task.GetInput())
	}
	input, err := encode(e.w.options.Codec, in, info)
	if err != nil {
		return none, fmt.Errorf("input of the next run: %w", err)
	}
	warnLarge(e.w.log, "input", input, "type", e.info.WorkflowType)
	e.lock()
	e.continued = true
	e.mu.Unlock()
	return none, &continuation{e: e, input: input}
}

// continuation is the error that a workflow function returns to continue as new.
type continuation struct {
	e     *execution
	input *kagziv1.Payload
}

func (*continuation) Error() string {
	return "kagzi: ContinueAsNew: its error has to be returned by the workflow function"
}

func (*continuation) ErrorType() string { return "continue_as_new" }

// continuation returns the next run if err asks for one, else nil.
func (e *execution) continuation(err error) *kagziv1.StartWorkflowRequest {
	var c *continuation
	if !errors.As(err, &c) || c.e != e {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.continued && !e.quitted {
			e.w.log.Warn("ContinueAsNew ignored: the workflow function did not return its error", "run", e.info.RunID,
				"type", e.info.WorkflowType)
		}
		return nil
	}
	return &kagziv1.StartWorkflowRequest{
		Namespace: e.task.GetNamespace(), TaskQueue: e.info.Queue, WorkflowType: e.info.WorkflowType,
		Version: e.info.Version, Input: c.input,
	}
}
