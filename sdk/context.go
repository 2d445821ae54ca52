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

// Context is what a workflow function and its branches get. It is a context.Context whose end means
// that the run is being cancelled (context.Cause is ErrCancelled) or is no longer held by this
// worker; only the SDK makes one.
//
// Every function of this package that takes a Context may end the calling goroutine: see "Suspension"
// in the package documentation.
type Context interface {
	context.Context
	workflow() *branch
	scope() context.Context // what ends the calls that are made with it
}

type workflowContext struct {
	context.Context
	b *branch
}

func (c *workflowContext) workflow() *branch      { return c.b }
func (c *workflowContext) scope() context.Context { return c.Context }

// RunInfo describes the run that a workflow function works for. It is the same over all replays, but
// for Attempt and WorkerID, and for ParentRunID once the parent of a child that is to end with it has continued as new.
type RunInfo struct {
	RunID        string
	WorkflowType string
	Namespace    string
	Queue        string
	Version      string
	ExternalID   string            // "" when the run was started without one
	Attempt      int               // 1 plus the failures that were retried; sleeps and lost workers count nothing
	Tags         map[string]string // not to be changed
	Deadline     time.Time         // zero when the run has none
	ParentRunID  string            // "" when the run is no child; not for names of steps
	ScheduleID   string            // "" when no schedule fired the run
	ScheduledAt  time.Time         // the tick that fired the run; zero without a schedule
	FailedRunID  string            // of a failure handler: the run whose failure it handles
	WorkerID     string            // where the code runs now
}

// Info returns what is known about the run.
func Info(ctx Context) RunInfo { return ctx.workflow().e.info }

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

// Now returns the time by the server's clock, in UTC. It is recorded, so replays see the same; each
// call is one durable write.
func Now(ctx Context) time.Time {
	b := ctx.workflow()
	return record(b, "kagzi:now", func() time.Time { return b.e.now().UTC() })
}

// Random returns the branch's source of random numbers. Its seed is recorded at the first use, so replays draw the
// same numbers. It must not be shared between goroutines.
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

// seed is recorded and not derived from the run's id: a run that is retried under a new id keeps the results of its
// steps, and has to keep what its code drew beside them.
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

// record is a step whose value the SDK makes itself, on the spot. A cancellation does not end it,
// so that it is recorded like what cleans up, whatever its Context: code that has looked at that,
// and begins with the time, has to find it ended in every replay too.
func record[T any](b *branch, name string, value func() T) T {
	if path := b.path(); path != "" {
		name += "/" + path
	}
	e := b.e
	name, recorded := b.claim(e.grace, name, kagziv1.StepKind_STEP_KIND_FUNCTION)
	defer b.release(name)
	info := e.payloadInfo(PayloadStep, name)
	if recorded.GetStatus() == kagziv1.StepStatus_STEP_STATUS_COMPLETED {
		v, err := decode[T](e.w.options.Codec, recorded.GetOutput(), info)
		if err != nil {
			e.failAndExit(unreadableResult(name, err))
		}
		return *v
	}
	if e.replay != nil {
		b.halt()
	}
	v, now := value(), time.Now()
	p, err := encode(e.w.options.Codec, v, info)
	if err != nil {
		e.failAndExit(fmt.Errorf("step %s: %w", name, err))
	}
	e.post(completeStep(e, name, p, now))
	return v
}

// ContinueAsNew ends the run and starts the next one, of the same type and with in as its input, in
// one commit: a loop without end whose history does not grow without end. Its error is to be
// returned by the workflow function; that is what makes it count:
//
//	return kagzi.ContinueAsNew[Out](ctx, next)
//
// The next run begins with an empty history. It takes over the external id, the queue, the
// policies, the tags, the parent, which gets the last run's result, the children that are to end
// with it, and the signals that this run has not taken, in their order. This run ends COMPLETED,
// with no output.
//
// The error counts also when it is wrapped, or comes out of a branch. In a step it fails the step
// for good, as a step cannot end its run. Of a function that returns something else although it
// called ContinueAsNew, that counts, with a warning in the log. When the run is being cancelled the
// error is ErrCancelled.
func ContinueAsNew[Out, In any](ctx Context, in In) (Out, error) {
	var none Out
	b, scope := ctx.workflow(), ctx.scope()
	e := b.e
	b.arrive()
	if b.cancelled(scope) {
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

// continuation is the error by which a workflow function continues as new.
type continuation struct {
	e     *execution
	input *kagziv1.Payload
}

func (*continuation) Error() string {
	return "kagzi: ContinueAsNew: its error has to be returned by the workflow function"
}

func (*continuation) ErrorType() string { return "continue_as_new" }

// continuation is the run that is to go on for this one, if that is what the code's error says.
func (e *execution) continuation(err error) *kagziv1.StartWorkflowRequest {
	var c *continuation
	if !errors.As(err, &c) || c.e != e {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.continued && !e.quitted {
			e.w.log.Warn("ContinueAsNew was called, but its error not returned: the run just ends", "run", e.info.RunID,
				"type", e.info.WorkflowType)
		}
		return nil
	}
	return &kagziv1.StartWorkflowRequest{
		Namespace: e.task.GetNamespace(), TaskQueue: e.info.Queue, WorkflowType: e.info.WorkflowType,
		Version: e.info.Version, Input: c.input,
	}
}
