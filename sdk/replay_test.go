package kagzi

import (
	"context"
	"fmt"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestReplay(t *testing.T) {
	t.Run("Now, Random and NewUUID are the same in every replay", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var seen []string
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				draw := func(ctx Context) (string, error) {
					return fmt.Sprint(Now(ctx).UnixNano(), Random(ctx).Uint64(), NewUUID(ctx), Random(ctx).Uint64(),
						NewUUID(ctx), Now(ctx)), nil
				}
				all, err := Map(ctx, []int{1, 2}, func(ctx Context, _ int) (string, error) { return draw(ctx) })
				own, _ := draw(ctx)
				seen = append(seen, fmt.Sprint(all, own))
				if all[0] == all[1] || all[0] == own {
					t.Errorf("branches draw the same: %v %v", all, own)
				}
				Sleep(ctx, "s", time.Hour)
				return 0, err
			})
			running(t, w)
			f.start("r", "w", "")
			if r := f.await(t, "r"); r.Error != nil {
				t.Fatal(r.Error)
			}
			if len(seen) != 2 || seen[0] != seen[1] {
				t.Fatalf("replays differ: %q", seen)
			}
		})
	})

	t.Run("a step where the history has a sleep is a divergence", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			pass := 0
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				if pass++; pass == 1 {
					Sleep(ctx, "x", time.Hour)
				}
				return Step(ctx, "x", never(t))
			})
			running(t, w)
			f.start("r", "w", "")
			f.until(t, func() bool { return len(f.reports) > 0 })
			made, owed := f.reports[0].GetMade(), f.reports[0].GetOwed()
			equal(t, callNames(made), "step x")
			equal(t, callNames(owed), "sleep x")
		})
	})

	t.Run("a recorded result of another type fails the run", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			pass := 0
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				if pass++; pass == 1 {
					_, _ = Step(ctx, "x", constant("text"))
					Sleep(ctx, "s", time.Hour)
				}
				return Step(ctx, "x", constant(1))
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, f.await(t, "r").Error.GetMessage(),
				"recorded result of step x: cannot be read as int: json: cannot unmarshal string into Go value of type int")
		})
	})

	t.Run("a history in pages is whole before the code begins", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.pageSize = 3
			w := testWorker(f)
			ran := 0
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				for i := range 10 {
					_, _ = Step(ctx, fmt.Sprintf("s%d", i), func(context.Context) (int, error) { ran++; return i, nil })
				}
				Sleep(ctx, "s", time.Hour)
				return ran, nil
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "10")
		})
	})

	t.Run("a note is not repeated in replay", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				Note(ctx, "first")
				_, _ = Step(ctx, "a", constant(1))
				Sleep(ctx, "s", time.Hour)
				Note(ctx, "second")
				return Step(ctx, "b", constant(1))
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			equal(t, f.operations(), []string{"hello ", "claim r", "note first", "complete a", "sleep s hold=false",
				"claim r", "note second", "complete b", "end r"})
		})
	})
}

// mostSteps is the limit for steps of a run.
const mostSteps = 10_000

// replayer returns a function that replays runs with n recorded steps each, in sequence, and
// returns how long that took.
func replayer(t testing.TB) func(runs, n int) time.Duration {
	t.Helper()
	f := newFake(t)
	f.pageSize = mostSteps / 4
	w := testWorker(f)
	Handle(w, "w", func(ctx Context, n int) (int, error) {
		total := 0
		for range n {
			v, err := Step(ctx, "step", constant(-1))
			if err != nil {
				return 0, err
			}
			total += v
		}
		return total, nil
	})
	running(t, w)
	started := 0
	return func(runs, n int) time.Duration {
		var steps []*kagziv1.Step
		for i := range n {
			name := "step"
			if i > 0 {
				name = fmt.Sprintf("step:%d", i+1)
			}
			steps = append(steps, &kagziv1.Step{Name: name, Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, AttemptNumber: 1,
				Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED,
				Output: &kagziv1.Payload{Data: []byte("1"), Metadata: jsonMetadata}})
		}
		began := time.Now()
		for range runs {
			started++
			id, input := fmt.Sprint("r", started), &kagziv1.Payload{Data: fmt.Append(nil, n)}
			f.mu.Lock()
			f.add(id, &kagziv1.StartWorkflowRequest{WorkflowType: "w", Input: input}).steps = steps
			f.pump()
			f.mu.Unlock()
			equal(t, string(f.await(t, id).Output.GetData()), fmt.Sprint(n))
		}
		return time.Since(began)
	}
}

// A run with the most steps should take about as long as ten runs with a tenth each; searching the
// history at each step would take ten times as long. The best of several tries counts, since other
// work on the machine can slow down any of them.
func TestReplayTimeIsLinearInTheHistory(t *testing.T) {
	const parts, tries = 10, 5
	replay := replayer(t)
	for try := 1; ; try++ {
		whole, pieces := replay(1, mostSteps), replay(parts, mostSteps/parts)
		t.Logf("one run took %s, and %d of a part %s", whole, parts, pieces)
		if whole < 4*pieces {
			return
		}
		if try == tries {
			t.Fatalf("to replay %d steps took %s, and %d times a part %s, each time", mostSteps, whole, parts, pieces)
		}
	}
}

// BenchmarkReplay replays a run with the most steps, sent in pages; it may take 2 s (reliability
// L-05).
func BenchmarkReplay(b *testing.B) {
	replay := replayer(b)
	for b.Loop() {
		replay(1, mostSteps)
	}
}
