package kagzi

import (
	"context"
	"log/slog"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"go.opentelemetry.io/otel/trace"
)

// Workflow code runs again in every activation, but each of its log lines should be written once. A
// branch whose latest call returned from the record may be replaying: its lines are held back until
// its next call shows it. If that call is recorded, an earlier activation wrote the lines, and they
// are dropped; otherwise they are written.
//
// Waits for branches and child runs have no record of their own. What precedes them is dropped if the
// worker itself made the result of the latest call (a step, the start of a child): the activation
// that made it went on at once. After a sleep, a signal or the end of a child it is written.

// branchKey finds the branch in a Context, and in contexts that are derived from it.
type branchKey struct{}

func (c *workflowContext) Value(key any) any {
	if key == (branchKey{}) {
		return c.b
	}
	return c.Context.Value(key)
}

// Logger returns the worker's logger (WorkerOptions.Logger) for workflow code and the code of steps.
// It adds the run's id as "run", the workflow type as "type", and the trace id of the run's trace, if
// it has one, as "trace_id". In workflow code "attempt" is the run's attempt; in a step it is the
// step's, and "step" is the step's name.
//
// Lines of workflow code are written once and not again in replays. A line may be written twice when
// a worker is lost, and at the end of a branch. After a replay the first lines appear with the next
// call of the SDK. What deferred functions log while the run is suspended is dropped. With a context
// of neither workflow code nor a step, Logger returns slog.Default().
func Logger(ctx context.Context) *slog.Logger {
	if s, ok := ctx.Value(stepKey{}).(*stepInfo); ok {
		return s.e.logger(s.e.w.log.Handler()).With("step", s.name, "attempt", s.attempt)
	}
	if b, ok := ctx.Value(branchKey{}).(*branch); ok {
		return b.e.logger(&branchHandler{b, b.e.w.log.Handler()}).With("attempt", b.e.stay.Load().info.Attempt)
	}
	return slog.Default()
}

// logger returns a logger with what identifies the run.
func (e *execution) logger(h slog.Handler) *slog.Logger {
	log := slog.New(h).With("run", e.info.RunID, "type", e.info.WorkflowType)
	if id := trace.SpanContextFromContext(e.life).TraceID(); id.IsValid() {
		log = log.With("trace_id", id.String())
	}
	return log
}

// branchHandler holds lines of workflow code back while its branch may be replaying.
type branchHandler struct {
	b  *branch
	to slog.Handler
}

// heldLine is a line that is held back.
type heldLine struct {
	to     slog.Handler
	ctx    context.Context
	record slog.Record
}

func (h *branchHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.to.Enabled(ctx, l) }

func (h *branchHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &branchHandler{h.b, h.to.WithAttrs(attrs)}
}

func (h *branchHandler) WithGroup(name string) slog.Handler {
	return &branchHandler{h.b, h.to.WithGroup(name)}
}

func (h *branchHandler) Handle(ctx context.Context, r slog.Record) error {
	e := h.b.e
	e.mu.Lock()
	dropped := e.replay != nil || e.quitted
	held := !dropped && h.b.replayed
	if held {
		h.b.lines = append(h.b.lines, heldLine{h.to, ctx, r.Clone()})
	}
	e.mu.Unlock()
	if dropped || held {
		return nil
	}
	return h.to.Handle(ctx, r)
}

// takeLines returns the lines that the branch holds back. Needs e.mu; the caller writes them without
// it, because the user's handler may do anything.
func (b *branch) takeLines() []heldLine {
	lines := b.lines
	b.lines = nil
	return lines
}

func writeLines(lines []heldLine) {
	for _, l := range lines {
		_ = l.to.Handle(l.ctx, l.record) // as package slog does
	}
}

// replays notes that the branch made a recorded call of this kind: earlier activations wrote its
// lines. final means that the call returns from the record. Needs e.mu.
func (b *branch) replays(kind kagziv1.StepKind, final bool) {
	b.lines = nil
	b.replayed = final
	b.ownResult = kind == kagziv1.StepKind_STEP_KIND_FUNCTION || kind == kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW
}

// fresh notes that the branch is past its recorded calls, and returns the lines to write. Needs e.mu.
func (b *branch) fresh() []heldLine {
	b.replayed = false
	return b.takeLines()
}

// comesToWait notes that the branch comes to a wait without a record of its own. Needs e.mu.
func (b *branch) comesToWait() {
	if b.ownResult {
		b.lines = nil
	}
}

// writeRest writes what a branch that ends holds back.
func (b *branch) writeRest() {
	b.e.mu.Lock()
	var lines []heldLine
	if !b.e.quitted {
		lines = b.takeLines()
	}
	b.e.mu.Unlock()
	writeLines(lines)
}

// logFailedStep logs a failed attempt of a step.
func (e *execution) logFailedStep(name string, number int, d *kagziv1.ErrorDetail, r *kagziv1.FailStepResponse) {
	level, message, args := slog.LevelWarn, "step failed for good", []any{"step", name, "attempt", number}
	args = append(args, failureArgs(d)...)
	switch {
	case r.GetScheduledRetry() && r.RetryIn != nil:
		message, args = "step failed; it will be retried", append(args, "retry_in", r.RetryIn.AsDuration())
	case r.GetScheduledRetry():
		message, args = "step failed; it will be retried", append(args, "retry_in", e.until(r.GetRetryAt().AsTime()))
	case d.GetCode() == kagziv1.ErrorCode_ERROR_CODE_CANCELLED:
		level, message = slog.LevelInfo, "step ended because its run is being cancelled"
	}
	e.logger(e.w.log.Handler()).Log(e.life, level, message, args...)
}

// logFailedRun logs that the run, or this attempt of it, failed.
func (e *execution) logFailedRun(d *kagziv1.ErrorDetail, r *kagziv1.FailWorkflowResponse) {
	log, args := e.logger(e.w.log.Handler()), append([]any{"attempt", e.stay.Load().info.Attempt}, failureArgs(d)...)
	switch r.GetStatus() {
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING, kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING:
		if r.RetryAt != nil {
			args = append(args, "retry_in", e.until(r.RetryAt.AsTime()))
		}
		log.Warn("run failed; it will be retried", args...)
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED:
		log.Error("run failed", args...)
	}
}

// until returns the time left until a time of the server's clock.
func (e *execution) until(t time.Time) time.Duration {
	return max(0, t.Sub(e.now())).Round(time.Millisecond)
}

// failureArgs returns what the log says of an error.
func failureArgs(d *kagziv1.ErrorDetail) []any {
	args := []any{"error", convert.CleanText(d.GetMessage(), convert.MaxErrorText)}
	if d.GetType() != "" {
		args = append(args, "error_type", d.GetType())
	}
	if d.GetStack() != "" {
		args = append(args, "stack", d.GetStack())
	}
	return args
}
