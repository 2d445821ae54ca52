package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// grouping is a store with claimed runs, and a group of operations for them.
type grouping struct {
	*Store
	t      *testing.T
	leases []engine.Lease
}

func newGrouping(t *testing.T, runs int) *grouping {
	g := &grouping{Store: openAt(t, lentURL(t)), t: t}
	register(t, g.Store, "w1")
	register(t, g.Store, "wa") // see family
	start(t, g.Store, runs)
	g.leases = g.claim(runs)
	return g
}

func (g *grouping) claim(n int) (leases []engine.Lease) {
	g.t.Helper()
	claimed, err := g.Claim(g.t.Context(), claimParams(g.Store, "w1", n))
	if err != nil || len(claimed.Tasks) != n {
		g.t.Fatalf("claimed %d runs, %v, want %d", len(claimed.Tasks), err, n)
	}
	for _, task := range claimed.Tasks {
		leases = append(leases, task.Lease)
	}
	return leases
}

func callOf[P, A any](run engine.ID, name string, p P, do func(storelogic.Tx, P) (A, error)) *call {
	return &call{run: run, logic: true, op: operationOf(name, name, p, do)}
}

func (g *grouping) begin(l engine.Lease, step string) *call {
	return callOf(l.RunID, "BeginStep", engine.BeginStepParams{Lease: l, Name: step, Kind: engine.StepFunction,
		ID: engine.NewID(g.Now()), Now: g.Now()}, storelogic.BeginStep)
}

func (g *grouping) complete(l engine.Lease, step string) *call {
	return callOf(l.RunID, "CompleteStep", engine.CompleteStepParams{Lease: l, Step: engine.StepRef{Name: step},
		ID: engine.NewID(g.Now()), Now: g.Now()}, storelogic.CompleteStep)
}

func (g *grouping) wait(l engine.Lease, signal string) *call {
	return callOf(l.RunID, "AwaitSignal", engine.AwaitSignalParams{Lease: l, Step: "wait", Signal: signal,
		ID: engine.NewID(g.Now()), Now: g.Now()}, storelogic.AwaitSignal)
}

func (g *grouping) signal(run engine.ID, name string) *call {
	return callOf(run, "SignalRun", engine.SignalRunParams{Namespace: "default", RunID: run, Name: name,
		SignalID: engine.NewID(g.Now()).String(), Payload: engine.Payload{Data: []byte("1")}, Now: g.Now()},
		storelogic.SignalRun)
}

func (g *grouping) end(l engine.Lease) *call {
	return callOf(l.RunID, "CompleteRun", engine.CompleteRunParams{Lease: l, Now: g.Now(),
		Output: engine.Payload{Data: []byte("done")}}, storelogic.CompleteRun)
}

// child starts a child with its own external id, which no group carries out.
func (g *grouping) child(l engine.Lease, step, externalID string) *call {
	c := newStart(g.Store)
	c.ExternalID = externalID
	return callOf(l.RunID, "StartChild", engine.StartChildParams{Lease: l, Step: step, ID: engine.NewID(g.Now()),
		Child: c, Now: g.Now()}, storelogic.StartChild)
}

// carryOut carries the calls out as one group, and expects these to be settled.
func (g *grouping) carryOut(calls []*call, settled ...bool) {
	g.t.Helper()
	g.writeOperations(calls)
	for i, c := range calls {
		if c.settled != settled[i] {
			g.t.Errorf("call %d, %s: settled is %v, %v, want %v", i, c.op.Name, c.settled, c.err, settled[i])
		}
	}
}

// count returns a number that the query selects.
func (g *grouping) count(query string) (n int) {
	g.t.Helper()
	if err := g.pool.QueryRow(g.t.Context(), query).Scan(&n); err != nil {
		g.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (g *grouping) wants(what, query string, want int) {
	g.t.Helper()
	if n := g.count(query); n != want {
		g.t.Errorf("%d %s, want %d", n, what, want)
	}
}

// lock locks a run in a transaction of its own until the function is called.
func (g *grouping) lock(run engine.ID) (unlock func()) {
	g.t.Helper()
	tx, err := g.pool.Pool.Begin(g.t.Context())
	if err == nil {
		_, err = tx.Exec(g.t.Context(), "select from runs where run_id = $1 for no key update", [16]byte(run))
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return func() { _ = tx.Rollback(context.Background()) }
}

func TestOperationsOfARunInAGroupComeInOrder(t *testing.T) {
	g := newGrouping(t, 2)
	a, b := g.leases[0], g.leases[1]
	g.carryOut([]*call{g.begin(a, "1"), g.begin(b, "1"), g.complete(a, "1"), g.begin(a, "2"), g.complete(a, "2")},
		true, true, true, true, true)
	g.wants("steps of the first run with the right numbers", fmt.Sprintf(
		"select count(*) from steps where run_id = '%s' and status = 3 and sequence = name::int", a.RunID), 2)
	g.wants("steps in its lease", fmt.Sprintf("select steps from leases where run_id = '%s'", a.RunID), 2)
	g.wants("running steps of the other", "select count(*) from steps where status = 2", 1)
}

func TestARefusedOperationRefusesOnlyWhatBuildsOnIt(t *testing.T) {
	g := newGrouping(t, 2)
	a, b := g.leases[0], g.leases[1]
	stale := a
	stale.Token = engine.NewToken()
	first := engine.NewTicket(nil)
	refused, next := g.begin(stale, "1"), g.begin(a, "2")
	refused.ticket, next.ticket = first, engine.NewTicket(first)
	apart := g.begin(b, "1")
	g.carryOut([]*call{refused, next, apart}, false, false, true)
	if !errors.Is(refused.err, engine.ErrLeaseLost) || !errors.Is(next.err, engine.ErrPrevRefused) {
		t.Errorf("the first is answered with %v, the next of its sequence with %v", refused.err, next.err)
	}
	g.wants("steps", "select count(*) from steps", 1)
}

func TestWhatARefusedOperationHasWrittenIsForgotten(t *testing.T) {
	g := newGrouping(t, 2)
	no := errors.New("no")
	refused := callOf(g.leases[0].RunID, "SetRunNote", struct{}{}, func(tx storelogic.Tx, _ struct{}) (int, error) {
		run, err := tx.Run("", g.leases[0].RunID)
		if err != nil {
			return 0, err
		}
		run.Note = "wrong"
		tx.Notify(engine.Notification{Kind: engine.NotifyRun, ID: run.ID})
		step := engine.Step{ID: engine.NewID(g.Now()), RunID: run.ID, Name: "wrong", CreatedAt: g.Now()}
		signal := engine.Signal{RunID: run.ID, Sequence: 1, Name: "wrong", ReceivedAt: g.Now()}
		if err := errors.Join(tx.SaveRun(run), tx.InsertSteps([]engine.Step{step}),
			tx.InsertSignals([]engine.Signal{signal}), tx.SaveOutput(run.ID, engine.Payload{Data: []byte("wrong")}),
			tx.LeaveReceipt(run.ID, g.leases[0].Token, storelogic.Receipt{Verb: "wrong"})); err != nil {
			return 0, err
		}
		return 0, no
	})
	g.carryOut([]*call{refused, g.begin(g.leases[1], "1")}, false, true)
	if !errors.Is(refused.err, no) {
		t.Errorf("the operation is answered with %v", refused.err)
	}
	g.wants("rows of the refused operation", `select (select count(*) from runs where note <> '') +
		(select count(*) from steps where name = 'wrong') + (select count(*) from signals) +
		(select count(*) from receipts) + (select count(*) from payloads where output is not null)`, 0)
}

// A failed statement fails all of a group. None of its calls has happened then, and each goes alone.
func TestAGroupThatFailsHasDoneNothing(t *testing.T) {
	g := newGrouping(t, 2)
	first := g.begin(g.leases[0], "1")
	g.carryOut([]*call{first}, true)
	p := g.begin(g.leases[1], "1").op.Params.(engine.BeginStepParams)
	p.ID = first.op.Params.(engine.BeginStepParams).ID // ids of steps are unique
	calls := []*call{callOf(p.Lease.RunID, "BeginStep", p, storelogic.BeginStep), g.begin(g.leases[0], "2")}
	g.carryOut(calls, false, false)
	for _, c := range calls {
		if c.err != nil || c.op.again {
			t.Errorf("a call has %v, again is %v, want that it goes alone", c.err, c.op.again)
		}
	}
	g.wants("steps", "select count(*) from steps", 1)
}

// An operation sees that an earlier one of its group has ended the lease, or woken the run.
func TestALeaseThatEndsInAGroupIsOver(t *testing.T) {
	g := newGrouping(t, 1)
	l := g.leases[0]
	late := g.begin(l, "late")
	g.carryOut([]*call{g.wait(l, "go"), late, g.signal(l.RunID, "go"), g.signal(l.RunID, "go")}, true, false, true, true)
	if !errors.Is(late.err, engine.ErrLeaseLost) {
		t.Errorf("a step that begins after the lease is answered with %v", late.err)
	}
	g.wants("leases", "select count(*) from leases", 0)
	g.wants("runs that are due", "select count(*) from runs where available_at is not null and waiting_for = ''", 1)
	g.wants("signals", "select count(*) from signals", 2)
	g.wants("signals that wait for the next claim", "select count(*) from signals where step_name = ''", 2)
}

// The last two children of a parent end in one group: it becomes due once, with both results.
func TestChildrenThatEndInAGroupWakeTheirParent(t *testing.T) {
	g := newGrouping(t, 0)
	parent, children := family(t, g.Store, 3)
	calls := make([]*call, len(children))
	for i, l := range children {
		calls[i] = g.end(l)
	}
	woken := func(want int) {
		g.wants("parents that are due", fmt.Sprintf(
			"select count(*) from runs where run_id = '%s' and available_at is not null", parent), want)
	}
	g.carryOut(calls[:1], true)
	woken(0)
	g.carryOut(calls[1:], true, true)
	woken(1)
	g.wants("results", "select count(*) from steps where status = 3 and awaited = 2 and output is not null", 3)
}

// Later operations of a run wait for one that goes alone; those of other runs do not.
func TestLaterOperationsOfARunWaitForOneThatGoesAlone(t *testing.T) {
	g := newGrouping(t, 2)
	calls := []*call{g.child(g.leases[0], "child", "taken by nobody"), g.begin(g.leases[0], "1"), g.begin(g.leases[1], "1")}
	g.carryOut(calls, false, false, true)
	if calls[0].op.again || !calls[1].op.again {
		t.Errorf("again is %v and %v, want that the first goes alone and the next to a group", calls[0].op.again,
			calls[1].op.again)
	}
	g.wants("steps", "select count(*) from steps", 1)
}

// A group waits for no lock: it leaves the operation to the next group, and that one lets it go
// alone.
func TestAGroupLeavesOutRunsThatAreLocked(t *testing.T) {
	g := newGrouping(t, 2)
	unlock := g.lock(g.leases[0].RunID)
	locked, free := g.begin(g.leases[0], "1"), g.begin(g.leases[1], "1")
	g.carryOut([]*call{locked, free}, false, true)
	if !locked.op.again {
		t.Error("the first group lets the call go alone, want that the next has it")
	}
	g.carryOut([]*call{locked}, false)
	if locked.op.again {
		t.Error("the second group leaves it to a third, want that it goes alone")
	}
	unlock()
	g.carryOut([]*call{locked}, true)
}

// What a group has read of a run before it has locked it may have changed meanwhile: here another
// child of the same parent ends.
func TestRowsReadBeforeTheLockAreReadAgain(t *testing.T) {
	g := newGrouping(t, 0)
	parent, children := family(t, g.Store, 2)
	unlock := g.lock(parent)
	ending := newOpGroup(g.Store, []*call{g.end(children[0])})
	rounds := 0
	ending.beforeRound = func() {
		if rounds++; rounds != 2 {
			return
		}
		unlock()
		p := engine.CompleteRunParams{Lease: children[1], Now: g.Now()}
		if _, err := g.CompleteRun(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := ending.carryOut(t.Context()); err != nil || rounds < 2 {
		t.Fatalf("the group ended after %d rounds, %v", rounds, err)
	}
	g.wants("runs that are due", fmt.Sprintf("select count(*) from runs where run_id = '%s' and available_at is not null",
		parent), 1)
}

// Only announcements are not synced.
func TestOnlyAnnouncementsDoNotWaitForTheDisk(t *testing.T) {
	g := newGrouping(t, 1)
	l := g.leases[0]
	for _, c := range []struct {
		name  string
		calls []*call
		want  bool
	}{
		{"announcements", []*call{g.begin(l, "1"), g.begin(l, "2")}, true},
		{"an announcement and a result", []*call{g.begin(l, "1"), g.complete(l, "1")}, false},
		{"a result", []*call{g.complete(l, "1")}, false},
	} {
		group := newOpGroup(g.Store, c.calls)
		for _, m := range group.members {
			m.decided = true
		}
		if got := group.announces(); got != c.want {
			t.Errorf("%s: announces is %v, want %v", c.name, got, c.want)
		}
	}
}

// A bug in one operation must end neither the server nor the others of its group.
func TestAnOperationThatPanicsGoesAlone(t *testing.T) {
	g := newGrouping(t, 2)
	broken := callOf(g.leases[0].RunID, "SetRunNote", struct{}{},
		func(storelogic.Tx, struct{}) (int, error) { panic("broken") })
	g.carryOut([]*call{broken, g.begin(g.leases[1], "1")}, false, true)
	if broken.err != nil || broken.op.again {
		t.Errorf("it has %v, again is %v, want that it goes alone", broken.err, broken.op.again)
	}
}

func TestCallsOfOneKindMakeAGroup(t *testing.T) {
	id := func(n byte) engine.ID { return engine.ID{n} }
	step := func(run byte, name string) *call {
		p := &engine.CompleteStepParams{Lease: engine.Lease{RunID: id(run)}, Step: engine.StepRef{Name: name}}
		return &call{run: id(run), step: &stepCall{p: p}, op: &operation{}}
	}
	logic := func(run byte) *call { return &call{run: id(run), logic: true, op: &operation{}} }
	alone := func(run byte) *call { return &call{run: id(run), alone: true, done: make(chan struct{})} }
	for _, c := range []struct {
		name    string
		waiting []*call
		want    [][]int // indexes of the calls of each group that begins
	}{
		{"each kind has its group", []*call{step(1, "a"), logic(2), step(3, "a"), logic(4)}, [][]int{{0, 2}, {1, 3}}},
		{"operations of a run come together", []*call{logic(1), logic(1), logic(2)}, [][]int{{0, 1, 2}}},
		{"a result joins the operations of its run", []*call{logic(1), step(1, "a"), step(2, "a")}, [][]int{{0, 1}, {2}}},
		{"an operation waits for the result before it", []*call{step(1, "a"), logic(1), logic(2)}, [][]int{{0}, {2}}},
		{"what comes after a call that goes alone waits", []*call{alone(1), logic(1), logic(2)}, [][]int{{2}}},
		{"a call that goes alone waits for operations", []*call{logic(1), alone(1), logic(1)}, [][]int{{0}}},
	} {
		w := newWriter(nil)
		place := map[*call]int{}
		for i, one := range c.waiting {
			place[one] = i
			w.waiting = append(w.waiting, one)
			w.count(one)
		}
		var got [][]int
		for group := w.next(); len(group) > 0; group = w.next() {
			var members []int
			for _, one := range group {
				members = append(members, place[one])
			}
			got = append(got, members)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: groups of %v begin, want %v", c.name, got, c.want)
		}
	}
}

// parked returns runs that wait for a signal which has come.
func (g *grouping) parked(n int) (runs []engine.ID) {
	var waits, signals []*call
	for _, l := range g.leases[:n] {
		runs = append(runs, l.RunID)
		waits, signals = append(waits, g.wait(l, "go")), append(signals, g.signal(l.RunID, "go"))
	}
	g.carryOut(waits, slices.Repeat([]bool{true}, n)...)
	g.carryOut(signals, slices.Repeat([]bool{true}, n)...)
	return runs
}

// One after the other they would cost a few round trips each.
func TestAClaimSettlesItsRunsInAGroup(t *testing.T) {
	g := newGrouping(t, 5)
	g.parked(5)
	before := g.commits.Sizes()
	g.claim(5)
	after := g.commits.Sizes()
	if commits, writes := after.Commits-before.Commits, after.Writes-before.Writes; commits != 1 || writes != 5 {
		t.Errorf("the claim settled %d runs by %d commits, want 5 by 1", writes, commits)
	}
	g.wants("waits have their signal", "select count(*) from steps where status = 3 and settled > 0", 5)
}

func TestAClaimSettlesARunThatIsLockedOnceItIsFree(t *testing.T) {
	g := newGrouping(t, 3)
	runs := g.parked(3)
	unlock := g.lock(runs[1])
	ended := make(chan error, 1)
	go func() {
		since, err := g.settleClaimed(runs, nil, g.Now())
		if err == nil && len(since) != 3 {
			err = fmt.Errorf("settled %d runs, want 3", len(since))
		}
		ended <- err
	}()
	const settled = "select count(*) from steps where status = 3 and settled > 0"
	for g.count(settled) < 2 {
		runtime.Gosched()
	}
	unlock()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	g.wants("waits have their signal", settled, 3)
}
