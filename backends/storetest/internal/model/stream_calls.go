package model

import (
	"context"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// The calls of a stream. They avoid what the contract leaves open.

func (f *stream) start() act {
	p := engine.StartRun{Run: engine.Run{
		ID: f.mint.ID(f.now), Namespace: fixture.Space, Queue: fixture.Queue, Type: f.one("a", "b"),
		Priority: f.roll.IntN(3), CreatedAt: f.now,
		AvailableAt: f.now.Add(time.Duration(f.roll.IntN(2)) * time.Second), Input: fixture.Text(f.one("x", "y")),
		ExternalID: f.one("", "", "ext-1", "ext-2"), RequestID: f.one("", "", "", f.content()),
	}, Reuse: engine.ExternalIDReuse(f.roll.IntN(3))}
	if f.chance(30) && len(f.model.requests) > 0 {
		p.RequestID = f.one(fixture.SortedKeys(f.model.requests)...)
	}
	if f.chance(50) {
		p.RetryPolicy = &engine.RetryPolicy{MaximumAttempts: 2, InitialIntervalMS: 100}
	}
	if f.chance(20) {
		p.Timeouts.Heartbeat = 2 * time.Minute
	}
	if f.chance(20) {
		p.Requirements = map[string]string{"gpu": f.one("", "x")}
	}
	return act{
		text: fmt.Sprintf("start %s %s external %q request %q reuse %d", p.ID, p.Type, p.ExternalID, p.RequestID,
			p.Reuse), run: p.ID,
		store: func(ctx context.Context, s engine.Store) string {
			answers, err := s.StartRuns(ctx, engine.StartRunsParams{Runs: []engine.StartRun{p}})
			if err != nil {
				return errText(err)
			}
			return startedText(answers[0])
		},
		model: func(m *model) string { return m.start(p) },
	}
}

func (f *stream) claim() act {
	p := engine.ClaimParams{Namespace: fixture.Space, Queue: fixture.Queue, HistoryBytes: engine.HistoryBytes,
		Now:   f.now,
		Types: [][]string{{"a"}, {"a", "b"}, {"b", "a"}}[f.roll.IntN(3)]}
	if f.chance(60) {
		p.Offers = []engine.Offer{{Key: "gpu", Value: f.one("x", "y")}}
	}
	if f.chance(30) {
		p.QueueLimit = 1 + f.roll.IntN(4)
	}
	if f.chance(30) {
		p.TypeLimits = map[string]int{"a": 1 + f.roll.IntN(2)}
	}
	if f.chance(40) {
		p.ByAge = 1 + f.roll.IntN(2)
	}
	worker := f.one("w1", "w2", "w3")
	for range 1 + f.roll.IntN(3) {
		p.Slots = append(p.Slots, engine.ClaimSlot{WorkerID: worker, Token: f.mint.Token()})
	}
	return act{
		text: fmt.Sprintf("claim %v for %s, %d grants, %d by age, limits %d %v", p.Types, worker, len(p.Slots), p.ByAge,
			p.QueueLimit, p.TypeLimits),
		store: func(ctx context.Context, s engine.Store) string {
			claimed, err := s.Claim(ctx, p)
			if err != nil {
				return errText(err)
			}
			answer := ""
			for _, t := range claimed.Tasks {
				answer += fmt.Sprintf("%s to %s of %s; ", t.Run.ID, t.Lease.Token.Wire()[:8], t.Run.WorkerID)
			}
			w, err := s.GetWorker(ctx, worker) // slots of a worker that is not ONLINE get nothing
			if err == nil && w.Status == engine.WorkerOnline && len(claimed.Tasks) < len(p.Slots) {
				answer += fmt.Sprintf("next %s limited %t", fixture.Clock(claimed.NextDue), claimed.Limited)
			}
			return answer
		},
		model: func(m *model) string {
			answer := m.claim(p)
			for _, g := range p.Slots {
				for _, r := range m.runs {
					if r.token == g.Token {
						f.leases = append(f.leases, engine.Lease{Namespace: fixture.Space, RunID: r.ID, Token: g.Token})
					}
				}
			}
			return answer
		},
	}
}

func (f *stream) end() act {
	p := engine.EndRunParams{Namespace: fixture.Space, RunID: f.mint.ID(f.now), Reason: f.one("", "why"),
		AuditID: f.mint.ID(f.now), Now: f.now}
	if n := len(f.model.runs); n > 0 {
		p.RunID = f.model.runs[f.roll.IntN(n)].ID
	}
	verb := fixture.EndVerbs[f.roll.IntN(len(fixture.EndVerbs))]
	return act{
		text: fmt.Sprintf("%s %s", verb.Name, p.RunID), run: p.RunID,
		store: func(ctx context.Context, s engine.Store) string {
			end, err := verb.Call(s, ctx, p)
			return errOr(err, fmt.Sprint(end))
		},
		model: func(m *model) string { return m.end(p, verb.Status) },
	}
}

func (f *stream) workerCall() (act, bool) {
	id := f.one("w1", "w2", "w3")
	switch f.roll.IntN(6) {
	case 0:
		p := engine.DrainWorkerParams{WorkerID: id, Now: f.now}
		return act{text: "drain " + id,
			store: func(ctx context.Context, s engine.Store) string { return errOr(s.DrainWorker(ctx, p), "ok") },
			model: func(m *model) string { return m.drain(id) },
		}, f.chance(30)
	case 1, 2:
		p := engine.OfflineWorkerParams{WorkerID: id, Reason: engine.OfflineReason(1 + f.roll.IntN(3)), Now: f.now}
		if w := f.model.workers[id]; w != nil {
			p.HeardAt = w.LastHeartbeatAt.Add(-time.Duration(f.roll.IntN(2)) * time.Microsecond)
		}
		return act{text: fmt.Sprintf("offline %s reason %d", id, p.Reason),
			store: func(ctx context.Context, s engine.Store) string {
				taken, err := s.ForceOfflineWorker(ctx, p)
				return errOr(err, fmt.Sprint(taken))
			},
			model: func(m *model) string { return m.offline(p) },
		}, true
	}
	p := engine.RegisterWorkerParams{Chosen: true, Now: f.now, Worker: engine.Worker{ID: id, Namespace: fixture.Space,
		InstanceID: id + f.one("-first", "-first", "-second"), Queues: []string{fixture.Queue},
		Types: []string{"a", "b"}, MaxConcurrent: 10}}
	for _, w := range f.model.workers { // a known instance keeps its id; no other may take it
		if w.InstanceID == p.Worker.InstanceID && w.ID != id {
			return act{}, false
		}
	}
	return act{text: "register " + id + " as " + p.Worker.InstanceID,
		store: func(ctx context.Context, s engine.Store) string {
			w, err := s.RegisterWorker(ctx, p)
			return errOr(err, w.ID+" "+w.Status.String())
		},
		model: func(m *model) string { return m.register(p) },
	}, true
}

func (f *stream) heartbeat() act {
	p := engine.HeartbeatParams{WorkerID: f.one("w1", "w2", "w3"), Completed: f.roll.IntN(3), NameWithin: time.Second,
		Now: f.now}
	for _, l := range f.leases[max(0, len(f.leases)-8):] {
		if f.chance(60) {
			p.Held = append(p.Held, l)
		}
	}
	p.Whole = f.chance(20)
	return act{text: fmt.Sprintf("heartbeat %s names %d whole %t", p.WorkerID, len(p.Held), p.Whole),
		store: func(ctx context.Context, s engine.Store) string {
			beat, err := s.Heartbeat(ctx, p)
			return errOr(err, fmt.Sprintf("%s lost %d", beat.Status, len(beat.Lost)))
		},
		model: func(m *model) string { return m.heartbeat(p) },
	}
}

func (f *stream) upkeep() (act, bool) {
	switch f.roll.IntN(3) {
	case 0:
		now := f.now
		return act{text: "free lost",
			store: func(ctx context.Context, s engine.Store) string {
				freed, err := s.FreeLost(ctx, now)
				return errOr(err, freedText(freed))
			},
			model: func(m *model) string { return m.freeLost(now) },
		}, true
	case 1:
		p := engine.TimeoutStepsParams{Now: f.now, Limit: 1000, Jitter: f.roll.Float64()}
		return act{text: "time out steps",
			store: func(ctx context.Context, s engine.Store) string {
				out, err := s.TimeoutSteps(ctx, p)
				return errOr(err, fixture.TimedOutText(out))
			},
			model: func(m *model) string { return m.timeoutSteps(p) },
		}, !f.severalTimeouts()
	}
	before := f.now.Add(-10 * time.Minute)
	return act{text: "prune",
		store: func(ctx context.Context, s engine.Store) string {
			n, err := fixture.PruneAll(ctx, s, before, 1000)
			return errOr(err, fmt.Sprint(n))
		},
		model: func(m *model) string { return m.prune(before) },
	}, f.chance(20) && !f.prunesWorkers(before)
}

// severalTimeouts says whether one run has several attempts past their timeout: the contract does
// not say which is handled first.
func (f *stream) severalTimeouts() bool {
	for _, r := range f.model.runs {
		over := 0
		for _, a := range r.attempts {
			if a.Status == engine.StepRunning && a.Kind == engine.StepFunction && !a.TimeoutAt.After(f.now) {
				over++
			}
		}
		if over > 1 {
			return true
		}
	}
	return false
}

// prunesWorkers says whether pruning would delete workers, which the model does not do.
func (f *stream) prunesWorkers(before time.Time) bool {
	for _, w := range f.model.workers {
		if w.Status == engine.WorkerOffline && w.LastHeartbeatAt.Before(before) {
			return true
		}
	}
	return false
}

// again repeats an earlier write under a lease exactly.
func (f *stream) again() (act, bool) {
	a := f.past[len(f.past)-1-f.roll.IntN(min(len(f.past), 20))]
	return a, a.still(f.model)
}

// work writes under a lease, mostly under one of the newest.
func (f *stream) work() (act, bool) {
	l := f.leases[len(f.leases)-1-f.roll.IntN(min(len(f.leases), 6))]
	if f.chance(10) {
		l.Token = f.mint.Token()
	}
	a, ok := f.write(l)
	a.run = l.RunID
	a.text = fmt.Sprintf("%s by %s of run %s", a.text, l.Token.Wire()[:8], l.RunID)
	return a, ok
}

func (f *stream) write(l engine.Lease) (act, bool) {
	name, nap := f.one("f1", "f2", "f3", "f4"), f.one("z1", "z2", "z3")
	r := f.model.run(l.RunID)
	current := r != nil && r.token == l.Token
	switch n := f.roll.IntN(100); {
	case n < 25:
		if f.chance(4) {
			name = nap
		}
		return f.begin(l, name), current || !f.touched(r, l, name)
	case n < 50:
		return f.keep(f.completeStep(l, name), l, name), f.clear(r, l, name)
	case n < 65:
		return f.keep(f.failStep(l, name), l, name), f.clear(r, l, name)
	case n < 78:
		if f.chance(4) {
			nap = name
		}
		return f.keep(f.sleep(l, nap, f.model.wrote(l, nap)), l, nap), true
	case n < 86:
		return f.keep(f.finish(l), l, runsEnd), f.model.writes[writeKey(l, runsEnd)].content != "release"
	case n < 92:
		return f.keep(f.failRun(l), l, runsEnd), f.model.writes[writeKey(l, runsEnd)].content != "release"
	}
	return f.keep(f.release(l), l, runsEnd), !f.model.wrote(l, runsEnd)
}

// keep records a write that took effect. It may be repeated as long as it is the last write of its
// lease about its target, and no later attempt has begun that it could be about.
func (f *stream) keep(a act, l engine.Lease, target string) act {
	call := a.model
	a.model = func(m *model) string {
		before := m.writes[writeKey(l, target)]
		answer := call(m)
		if mine := m.writes[writeKey(l, target)]; mine != before {
			f.past = append(f.past, act{text: a.text + " once more by " + l.Token.Wire()[:8], run: a.run,
				store: a.store, model: call,
				still: func(m *model) bool {
					r := m.run(l.RunID)
					return m.writes[writeKey(l, target)] == mine &&
						(r == nil || r.attemptsBy(l, target) < 2 && !r.closed(target))
				}})
		}
		return answer
	}
	return a
}

// clear says whether the contract defines a new result for this step: not while the step waits for
// a retry, unless that is due and the last write came from another lease; not for a timer; and not
// if the run's end may have closed what this lease reported before.
func (f *stream) clear(r *modelRun, l engine.Lease, name string) bool {
	if r == nil || r.token != l.Token {
		return !f.model.wrote(l, name) || r == nil || !r.Status.Ended()
	}
	last := r.latest(name)
	return last == nil || last.Kind == engine.StepFunction &&
		(last.Status != engine.StepPending || !last.RetryAt.After(f.now) && last.Token != l.Token)
}

// closed says whether the run's end has closed the step.
func (r *modelRun) closed(name string) bool {
	last := r.latest(name)
	return last != nil && last.Error != nil && last.Error.Equal(engine.RunEndedFailure())
}

// attemptsBy returns how many attempts of the step this lease made or wrote last.
func (r *modelRun) attemptsBy(l engine.Lease, name string) int {
	n := 0
	for _, a := range r.attempts {
		if a.Name == name && a.Token == l.Token {
			n++
		}
	}
	return n
}

// touched says whether this lease has begun or written the step, so that beginning it after the
// lease's end might be taken for a repetition.
func (f *stream) touched(r *modelRun, l engine.Lease, name string) bool {
	return f.model.wrote(l, name) || r != nil && r.attemptsBy(l, name) > 0
}

func (f *stream) begin(l engine.Lease, name string) act {
	p := engine.BeginStepParams{Lease: l, ID: f.mint.ID(f.now), Name: name, Kind: engine.StepFunction, Now: f.now,
		StartToClose: time.Duration(1+f.roll.IntN(100)) * time.Second}
	return act{text: "begin " + name,
		store: func(ctx context.Context, s engine.Store) string {
			begun, err := s.BeginStep(ctx, p)
			return errOr(err, begunText(begun))
		},
		model: func(m *model) string { return m.begin(p) },
	}
}

func (f *stream) completeStep(l engine.Lease, name string) act {
	p := engine.CompleteStepParams{Lease: l, Step: fixture.Named(name), ID: f.mint.ID(f.now),
		Output: fixture.Text(f.content()), Now: f.now}
	return act{text: "complete " + name, run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string {
			step, err := s.CompleteStep(ctx, p)
			return errOr(err, stepLine(step))
		},
		model: func(m *model) string { return m.complete(p) },
	}
}

func (f *stream) failStep(l engine.Lease, name string) act {
	p := engine.FailStepParams{Lease: l, Step: fixture.Named(name), ID: f.mint.ID(f.now),
		Failure: fixture.Boom(f.content()), Now: f.now,
		Hold: f.chance(40), Jitter: f.roll.Float64()}
	if f.chance(20) {
		p.Failure.NonRetryable = true
	}
	return act{text: fmt.Sprintf("fail %s hold %t", name, p.Hold), run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string {
			v, err := s.FailStep(ctx, p)
			return errOr(err, fixture.DecisionText(v))
		},
		model: func(m *model) string { return m.fail(p) },
	}
}

// sleep uses one duration per name. over: the timer is over at its holder.
func (f *stream) sleep(l engine.Lease, name string, over bool) act {
	p := engine.SleepParams{Lease: l, Step: fixture.Named(name), ID: f.mint.ID(f.now),
		Duration: time.Duration(name[1]-'0') * time.Second,
		Hold:     f.chance(40), Over: over || f.chance(5), Stay: f.chance(50), Now: f.now}
	return act{text: fmt.Sprintf("sleep %s hold %t over %t stay %t", name, p.Hold, p.Over, p.Stay), run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string {
			_, err := s.Sleep(ctx, p)
			return errOr(err, "ok")
		},
		model: func(m *model) string { return m.sleep(p) },
	}
}

func (f *stream) finish(l engine.Lease) act {
	p := engine.CompleteRunParams{Lease: l, Output: fixture.Text(f.content()), Now: f.now}
	return act{text: "complete run", run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string {
			_, err := s.CompleteRun(ctx, p)
			return errOr(err, "ok")
		},
		model: func(m *model) string { return m.completeRun(p) },
	}
}

func (f *stream) failRun(l engine.Lease) act {
	p := engine.FailRunParams{Lease: l, Failure: fixture.Boom(f.content()), Now: f.now, Jitter: f.roll.Float64()}
	return act{text: "fail run", run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string {
			v, err := s.FailRun(ctx, p)
			return errOr(err, fixture.DecisionText(v.Verdict))
		},
		model: func(m *model) string { return m.failRun(p) },
	}
}

func (f *stream) release(l engine.Lease) act {
	p := engine.ReleaseParams{Lease: l, Park: f.chance(60), Now: f.now}
	return act{text: fmt.Sprintf("release park %t", p.Park), run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string { return errOr(s.Release(ctx, p), "ok") },
		model: func(m *model) string { return m.release(p) },
	}
}
