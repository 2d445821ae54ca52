package kagzi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/session"
)

// OnDivergence selects what a worker does with a run whose code has diverged from its history: a new
// call waits to take effect, and no branch can make the recorded calls that the code owes.
type OnDivergence int

// What a worker does with a diverged run. In no case is an attempt of the run counted.
const (
	// DivergencePause gives the run to a worker of another build. If every build in service has
	// reported it, the server pauses the run with both lists of calls. This is the default.
	DivergencePause OnDivergence = iota
	// DivergenceFail fails the run for good, with the error type "nondeterministic".
	DivergenceFail
	// DivergenceWarn logs a warning and goes on: new calls take effect, recorded ones are skipped.
	DivergenceWarn
)

const (
	// looseRest is how long a run with plain goroutines must be at rest before it has diverged: one
	// of them may be about to make a call.
	looseRest = time.Second
	// endRest is how long any other run must be: the code may have started a plain goroutine that has
	// not run yet. An end of the code waits as long for branches that may still make owed calls.
	endRest  = 50 * time.Millisecond
	mostSaid = 100 // calls in a report
)

// atRest reports whether calls are held while nothing can make those that the code owes. Code outside
// of SDK calls is not at rest. Needs e.mu.
func (e *execution) atRest() bool {
	if e.owing == 0 || e.detached > 0 && e.outside() || len(e.endings) > 0 || e.deliverable() {
		return false
	}
	return len(e.held) > 0 || e.cancelAsked && !e.cancelling && e.replay == nil
}

// outside reports whether code is blocked outside of SDK calls, and no plain goroutine of its branch is
// in one. Needs e.mu.
func (e *execution) outside() bool {
	for b := range e.watch.branches {
		if b.detached && b.calls == 0 {
			return true
		}
	}
	return false
}

// rest handles a run at rest. Needs e.mu.
func (e *execution) rest() {
	if e.replay != nil && !e.replay.ordered && e.cancelAsked && !e.cancelling { // by an earlier version of the SDK
		e.cancelling = true
		e.cancelNow()
		e.moved()
		return
	}
	generation, rest := e.generation, endRest
	switch {
	case e.replay != nil:
		rest = replaySettle
	case e.isLoose():
		rest = looseRest
	}
	time.AfterFunc(rest, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.generation == generation && !e.quitted && !e.closing && e.coding == 0 && e.atRest() {
			e.diverge()
		}
	})
}

func (e *execution) isLoose() bool {
	for b := range e.watch.branches {
		if b.loose {
			return true
		}
	}
	return e.outsiders > 0
}

// diverge handles code that has diverged. Needs e.mu.
func (e *execution) diverge() {
	if e.quitted || e.closing {
		return
	}
	report := e.divergence()
	switch {
	case e.replay != nil:
	case e.w.options.OnDivergence == DivergenceWarn && e.misfit == nil:
		e.logDivergence("the code has diverged from the run's history; it goes on, and recorded calls are skipped", report)
		clear(e.uncalled)
		e.owing, e.ownLeft = 0, 0
		e.release()
		e.moved()
		return
	case e.w.options.OnDivergence == DivergencePause:
		e.logDivergence("the code has diverged from the run's history; giving the run back", report)
	default:
		e.closing = true
		e.sendFailure(errorDetail(NonRetryable(&coded{kind: kindNondeterministic, text: divergenceText(report)})))
		e.quit(errFinished)
		return
	}
	e.closing = true
	e.sendDivergence(report)
	e.quit(errReleased)
}

// divergence returns what the code calls and what it owes. Needs e.mu.
func (e *execution) divergence() *kagziv1.Divergence {
	d := &kagziv1.Divergence{}
	calls := slices.SortedFunc(slices.Values(e.held), func(a, b *call) int { return cmp.Compare(a.number, b.number) })
	for _, c := range calls {
		d.Made = append(d.Made, &kagziv1.Call{Name: c.name, Kind: c.kind, Branch: c.b.path(), Detail: c.detail})
	}
	if e.misfit != nil {
		d.Made = append(d.Made, e.misfit)
	}
	if len(d.Made) == 0 {
		d.Made = append(d.Made, &kagziv1.Call{Name: cancelName, Kind: kagziv1.StepKind_STEP_KIND_FUNCTION})
	}
	d.Made = d.Made[:min(len(d.Made), mostSaid)]
	d.Owed = e.owed()
	return d
}

// owed returns the recorded calls that the code owes, in the order in which they began. Needs e.mu.
func (e *execution) owed() []*kagziv1.Call {
	var steps []*kagziv1.Step
	for name, owed := range e.uncalled {
		if owed {
			steps = append(steps, e.history[name])
		}
	}
	slices.SortFunc(steps, func(a, b *kagziv1.Step) int { return cmp.Compare(a.GetSequence(), b.GetSequence()) })
	var calls []*kagziv1.Call
	for _, s := range steps[:min(len(steps), mostSaid)] {
		calls = append(calls, callOf(s))
	}
	return calls
}

func (e *execution) logDivergence(message string, d *kagziv1.Divergence) {
	e.logger(e.w.log.Handler()).Warn(message, "made", callNames(d.GetMade()), "owed", callNames(d.GetOwed()))
}

func divergenceText(d *kagziv1.Divergence) string {
	return fmt.Sprintf("this is not the code that the run started with: it makes %s, and not the recorded %s",
		callNames(d.GetMade()), callNames(d.GetOwed()))
}

// callNames lists calls for a log or an error.
func callNames(calls []*kagziv1.Call) string {
	var b strings.Builder
	for i, c := range calls {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(callName(c))
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

// callName names a call with its detail and branch, for a log or an error.
func callName(c *kagziv1.Call) string {
	text := kindName(c.GetKind()) + " " + convert.Printable(c.GetName())
	switch {
	case c.GetDetail() == "":
	case c.GetKind() == kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW:
		text += " of type " + convert.Printable(c.GetDetail())
	case c.GetKind() == kagziv1.StepKind_STEP_KIND_SIGNAL && !strings.HasPrefix(c.GetName(), c.GetDetail()):
		text += " (" + convert.Printable(c.GetDetail()) + ")"
	}
	if c.GetBranch() != "" {
		text += " in branch " + c.GetBranch()
	}
	return text
}

func (e *execution) sendDivergence(d *kagziv1.Divergence) {
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_ReleaseTask{
		ReleaseTask: &kagziv1.ReleaseTaskRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(), Divergence: d,
		}}}, func(*kagziv1.SessionResponse) { e.over(errReleased) })
}

// unreached returns the names of the recorded calls that code which has ended owes. It first waits a
// moment for branches that may still make them.
func (e *execution) unreached() []string {
	e.mu.Lock()
	owing := e.owing > 0 && !e.quitted && !e.closing && e.replay == nil
	e.mu.Unlock()
	if !owing {
		return nil
	}
	timer := time.NewTimer(endRest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.life.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for _, c := range e.owed() {
		names = append(names, c.GetName())
	}
	if len(names) > 0 {
		e.logger(e.w.log.Handler()).Warn("the code has ended without the recorded calls that it owes", "owed", names)
	}
	return names
}

// leaveEnd gives the run back whose end the server refused: the code owes calls, and a worker of another
// build may make them.
func (e *execution) leaveEnd(op *session.Operation) bool {
	if len(op.Msg.GetCompleteWorkflow().GetUnreached())+len(op.Msg.GetFailWorkflow().GetUnreached()) == 0 {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return true
	}
	e.remove(op)
	e.dropAfter(op)
	e.sendDivergence(&kagziv1.Divergence{Owed: e.owed()})
	return true
}

// unreceivedSignals returns the waits whose signals go back to the queue when the run ends. Needs
// e.mu.
func (e *execution) unreceivedSignals() []string {
	names := make([]string, 0, len(e.unreceived))
	for name := range e.unreceived {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
