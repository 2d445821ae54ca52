package kagzi

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	ordered  bool           // the record has the order of results, and says what the code owes
	calls    []replayedCall // as they came; branches make theirs in parallel
	returned bool
	output   *kagziv1.Payload
	failure  error // returned by the code, or made by the SDK
	next     bool  // the code continued as new
	refused  bool  // the SDK failed it
	verdict  chan *Divergence
}

// replayedCall is a named call of the code.
type replayedCall struct {
	*kagziv1.Call
	branch []int // ordinals
}

var errReplayed = errors.New("kagzi: replay over")

// replayRecord runs a handler against a record. It returns nil if they agree, else a *Divergence,
// or the context's error if the code does not finish. It uses only the worker's options and records
// no spans.
func replayRecord(ctx context.Context, w *Worker, h handler, r *runRecord) error {
	w.tracer = noop.NewTracerProvider().Tracer(tracerName)
	e := newExecution(w, r.task())
	e.replay = &replay{e: e, record: r, codec: w.options.Codec, latest: r.latest(),
		ordered: r.ordered(), verdict: make(chan *Divergence, 1)}
	e.stay.Load().ahead = max(0, e.replay.latest.Sub(e.since())) // times in the record have passed
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

// past reports whether a timer had fired when something later was recorded. A server that kept no order
// of results completed a sleep only when its lease ended. So in a run kept on its worker by other
// branches, code may be past a sleep that is still recorded as running.
func (r *replay) past(due time.Time) bool { return !due.After(r.latest) }

// lapsed reports whether s is such a sleep.
func (r *replay) lapsed(s *kagziv1.Step) bool {
	return r != nil && (!r.ordered || s.GetBegunIn() < 0) && s.GetKind() == kagziv1.StepKind_STEP_KIND_SLEEP &&
		s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_RUNNING &&
		s.WakeUpAt != nil && r.past(convert.When(s.WakeUpAt))
}

// leftOut reports whether a call without a record is a sleep that an earlier version of the SDK did
// not record, because its time had passed.
func (r *replay) leftOut(s *kagziv1.Step, detail string) bool {
	return r != nil && s == nil && detail == sleepPassed && !r.ordered
}

// called notes a named call.
func (r *replay) called(b *branch, name string, kind kagziv1.StepKind, detail string) {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	r.calls = append(r.calls, replayedCall{&kagziv1.Call{Name: name, Kind: kind, Branch: b.path(), Detail: detail},
		b.ordinals()})
}

// inOrder returns the calls in order of branch, then of calling.
func (r *replay) inOrder() []replayedCall {
	return slices.SortedStableFunc(slices.Values(r.calls), func(a, b replayedCall) int {
		return slices.Compare(a.branch, b.branch)
	})
}

// owes reports whether the code has to make a recorded call. Where the record does not say, as one of an
// older server, that is a guess.
func (r *replay) owes(s *kagziv1.Step) bool {
	if s.GetBegunIn() < 0 || !r.ordered {
		return !r.record.stale(s)
	}
	return s.GetBegunIn() >= r.e.task.GetOwedFrom()
}

// halted blocks a call whose result is not recorded, in a comparison with a record: until the
// cancellation of the run ends it. The branch counts as blocked, so that the run is found idle when no
// branch can continue. Otherwise it returns false at once.
func (c *call) halted() bool {
	e, b := c.b.e, c.b
	if e.replay == nil {
		return false
	}
	e.lock()
	p := &parkedCall{loose: b.loose}
	e.parked[p] = struct{}{}
	c.blocked = true
	b.blocked++
	e.mu.Unlock()
	c.wait(func() bool { return c.state == callOver })
	e.lock()
	delete(e.parked, p)
	e.mu.Unlock()
	return true
}

// halt blocks code that makes no call, for good.
func (b *branch) halt() {
	e, own := b.e, onBranchGoroutine()
	e.lock()
	b.loose = b.loose || !own
	e.parked[&parkedCall{loose: b.loose}] = struct{}{}
	b.calls++
	b.blocked++
	if own {
		b.inside++
		b.waits++
	}
	b.settle()
	b.waitsToo()
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
		return r.diverged(other.recorded.GetName(), callName(other.recorded), callName(other.code))
	case errors.As(r.failure, &alien):
		return r.diverged(alien.step, "a value that the code can read", alien.Error())
	case r.refused:
		return r.diverged("", "a run that the SDK accepts", r.failure.Error())
	}
	if missed := r.missed(); missed != nil {
		return r.diverged(missed.GetName(), callName(callOf(missed)), r.instead())
	}
	return r.compareEnds()
}

// made returns the calls of the code that the record does not have. Needs e.mu.
func (r *replay) made() (calls []*kagziv1.Call) {
	for _, c := range r.inOrder() {
		if r.e.history[c.GetName()] == nil && !isOwn(c.GetName()) {
			calls = append(calls, c.Call)
		}
	}
	var other *mismatch
	if errors.As(r.failure, &other) {
		calls = append(calls, other.code)
	}
	return calls[:min(len(calls), mostSaid)]
}

// missed returns the first recorded step that the code should have reached and has not.
func (r *replay) missed() *kagziv1.Step {
	if len(r.e.uncalled) == 0 {
		return nil
	}
	for _, s := range r.record.steps {
		if r.e.uncalled[s.GetName()] {
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
	for _, c := range r.inOrder() {
		s := r.e.history[c.GetName()]
		switch {
		case s == nil:
			return kindName(c.GetKind()) + " " + c.GetName()
		case waits == "" && !hasResult(s):
			waits = "nothing beyond " + kindName(c.GetKind()) + " " + c.GetName()
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
