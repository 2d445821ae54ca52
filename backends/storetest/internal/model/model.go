package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// model implements the contract in memory for one call after another, without speed, durability or
// concurrency. It knows less than a store: no payloads of runs, no notifications, and nothing that
// the contract leaves open.
type model struct {
	runs     []*modelRun // by id
	workers  map[string]*engine.Worker
	losses   map[string]engine.Loss // by worker
	requests map[string]modelStart
	writes   map[string]modelWrite // by token and subject of the write
	keys     []*engine.APIKey      // by id
	now      time.Time             // of the call
}

type modelRun struct {
	engine.Run
	token      engine.Token // zero: not held
	holder     string
	claimedAt  time.Time
	progressed bool
	settled    int64
	attempts   []*engine.Step
}

// modelStart is what a request asked for, and its first answer.
type modelStart struct {
	content string
	answer  engine.Started
}

// modelWrite is a write that took effect.
type modelWrite struct{ content, answer string }

func newModel() *model {
	return &model{workers: map[string]*engine.Worker{}, losses: map[string]engine.Loss{},
		requests: map[string]modelStart{},
		writes:   map[string]modelWrite{}}
}

func (m *model) run(id engine.ID) *modelRun {
	for _, r := range m.runs {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// latest returns the newest attempt of a step, or nil.
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
		if !old.Status.Ended() && old.Type != p.Type {
			return errText(engine.ErrExists)
		}
		answer = engine.Started{RunID: old.ID, Existed: true, OtherInput: !old.Input.Equal(p.Input)}
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

// external returns the run that has the external id of a start.
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
		return errText(engine.RunEnded(&r.Run))
	}
	r.Error = fixture.Ptr(engine.EndedByFailure(status, p.Reason))
	m.over(r, status, p.Now)
	return fmt.Sprint(engine.RunEnd{Status: status, Changed: true})
}

// over ends a run and everything open in it.
func (m *model) over(r *modelRun, status engine.RunStatus, now time.Time) {
	for _, a := range r.due(now) {
		a.Status, a.Settled = engine.StepCompleted, engine.Unsettled
	}
	for _, a := range r.attempts {
		if a.Open() {
			if a.Status == engine.StepRunning {
				a.Error = fixture.Ptr(engine.RunEndedFailure())
			}
			a.Status = engine.StepFailed
		}
	}
	r.WorkerID, r.Suspect = r.holder, engine.Suspect{}
	m.settle(r, status, time.Time{})
	r.FinishedAt = now
}

// settle ends the lease of a run.
func (m *model) settle(r *modelRun, status engine.RunStatus, at time.Time) {
	if r.progressed {
		r.LeaseLosses = 0
	}
	if r.token != (engine.Token{}) && !r.claimedAt.After(engine.SuspectSince(m.now)) {
		r.Suspect = engine.Suspect{}
	}
	r.Status, r.AvailableAt, r.WaitingFor = status, at, ""
	r.token, r.holder, r.progressed = engine.Token{}, "", false
}

// due returns the timers that are due, in order of their ends.
func (r *modelRun) due(now time.Time) (due []*engine.Step) {
	for _, a := range r.attempts {
		if a.Kind == engine.StepSleep && a.Status == engine.StepRunning && !a.WakeAt.After(now) {
			due = append(due, a)
		}
	}
	slices.SortStableFunc(due, func(a, b *engine.Step) int {
		return cmp.Or(a.WakeAt.Compare(b.WakeAt), cmp.Compare(a.Sequence, b.Sequence))
	})
	return due
}

// ends gives an attempt its final result, and the next place in the order of results.
func (r *modelRun) ends(a *engine.Step, status engine.StepStatus) {
	r.settled++
	a.Status, a.Settled = status, r.settled
}

// tell settles what ended while nobody held the run.
func (r *modelRun) tell(now time.Time) {
	type ending struct {
		*engine.Step
		at time.Time
	}
	var ended []ending
	for _, a := range r.due(now) {
		ended = append(ended, ending{a, a.WakeAt})
	}
	for _, a := range r.attempts {
		if a.Latest && a.Settled == engine.Unsettled {
			ended = append(ended, ending{a, a.FinishedAt})
		}
	}
	slices.SortStableFunc(ended, func(a, b ending) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.Sequence, b.Sequence))
	})
	for _, e := range ended {
		if e.Kind == engine.StepSleep {
			e.Status = engine.StepCompleted
		}
		r.ends(e.Step, e.Status)
	}
}

// free interrupts running steps and makes the run wait until at.
func (m *model) free(r *modelRun, status engine.RunStatus, at, now time.Time) {
	for _, a := range r.attempts {
		if a.Status == engine.StepRunning && a.Kind == engine.StepFunction {
			a.Status, a.Error = engine.StepFailed, fixture.Ptr(engine.InterruptedFailure())
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
	to := engine.Park(open, r.claimedAt, now)
	r.Suspect = engine.Suspect{}
	m.free(r, to.Status, to.AvailableAt, now)
	r.WaitingFor = to.WaitingFor
}

func (m *model) lose(r *modelRun, now time.Time) {
	loss := m.losses[r.holder]
	loss.Runs = cmp.Or(loss.Runs, 1)
	v := engine.AfterLeaseLost(engine.LostRun{ID: r.ID, Type: r.Type, Losses: r.LeaseLosses,
		Progressed: r.progressed, Suspect: r.Suspect, ClaimedAt: r.claimedAt}, loss, now)
	if v.Failed {
		r.Error = fixture.Ptr(engine.CrashedAfter(v.Losses))
		m.over(r, engine.RunFailed, now)
	} else {
		m.free(r, engine.RunPending, v.AvailableAt, now)
	}
	r.LeaseLosses, r.Suspect = v.Losses, v.Suspect
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
	slices.SortFunc(due, byAge)
	answer, limited := "", false
	grants := slices.DeleteFunc(slices.Clone(p.Slots), func(g engine.ClaimSlot) bool {
		w := m.workers[g.WorkerID]
		return w == nil || w.Status != engine.WorkerOnline
	})
	aged, blocked := 0, false
	hand := func(r *modelRun) {
		if len(grants) == 0 || r.Status == engine.RunRunning {
			return
		}
		if limit := p.TypeLimits[r.Type]; p.QueueLimit > 0 && running >= p.QueueLimit || limit > 0 &&
			ofType[r.Type] >= limit {
			limited = true
			return
		}
		if r.Suspect.Is() {
			i := slices.IndexFunc(grants, func(g engine.ClaimSlot) bool {
				held := m.suspectsOf(g.WorkerID, p.Now)
				return held.May(r.Suspect)
			})
			if i < 0 {
				blocked = true
				return
			}
			g := grants[i]
			grants = slices.Insert(slices.Delete(grants, i, i+1), 0, g)
		}
		m.take(r, grants[0], p.Now)
		aged++
		answer += fmt.Sprintf("%s to %s of %s; ", r.ID, grants[0].Token.Wire()[:8], grants[0].WorkerID)
		grants = grants[1:]
		running++
		ofType[r.Type]++
	}
	first := slices.Clone(due)
	slices.SortStableFunc(first, func(a, b *modelRun) int { return b.Priority - a.Priority })
	for _, r := range first {
		if r.Suspect.Is() {
			hand(r)
		}
	}
	for _, r := range due {
		if aged < p.ByAge && !r.Suspect.Is() {
			hand(r)
		}
	}
	for _, r := range first {
		if !r.Suspect.Is() {
			hand(r)
		}
	}
	if retry := p.Now.Add(engine.SuspectRetry); blocked {
		limited = true
		if next.IsZero() || retry.Before(next) {
			next = retry
		}
	}
	if len(grants) > 0 {
		answer += fmt.Sprintf("next %s limited %t", fixture.Clock(next), limited)
	}
	return answer
}

// suspectsOf counts the suspects that the worker holds.
func (m *model) suspectsOf(worker string, now time.Time) (held engine.Suspects) {
	for _, r := range m.runs {
		if r.holder == worker && r.claimedAt.After(engine.SuspectSince(now)) {
			held.Add(r.Suspect)
		}
	}
	return held
}

// byAge orders runs by how long they have been due.
func byAge(a, b *modelRun) int {
	if d := a.AvailableAt.Compare(b.AvailableAt); d != 0 {
		return d
	}
	return strings.Compare(a.ID.String(), b.ID.String())
}

func (m *model) take(r *modelRun, g engine.ClaimSlot, now time.Time) {
	r.tell(now)
	if r.StartedAt.IsZero() {
		r.StartedAt = now
	}
	r.Status, r.AvailableAt, r.WaitingFor = engine.RunRunning, time.Time{}, ""
	r.token, r.holder, r.WorkerID, r.claimedAt = g.Token, g.WorkerID, g.WorkerID, now
}
