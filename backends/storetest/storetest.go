// Package storetest holds the contract of engine.Store as tests, written once. A backend runs it
// like this:
//
// func TestStore(t *testing.T) { storetest.Run(t, open) }
// func BenchmarkStore(b *testing.B) { storetest.Bench(b, open) }
//
// open returns a new, empty store.
//
// The suites are in internal/runs (runs, steps, signals, children, lists), internal/work (claims,
// workers, leases, schedules, namespaces, keys, notifications), internal/race (concurrent calls)
// and internal/model (random calls, compared with a model of the contract). The model suite tries a
// few seeds; -storetest.model=N and -storetest.steps=N (after -args) make it longer,
// KAGZI_TEST_SEED=N replays one seed.
//
// SameRows compares several stores after the same calls. Passes runs the cases without the testing
// package; TestSabotage uses it to check that broken stores fail.
package storetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/backends/storetest/internal/model"
	"github.com/kagzi/kagzi/backends/storetest/internal/race"
	"github.com/kagzi/kagzi/backends/storetest/internal/runs"
	"github.com/kagzi/kagzi/backends/storetest/internal/work"
	"github.com/kagzi/kagzi/engine"
)

// suite holds the cases about one subject.
type suite struct {
	name  string
	cases []fixture.Case
}

// suites returns all suites in reading order.
func suites() []suite {
	return []suite{
		{"store", runs.StoreCases},
		{"start", runs.StartCases},
		{"claim", work.ClaimCases},
		{"hand-off", work.HandOffCases},
		{"step", runs.StepCases},
		{"sleep", runs.SleepCases},
		{"retry", runs.RetryCases},
		{"clock", runs.ClockCases},
		{"finish", runs.FinishCases},
		{"cancel", runs.CancelCases},
		{"grace", runs.GraceCases},
		{"continue", runs.ContinueCases},
		{"deadline", runs.DeadlineCases},
		{"handler", runs.HandlerCases},
		{"signal", runs.SignalCases},
		{"child", runs.ChildCases},
		{"order", runs.OrderCases},
		{"kept", runs.KeptCases},
		{"key", slices.Concat(runs.KeyCases, runs.OpenKeyCases, runs.OpenKeyKeptCases)},
		{"pause", slices.Concat(runs.PauseCases, runs.PausingCases)},
		{"repair", slices.Concat(runs.AgainCases, runs.OverrideCases, runs.ImportedCases, runs.ImportedFieldsCases)},
		{"schedule", slices.Concat(work.ScheduleCases, work.ScheduleTickCases)},
		{"namespace", slices.Concat(work.NamespaceCases, work.NamespaceEndCases)},
		{"api key", work.APIKeyCases},
		{"session", work.SessionCases},
		{"hook", work.HookCases},
		{"many api keys", race.ManyKeysCases},
		{"fence", work.FenceCases},
		{"worker", work.WorkerCases},
		{"lost", work.LostCases},
		{"suspects", work.SuspectCases},
		{"divergence", work.DivergenceCases},
		{"limits", runs.LimitsCases},
		{"list", runs.ListCases},
		{"text", runs.TextCases},
		{"notification", slices.Concat(work.NotificationCases, work.NotificationAroundCases)},
		{"upkeep", work.UpkeepCases},
		{"ticket", work.TicketCases},
		{"race", slices.Concat(race.RaceCases, race.RaceWorkerCases, race.RaceAroundCases)},
		{"model", model.ModelCases()},
	}
}

// crowded names the suites in which several goroutines call a store at once.
var crowded = []string{"store", "hand-off", "step", "key", "schedule", "many api keys", "limits", "notification",
	"ticket", "race"}

// Run checks that the stores that open returns keep the contract. Each case gets its own store;
// open registers its Close with tb.Cleanup. names, if given, selects suites. With -short and the
// race detector, only suites with concurrent calls run.
func Run(t *testing.T, open func(tb testing.TB) engine.Store, names ...string) {
	for _, c := range suites() {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		if raced && testing.Short() && !slices.Contains(crowded, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			for _, test := range c.cases {
				t.Run(test.Name, func(t *testing.T) {
					t.Parallel()
					test.Run(fixture.New(t, open(t)))
				})
			}
		})
	}
}

// Passes runs the named cases, or all if no name is given, and returns those that fail, as
// "suite/case: why". A name is "suite/case" or "suite".
func Passes(open func(fixture.T) engine.Store, names ...string) (failed []string) {
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		slots = make(chan struct{}, 2*runtime.GOMAXPROCS(0))
	)
	for _, c := range suites() {
		for _, test := range c.cases {
			name := c.name + "/" + test.Name
			if len(names) > 0 && !slices.Contains(names, name) && !slices.Contains(names, c.name) {
				continue
			}
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				if why := attempt(open, test); why != "" {
					mu.Lock()
					defer mu.Unlock()
					failed = append(failed, name+": "+why)
				}
			})
		}
	}
	group.Wait()
	slices.Sort(failed)
	return failed
}

// attempt runs one case on its own goroutine, which Fatalf may end, and returns why it failed.
func attempt(open func(fixture.T) engine.Store, test fixture.Case) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	r := &recorder{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.cleanUp()
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				r.failure = fmt.Sprintf("panic: %v", p)
			}
		}()
		test.Run(fixture.New(r, open(r)))
	}()
	<-done
	return r.failure
}

// recorder is a T that stores the failure. Like *testing.T it is used by one goroutine.
type recorder struct {
	ctx      context.Context
	failure  string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) cleanUp() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}
