package postgres

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

// The same random operations, by the same ids at the same times, leave the same rows and have the
// same answers in groups and one after the other in their own transactions.
func TestGroupsDoWhatTheirOperationsDoAlone(t *testing.T) {
	seed := long.Seed(t)
	for round := range long.Count(6, 60) {
		if !t.Run(strconv.Itoa(round), func(t *testing.T) { // which closes its stores
			r := rand.New(rand.NewPCG(seed, uint64(round)))
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			together, apart := openAt(t, lentURL(t)), openAt(t, lentURL(t))
			script := newSameCalls(t, r, now, together, apart)
			for range 12 {
				script.step()
			}
		}) {
			return
		}
	}
}

// sameCalls makes the same calls on two stores.
type sameCalls struct {
	t               *testing.T
	r               *rand.Rand
	now             time.Time
	together, apart *Store
	leases          []engine.Lease // of all claims, so that some are over
	runs            []engine.ID
	plans           []engine.Schedule // as they were created
	turns           []int             // how often each has fired, as the script believes
	ids             uint64
}

func newSameCalls(t *testing.T, r *rand.Rand, now time.Time, together, apart *Store) *sameCalls {
	s := &sameCalls{t: t, r: r, now: now, together: together, apart: apart}
	for _, store := range []*Store{together, apart} {
		register(t, store, "w1")
	}
	starts := make([]engine.StartRun, 4)
	for i := range starts {
		starts[i] = newStart(together)
		starts[i].ID, starts[i].CreatedAt, starts[i].AvailableAt = s.id(), now, now
		s.runs = append(s.runs, starts[i].ID)
	}
	for _, store := range []*Store{together, apart} {
		if _, err := store.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
			t.Fatal(err)
		}
	}
	for _, overlap := range []engine.Overlap{engine.OverlapAllow, engine.OverlapBufferOne} {
		plan := engine.Schedule{ID: s.id(), Namespace: "default", CronExpr: "0 * * * *", Enabled: true, Queue: "orders",
			Type: "order", MaxCatchup: 100, Overlap: overlap, NextFireAt: now.Add(time.Hour), CreatedAt: now}
		audit := s.id()
		for _, store := range []*Store{together, apart} {
			made, err := store.CreateSchedule(t.Context(),
				engine.ScheduleParams{Schedule: plan, AuditID: audit, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			plan.Revision = made.Revision
		}
		s.plans, s.turns = append(s.plans, plan), append(s.turns, 0)
	}
	s.claim()
	return s
}

func (s *sameCalls) id() (id engine.ID) {
	s.ids++
	return engine.DerivedID(s.now, engine.ID{}, fmt.Sprint(s.ids))
}

// claim claims all due runs of both stores under the same tokens.
func (s *sameCalls) claim() {
	s.t.Helper()
	p := claimParams(s.together, "w1", 20)
	p.Now = s.now
	var claimed [2]engine.Claimed
	for i, store := range []*Store{s.together, s.apart} {
		var err error
		if claimed[i], err = store.Claim(s.t.Context(), p); err != nil {
			s.t.Fatal(err)
		}
	}
	if len(claimed[0].Tasks) != len(claimed[1].Tasks) {
		s.t.Fatalf("%d and %d runs are due", len(claimed[0].Tasks), len(claimed[1].Tasks))
	}
	for _, task := range claimed[0].Tasks {
		s.leases = append(s.leases, task.Lease)
	}
}

// step makes a group of calls, and compares.
func (s *sameCalls) step() {
	s.t.Helper()
	s.now = s.now.Add(time.Duration(s.r.IntN(2000)) * time.Millisecond)
	var calls, alone []*call
	copies := map[*call]*call{}
	for range 1 + s.r.IntN(8) {
		c := s.call()
		again, op := *c, *c.op
		again.op = &op
		calls, alone, copies[c] = append(calls, c), append(alone, &again), &again
	}
	for _, c := range s.carryOut(calls) {
		s.alone(s.apart, copies[c])
	}
	var names []string
	for i, c := range calls {
		names = append(names, c.op.Name)
		if fmt.Sprint(c.err) != fmt.Sprint(alone[i].err) || c.err == nil && !same(c.op.answer, alone[i].op.answer) {
			s.t.Errorf("%s: in a group %+v, %v; alone %+v, %v", c.op.Name, c.op.answer, c.err, alone[i].op.answer,
				alone[i].err)
		}
	}
	for _, table := range []string{"runs", "leases", "steps", "signals", "receipts", "payloads", "audit", "schedules", "fires"} {
		if a, b := s.rows(s.together, table), s.rows(s.apart, table); a != b {
			s.t.Errorf("after %v: rows of %s in groups:\n%s\nalone:\n%s", names, table, a, b)
		}
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
	s.claim()
}

// same compares answers, with times as they are stored.
func same(a, b any) bool {
	x, err := json.Marshal(a)
	y, other := json.Marshal(b)
	return reflect.DeepEqual(x, y) && err == nil && other == nil
}

// carryOut carries calls out in groups and, where these leave one out, alone. It returns them in the
// order in which they took effect.
func (s *sameCalls) carryOut(calls []*call) (order []*call) {
	for len(calls) > 0 {
		s.together.writeOperations(calls)
		var left []*call
		for _, c := range calls {
			if c.settled || c.err != nil {
				order = append(order, c)
			} else {
				left = append(left, c)
			}
		}
		if calls = left; len(left) > 0 && !left[0].op.again {
			s.alone(s.together, left[0])
			order, calls = append(order, left[0]), left[1:]
		}
	}
	return order
}

func (s *sameCalls) alone(store *Store, c *call) {
	c.op.answer, c.err = write(store, c.op.Doing, func(t *tx) (any, error) { return c.op.do(t) })
}

// rows returns a table's rows as text, without what names the store itself.
func (s *sameCalls) rows(store *Store, table string) string {
	s.t.Helper()
	var text string
	err := store.pool.QueryRow(s.t.Context(), fmt.Sprintf(
		"select coalesce(string_agg(t, E'\\n' order by t), '') from (select (to_jsonb(x) - 'lane_id')::text as t from %s x) y",
		table)).Scan(&text)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(text)
}

// call returns a random operation about one of the runs.
func (s *sameCalls) call() *call {
	l := s.leases[s.r.IntN(len(s.leases))]
	name := fmt.Sprint("step ", s.r.IntN(3))
	signal := fmt.Sprint("signal ", s.r.IntN(2))
	hold := s.r.IntN(2) == 0
	policy := &engine.RetryPolicy{InitialIntervalMS: 1000, MaximumIntervalMS: 1000}
	switch s.r.IntN(14) {
	case 0, 1:
		return callOf(l.RunID, "BeginStep", engine.BeginStepParams{Lease: l, Name: name, Kind: engine.StepFunction,
			ID: s.id(), Input: s.payload(), RetryPolicy: policy, Now: s.now}, storelogic.BeginStep)
	case 2, 3:
		return callOf(l.RunID, "CompleteStep", engine.CompleteStepParams{Lease: l, Step: engine.StepRef{Name: name},
			ID: s.id(), Output: s.payload(), Now: s.now}, storelogic.CompleteStep)
	case 4:
		return callOf(l.RunID, "FailStep", engine.FailStepParams{Lease: l, Step: engine.StepRef{Name: name}, ID: s.id(),
			Failure: engine.Failure{Message: "broken"}, RetryPolicy: policy, Hold: hold, Now: s.now}, storelogic.FailStep)
	case 5:
		return callOf(l.RunID, "Sleep", engine.SleepParams{Lease: l, Step: engine.StepRef{Name: "sleep " + name},
			ID: s.id(), Branch: "1", Duration: time.Second, Hold: hold, Over: s.r.IntN(3) == 0, Stay: s.r.IntN(2) == 0,
			Now: s.now}, storelogic.Sleep)
	case 6:
		return callOf(l.RunID, "AwaitSignal", engine.AwaitSignalParams{Lease: l, Step: "wait " + name, Signal: signal,
			ID: s.id(), Hold: hold, Now: s.now}, storelogic.AwaitSignal)
	case 7, 8:
		run := s.runs[s.r.IntN(len(s.runs))]
		return callOf(run, "SignalRun", engine.SignalRunParams{Namespace: "default", RunID: run, Name: signal,
			SignalID: fmt.Sprint(s.r.IntN(5)), Payload: s.payload(), Now: s.now}, storelogic.SignalRun)
	case 9:
		child := newStart(s.together)
		child.ID, child.CreatedAt, child.AvailableAt = s.id(), s.now, s.now
		if s.r.IntN(3) == 0 {
			child.ExternalID = child.ID.String() // no group makes it
		}
		s.runs = append(s.runs, child.ID)
		return callOf(l.RunID, "StartChild", engine.StartChildParams{Lease: l, Step: "child " + name, ID: s.id(),
			Child: child, Now: s.now}, storelogic.StartChild)
	case 10:
		var children []engine.ID
		for _, run := range s.runs[4:] {
			if s.r.IntN(2) == 0 {
				children = append(children, run)
			}
		}
		return callOf(l.RunID, "AwaitChildren", engine.AwaitChildrenParams{Lease: l, Children: children, Hold: hold,
			Any: s.r.IntN(2) == 0, Now: s.now}, storelogic.AwaitChildren)
	case 11:
		run := s.runs[s.r.IntN(len(s.runs))]
		end := engine.EndRunParams{Namespace: "default", RunID: run, Reason: "enough", By: engine.Actor{Name: "ada"},
			AuditID: s.id(), Now: s.now}
		if hold {
			return callOf(run, "TerminateRun", end, storelogic.TerminateRun)
		}
		end.Grace = time.Duration(s.r.IntN(2)) * time.Minute
		return callOf(run, "CancelRun", end, storelogic.CancelRun)
	case 12:
		i := s.r.IntN(len(s.plans))
		plan, turn := s.plans[i], s.turns[i]-s.r.IntN(2)*s.r.IntN(2) // now and then one that is over
		s.turns[i] = turn + 1
		tick := plan.NextFireAt.Add(time.Duration(turn) * time.Hour)
		fire := engine.FireScheduleParams{ScheduleID: plan.ID, Revision: plan.Revision, Expect: tick,
			Ticks: []engine.Tick{{At: tick, RunID: s.id()}}, Next: tick.Add(time.Hour), Now: s.now}
		s.runs = append(s.runs, fire.Ticks[0].RunID)
		return callOf(plan.ID, "FireSchedule", fire, storelogic.FireSchedule)
	}
	if s.r.IntN(3) == 0 {
		return callOf(l.RunID, "FailRun", engine.FailRunParams{Lease: l, Failure: engine.Failure{Message: "no"},
			Now: s.now}, storelogic.FailRun)
	}
	return callOf(l.RunID, "CompleteRun", engine.CompleteRunParams{Lease: l, Output: s.payload(), Now: s.now},
		storelogic.CompleteRun)
}

func (s *sameCalls) payload() engine.Payload {
	return engine.Payload{Data: []byte(fmt.Sprint(s.r.IntN(3)))}
}
