package model

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var (
	modelSeeds = flag.Int("storetest.model", 4, "how many seeds the model run tries; KAGZI_TEST_SEED replays one")
	modelSteps = flag.Int("storetest.steps", 400, "how many calls the model run makes for each seed")
)

// act is one call to a store and to the model, with its description.
type act struct {
	text  string
	store func(context.Context, engine.Store) string
	model func(*model) string
	run   engine.ID         // the run that it is about, if any
	still func(*model) bool // for a repetition: whether the contract still defines its answer
}

// stream makes random calls from a seed, most of which make sense. The next call depends on the
// model only.
type stream struct {
	roll   *rand.Rand
	mint   fixture.Mint
	now    time.Time
	model  *model
	leases []engine.Lease // all leases handed out, newest last
	past   []act          // writes under leases, to repeat
	serial int
}

func newStream(seed uint64) *stream {
	return &stream{
		roll: rand.New(rand.NewPCG(seed, seed)), model: newModel(), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
	}
}

// ModelCases returns one case per seed.
func ModelCases() []fixture.Case {
	seeds := make([]uint64, *modelSeeds)
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	if seed, err := strconv.ParseUint(os.Getenv("KAGZI_TEST_SEED"), 10, 64); err == nil {
		seeds = []uint64{seed}
	}
	var cases []fixture.Case
	for _, seed := range seeds {
		cases = append(cases, fixture.Case{Name: fmt.Sprintf("a random life answers like the model, seed %d", seed),
			Run: func(s *fixture.F) {
				follow(s, seed, s.Store)
			}})
	}
	return cases
}

// SameRows applies one random sequence of calls to several stores. They must answer alike and hold
// the same rows afterwards, as seen through their Views.
func SameRows(t *testing.T, opens ...func(tb testing.TB) engine.Store) {
	for seed := range uint64(max(*modelSeeds, 1)) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			var stores []engine.Store
			for _, open := range opens {
				stores = append(stores, open(t))
			}
			s := fixture.New(t, stores[0])
			follow(s, seed+1, stores...)
			want := everything(s, stores[0])
			for _, store := range stores[1:] {
				s.SameText("rows", everything(s, store), want)
			}
		})
	}
}

// follow applies one stream of calls to the model and to the stores, and compares the answers and
// the visible state.
func follow(s *fixture.F, seed uint64, stores ...engine.Store) {
	s.Helper()
	f := newStream(seed)
	var trail []string
	for n := range *modelSteps {
		a := f.next()
		want := a.model(f.model)
		trail = append(trail, fmt.Sprintf("%4d %s -> %s", n, a.text, want))
		for _, store := range stores {
			if got := a.store(s.Ctx, store); got != want && !vaguer(got, want) {
				s.Diverged(seed, trail, "answer", got, want)
			}
			for _, r := range f.model.runs {
				if r.ID != a.run && n%100 != 99 && n != *modelSteps-1 {
					continue
				}
				if got, want := seenRun(s.Ctx, store, r.ID), r.String(); got != want {
					s.Diverged(seed, trail, "run "+r.ID.String(), got, want)
				}
			}
		}
	}
}

// vaguer says whether a store answered LeaseLost where the model answers a conflict. Both refuse:
// an attempt that was closed by its run's end no longer shows what was reported about it.
func vaguer(got, want string) bool {
	return want == errText(engine.ErrConflict) && strings.HasPrefix(got, errText(engine.ErrLeaseLost))
}

// --- Making calls ---

func (f *stream) one(of ...string) string { return of[f.roll.IntN(len(of))] }

func (f *stream) chance(percent int) bool { return f.roll.IntN(100) < percent }

// content returns a text that no earlier call has used.
func (f *stream) content() string {
	f.serial++
	return fmt.Sprint("content ", f.serial)
}

// next makes a call. If the contract leaves its meaning open at this point, it makes another one.
func (f *stream) next() act {
	for {
		if f.chance(30) {
			steps := []time.Duration{time.Millisecond, 300 * time.Millisecond, time.Second, 5 * time.Second,
				time.Minute}
			f.now = f.now.Add(steps[f.roll.IntN(len(steps))])
		}
		if a, ok := f.pick(); ok {
			return a
		}
	}
}

func (f *stream) pick() (act, bool) {
	switch n := f.roll.IntN(100); {
	case n < 14:
		return f.start(), true
	case n < 32:
		return f.claim(), true
	case n < 36:
		return f.end(), true
	case n < 40:
		return f.workerCall()
	case n < 46:
		return f.heartbeat(), true
	case n < 50:
		return f.upkeep()
	case n < 58 && len(f.past) > 0:
		return f.again()
	case n < 63:
		return f.keyCall(), true
	case len(f.leases) > 0:
		return f.work()
	}
	return act{}, false
}
