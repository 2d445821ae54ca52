// Package storetest is the contract of engine.Store as tests, written once. A backend passes it by
//
//	func TestStore(t *testing.T)      { storetest.Run(t, open) }
//	func BenchmarkStore(b *testing.B) { storetest.Bench(b, open) }
//
// where open gives a fresh, empty store. The model run tries a few seeds; -storetest.model=N and -storetest.steps=N (after -args)
// make it longer, KAGZI_TEST_SEED=N replays one. SameRows gives the same calls to two stores. Passes runs the same cases without
// the testing package, so that a store that is spoiled on purpose can be seen to fail them.
package storetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// T is what a case needs of *testing.T.
type T interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Cleanup(func())
}

// testCase is one sentence of the contract and the proof of it.
type testCase struct {
	name string
	run  func(s *stage)
}

// chapter is the cases of one file.
type chapter struct {
	name  string
	cases []testCase
}

// chapters are in reading order.
func chapters() []chapter {
	return []chapter{
		{"store", storeCases},
		{"start", startCases},
		{"claim", claimCases},
		{"taker", takerCases},
		{"step", stepCases},
		{"sleep", sleepCases},
		{"retry", retryCases},
		{"finish", finishCases},
		{"cancel", cancelCases},
		{"grace", graceCases},
		{"continue", continueCases},
		{"deadline", deadlineCases},
		{"handler", handlerCases},
		{"signal", signalCases},
		{"child", childCases},
		{"key", keyCases},
		{"pause", pauseCases},
		{"repair", slices.Concat(againCases, overrideCases, importedCases)},
		{"schedule", scheduleCases},
		{"namespace", namespaceCases},
		{"api key", apiKeyCases},
		{"many api keys", manyKeysCases},
		{"fence", fenceCases},
		{"worker", workerCases},
		{"lost", lostCases},
		{"limits", limitsCases},
		{"list", listCases},
		{"text", textCases},
		{"bell", slices.Concat(bellCases, bellAroundCases)},
		{"upkeep", upkeepCases},
		{"turn", turnCases},
		{"race", slices.Concat(raceCases, raceAroundCases)},
		{"model", modelCases()},
	}
}

// crowded are the chapters in which several goroutines call a store at once.
var crowded = []string{"store", "taker", "step", "key", "schedule", "many api keys", "limits", "bell", "turn", "race"}

// Run checks that the stores that open makes keep the contract. Each case gets a store of its own; open registers the
// closing of it with tb.Cleanup. Of names, if any are given, only those chapters are tried. With -short the race detector sees only the
// chapters in which there is something for it.
func Run(t *testing.T, open func(tb testing.TB) engine.Store, names ...string) {
	for _, c := range chapters() {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		if raced && testing.Short() && !slices.Contains(crowded, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			for _, test := range c.cases {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(newStage(t, open(t)))
				})
			}
		})
	}
}

// Passes runs the cases of these names, or all cases when no name is given, and returns those that fail, as
// "chapter/case: why". A name is "chapter/case" or "chapter".
func Passes(open func(T) engine.Store, names ...string) (failed []string) {
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		slots = make(chan struct{}, 2*runtime.GOMAXPROCS(0))
	)
	for _, c := range chapters() {
		for _, test := range c.cases {
			name := c.name + "/" + test.name
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

// attempt runs one case on a goroutine of its own, which Fatalf may end, and returns why it failed.
func attempt(open func(T) engine.Store, test testCase) string {
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
		test.run(newStage(r, open(r)))
	}()
	<-done
	return r.failure
}

// recorder is a T that remembers the failure. Like *testing.T it is used by one goroutine.
type recorder struct {
	ctx      context.Context
	failure  string
	cleanups []func()
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Logf(string, ...any)      {}
func (r *recorder) Cleanup(f func())         { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) cleanUp() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}
