package kagzitest_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// historyOf lists what a run and its children have recorded. Results of different branches that came at
// one moment may be in any order.
func historyOf(t *testing.T, env *kagzitest.Env, run *kagzi.Run) string {
	t.Helper()
	id, err := engine.ParseID(run.ID())
	if err != nil {
		t.Fatal(err)
	}
	steps, _, err := env.Store().GetHistory(t.Context(), engine.HistoryParams{Namespace: "default", RunID: id,
		Bytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	moment := func(s engine.Step) time.Time { return s.FinishedAt.Truncate(50 * time.Millisecond) }
	slices.SortFunc(steps, func(a, b engine.Step) int {
		return cmp.Or(moment(a).Compare(moment(b)), cmp.Compare(a.Branch, b.Branch), cmp.Compare(a.Settled, b.Settled))
	})
	var out strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&out, "%s: kind %d, status %d, attempt %d, branch %q, %s\n", s.Name, s.Kind, s.Status, s.Attempt,
			s.Branch, s.Output.Data)
	}
	return out.String()
}

// modes run a program with each handling of parked runs.
var modes = map[string]func(t *testing.T, test func(t *testing.T, env *kagzitest.Env)){
	"always suspended": func(t *testing.T, test func(t *testing.T, env *kagzitest.Env)) {
		kagzitest.Run(t, test, kagzitest.AlwaysSuspend)
	},
	"never suspended": func(t *testing.T, test func(t *testing.T, env *kagzitest.Env)) {
		kagzitest.Run(t, test, kagzitest.NeverSuspend)
	},
	"some kept": func(t *testing.T, test func(t *testing.T, env *kagzitest.Env)) { kagzitest.RunKeeping(t, 1, test) },
}

func TestARandomProgramLeavesOneHistoryWhateverIsKeptInMemory(t *testing.T) {
	n := *programs
	if testing.Short() {
		n = min(n, 5)
	}
	for seed := *firstProgram; seed < *firstProgram+uint64(n) && !t.Failed(); seed++ {
		histories := map[string]string{}
		var p program
		for mode, run := range modes {
			run(t, func(t *testing.T, env *kagzitest.Env) {
				p = (&author{Rand: rand.New(rand.NewPCG(seed, 7)), prefix: "call-"}).program(2)
				apart(p, new(int))
				activations := 0
				kagzi.Handle(env.Worker, "nap", nap)
				all := outcomes{T: t, seen: map[string]string{}}
				kagzi.Handle(env.Worker, "program", func(ctx kagzi.Context, _ int) (int, error) {
					activations++
					return 1, p.run(ctx, &all)
				})
				env.Start()
				run, err := kagzi.Start(t.Context(), env.Client, "program", 0, kagzi.StartOptions{})
				if err != nil {
					t.Fatal(err)
				}
				p.each(func(c *call) {
					if c.kind == "signal" {
						time.AfterFunc(c.sent, func() {
							_ = kagzi.Signal(t.Context(), run, c.name, 1, kagzi.SignalOptions{})
						})
					}
				})
				if _, err := kagzi.Result[int](t.Context(), run); err != nil {
					t.Errorf("%s, seed %d: %v\n%s", mode, seed, err, p)
				}
				histories[mode] = historyOf(t, env, run)
				if mode == "never suspended" && activations != 1 {
					t.Errorf("seed %d: the code of a run that was never suspended began %d times\n%s", seed,
						activations, p)
				}
			})
		}
		for mode, history := range histories {
			if want := histories["always suspended"]; history != want {
				t.Errorf("seed %d: %s it leaves\n%s, always suspended\n%s\n%s", seed, mode, history, want, p)
			}
		}
	}
}

// apart makes the calls of a program take different times, so that no two results come at one moment by
// chance.
func apart(p program, n *int) {
	p.each(func(c *call) {
		*n++
		c.takes += time.Duration(*n) * 137 * time.Millisecond
		for i := range c.children {
			c.children[i] += time.Duration(*n*5+i) * 139 * time.Millisecond
		}
	})
}
