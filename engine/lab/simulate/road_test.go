package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
)

// begin starts a run with this number.
func begin(n byte) []engine.StartRun {
	at := time.Now()
	return []engine.StartRun{{Run: engine.Run{
		ID: engine.ID{n}, Namespace: namespace, RequestID: fmt.Sprint(n), Type: programType, Queue: "default",
		CreatedAt: at, AvailableAt: at}}}
}

// travelling runs a traffic until the returned function is called.
func travelling(plan *Plan) (t *traffic, db *memory.Database, report *Report, stop func()) {
	db, report = memory.New(memory.Options{}), &Report{Counts: map[string]int{}}
	t = newTraffic(newBeside(nil, db, report), plan, report)
	over := make(chan struct{})
	var director sync.WaitGroup
	director.Go(func() { t.direct(over) })
	return t, db, report, func() {
		close(over)
		director.Wait()
	}
}

func TestEachFaultDoesWhatItIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := &Plan{Group: 1, Faults: []Fault{
			{"StartRuns", 1, "fail", 0}, {"StartRuns", 2, "lose", 0}, {"StartRuns", 3, "late", time.Minute},
			{"StartRuns", 5, "fail", 0}}}
		traffic, db, report, stop := travelling(plan)
		defer stop()
		s := db.Open(traffic.road(&server{}))
		defer s.Close()
		for n, want := range []struct {
			there bool
			err   error
			took  time.Duration
		}{{false, errFailed, 0}, {true, errFailed, 0}, {true, nil, time.Minute}, {true, nil, 0}, {true, nil, 0}} {
			if n == 4 {
				traffic.heal() // the fifth call has no fault any more
			}
			began := time.Now()
			_, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: begin(byte(n + 1))})
			took := time.Since(began)
			if there := db.Run(engine.ID{byte(n + 1)}) != nil; there != want.there || !errors.Is(err, want.err) ||
				took < want.took || took > want.took+time.Second {
				t.Errorf("call %d: there %t, %v, after %s; want there %t, %v, after %s", n+1, there, err, took,
					want.there, want.err, want.took)
			}
		}
		for _, fate := range []string{"fail", "lose", "late"} {
			if n := report.Counts["fault: call "+fate]; n != 1 {
				t.Errorf("%d calls met %q, want one", n, fate)
			}
		}
	})
}

func TestACallWhoseCallerLeftBeforeItArrivedDoesNotHappen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		traffic, db, _, stop := travelling(&Plan{Group: 1, Faults: []Fault{{"StartRuns", 1, "late", time.Minute}}})
		defer stop()
		s := db.Open(traffic.road(&server{}))
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.StartRuns(ctx, engine.StartRunsParams{Runs: begin(1)}); err == nil ||
			db.Run(engine.ID{1}) != nil {
			t.Errorf("a call whose caller left before it came to the database: %v, want an error, and no run", err)
		}
	})
}

func TestCallsOfADyingServerHaveARandomOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(memory.Options{})
		report := &Report{Counts: map[string]int{}}
		traffic := newTraffic(newBeside(nil, db, report), &Plan{Group: 1}, report) // nobody commits
		dying, other := &server{}, &server{}
		s, o := db.Open(traffic.road(dying)), db.Open(traffic.road(other))
		defer s.Close()
		defer o.Close()
		const n = 40
		errs := make([]error, n)
		var calls, waits sync.WaitGroup
		for i := range n {
			calls.Go(func() { _, errs[i] = s.StartRuns(t.Context(), engine.StartRunsParams{Runs: begin(byte(i + 1))}) })
		}
		waits.Go(func() { _, _ = o.StartRuns(t.Context(), engine.StartRunsParams{Runs: begin(100)}) })
		synctest.Wait()
		dying.dead.Store(true)
		traffic.crash(dying, rand.New(rand.NewPCG(1, 1)))
		calls.Wait()
		if there := len(db.Runs()); there == 0 || there == n ||
			slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, errFailed) }) {
			t.Errorf("%d of %d runs are there, and what was told is %v; want some, and that all have failed",
				there, n, errs)
		}
		if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: begin(99)}); !errors.Is(err, errFailed) ||
			db.Run(engine.ID{99}) != nil {
			t.Errorf("a dead server still writes: %v", err)
		}
		if db.Run(engine.ID{100}) != nil || len(traffic.waiting) != 1 {
			t.Errorf("%d calls of the other server wait, want one", len(traffic.waiting))
		}
		traffic.commit(traffic.next())
		waits.Wait()
		if db.Run(engine.ID{100}) == nil {
			t.Error("the other server's call was never carried out")
		}
	})
}

func TestAReportKeepsTheFirstViolations(t *testing.T) {
	r := &Report{Counts: map[string]int{}}
	r.check(3, true, "well")
	for range maxViolations {
		r.check(7, false, "run %s", "r")
	}
	r.check(1, false, "late")
	if got := r.Broken(); len(r.Violations) != maxViolations || !slices.Equal(got, []int{7}) ||
		r.Violations[0].What != "run r" {
		t.Errorf("%d violations of %v, want %d of I7", len(r.Violations), got, maxViolations)
	}
	r = &Report{}
	r.check(7, false, "a")
	r.check(1, false, "b")
	r.check(7, false, "c")
	if got := r.Broken(); !slices.Equal(got, []int{1, 7}) {
		t.Errorf("broken = %v, want each once, in order", got)
	}
}
