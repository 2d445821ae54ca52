package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// Workers and upkeep in the model.

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
		return fmt.Sprint(engine.Deregistered{})
	}
	w.Status, w.Reason = engine.WorkerOffline, p.Reason
	loss := engine.Loss{Worker: w.ID, At: p.Now, HeardAt: w.LastHeartbeatAt}
	if loss.HeardAt.After(p.Now) {
		loss.HeardAt = p.Now
	}
	for _, r := range m.runs {
		if r.holder == w.ID && p.Reason == engine.OfflineLost {
			loss.Runs++
			if r.Suspect.Is() && r.claimedAt.After(engine.SuspectSince(loss.HeardAt)) {
				loss.Suspects++
			}
		}
	}
	m.losses[w.ID] = loss
	taken := engine.Deregistered{Off: true}
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
		taken.Freed++
	}
	return fmt.Sprint(taken)
}

func (m *model) freeLost(now time.Time) string {
	var freed engine.Freed
	for _, r := range m.runs {
		w := m.workers[r.holder]
		if w == nil || w.Status != engine.WorkerOffline {
			continue
		}
		if over := w.LastHeartbeatAt.Add(r.Timeouts.Heartbeat); !over.After(now) {
			m.lose(r, now)
			freed.Runs = append(freed.Runs, r.ID)
		} else if freed.Next.IsZero() || over.Before(freed.Next) {
			freed.Next = over
		}
	}
	return freedText(freed)
}

func (m *model) timeoutSteps(p engine.TimeoutStepsParams) string {
	var out engine.TimedOut
	for _, r := range m.runs {
		for _, a := range r.attempts {
			if a.Status != engine.StepRunning || a.Kind != engine.StepFunction {
				continue
			}
			if a.TimeoutAt.After(p.Now) {
				continue
			}
			v := m.failed(r, a, engine.StepTimedOutFailure(), p.Now, p.Jitter)
			if v.Retry {
				m.park(r, p.Now)
			} else {
				a.Settled, a.FinishedAt = engine.Unsettled, p.Now
				m.free(r, engine.RunPending, p.Now, p.Now)
			}
			out.Attempts = append(out.Attempts, engine.TimedOutAttempt{RunID: r.ID, Step: a.Name, Verdict: v})
		}
	}
	for _, r := range m.runs {
		for _, a := range r.attempts {
			if a.Status == engine.StepRunning && a.Kind == engine.StepFunction &&
				(out.Next.IsZero() || a.TimeoutAt.Before(out.Next)) {
				out.Next = a.TimeoutAt
			}
		}
	}
	return fixture.TimedOutText(out)
}

func (m *model) prune(old time.Time) string {
	before := len(m.runs)
	m.runs = slices.DeleteFunc(m.runs, func(r *modelRun) bool {
		gone := r.Status.Ended() && r.FinishedAt.Before(old)
		for request, first := range m.requests {
			if gone && first.answer.RunID == r.ID {
				delete(m.requests, request)
			}
		}
		return gone
	})
	return fmt.Sprint(before - len(m.runs))
}
