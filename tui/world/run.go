package world

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	pending    = kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING
	inProgress = kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING
	sleeping   = kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING
	completed  = kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED
	failed     = kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED
	cancelled  = kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED
	timedOut   = kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT
	terminated = kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED

	stepPending   = kagziv1.StepStatus_STEP_STATUS_PENDING
	stepRunning   = kagziv1.StepStatus_STEP_STATUS_RUNNING
	stepCompleted = kagziv1.StepStatus_STEP_STATUS_COMPLETED
	stepFailed    = kagziv1.StepStatus_STEP_STATUS_FAILED

	functionStep = kagziv1.StepKind_STEP_KIND_FUNCTION
	sleepStep    = kagziv1.StepKind_STEP_KIND_SLEEP
	childStep    = kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW
	signalStep   = kagziv1.StepKind_STEP_KIND_SIGNAL
)

func ended(s kagziv1.WorkflowStatus) bool { return s > sleeping }

func endedBadly(s kagziv1.WorkflowStatus) bool { return ended(s) && s != completed }

// word is a status as people write it.
func word(s kagziv1.WorkflowStatus) string { return strings.TrimPrefix(s.String(), "WORKFLOW_STATUS_") }

// run is one run: what people see of it, and what its code is about to do.
type run struct {
	*kagziv1.Workflow
	plan       *plan
	steps      []*step          // in the order in which they began
	latest     map[string]*step // by name
	signals    []*kagziv1.Signal
	available  time.Time // when it next needs a worker; unset: it has one, or no moment makes it due
	heldAt     time.Time // what available would be but for paused and gated
	gated      bool      // all slots of its concurrency key were taken when it was due
	lease      int       // grows when a worker gets it or loses it: what was planned under an older one is void
	holder     *worker
	unwinding  *kagziv1.ErrorDetail // why its code undoes what it did
	progressed bool                 // a result was recorded under the current lease
	reason     string               // of the cancellation
	closes     bool                 // its open children end with it
	changed    int64
}

// step is one attempt of a step.
type step struct {
	*kagziv1.Step
	failures int // of its code, up to and including this attempt
	changed  int64
}

func (s *step) open() bool { return s.Status == stepPending || s.Status == stepRunning }

// interrupted says that the attempt was cut short by a lost worker: it is run again and costs nothing.
func (s *step) interrupted() bool {
	return s.Status == stepFailed && s.Error.GetCode() == kagziv1.ErrorCode_ERROR_CODE_CRASHED
}

// acts is what the run's code does.
func (r *run) acts() []act {
	switch {
	case r.unwinding == nil:
		return r.plan.acts
	case r.plan.undo != nil:
		return r.plan.undo
	}
	return cleanUp
}

func (r *run) openSteps() []*step {
	var open []*step
	for _, s := range r.steps {
		if s.open() {
			open = append(open, s)
		}
	}
	return open
}

// show is the run for a reader of its own.
func (r *run) show() *kagziv1.Workflow { return proto.CloneOf(r.Workflow) }

// summary is the run without its payloads, as lists have it.
func (r *run) summary() *kagziv1.Workflow {
	input, output := r.Input, r.Output
	r.Input, r.Output = nil, nil
	m := proto.CloneOf(r.Workflow)
	r.Input, r.Output = input, output
	return m
}

// setAvailable says when the run needs a worker; the zero time is when something happens.
func (r *run) setAvailable(t time.Time) {
	if r.Paused || r.gated {
		r.heldAt = t
		return
	}
	r.available, r.WakeUpAt = t, stamp(t)
}

// add makes a run part of the world.
func (w *World) add(r *run) {
	w.runs = append(w.runs, r)
	w.byID[r.RunId] = r
	if r.ExternalId != "" {
		w.byExternalID[r.Namespace+"\x00"+r.ExternalId] = r
	}
	w.open = append(w.open, r)
	w.activity.count(w.now, func(t *tally) { t.started++ })
	w.news.started = w.news.next()
	w.changed(r)
	w.forgetOld()
}

// maxEnded bounds what a world that goes on for days holds: the oldest runs that have ended are deleted, as retention does.
const maxEnded = 10_000

func (w *World) forgetOld() {
	if len(w.runs) <= 2*maxEnded {
		return
	}
	excess := len(w.runs) - maxEnded
	w.runs = slices.DeleteFunc(w.runs, func(r *run) bool {
		if excess == 0 || !ended(r.Status) || r.Pinned {
			return false
		}
		excess--
		delete(w.byID, r.RunId)
		if key := r.Namespace + "\x00" + r.ExternalId; w.byExternalID[key] == r {
			delete(w.byExternalID, key)
		}
		delete(w.retries, r.RunId)
		return true
	})
}

// find is the run of a namespace, and runNotFound when there is none.
func (w *World) find(namespace, id string) (*run, error) {
	id = strings.ToLower(id)
	r := w.byID[id]
	if r == nil {
		r = w.archive.find(id)
	}
	if r == nil || r.Namespace != namespace {
		return nil, runNotFound(id)
	}
	return r, nil
}

// runRequest is a request about one run.
type runRequest interface {
	GetNamespace() string
	GetRunId() string
}

// runOf is the run that a request is about.
func (w *World) runOf(r runRequest) (*run, error) {
	namespace, err := namespaceOf(r.GetNamespace())
	if err != nil {
		return nil, err
	}
	if err := checkID("run_id", r.GetRunId()); err != nil {
		return nil, err
	}
	return w.find(namespace, r.GetRunId())
}
