package postgres

import (
	"bytes"
	"context"
	_ "embed"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// transact runs an operation of package storelogic, in a group if it is one that has groups, or in its
// own transaction. An operation by the holder of a lease first waits for earlier ones for the same
// run.
func (s *Store) transact(_ context.Context, c storelogic.Call, do func(storelogic.Tx) (any, error)) (any, error) {
	in := func(t *tx) (any, error) { return do(t) }
	var run engine.ID
	switch p := c.Params.(type) {
	case engine.SignalRunParams:
		run = p.RunID
	case engine.EndRunParams:
		run = p.RunID
	case engine.FireScheduleParams: // a schedule's turns come in order, as a run's calls do
		run = p.ScheduleID
	default:
		if c.Lease != nil {
			run = c.Lease.RunID
		}
	}
	if !grouped[c.Name] {
		if c.Lease != nil {
			return inLine(s, run, c.Ticket, c.Doing, in)
		}
		return write(s, c.Doing, in)
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	one := &call{run: run, ticket: c.Ticket, size: c.Size, logic: true, op: &operation{Call: c, do: do}}
	s.begun.expect(one.op)
	return together(s, one, c.Doing, func() any { return one.op.answer }, in)
}

// operationOf returns the operation of a common call, for a group that carries it out if its
// statement did not apply.
func operationOf[P, A any](name, doing string, p P, do func(storelogic.Tx, P) (A, error)) *operation {
	return &operation{Call: storelogic.Call{Name: name, Doing: doing, Params: p},
		do: func(tx storelogic.Tx) (any, error) { return do(tx, p) }}
}

//go:embed sql/lock_namespace.sql
var lockNamespaceSQL string

//go:embed sql/lock_api_keys.sql
var lockAPIKeysSQL string

// locked runs an operation under a lock, so that it runs one at a time across all servers.
func locked[P, A any](s *Store, doing, lock string, a args, do func(storelogic.Tx, P) (A, error), p P) (A, error) {
	return write(s, doing, func(t *tx) (A, error) {
		if err := t.queue(lock, a); err != nil {
			var none A
			return none, err
		}
		return do(t, p)
	})
}

// UpdateNamespace replaces the settings of a namespace.
func (s *Store) UpdateNamespace(_ context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return locked(s, "update a namespace", lockNamespaceSQL, args{"namespace": p.Namespace.Name},
		storelogic.UpdateNamespace, p)
}

//go:embed sql/lock_namespaces.sql
var lockNamespacesSQL string

// DeleteNamespace locks out everybody who makes something in a namespace: each has read the table in
// its transaction. It waits for them only briefly, because others wait behind it; then it is tried
// again.
func (s *Store) DeleteNamespace(_ context.Context, p engine.DeleteNamespaceParams) error {
	defer s.forget()
	_, err := write(s, "delete a namespace", func(t *tx) (none struct{}, err error) {
		local := args{"names": []string{"lock_timeout"}, "values": []string{"300ms"}}
		if err := t.queueHot(setLocalSQL, local); err != nil {
			return none, err
		}
		if err := t.queue(lockNamespacesSQL, args{}); err != nil {
			return none, err
		}
		return none, storelogic.DeleteNamespace(t, p)
	})
	return err
}

// EmptyNamespace deletes part of what a namespace holds.
func (s *Store) EmptyNamespace(_ context.Context, p engine.EmptyNamespaceParams) (engine.Emptied, error) {
	return locked(s, "empty a namespace", lockNamespaceSQL, args{"namespace": p.Name}, storelogic.EmptyNamespace, p)
}

// CreateKey creates an API key.
func (s *Store) CreateKey(_ context.Context, p engine.CreateKeyParams) (engine.APIKey, error) {
	return locked(s, "create a key", lockAPIKeysSQL, args{}, storelogic.CreateKey, p)
}

// RevokeKey revokes an API key.
func (s *Store) RevokeKey(_ context.Context, p engine.RevokeKeyParams) (engine.APIKey, error) {
	return locked(s, "revoke a key", lockAPIKeysSQL, args{}, storelogic.RevokeKey, p)
}

// stepCall is one call of CompleteStep for a step that was not begun, as far as is known, and its
// answer.
type stepCall struct {
	p    *engine.CompleteStepParams
	step engine.Step
}

// CompleteStep takes one insert and one narrow update if the step is new, which is the common case:
// its code has run and is now reported. Otherwise storelogic handles it.
func (s *Store) CompleteStep(_ context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	if err := s.enter(); err != nil {
		return engine.Step{}, err
	}
	defer s.leave()
	p.Now, p.StartedAt = engine.Micros(p.Now), engine.Micros(p.StartedAt)
	const doing = "complete a step"
	c := &call{run: p.Lease.RunID, ticket: p.Ticket, step: &stepCall{p: &p}, size: p.Output.Size(),
		logic: !p.Step.ID.IsZero() || p.Step.Name == engine.CancelledStep || s.begun.has(p.Lease.RunID, p.Step.Name),
		op:    operationOf("CompleteStep", doing, p, storelogic.CompleteStep)}
	return together(s, c, doing, func() engine.Step {
		if c.logic {
			return c.op.answer.(engine.Step)
		}
		return c.step.step
	}, func(t *tx) (engine.Step, error) { return storelogic.CompleteStep(t, p) })
}

//go:embed sql/complete_new_step.sql
var completeNewStepText string

var completeNewStepSQL = hot(completeNewStepText)

// queueSteps adds the group's results to the batch, those of the newest runs first: all
// transactions change leases in this order.
func queueSteps(batch *pgx.Batch, answers *groupAnswers, group []*call) {
	var runs, tokens, ids [][16]byte
	var namespaces, names, metas, branches []string
	var outputs [][]byte
	var places, sizes, started, nows []int64
	var lasts []bool
	byStep := map[engine.ID]*call{}
	before := map[engine.ID]int{} // index of each run's last result so far
	steps := slices.DeleteFunc(slices.Clone(group), func(c *call) bool { return c.step == nil })
	slices.SortStableFunc(steps, func(a, b *call) int { return bytes.Compare(b.run[:], a.run[:]) })
	for _, c := range steps {
		p := c.step.p
		byStep[p.ID] = c
		c.step.step = newResult(p)
		place, size := int64(1), int64(p.Output.Size())
		if i, several := before[c.run]; several {
			place, size, lasts[i] = places[i]+1, sizes[i]+size, false
		}
		before[c.run] = len(runs)
		runs, tokens, ids = append(runs, p.Lease.RunID), append(tokens, p.Lease.Token), append(ids, p.ID)
		namespaces, names = append(namespaces, p.Lease.Namespace), append(names, p.Step.Name)
		outputs, metas = append(outputs, dataOrNull(p.Output.Data)), append(metas, mapText(p.Output.Metadata))
		places, sizes, lasts = append(places, place), append(sizes, size), append(lasts, true)
		started, nows = append(started, micros(c.step.step.StartedAt)), append(nows, micros(p.Now))
		branches = append(branches, p.Branch)
	}
	if len(runs) == 0 {
		return
	}
	batch.Queue(completeNewStepSQL.text, completeNewStepSQL.bind(args{
		"run_ids": runs, "tokens": tokens, "namespaces": namespaces, "step_ids": ids, "names": names,
		"outputs":      outputs,
		"output_metas": metas, "places": places, "sizes": sizes, "lasts": lasts, "started_at": started, "now": nows,
		"branches":  branches,
		"max_steps": int64(engine.MaxSteps), "max_bytes": int64(engine.MaxRunBytes),
	})...).Query(func(rows pgx.Rows) error {
		var id engine.ID
		var sequence int64
		var worker string
		var settled, begunIn int64
		places := []any{idOf(&id), &sequence, &worker, &settled, &begunIn}
		_, err := pgx.ForEachRow(rows, places, func() error {
			c := byStep[id]
			c.step.step.Sequence, c.step.step.WorkerID = sequence, worker
			c.step.step.Settled, c.step.step.BegunIn = settled, begunIn
			answers.settle(c)
			answers.events = append(answers.events,
				storekit.Event{Notification: engine.Notification{Kind: engine.NotifyRun, ID: c.step.step.RunID}})
			return nil
		})
		return err
	})
}

// stepKey is a step of a run.
type stepKey struct {
	run  engine.ID
	name string
}

func (c *stepCall) key() stepKey { return stepKey{c.p.Lease.RunID, c.p.Step.Name} }

// newResult returns a step that was not begun, from its result, without sequence and worker.
func newResult(p *engine.CompleteStepParams) engine.Step {
	step := engine.Step{
		ID: p.ID, RunID: p.Lease.RunID, Name: p.Step.Name, Kind: engine.StepFunction, Status: engine.StepCompleted,
		Attempt: 1, Latest: true,
		Output: p.Output, Token: p.Lease.Token, CreatedAt: p.Now, StartedAt: p.StartedAt, FinishedAt: p.Now,
		Branch: p.Branch,
	}
	if step.StartedAt.IsZero() {
		step.StartedAt = p.Now
	}
	return step
}

// finishCall is one call of CompleteRun.
type finishCall struct{ p *engine.CompleteRunParams }

// CompleteRun is one statement for a run whose end affects no other row, which is the common case.
// Otherwise storelogic handles it.
func (s *Store) CompleteRun(_ context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	if err := s.enter(); err != nil {
		return engine.Completed{}, err
	}
	defer s.leave()
	p.Now = engine.Micros(p.Now)
	const doing = "complete a run"
	c := &call{run: p.Lease.RunID, ticket: p.Ticket, finish: &finishCall{&p}, size: p.Output.Size(),
		logic: s.begun.has(p.Lease.RunID, "") || len(p.Unreached) > 0, alone: p.ContinueAs != nil || len(p.Unreceived) > 0,
		op: operationOf("CompleteRun", doing, p, storelogic.CompleteRun)}
	return together(s, c, doing, func() engine.Completed {
		if c.logic {
			return c.op.answer.(engine.Completed)
		}
		return engine.Completed{Status: engine.RunCompleted}
	}, func(t *tx) (engine.Completed, error) { return storelogic.CompleteRun(t, p) })
}

//go:embed sql/complete_run.sql
var completeRunText string

var completeRunSQL = hot(completeRunText)

// queueFinishes adds the group's ends to the batch. An end that comes after results in the group
// takes effect only if the last of these did, and so all of them.
func queueFinishes(batch *pgx.Batch, answers *groupAnswers, group []*call) {
	var runs, tokens, behind [][16]byte
	var namespaces, metas []string
	var outputs [][]byte
	var sizes, nows []int64
	byRun := map[engine.ID]*call{}
	results := map[engine.ID]engine.ID{}
	for _, c := range group {
		if c.step != nil {
			results[c.run] = c.step.p.ID
		}
		if c.finish == nil {
			continue
		}
		p := c.finish.p
		byRun[c.run] = c
		runs, tokens, namespaces = append(runs, p.Lease.RunID), append(tokens, p.Lease.Token),
			append(namespaces, p.Lease.Namespace)
		outputs, metas = append(outputs, dataOrNull(p.Output.Data)), append(metas, mapText(p.Output.Metadata))
		sizes, nows = append(sizes, int64(p.Output.Size())), append(nows, micros(p.Now))
		behind = append(behind, results[c.run])
	}
	if len(runs) == 0 {
		return
	}
	batch.Queue(completeRunSQL.text, completeRunSQL.bind(args{
		"run_ids": runs, "tokens": tokens, "namespaces": namespaces, "outputs": outputs, "output_metas": metas,
		"sizes": sizes, "now": nows, "behind": behind, "max_bytes": int64(engine.MaxRunBytes),
	})...).Query(func(rows pgx.Rows) error {
		var id engine.ID
		var namespace, queue string
		_, err := pgx.ForEachRow(rows, []any{idOf(&id), &namespace, &queue}, func() error {
			c := byRun[id]
			answers.settle(c)
			events := storekit.Events(engine.Notification{Kind: engine.NotifySlot, Namespace: namespace, Name: queue},
				engine.Notification{Kind: engine.NotifyRun, ID: id},
				engine.Notification{Kind: engine.NotifyEnd, ID: id})
			events[2].Ending = &engine.Ending{
				Namespace: namespace, Status: engine.RunCompleted, Output: c.finish.p.Output,
				FinishedAt: c.finish.p.Now,
			}
			answers.events = append(answers.events, events...)
			return nil
		})
		return err
	})
}
