package kagzi

import (
	"context"
	"errors"
	"fmt"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"go.opentelemetry.io/otel/trace/noop"
)

// replaySettle replaces parkSettle in replays, where parking too early would give a wrong result.
const replaySettle = 250 * time.Millisecond

// replay replaces the server while a run's code is compared with its record. Recorded calls return
// as in production. A call without a record blocks, and no step runs. When no branch can continue,
// or the code has ended, code and record are compared.
//
// All fields are guarded by the execution's mutex.
type replay struct {
	e        *execution
	record   *runRecord
	codec    Codec
	latest   time.Time      // latest time in the record
	calls    []replayedCall // in the order of the code
	returned bool
	output   *kagziv1.Payload
	failure  error // returned by the code, or made by the SDK
	next     bool  // the code continued as new
	refused  bool  // the SDK failed it
	verdict  chan *Divergence
}

// replayedCall is a named call of the code.
type replayedCall struct {
	name string
	kind kagziv1.StepKind
}

var errReplayed = errors.New("kagzi: replay over")

// replayRecord runs a handler against a record. It returns nil if they agree, else a *Divergence,
// or the context's error if the code does not finish. It uses only the worker's options and records
// no spans.
func replayRecord(ctx context.Context, w *Worker, h handler, r *runRecord) error {
	w.tracer = noop.NewTracerProvider().Tracer(tracerName)
	e := newExecution(w, r.task())
	e.replay = &replay{e: e, record: r, codec: w.options.Codec, latest: r.latest(), verdict: make(chan *Divergence, 1)}
	e.ahead = max(0, e.replay.latest.Sub(e.since)) // times in the record have passed
	w.code.Add(1)
	go branchGoroutine(func() {
		defer w.code.Done()
		e.run(h)
	})
	defer w.awaitCode()
	defer e.over(errReplayed)
	select {
	case d := <-e.replay.verdict:
		if d == nil {
			return nil
		}
		return d
	case <-ctx.Done():
		return fmt.Errorf("kagzi: run %s of type %s: the code came to no end: %w", r.run.GetRunId(),
			r.run.GetWorkflowType(), context.Cause(ctx))
	}
}

// past reports whether a timer had fired when something later was recorded. The server completes a
// sleep only when its lease ends. So in a run kept on its worker by other branches, code may be
// past a sleep that is still recorded as running.
func (r *replay) past(due time.Time) bool { return !due.After(r.latest) }

// lapsed reports whether s is such a sleep.
func (r *replay) lapsed(s *kagziv1.Step) bool {
	return r != nil && s.GetKind() == kagziv1.StepKind_STEP_KIND_SLEEP &&
		s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_RUNNING &&
		s.WakeUpAt != nil && r.past(convert.When(s.WakeUpAt))
}

// called notes a named call.
func (r *replay) called(b *branch, name string, kind kagziv1.StepKind) {
	own := onBranchGoroutine()
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	b.loose = b.loose || !own
	r.calls = append(r.calls, replayedCall{name, kind})
}

// halt blocks a call whose result is not recorded. The branch counts as blocked, so that the run is
// found idle when no branch can continue.
func (b *branch) halt() {
	e, own := b.e, onBranchGoroutine()
	e.lock()
	b.loose = b.loose || !own || b.calls > 0
	e.parked[&parkedCall{scope: e.life, loose: b.loose}] = struct{}{}
	b.calls++
	b.blocked++
	b.settle()
	e.mu.Unlock()
	e.exit()
}

// ended takes the result of the workflow function. It then waits, as halt does, for branches that
// were left running: whether their last calls were recorded is chance.
func (r *replay) ended(main *branch, output *kagziv1.Payload, err error) {
	next := r.e.continuation(err) != nil
	if next {
		err = nil
	}
	r.e.mu.Lock()
	r.came(output, err, next)
	r.e.mu.Unlock()
	main.halt()
}

// broke takes a panic or runtime.Goexit of the workflow function or a branch, and then waits for
// the others like ended. One of them may wait for the broken branch, so the replay also ends when
// none has made progress for a while. It returns only when the code is made to end.
func (r *replay) broke(b *branch, err error) {
	e := r.e
	e.mu.Lock()
	over := e.quitted || e.closing
	if !over {
		r.came(nil, err, false)
		r.giveUp(-1)
	}
	e.mu.Unlock()
	if !over {
		b.halt()
	}
}

// came notes how the code ended; only the first call counts. Needs e.mu.
func (r *replay) came(output *kagziv1.Payload, err error, next bool) {
	if !r.returned {
		r.returned, r.output, r.failure, r.next = true, output, err, next
	}
}

// giveUp ends the replay unless there was progress since had, or is some within replaySettle. Needs
// e.mu.
func (r *replay) giveUp(had int) {
	now := len(r.calls) + r.e.generation
	switch {
	case r.e.quitted || r.e.closing:
	case now == had:
		r.e.park()
	default:
		time.AfterFunc(replaySettle, func() {
			r.e.mu.Lock()
			defer r.e.mu.Unlock()
			r.giveUp(now)
		})
	}
}

// failed takes the error with which the SDK fails the run.
func (r *replay) failed(err error) {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if r.failure == nil {
		r.failure, r.refused = err, true
	}
}

// sent takes an operation meant for the server: the release of an idle run, or its failure. Any
// other comes from a call that cannot be answered, and ends the replay like a release. Needs e.mu.
func (r *replay) sent(msg *kagziv1.SessionRequest) {
	if fail := msg.GetFailWorkflow(); fail != nil && r.failure == nil {
		d := fail.GetError()
		r.returned, r.failure = true, &coded{code: d.GetCode(), kind: d.GetType(), text: d.GetMessage(),
			stack: d.GetStack()}
	}
	select {
	case r.verdict <- r.compare():
	default: // there is a verdict already
	}
}

// compare returns the first divergence. Needs e.mu.
func (r *replay) compare() *Divergence {
	var (
		other *mismatch
		alien *unreadable
	)
	switch {
	case errors.As(r.failure, &other):
		return r.diverged(other.step, kindName(other.recorded)+" "+other.step, kindName(other.code)+" "+other.step)
	case errors.As(r.failure, &alien):
		return r.diverged(alien.step, "a value that the code can read", alien.Error())
	case r.refused:
		return r.diverged("", "a run that the SDK accepts", r.failure.Error())
	}
	if missed := r.missed(); missed != nil {
		return r.diverged(missed.GetName(), kindName(missed.GetKind())+" "+missed.GetName(), r.instead())
	}
	return r.compareEnds()
}

// missed returns the first recorded step that the code should have reached and has not.
func (r *replay) missed() *kagziv1.Step {
	if r.e.unread == 0 {
		return nil
	}
	for _, s := range r.record.steps {
		if r.e.history[s.GetName()] == nil || r.e.names[s.GetName()] != nil {
			continue // recorded by the SDK itself, or reached
		}
		if !r.record.stale(s) {
			return s
		}
	}
	return nil
}

// hasResult reports whether a step has its final result.
func hasResult(s *kagziv1.Step) bool { return recordedAs(s, kagziv1.StepKind_STEP_KIND_UNSPECIFIED) }

// instead describes what the code did instead of reaching a recorded step.
func (r *replay) instead() string {
	waits := ""
	for _, c := range r.calls {
		s := r.e.history[c.name]
		switch {
		case s == nil:
			return kindName(c.kind) + " " + c.name
		case waits == "" && !hasResult(s):
			waits = "nothing beyond " + kindName(c.kind) + " " + c.name
		}
	}
	switch {
	case r.returned:
		return r.end()
	case waits != "":
		return waits
	}
	return "nothing"
}
