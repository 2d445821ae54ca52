package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// model is the contract in memory, without any thought of speed, disk or rivals: what a store must answer to one call after
// another. It knows less than a store: no payloads of runs, no rings, and none of what the contract leaves open.
type model struct {
	runs     []*modelRun // by id
	workers  map[string]*engine.Worker
	requests map[string]modelStart
	writes   map[string]modelWrite // by token and what was written about
}

type modelRun struct {
	engine.Run
	token      engine.Token // zero: nobody holds it
	holder     string
	claimedAt  time.Time
	progressed bool
	attempts   []*engine.Step
}

// modelStart is what a request was first told, and for what.
type modelStart struct {
	content string
	answer  engine.Started
}

// modelWrite is a write that counted.
type modelWrite struct{ content, answer string }

func newModel() *model {
	return &model{workers: map[string]*engine.Worker{}, requests: map[string]modelStart{}, writes: map[string]modelWrite{}}
}

func (m *model) run(id engine.ID) *modelRun {
	for _, r := range m.runs {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// latest is the newest attempt of a step, or nil.
func (r *modelRun) latest(name string) *engine.Step {
	for _, a := range r.attempts {
		if a.Name == name && a.Latest {
			return a
		}
	}
	return nil
}

func (m *model) start(p engine.StartRun) string {
	content := strings.Join([]string{p.Type, p.Queue, p.ExternalID, string(p.Input.Data)}, "|")
	if first, ok := m.requests[p.RequestID]; ok && p.RequestID != "" {
		if first.content != content {
			return errText(engine.ErrConflict)
		}
		first.answer.Repeated = true
		return startedText(first.answer)
	}
	answer := engine.Started{RunID: p.ID}
	if old := m.external(p); old != nil {
		if p.Reuse == engine.ReuseReject {
			return errText(engine.ErrExists)
		}
		answer = engine.Started{RunID: old.ID, Existed: true}
	} else {
		r := &modelRun{Run: p.Run}
		r.Status, r.Attempts = engine.RunPending, 1
		m.runs = append(m.runs, r)
	}
	if p.RequestID != "" {
		m.requests[p.RequestID] = modelStart{content, answer}
	}
	return startedText(answer)
}

// external is the run that stands in the way of a start.
func (m *model) external(p engine.StartRun) *modelRun {
	for _, r := range slices.Backward(m.runs) {
		if p.ExternalID != "" && r.ExternalID == p.ExternalID && (!r.Status.Ended() || p.Reuse == engine.ReuseNever) {
			return r
		}
	}
	return nil
}

func (m *model) end(p engine.EndRunParams, status engine.RunStatus) string {
	r := m.run(p.RunID)
	switch {
	case r == nil:
		return errText(engine.ErrNotFound)
	case r.Status == status:
		return fmt.Sprint(engine.RunEnd{Status: status})
	case r.Status.Ended():
		return errText(engine.RunEnded(p.RunID, r.Status))
	}
	r.Error = ptr(engine.EndedByFailure(status, p.Reason))
	m.over(r, status, p.Now)
	return fmt.Sprint(engine.RunEnd{Status: status, Changed: true})
}

// over ends a run and whatever is open in it.
func (m *model) over(r *modelRun, status engine.RunStatus, now time.Time) {
	if r.holder != "" {
		r.wake(now)
	}
	for _, a := range r.attempts {
		if a.Open() {
			a.Status, a.Error = engine.StepFailed, ptr(engine.RunEndedFailure())
		}
	}
	r.WorkerID = r.holder
	m.settle(r, status, time.Time{})
	r.FinishedAt = now
}

// settle takes the lease from a run.
func (m *model) settle(r *modelRun, status engine.RunStatus, at time.Time) {
	if r.progressed {
		r.LeaseLosses = 0
	}
	r.Status, r.AvailableAt, r.WaitingFor = status, at, ""
	r.token, r.holder, r.progressed = engine.Token{}, "", false
}

// wake ends the timers that are due.
func (r *modelRun) wake(now time.Time) {
	for _, a := range r.attempts {
		if a.Kind == engine.StepSleep && a.Status == engine.StepRunning && !a.WakeAt.After(now) {
			a.Status = engine.StepCompleted
		}
	}
}

// free interrupts what runs and makes the run wait until then.
func (m *model) free(r *modelRun, status engine.RunStatus, at, now time.Time) {
	r.wake(now)
	for _, a := range r.attempts {
		if a.Status == engine.StepRunning && a.Kind == engine.StepFunction {
			a.Status, a.Error = engine.StepFailed, ptr(engine.InterruptedFailure())
		}
	}
	r.WorkerID = ""
	m.settle(r, status, at)
}

func (m *model) park(r *modelRun, now time.Time) {
	var open []engine.Step
	for _, a := range r.attempts {
		if a.Latest && a.Open() {
			open = append(open, *a)
		}
	}
	to := engine.Park(open, now)
	m.free(r, to.Status, to.AvailableAt, now)
	r.WaitingFor = to.WaitingFor
}

func (m *model) lose(r *modelRun, now time.Time) {
	v := engine.AfterLeaseLost(r.LeaseLosses, r.progressed, now)
	if v.Failed {
		r.Error = ptr(engine.CrashedFailure())
		m.over(r, engine.RunFailed, now)
	} else {
		m.free(r, engine.RunPending, v.AvailableAt, now)
	}
	r.LeaseLosses = v.Losses
}

func (m *model) claim(p engine.ClaimParams) string {
	var due []*modelRun
	var next time.Time
	running, ofType := 0, map[string]int{}
	for _, r := range m.runs {
		switch {
		case r.Queue != p.Queue || r.Namespace != p.Namespace:
			continue
		case r.Status == engine.RunRunning:
			running++
			ofType[r.Type]++
			continue
		}
		if r.Status.Ended() || !slices.Contains(p.Types, r.Type) || !engine.Meets(p.Offers, r.Requirements) {
			continue
		}
		if !r.AvailableAt.After(p.Now) {
			due = append(due, r)
		} else if next.IsZero() || r.AvailableAt.Before(next) {
			next = r.AvailableAt
		}
	}
	slices.SortStableFunc(due, func(a, b *modelRun) int { return claimOrder(a.Run, b.Run, p.Now) })
	answer, limited := "", false
	grants := slices.DeleteFunc(slices.Clone(p.Grants), func(g engine.Grant) bool {
		w := m.workers[g.WorkerID]
		return w == nil || w.Status != engine.WorkerOnline
	})
	for _, r := range due {
		if len(grants) == 0 {
			break
		}
		if limit := p.TypeLimits[r.Type]; p.QueueLimit > 0 && running >= p.QueueLimit || limit > 0 && ofType[r.Type] >= limit {
			limited = true
			continue
		}
		m.take(r, grants[0], p.Now)
		answer += fmt.Sprintf("%s to %s of %s; ", r.ID, grants[0].Token.Wire()[:8], grants[0].WorkerID)
		grants = grants[1:]
		running++
		ofType[r.Type]++
	}
	if len(grants) > 0 {
		answer += fmt.Sprintf("next %s limited %t", clock(next), limited)
	}
	return answer
}

func claimOrder(a, b engine.Run, now time.Time) int {
	starved := func(r engine.Run) int {
		if now.Sub(r.AvailableAt) >= engine.StarvationAfter {
			return 0
		}
		return 1
	}
	if d := starved(a) - starved(b); d != 0 {
		return d
	}
	if d := b.Priority - a.Priority; d != 0 {
		return d
	}
	if d := a.AvailableAt.Compare(b.AvailableAt); d != 0 {
		return d
	}
	return strings.Compare(a.ID.String(), b.ID.String())
}

func (m *model) take(r *modelRun, g engine.Grant, now time.Time) {
	r.wake(now)
	if r.StartedAt.IsZero() {
		r.StartedAt = now
	}
	r.Status, r.AvailableAt, r.WaitingFor = engine.RunRunning, time.Time{}, ""
	r.token, r.holder, r.WorkerID, r.claimedAt = g.Token, g.WorkerID, g.WorkerID, now
}

// written looks whether a write under a lease is to be answered without doing anything. target is what it is about.
func (m *model) written(l engine.Lease, target, content string) (*modelRun, string) {
	r := m.run(l.RunID)
	if r == nil {
		return nil, errText(engine.ErrNotFound)
	}
	if w, ok := m.writes[writeKey(l, target)]; ok {
		if w.content == content {
			return nil, w.answer
		}
		if a := r.latest(target); a == nil || a.Status != engine.StepRunning || a.Token != l.Token {
			return nil, errText(engine.ErrConflict)
		}
	}
	if r.token != l.Token {
		return nil, errText(engine.LeaseLost(l.RunID, r.Status))
	}
	return r, ""
}

func writeKey(l engine.Lease, target string) string { return l.Token.Wire() + target }

// wrote says that a write of this lease about the target has counted.
func (m *model) wrote(l engine.Lease, target string) bool {
	_, ok := m.writes[writeKey(l, target)]
	return ok
}

// note remembers a write that counted.
func (m *model) note(l engine.Lease, target, content, answer string) string {
	m.writes[writeKey(l, target)] = modelWrite{content, answer}
	return answer
}

// attempt is the RUNNING attempt of a step, or a new one in the place of its last.
func (m *model) attempt(r *modelRun, id engine.ID, name string, kind engine.StepKind, policy *engine.RetryPolicy) *engine.Step {
	last := r.latest(name)
	if last != nil && last.Status == engine.StepRunning {
		return last
	}
	next := &engine.Step{ID: id, RunID: r.ID, Name: name, Kind: kind, Attempt: 1, Latest: true, RetryPolicy: policy}
	if last == nil {
		r.Steps++
		next.Sequence = r.Steps
	} else {
		next.Attempt, next.Failures, next.Sequence = last.Attempt+1, last.Failures, last.Sequence
		last.Latest = false
		if last.Status == engine.StepPending {
			last.Status = engine.StepFailed
		}
	}
	r.attempts = append(r.attempts, next)
	return next
}

func (m *model) begin(p engine.BeginStepParams) string {
	r := m.run(p.Lease.RunID)
	if r == nil {
		return errText(engine.ErrNotFound)
	}
	if r.token != p.Lease.Token {
		return errText(engine.LeaseLost(r.ID, r.Status))
	}
	if last := r.latest(p.Name); last != nil {
		switch {
		case last.Kind != p.Kind:
			return errText(engine.ErrConflict)
		case last.Status == engine.StepCompleted, last.Status == engine.StepFailed && !last.Interrupted():
			return begunText(engine.Begun{Step: *last})
		case last.Status == engine.StepPending && last.RetryAt.After(p.Now):
			return errText(engine.ErrPrecondition)
		}
	}
	a := m.attempt(r, p.ID, p.Name, p.Kind, p.RetryPolicy)
	if a.ID == p.ID {
		a.Status, a.Token, a.TimeoutAt = engine.StepRunning, p.Lease.Token, p.Now.Add(p.StartToClose)
	}
	return begunText(engine.Begun{Step: *a, Execute: true})
}

func (m *model) complete(p engine.CompleteStepParams) string {
	content := "output " + string(p.Output.Data)
	r, answer := m.written(p.Lease, p.Step.Name, content)
	if r == nil {
		return answer
	}
	if last := r.latest(p.Step.Name); last != nil {
		switch {
		case last.Kind == engine.StepSleep:
			return errText(engine.ErrPrecondition)
		case last.Status == engine.StepCompleted, last.Status == engine.StepFailed && !last.Interrupted():
			return errText(engine.ErrConflict)
		}
	}
	a := m.attempt(r, p.ID, p.Step.Name, engine.StepFunction, nil)
	a.Status, a.Output, a.Token, a.Error = engine.StepCompleted, p.Output, p.Lease.Token, nil
	r.progressed = true
	return m.note(p.Lease, p.Step.Name, content, stepLine(*a))
}

func (m *model) fail(p engine.FailStepParams) string {
	content := "failure " + p.Failure.Message
	r, answer := m.written(p.Lease, p.Step.Name, content)
	if r == nil {
		return answer
	}
	if last := r.latest(p.Step.Name); last != nil && (last.Kind == engine.StepSleep || last.Status == engine.StepCompleted ||
		last.Status == engine.StepFailed && !last.Interrupted()) {
		return errText(engine.ErrConflict)
	}
	a := m.attempt(r, p.ID, p.Step.Name, engine.StepFunction, p.RetryPolicy)
	a.Token = p.Lease.Token
	v := m.failed(r, a, p.Failure, p.Now, p.Roll)
	if v.Retry && !p.Hold {
		m.park(r, p.Now)
	}
	return m.note(p.Lease, p.Step.Name, content, verdictText(v))
}

// failed records a failure of a step's code.
func (m *model) failed(r *modelRun, a *engine.Step, f engine.Failure, now time.Time, roll float64) engine.Verdict {
	a.Failures++
	a.Error = &f
	v := engine.AfterStepFailed(r.RetryPolicy, a.RetryPolicy, a.Failures, f, now, roll)
	a.Status, a.RetryAt = engine.StepFailed, v.RetryAt
	if v.Retry {
		a.Status = engine.StepPending
		r.Attempts++
	}
	return v
}

func (m *model) sleep(p engine.SleepParams) string {
	content := fmt.Sprint("sleep ", p.Duration)
	r, answer := m.written(p.Lease, p.Step.Name, content)
	if r == nil {
		return answer
	}
	last := r.latest(p.Step.Name)
	if last != nil && (last.Kind != engine.StepSleep || last.Status != engine.StepRunning) {
		return errText(engine.ErrConflict)
	}
	if last == nil {
		last = m.attempt(r, p.ID, p.Step.Name, engine.StepSleep, nil)
		last.Status, last.WakeAt, last.Duration = engine.StepRunning, p.Now.Add(p.Duration), p.Duration
	}
	if !p.Hold {
		m.park(r, p.Now)
	}
	return m.note(p.Lease, p.Step.Name, content, "ok")
}

const runsEnd = "/end" // no step has this name

func (m *model) completeRun(p engine.CompleteRunParams) string {
	content := "output " + string(p.Output.Data)
	r, answer := m.written(p.Lease, runsEnd, content)
	if r == nil {
		return answer
	}
	m.over(r, engine.RunCompleted, p.Now)
	return m.note(p.Lease, runsEnd, content, "ok")
}

func (m *model) failRun(p engine.FailRunParams) string {
	content := "failure " + p.Failure.Message
	r, answer := m.written(p.Lease, runsEnd, content)
	if r == nil {
		return answer
	}
	v := engine.AfterRunFailed(r.RetryPolicy, r.Failures+1, p.Failure, p.Now, p.Roll)
	if v.Retry {
		r.Attempts++
		r.Failures++
		for _, a := range r.attempts {
			if a.Latest && a.Status == engine.StepFailed && !a.Interrupted() {
				a.Status, a.RetryAt, a.Failures = engine.StepPending, v.RetryAt, 0
			}
		}
		m.free(r, engine.RunPending, v.RetryAt, p.Now)
	} else {
		r.Error = &p.Failure
		m.over(r, engine.RunFailed, p.Now)
	}
	return m.note(p.Lease, runsEnd, content, verdictText(v))
}

func (m *model) release(p engine.ReleaseParams) string {
	r, answer := m.written(p.Lease, runsEnd, "release")
	if r == nil {
		return answer
	}
	if p.Park {
		m.park(r, p.Now)
	} else {
		m.free(r, engine.RunPending, p.Now, p.Now)
	}
	return m.note(p.Lease, runsEnd, "release", "ok")
}

func (m *model) register(p engine.RegisterWorkerParams) string {
	w := m.workers[p.Worker.ID]
	switch {
	case w == nil:
		w = &engine.Worker{ID: p.Worker.ID, InstanceID: p.Worker.InstanceID, Status: engine.WorkerOnline}
		m.workers[w.ID] = w
	case w.InstanceID == p.Worker.InstanceID:
		if w.Status == engine.WorkerOffline {
			w.Status = engine.WorkerOnline
		}
	case w.Status != engine.WorkerOffline:
		return errText(engine.ErrExists)
	default:
		for _, r := range m.runs {
			if r.holder == w.ID {
				m.lose(r, p.Now)
			}
		}
		*w = engine.Worker{ID: w.ID, InstanceID: p.Worker.InstanceID, Status: engine.WorkerOnline}
	}
	w.LastHeartbeatAt = p.Now
	return w.ID + " " + w.Status.String()
}

func (m *model) heartbeat(p engine.HeartbeatParams) string {
	w := m.workers[p.WorkerID]
	if w == nil || w.Status == engine.WorkerOffline {
		return errText(engine.ErrNotFound)
	}
	w.LastHeartbeatAt = p.Now
	w.Completed += int64(p.Completed)
	lost := 0
	named := map[engine.Token]bool{}
	for _, l := range p.Held {
		named[l.Token] = true
		if r := m.run(l.RunID); r == nil || r.token != l.Token || r.holder != w.ID {
			lost++
		}
	}
	for _, r := range m.runs {
		if p.Whole && r.holder == w.ID && !named[r.token] && !r.claimedAt.Add(p.NameWithin).After(p.Now) {
			m.free(r, engine.RunPending, p.Now, p.Now)
		}
	}
	return fmt.Sprintf("%s lost %d", w.Status, lost)
}

func (m *model) drain(id string) string {
	w := m.workers[id]
	if w == nil || w.Status == engine.WorkerOffline {
		return errText(engine.ErrNotFound)
	}
	w.Status = engine.WorkerDraining
	return "ok"
}

func (m *model) offline(p engine.OfflineWorkerParams) string {
	w := m.workers[p.WorkerID]
	if w == nil {
		return errText(engine.ErrNotFound)
	}
	if w.Status == engine.WorkerOffline || p.Reason == engine.OfflineLost && w.LastHeartbeatAt.After(p.HeardAt) {
		return "0"
	}
	w.Status, w.Reason = engine.WorkerOffline, p.Reason
	freed := 0
	for _, r := range m.runs {
		switch {
		case r.holder != w.ID:
			continue
		case p.Reason != engine.OfflineLost:
			m.free(r, engine.RunPending, p.Now, p.Now)
		case w.LastHeartbeatAt.Add(r.Timeouts.Heartbeat).After(p.Now):
			continue
		default:
			m.lose(r, p.Now)
		}
		freed++
	}
	return fmt.Sprint(freed)
}

func (m *model) freeLost(now time.Time) string {
	freed, next := 0, time.Time{}
	for _, r := range m.runs {
		w := m.workers[r.holder]
		if w == nil || w.Status != engine.WorkerOffline {
			continue
		}
		if over := w.LastHeartbeatAt.Add(r.Timeouts.Heartbeat); !over.After(now) {
			m.lose(r, now)
			freed++
		} else if next.IsZero() || over.Before(next) {
			next = over
		}
	}
	return fmt.Sprint(freed, clock(next))
}

func (m *model) timeoutSteps(p engine.TimeoutStepsParams) string {
	count, next := 0, time.Time{}
	for _, r := range m.runs {
		for _, a := range r.attempts {
			if a.Status != engine.StepRunning || a.Kind != engine.StepFunction {
				continue
			}
			if a.TimeoutAt.After(p.Now) {
				continue
			}
			if v := m.failed(r, a, engine.StepTimedOutFailure(), p.Now, p.Roll); v.Retry {
				m.park(r, p.Now)
			} else {
				m.free(r, engine.RunPending, p.Now, p.Now)
			}
			count++
		}
	}
	for _, r := range m.runs {
		for _, a := range r.attempts {
			if a.Status == engine.StepRunning && a.Kind == engine.StepFunction && (next.IsZero() || a.TimeoutAt.Before(next)) {
				next = a.TimeoutAt
			}
		}
	}
	return fmt.Sprint(count, clock(next))
}

func (m *model) prune(p engine.PruneParams) string {
	before := len(m.runs)
	m.runs = slices.DeleteFunc(m.runs, func(r *modelRun) bool {
		gone := r.Status.Ended() && r.FinishedAt.Before(p.Before)
		for request, first := range m.requests {
			if gone && first.answer.RunID == r.ID {
				delete(m.requests, request)
			}
		}
		return gone
	})
	return fmt.Sprint(before - len(m.runs))
}
