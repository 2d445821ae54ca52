package scenario

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// The workflow code of the workers, act by act. It keeps nothing between two activations: the state
// of a run is in its history.

const stepTimeout = 10 * time.Minute

// activation is a run that a worker holds.
type activation struct {
	namespace, run, token string
	plan                  *plan
	steps                 map[string]step
	unwinding             *kagziv1.ErrorDetail // the error that the code compensates for
}

// step is the latest attempt of a step, as the code knows it.
type step struct {
	id     string
	status kagziv1.StepStatus
	child  string
	err    *kagziv1.ErrorDetail
	again  bool // the attempt ended, and the next one is due
}

const (
	stepPending   = kagziv1.StepStatus_STEP_STATUS_PENDING
	stepRunning   = kagziv1.StepStatus_STEP_STATUS_RUNNING
	stepCompleted = kagziv1.StepStatus_STEP_STATUS_COMPLETED
	stepFailed    = kagziv1.StepStatus_STEP_STATUS_FAILED
)

// stepOf returns a step of a history. An attempt that was cut short, or that waits for its retry,
// runs again.
func stepOf(s *kagziv1.Step) step {
	again := s.Kind == kagziv1.StepKind_STEP_KIND_FUNCTION &&
		(s.Status == stepRunning || s.Status == stepPending || s.Status == stepFailed &&
			s.Error.GetCode() == kagziv1.ErrorCode_ERROR_CODE_CRASHED)
	return step{s.StepId, s.Status, s.GetChildRunId(), s.Error, again}
}

// taken returns the activation of a task.
func (d *Day) taken(t *kagziv1.Task) *activation {
	a := &activation{namespace: t.Namespace, run: t.RunId, token: t.LeaseToken,
		plan: d.planFor(t.RunId, t.WorkflowType), steps: map[string]step{}}
	history, more := t.History, t.NextHistoryToken
	for {
		for _, s := range history {
			a.steps[s.Name] = stepOf(s)
		}
		if more == "" {
			break
		}
		rest, err := d.tasks.GetHistory(ctx, &kagziv1.GetHistoryRequest{
			Namespace: t.Namespace, RunId: t.RunId, Token: more})
		if !d.must("read a history", err) {
			break
		}
		history, more = rest.History, rest.NextHistoryToken
	}
	if t.CancelRequested {
		a.unwinding = t.CancelReason
	}
	return a
}

func (a *activation) clone() *activation {
	c := *a
	c.steps = maps.Clone(a.steps)
	return &c
}

// acts returns what the code does.
func (a *activation) acts() []act {
	switch {
	case a.unwinding == nil:
		return a.plan.acts
	case a.plan.undo != nil:
		return a.plan.undo
	}
	return cleanUp
}

// proceed runs the acts: it reads recorded results, starts what comes next, and stops where it has
// to wait.
func (d *Day) proceed(w *worker, a *activation) {
	acts := a.acts()
	for i := range acts {
		act := &acts[i]
		var on bool
		switch act.kind {
		case work:
			on = d.work(w, a, act)
		case nap:
			on = d.nap(w, a, act)
		case wait:
			on = d.await(w, a, act)
		case child:
			on = d.bear(w, a, act)
		}
		if !on {
			return
		}
		for _, name := range act.names() {
			if s := a.steps[name]; s.status == stepFailed && !act.tolerates {
				d.fails(w, a, s.err)
				return
			}
		}
	}
	if a.unwinding != nil {
		d.fail(w, a, a.unwinding)
		return
	}
	d.clearNote(a)
	output := a.plan.result
	if a.plan.output != nil && output == nil {
		output = jsonPayload(a.plan.output(d.random))
	}
	_, _ = d.tasks.CompleteWorkflow(ctx, &kagziv1.CompleteWorkflowRequest{
		Namespace: a.namespace, RunId: a.run, LeaseToken: a.token, Output: output})
	w.completed++
	d.drop(w, a)
}

// fails ends a run whose code returned an error, after compensation.
func (d *Day) fails(w *worker, a *activation, why *kagziv1.ErrorDetail) {
	if a.unwinding != nil || a.plan.undo == nil {
		d.fail(w, a, cmp.Or(a.unwinding, why))
		return
	}
	a.unwinding = why
	d.proceed(w, a)
}

// fail ends a run as failed. It is not retried: its steps were.
func (d *Day) fail(w *worker, a *activation, why *kagziv1.ErrorDetail) {
	d.clearNote(a)
	e := &kagziv1.ErrorDetail{Code: why.Code, Type: why.Type, Message: why.Message, Stack: why.Stack,
		Metadata: why.Metadata, NonRetryable: true}
	_, _ = d.tasks.FailWorkflow(ctx, &kagziv1.FailWorkflowRequest{
		Namespace: a.namespace, RunId: a.run, LeaseToken: a.token, Error: e})
	w.failed++
	d.drop(w, a)
}

// clearNote clears the run's note.
func (d *Day) clearNote(a *activation) {
	if slices.ContainsFunc(a.acts(), func(a act) bool { return a.note != "" }) {
		_, _ = d.tasks.SetRunNote(ctx, &kagziv1.SetNote{RunId: a.run, LeaseToken: a.token})
	}
}

// work starts the steps of an act that have not started or are to be retried. It returns true once
// all have a result.
func (d *Day) work(w *worker, a *activation, act *act) bool {
	running, waiting, noted := false, false, act.note == ""
	for n, name := range act.names() {
		s, known := a.steps[name]
		if !known || s.again {
			if !noted {
				_, _ = d.tasks.SetRunNote(ctx, &kagziv1.SetNote{RunId: a.run, LeaseToken: a.token, Note: act.note})
				noted = true
			}
			if s, known = d.beginStep(w, a, act, n, name); !known {
				return false
			}
		}
		running = running || s.status == stepRunning
		waiting = waiting || s.status == stepPending
	}
	if waiting && !running { // for the delay of a retry
		_, _ = d.tasks.ReleaseTask(ctx, &kagziv1.ReleaseTaskRequest{
			Namespace: a.namespace, RunId: a.run, LeaseToken: a.token, Park: true})
		d.drop(w, a)
	}
	return !running && !waiting
}

// beginStep starts an attempt and decides its result; a step of a run that a person retried
// succeeds. It returns false if the run was lost.
func (d *Day) beginStep(w *worker, a *activation, act *act, n int, name string) (step, bool) {
	began, err := d.tasks.BeginStep(ctx, &kagziv1.BeginStepRequest{
		Namespace: a.namespace, RunId: a.run, LeaseToken: a.token, StepName: name, Input: jsonPayload(act.input),
		RetryPolicy:           act.retry,
		StartToCloseTimeoutMs: stepTimeout.Milliseconds(),
	})
	if err != nil {
		d.drop(w, a)
		return step{}, false
	}
	s := step{id: began.StepId, status: stepRunning}
	if !began.ShouldExecute {
		if s.status = stepCompleted; began.Error != nil {
			s.status, s.err = stepFailed, began.Error
		}
		a.steps[name] = s
		return s, true
	}
	a.steps[name] = s
	fails := int(began.AttemptNumber) <= act.failing || d.random.chance(act.odds) || d.weather.spoils(act)
	takes, output := d.random.between(act.takes, act.upTo), ""
	if act.output != nil {
		output = act.output(d.random, n)
	}
	mishap := act.mishap
	if mishap == nil {
		mishap = &usualMishap
	}
	worker, run, token := w.id, a.run, a.token
	d.after(takes, func(d *Day) {
		w, a := d.holds(worker, run, token)
		if a == nil || a.steps[name].id != s.id || a.steps[name].status != stepRunning {
			return // another worker has it, or nobody
		}
		if fails {
			d.failStep(w, a, name, mishap)
		} else {
			d.completeStep(w, a, name, output)
		}
	})
	return s, true
}

func (d *Day) completeStep(w *worker, a *activation, name, output string) {
	s := a.steps[name]
	_, err := d.tasks.CompleteStep(ctx, &kagziv1.CompleteStepRequest{
		Namespace: a.namespace, RunId: a.run, LeaseToken: a.token, StepId: s.id, Output: jsonPayload(output),
	})
	if err != nil {
		d.drop(w, a)
		return
	}
	s.status = stepCompleted
	a.steps[name] = s
	d.proceed(w, a)
}

// failStep reports a failure: the step is retried, or has failed for good.
func (d *Day) failStep(w *worker, a *activation, name string, m *mishap) {
	s := a.steps[name]
	others := false
	for other, o := range a.steps {
		others = others || other != name && o.status == stepRunning
	}
	failed, err := d.tasks.FailStep(ctx, &kagziv1.FailStepRequest{
		Namespace: a.namespace, RunId: a.run, LeaseToken: a.token, StepId: s.id, Error: m.detail(), Hold: others,
	})
	switch {
	case err != nil:
		d.drop(w, a)
		return
	case failed.ScheduledRetry && !others: // the run is parked
		d.drop(w, a)
		return
	case failed.ScheduledRetry:
		s.status = stepPending
		worker, run, token := w.id, a.run, a.token
		d.at(failed.RetryAt.AsTime(), func(d *Day) {
			if w, a := d.holds(worker, run, token); a != nil && a.steps[name].status == stepPending {
				s := a.steps[name]
				s.again = true
				a.steps[name] = s
				d.proceed(w, a)
			}
		})
	default:
		s.status, s.err = stepFailed, m.detail()
	}
	a.steps[name] = s
	d.proceed(w, a)
}

// nap parks the run until a timer fires. It returns true once it did.
func (d *Day) nap(w *worker, a *activation, act *act) bool {
	if a.steps[act.name].status == stepCompleted {
		return true
	}
	_, _ = d.tasks.Sleep(ctx, &kagziv1.SleepRequest{
		Namespace: a.namespace, RunId: a.run, LeaseToken: a.token, StepId: act.name,
		Duration: durationpb.New(d.random.between(act.takes, act.upTo)),
	})
	d.drop(w, a)
	return false
}

// await parks the run until a signal arrives or times out. It returns true once either happened.
func (d *Day) await(w *worker, a *activation, act *act) bool {
	s, known := a.steps[act.name]
	if s.status == stepCompleted || s.status == stepFailed {
		return true
	}
	r := &kagziv1.AwaitSignalRequest{Namespace: a.namespace, RunId: a.run, LeaseToken: a.token, StepName: act.name,
		SignalName: act.signal}
	if act.limit > 0 {
		r.Timeout = durationpb.New(act.limit)
	}
	answer, err := d.tasks.AwaitSignal(ctx, r)
	if err == nil && (answer.Payload != nil || answer.TimedOut) {
		a.steps[act.name] = step{status: stepCompleted}
		return true
	}
	if a.plan.answer != nil && !known {
		wait, o := a.plan.answer(d.random)
		namespace, run := a.namespace, a.run
		d.after(wait, func(d *Day) {
			_, _ = d.runs.SignalWorkflow(ctx, &kagziv1.SignalWorkflowRequest{
				Namespace: namespace, RunId: run, Name: o.name, Payload: jsonPayload(o.payload)})
		})
	}
	d.drop(w, a)
	return false
}

// bear starts the children of an act and parks the run until they end. It returns true once they
// did.
func (d *Day) bear(w *worker, a *activation, act *act) bool {
	var open []string
	names := act.names()
	for n, name := range names {
		s, known := a.steps[name]
		if !known {
			p := planOf(act.starts[n])
			if own := a.plan.kids[n]; own != nil {
				p = own
			}
			r := d.request(p, a.namespace)
			r.ParentRunId = a.run
			started, err := d.tasks.StartChild(ctx, &kagziv1.StartChildRequest{
				StepName: name, LeaseToken: a.token, Child: r,
				ParentClosePolicy: kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_CANCEL,
			})
			if err != nil {
				d.drop(w, a)
				return false
			}
			d.follow(started.ChildRunId, p)
			s = stepOf(started.Step)
			a.steps[name] = s
		}
		if s.status == stepRunning {
			open = append(open, s.child)
		}
	}
	if len(open) == 0 {
		return true
	}
	answer, err := d.tasks.AwaitChildren(ctx,
		&kagziv1.AwaitChildrenRequest{Namespace: a.namespace, RunId: a.run, LeaseToken: a.token, ChildRunIds: open})
	if err != nil || len(answer.Steps) == 0 {
		d.drop(w, a)
		return false
	}
	for _, s := range answer.Steps {
		a.steps[s.Name] = stepOf(s)
	}
	return true
}

// told cancels the code of a run, which then cleans up.
func (d *Day) told(w *worker, a *activation, why *kagziv1.ErrorDetail) {
	if a.unwinding != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(a.steps)) {
		s := a.steps[name]
		if s.status != stepRunning {
			continue
		}
		_, _ = d.tasks.FailStep(ctx, &kagziv1.FailStepRequest{
			Namespace: a.namespace, RunId: a.run, LeaseToken: a.token, StepId: s.id, Error: why, Hold: true,
		})
		s.status, s.err = stepFailed, why
		a.steps[name] = s
	}
	a.unwinding = why
	d.proceed(w, a)
}
