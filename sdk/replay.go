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

// replaySettle is parkSettle for replays, where being hasty would be a wrong verdict.
const replaySettle = 250 * time.Millisecond

// replay stands in for the server while a run's code is run against its record. What is recorded
// returns as in production. A call whose result is not recorded stays where it is, and no code of a
// step is run. When no branch can go on, or the code has ended, the two are compared.
//
// All fields are guarded by the execution's mutex.
type replay struct {
	e        *execution
	record   *runRecord
	codec    Codec
	latest   time.Time      // moment of the record
	calls    []replayedCall // in the order of the code
	returned bool
	output   *kagziv1.Payload
	failure  error // that the code returned, or that the SDK failed it with
	next     bool  // the code continued as new
	refused  bool  // the SDK failed it
	verdict  chan *Divergence
}

// replayedCall is a call of the code that has a name.
type replayedCall struct {
	name string
	kind kagziv1.StepKind
}

var errReplayed = errors.New("kagzi: replay over")

// replayRecord runs a handler against a record. It returns nil when they agree, a *Divergence when
// not, and the context's error when the code comes to no end. The worker is there for its options
// only; nothing is traced.
func replayRecord(ctx context.Context, w *Worker, h handler, r *runRecord) error {
	w.tracer = noop.NewTracerProvider().Tracer(tracerName)
	e := newExecution(w, r.task())
	e.replay = &replay{e: e, record: r, codec: w.options.Codec, latest: r.latest(), verdict: make(chan *Divergence, 1)}
	e.ahead = max(0, e.replay.latest.Sub(e.since)) // what had come by the record has come
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

// past reports that a timer had run out when something else was recorded. The server completes a
// sleep only when its lease ends, so that a run which siblings keep on its worker goes on behind
// one that still counts as running.
func (r *replay) past(due time.Time) bool { return !due.After(r.latest) }

// lapsed reports such a sleep.
func (r *replay) lapsed(s *kagziv1.Step) bool {
	return r != nil && s.GetKind() == kagziv1.StepKind_STEP_KIND_SLEEP &&
		s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_RUNNING &&
		s.WakeUpAt != nil && r.past(convert.When(s.WakeUpAt))
}

// called takes note of a call that has a name.
func (r *replay) called(b *branch, name string, kind kagziv1.StepKind) {
	own := onBranchGoroutine()
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	b.loose = b.loose || !own
	r.calls = append(r.calls, replayedCall{name, kind})
}

// halt is where a call ends up whose result is not recorded: it never returns. It counts as blocked, so that the run is
// found idle when no branch can go on.
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

// ended takes what the workflow function has returned, and waits like halt for the branches that it
// has left behind: what they did before was dropped by chance, and is in the record or not.
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

// broke takes a panic of the workflow function or of a branch, or that it ended its goroutine, and
// waits like ended for the others. One of them may wait in vain for the one that broke, so that
// there is an end to it once none has come further for a while. It does not return but where the
// code is made to end.
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

// came takes how the code has come to its end. The first time counts. Needs e.mu.
func (r *replay) came(output *kagziv1.Payload, err error, next bool) {
	if !r.returned {
		r.returned, r.output, r.failure, r.next = true, output, err, next
	}
}

// giveUp ends the replay unless it has come further than it had, or does so within replaySettle. Needs e.mu.
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

// failed takes the error with which the SDK itself fails the run.
func (r *replay) failed(err error) {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if r.failure == nil {
		r.failure, r.refused = err, true
	}
}

// sent takes an operation that would go to the server: the release of an idle run, or its failure.
// Any other comes from a call that could not be answered, and ends the replay like a release. Needs
// e.mu.
func (r *replay) sent(msg *kagziv1.SessionRequest) {
	if fail := msg.GetFailWorkflow(); fail != nil && r.failure == nil {
		d := fail.GetError()
		r.returned, r.failure = true, &coded{code: d.GetCode(), kind: d.GetType(), text: d.GetMessage(),
			stack: d.GetStack()}
	}
	select {
	case r.verdict <- r.compare():
	default: // given already
	}
}

// compare finds the first divergence. Needs e.mu.
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
		return r.diverged("", "a run that the SDK takes", r.failure.Error())
	}
	if missed := r.missed(); missed != nil {
		return r.diverged(missed.GetName(), kindName(missed.GetKind())+" "+missed.GetName(), r.instead())
	}
	return r.compareEnds()
}

// missed is the first step of the record that the code has not come to, but should have.
func (r *replay) missed() *kagziv1.Step {
	if r.e.unread == 0 {
		return nil
	}
	for _, s := range r.record.steps {
		if r.e.history[s.GetName()] == nil || r.e.names[s.GetName()] != nil {
			continue // of the SDK's own, or come to
		}
		if !r.record.stale(s) {
			return s
		}
	}
	return nil
}

// hasResult reports that a step has its result for good.
func hasResult(s *kagziv1.Step) bool { return recordedAs(s, kagziv1.StepKind_STEP_KIND_UNSPECIFIED) }

// instead says what the code did in place of a step that it missed.
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
