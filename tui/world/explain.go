package world

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

const (
	byNothing   = kagziv1.ExplainWorkflowResponse_BLOCKER_NONE
	byNoWorker  = kagziv1.ExplainWorkflowResponse_BLOCKER_NO_WORKER
	byBusy      = kagziv1.ExplainWorkflowResponse_BLOCKER_WORKERS_BUSY
	byRetry     = kagziv1.ExplainWorkflowResponse_BLOCKER_RETRY_DELAY
	byTimer     = kagziv1.ExplainWorkflowResponse_BLOCKER_TIMER
	bySignal    = kagziv1.ExplainWorkflowResponse_BLOCKER_SIGNAL
	byChild     = kagziv1.ExplainWorkflowResponse_BLOCKER_CHILD
	byPause     = kagziv1.ExplainWorkflowResponse_BLOCKER_PAUSED
	byKey       = kagziv1.ExplainWorkflowResponse_BLOCKER_CONCURRENCY_LIMIT
	byNamespace = kagziv1.ExplainWorkflowResponse_BLOCKER_NAMESPACE_DISABLED
	byStart     = kagziv1.ExplainWorkflowResponse_BLOCKER_NOT_YET_STARTED
)

// explanation says why a run is where it is.
type explanation struct {
	summary       string
	details       []string
	blocker       kagziv1.ExplainWorkflowResponse_Blocker
	since, nextAt time.Time
}

func (e *explanation) add(format string, args ...any) {
	e.details = append(e.details, fmt.Sprintf(format, args...))
}

// ExplainWorkflow says why a run is where it is, in the words of a server.
func (w *World) ExplainWorkflow(ctx context.Context, request *kagziv1.ExplainWorkflowRequest, _ ...grpc.CallOption) (*kagziv1.ExplainWorkflowResponse, error) {
	return call(w, ctx, "WorkflowService/ExplainWorkflow", func() (*kagziv1.ExplainWorkflowResponse, error) {
		r, err := w.runOf(request)
		if err != nil {
			return nil, err
		}
		e := w.explain(r)
		return &kagziv1.ExplainWorkflowResponse{
			Summary: e.summary, Details: e.details, Blocker: e.blocker, Since: stamp(e.since), NextAt: stamp(e.nextAt),
		}, nil
	})
}

func (w *World) explain(r *run) explanation {
	var e explanation
	switch {
	case ended(r.Status):
		return w.explainEnd(r)
	case r.Status == inProgress:
		e = w.explainRunning(r)
	case r.Paused:
		e = w.explainPause(r)
	case r.gated:
		e = w.explainGate(r)
	case r.available.IsZero() || r.available.After(w.now):
		e = w.explainWait(r)
	default:
		e = w.explainDue(r)
	}
	if r.CancelRequestedAt != nil {
		why := ""
		if r.reason != "" {
			why = ": " + r.reason
		}
		e.add("cancellation was asked for %s ago%s; it is CANCELLED when its code returns, or %s",
			w.ago(moment(r.CancelRequestedAt)), why, in(moment(r.CancelGraceUntil), w.now))
	}
	if r.DeadlineAt != nil {
		e.add("its deadline ends it %s", in(moment(r.DeadlineAt), w.now))
	}
	return e
}

func (w *World) ago(t time.Time) string { return render.Brief(w.now.Sub(t)) }

func (w *World) explainEnd(r *run) explanation {
	e := explanation{blocker: byNothing, since: moment(r.FinishedAt)}
	ago := w.ago(e.since) + " ago"
	if r.Status == completed {
		e.summary = "completed " + ago
		return e
	}
	e.summary = strings.ToLower(strings.ReplaceAll(word(r.Status), "_", " ")) + " " + ago
	if r.Error != nil {
		e.summary += ": " + r.Error.Message
	}
	e.add("`kagzi workflow retry %s` runs it again and keeps what its completed steps came to", r.RunId)
	return e
}

func (w *World) explainRunning(r *run) explanation {
	e := explanation{blocker: byNothing, since: moment(r.StartedAt), summary: "runs on worker " + r.GetWorkerId()}
	for _, s := range r.openSteps() {
		switch {
		case s.Status == stepPending:
			e.add("step %s is tried again %s%s", s.Name, in(moment(s.RetryAt), w.now), because(s.Error))
		case s.Kind == functionStep:
			e.summary = fmt.Sprintf("runs step %s%s on worker %s for %s", s.Name, attempt(s.AttemptNumber), r.GetWorkerId(), w.ago(moment(s.StartedAt)))
			e.since, e.nextAt = moment(s.StartedAt), moment(s.TimeoutAt)
			e.add("step %s times out %s", s.Name, in(moment(s.TimeoutAt), w.now))
		case s.Kind == sleepStep:
			e.add("timer %s is over %s", s.Name, in(moment(s.WakeUpAt), w.now))
		case s.Kind == signalStep:
			e.add("it also waits for signal %s", s.SignalName)
		default:
			e.add("child run %s is not over yet", s.GetChildRunId())
		}
	}
	if r.holder != nil {
		e.add("the worker was heard from %s ago", w.ago(r.holder.lastBeat(w.now)))
	}
	return e
}

func (w *World) explainPause(r *run) explanation {
	e := explanation{blocker: byPause, summary: "paused"}
	for _, a := range slices.Backward(w.audit) {
		if a.Method == "PauseWorkflow" && a.SubjectId == r.RunId {
			e.since = moment(a.At)
			e.summary += " by " + a.Actor + " " + w.ago(e.since) + " ago"
			if a.Reason != "" {
				e.summary += ": " + a.Reason
			}
			break
		}
	}
	e.add("`kagzi workflow resume %s` gives it back to the workers", r.RunId)
	return e
}

func (w *World) explainGate(r *run) explanation {
	e := explanation{blocker: byKey, since: r.heldAt, summary: fmt.Sprintf("waits for a slot of concurrency key %s: %s of it may run at a time",
		r.ConcurrencyKey, count(int(r.ConcurrencyLimit), "run"))}
	ahead := 0
	for _, other := range w.open {
		if other.gated && sameKey(r, other) && other.heldAt.Before(r.heldAt) {
			ahead++
		}
	}
	e.add("%s running, and %s ahead of this one in line", isAre(w.runningOfKey(r)), isAre(ahead))
	return e
}

// explainWait is about a run that time or an event makes due.
func (w *World) explainWait(r *run) explanation {
	e := explanation{nextAt: r.available}
	kind, name, _ := strings.Cut(r.WaitingFor, ":")
	var children int
	for _, s := range r.openSteps() {
		if s.Kind == childStep {
			children++
		}
		if s.Name == name && kind == "timer" || s.SignalName == name && kind == "signal" || s.GetChildRunId() == name && kind == "child" {
			e.since = moment(s.StartedAt)
		}
	}
	switch kind {
	case "timer":
		e.blocker = byTimer
		e.summary = fmt.Sprintf("sleeps in %s, wakes %s", name, in(r.available, w.now))
	case "signal":
		e.blocker = bySignal
		e.summary = "waits for signal " + name + ", without a limit"
		if !r.available.IsZero() {
			e.summary = fmt.Sprintf("waits for signal %s, goes on without it %s", name, in(r.available, w.now))
		}
		e.add("`kagzi workflow signal %s %s` sends it", r.RunId, name)
	case "child":
		e.blocker = byChild
		e.summary = "waits for child run " + name
		if children > 1 {
			e.summary = fmt.Sprintf("waits for %d child runs, the first of them %s", children, name)
		}
		e.add("`kagzi workflow explain %s` says what that one waits for", name)
	default:
		return w.explainDelay(r)
	}
	return e
}

// explainDelay is about a PENDING run whose moment lies ahead: a retry, a lost worker, or its very start.
func (w *World) explainDelay(r *run) explanation {
	e := explanation{blocker: byRetry, nextAt: r.available}
	for _, s := range r.openSteps() {
		if s.Status == stepPending && moment(s.RetryAt).Equal(r.available) {
			e.since = moment(s.FinishedAt)
			e.summary = fmt.Sprintf("retries %s, attempt %d%s %s%s", s.Name, s.failures+1, w.of(r, s), in(r.available, w.now), because(s.Error))
			return e
		}
	}
	if r.LeaseLosses > 0 {
		e.summary = fmt.Sprintf("lost %s in a row, is handed out again %s", count(int(r.LeaseLosses), "worker"), in(r.available, w.now))
		e.add("after 10 in a row it fails")
		return e
	}
	e.blocker, e.since = byStart, moment(r.CreatedAt)
	e.summary = "is to start " + in(r.available, w.now)
	return e
}

// of is " of 5" for a step whose attempts have an end.
func (w *World) of(r *run, s *step) string {
	acts := r.acts()
	for i := range acts {
		if slices.Contains(acts[i].names(), s.Name) {
			if n := r.attemptsOf(&acts[i]); n > 0 {
				return fmt.Sprintf(" of %d", n)
			}
		}
	}
	return ""
}

// explainDue is about a run that any fitting worker could take now.
func (w *World) explainDue(r *run) explanation {
	e := explanation{since: r.available}
	if !w.namespaces[r.Namespace].Enabled {
		e.blocker, e.summary = byNamespace, "due, but namespace "+r.Namespace+" is disabled"
		e.add("`kagzi namespace enable %s` lets it go on", r.Namespace)
		return e
	}
	var fitting []*worker
	for _, h := range w.workers {
		if h.fits(r) {
			fitting = append(fitting, h)
		}
	}
	due := w.ago(r.available)
	switch {
	case len(fitting) == 0:
		e.blocker = byNoWorker
		e.summary = fmt.Sprintf("due for %s, but no online worker serves type %s in queue %s%s", due, r.WorkflowType, r.TaskQueue, withRequirements(r))
		w.addMissing(&e, r)
	case w.roomFor(r) == nil:
		e.blocker = byBusy
		e.summary = fmt.Sprintf("due for %s, but all workers that could take it are busy (%d)", due, len(fitting))
		for _, h := range fitting {
			e.add("worker %s runs %d of %d", h.WorkerId, len(h.held), h.MaxConcurrent)
		}
	default:
		e.blocker = byNothing
		to := "worker " + fitting[0].WorkerId
		if len(fitting) > 1 {
			to = fmt.Sprintf("one of %d workers", len(fitting))
		}
		e.summary = fmt.Sprintf("due for %s, and about to be handed to %s", due, to)
	}
	return e
}

func withRequirements(r *run) string {
	if len(r.Requirements) == 0 {
		return ""
	}
	var all []string
	for _, key := range sortedKeys(r.Requirements) {
		all = append(all, key+"="+r.Requirements[key])
	}
	return " with " + strings.Join(all, ", ")
}

// addMissing says what each worker of the queue lacks.
func (w *World) addMissing(e *explanation, r *run) {
	none := true
	for _, h := range w.workers {
		if h.Namespace != r.Namespace || h.Status == offline || !slices.Contains(h.TaskQueues, r.TaskQueue) {
			continue
		}
		none = false
		switch {
		case h.Status == draining:
			e.add("worker %s is draining and takes nothing new", h.WorkerId)
		case !slices.Contains(h.WorkflowTypes, r.WorkflowType):
			e.add("worker %s serves the queue, but not type %s: it serves %s", h.WorkerId, r.WorkflowType, strings.Join(h.WorkflowTypes, ", "))
		default:
			e.add("worker %s does not offer %s", h.WorkerId, strings.Join(h.unmet(r), ", "))
		}
	}
	if none {
		e.add("no worker is connected to queue %s", r.TaskQueue)
	}
}
