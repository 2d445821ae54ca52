package snippets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// step is a step that writes down that it ran.
func step(ctx kagzi.Context, ran *[]string, name string) (string, error) {
	return kagzi.Step(ctx, name, func(context.Context) (string, error) {
		*ran = append(*ran, name)
		return name, nil
	})
}

// What the chapter about versioning says of runs whose code has changed while they were parked.
func TestChangedCodeUnderAnOpenRun(t *testing.T) {
	for name, c := range map[string]struct {
		after func(ctx kagzi.Context, ran *[]string) (string, error) // the new code; the old one is: charge, pause
		ran   string
		fails string // the error type, or the beginning of the message; "diverged": the run is paused
	}{
		"a new step behind recorded calls runs": {func(ctx kagzi.Context, ran *[]string) (string, error) {
			charge, err := step(ctx, ran, "charge")
			kagzi.Sleep(ctx, "pause", time.Hour)
			_, err2 := step(ctx, ran, "new")
			return charge, errors.Join(err, err2)
		}, "charge new", ""},
		"a new step before a recorded call does not run": {func(ctx kagzi.Context, ran *[]string) (string, error) {
			_, err := step(ctx, ran, "new")
			charge, err2 := step(ctx, ran, "charge")
			kagzi.Sleep(ctx, "pause", time.Hour)
			return charge, errors.Join(err, err2)
		}, "charge", "diverged"},
		"a step that is gone is missed at the next new one": {func(ctx kagzi.Context, ran *[]string) (string, error) {
			kagzi.Sleep(ctx, "pause", time.Hour)
			return step(ctx, ran, "ship")
		}, "charge", "diverged"},
		"a renamed step does not run": {func(ctx kagzi.Context, ran *[]string) (string, error) {
			charge, err := step(ctx, ran, "charge-card")
			kagzi.Sleep(ctx, "pause", time.Hour)
			return charge, err
		}, "charge", "diverged"},
		"a moved step is found": {func(ctx kagzi.Context, ran *[]string) (string, error) {
			kagzi.Sleep(ctx, "pause", time.Hour)
			return step(ctx, ran, "charge")
		}, "charge", ""},
		"another kind of call diverges": {func(ctx kagzi.Context, ran *[]string) (string, error) {
			kagzi.Sleep(ctx, "charge", time.Hour)
			return "", nil
		}, "charge", "diverged"},
		"a result of another type fails": {func(ctx kagzi.Context, _ *[]string) (string, error) {
			_, err := kagzi.Step(ctx, "charge", func(context.Context) (int, error) { return 0, nil })
			return "", err
		}, "charge", "recorded result of step charge"},
	} {
		var ran []string
		activations := 0
		in(t, func(w *kagzi.Worker) {
			kagzi.Handle(w, "order", func(ctx kagzi.Context, _ int) (string, error) {
				if activations++; activations > 1 {
					return c.after(ctx, &ran)
				}
				charge, err := step(ctx, &ran, "charge")
				kagzi.Sleep(ctx, "pause", time.Hour)
				return charge, err
			})
		}, func(t *testing.T, env *kagzitest.Env) {
			run := start(t, env, "order", 0, kagzi.StartOptions{})
			if c.fails == "diverged" {
				env.Pass(2 * time.Hour)
				if d, err := run.Describe(t.Context()); err != nil || !d.Paused {
					t.Errorf("%s: not paused: %+v, %v", name, d, err)
				}
				if got := strings.Join(ran, " "); got != c.ran {
					t.Errorf("%s: ran %q, want %q", name, got, c.ran)
				}
				return
			}
			_, err := kagzi.Result[string](t.Context(), run)
			var failed *kagzi.RunError
			switch {
			case c.fails == "" && err != nil:
				t.Errorf("%s: %v", name, err)
			case c.fails == "":
			case !errors.As(err, &failed), failed.Type != c.fails && !strings.HasPrefix(failed.Message, c.fails):
				t.Errorf("%s: got %v, want %s", name, err, c.fails)
			}
			if got := strings.Join(ran, " "); got != c.ran {
				t.Errorf("%s: ran %q, want %q", name, got, c.ran)
			}
		})
	}
}

// What the chapters say of single calls.
func TestCallsThatTheGuideDescribes(t *testing.T) {
	for name, c := range map[string]struct {
		code func(ctx kagzi.Context) (string, error)
		want string // the result, or the error's type, or a part of its message
	}{
		"a panic in a step is retried": {func(ctx kagzi.Context) (string, error) {
			return kagzi.Step(ctx, "s", func(ctx context.Context) (string, error) {
				if kagzi.Attempt(ctx) == 1 {
					panic("oops")
				}
				return fmt.Sprint(kagzi.Attempt(ctx)), nil
			})
		}, "2"},
		"a repeated name is numbered": {func(ctx kagzi.Context) (string, error) {
			keys := ""
			for range 2 {
				_, err := kagzi.Step(ctx, "s", func(ctx context.Context) (int, error) {
					_, key, _ := strings.Cut(kagzi.IdempotencyKey(ctx), "/")
					keys += key + " "
					return 0, nil
				})
				if err != nil {
					return "", err
				}
			}
			return keys, nil
		}, "s s:2 "},
		"two branches with one name fail the run": {func(ctx kagzi.Context) (string, error) {
			_, err := kagzi.Map(ctx, []int{1, 2}, func(ctx kagzi.Context, n int) (int, error) {
				return kagzi.Step(ctx, "s", func(context.Context) (int, error) { return n, nil })
			})
			return "", err
		}, "step_name_clash"},
		"an SDK call within a step fails the run": {func(ctx kagzi.Context) (string, error) {
			return kagzi.Step(ctx, "s", func(context.Context) (string, error) {
				kagzi.Sleep(ctx, "inside", time.Second)
				return "", nil
			})
		}, "within_step"},
		"a sleep of more than ten years fails the run": {func(ctx kagzi.Context) (string, error) {
			kagzi.Sleep(ctx, "s", 11*365*24*time.Hour)
			return "", nil
		}, "duration: must be between 1 ms and 10 years"},
		"a wait of more than ten years fails the run": {func(ctx kagzi.Context) (string, error) {
			return kagzi.WaitSignal[string](ctx, "s", 11*365*24*time.Hour)
		}, "timeout: must be between 1 ms and 10 years"},
		"a wait with a limit below 0 takes what is there": {func(ctx kagzi.Context) (string, error) {
			_, err := kagzi.WaitSignal[string](ctx, "s", -1)
			return fmt.Sprint(errors.Is(err, kagzi.ErrTimeout)), nil
		}, "true"},
		"a step's result over 2 MiB fails the step": {func(ctx kagzi.Context) (string, error) {
			_, err := kagzi.Step(ctx, "s", func(context.Context) ([]byte, error) { return make([]byte, 2<<20), nil })
			var failed *kagzi.StepError
			return fmt.Sprint(errors.As(err, &failed) && failed.NonRetryable, failed.Attempts), nil
		}, "true 1"},
		"a timeout is ErrTimeout": {func(ctx kagzi.Context) (string, error) {
			_, err := kagzi.Step(ctx, "s", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}, kagzi.Timeout(time.Minute), kagzi.Retry{Attempts: 1})
			return fmt.Sprint(errors.Is(err, kagzi.ErrTimeout)), nil
		}, "true"},
		"a Cleanup without a cancellation is like the context": {func(ctx kagzi.Context) (string, error) {
			return kagzi.Step(kagzi.Cleanup(ctx), "s", func(context.Context) (string, error) { return "done", nil })
		}, "done"},
	} {
		in(t, func(w *kagzi.Worker) {
			kagzi.Handle(w, "w", func(ctx kagzi.Context, _ int) (string, error) { return c.code(ctx) })
		}, func(t *testing.T, env *kagzitest.Env) {
			got, err := kagzi.Result[string](t.Context(), start(t, env, "w", 0, kagzi.StartOptions{}))
			var failed *kagzi.RunError
			if errors.As(err, &failed) && (failed.Type == c.want || strings.Contains(failed.Message, c.want)) {
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
			}
		})
	}
}

func TestTriggeredRunHasNoTick(t *testing.T) {
	in(t, func(w *kagzi.Worker) {
		kagzi.Handle(w, "report", func(ctx kagzi.Context, _ int) (bool, error) {
			return kagzi.Info(ctx).ScheduledAt.IsZero(), nil
		})
	}, func(t *testing.T, env *kagzitest.Env) {
		s, err := kagzi.CreateSchedule(t.Context(), env.Client, "report", "0 3 * * *", 0, kagzi.ScheduleOptions{})
		if err != nil {
			t.Fatal(err)
		}
		run, err := s.Trigger(t.Context(), kagzi.TriggerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, run, true)
		env.Pass(4 * time.Hour)
		for d, err := range s.Runs(t.Context()) { // the newest is that of the tick
			want := "schedule:" + s.ID() + ":2000-01-01T03:00:00Z"
			if err != nil || d.ExternalID != want {
				t.Errorf("got %s, %v, want %s", d.ExternalID, err, want)
			}
			break
		}
	})
}

// Resuming a schedule skips what it missed, but for the ticks that it is to catch up.
func TestResumedSchedule(t *testing.T) {
	for _, c := range []struct{ catchup, most, runs int }{{0, 100, 0}, {100, 100, 3}, {2, 100, 2}, {3, 2, 2},
		{3, 0, 0}} {
		kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
			s, err := kagzi.CreateSchedule(t.Context(), env.Client, "report", "@daily", 0,
				kagzi.ScheduleOptions{Paused: true})
			if err != nil {
				t.Fatal(err)
			}
			env.Pass(3*24*time.Hour + time.Minute)
			if _, err := s.Update(t.Context(), kagzi.ScheduleUpdate{MaxCatchup: &c.most}); err != nil {
				t.Fatal(err)
			}
			resume := func() error { return s.ResumeCatchingUp(t.Context(), c.catchup, "") }
			if c.catchup == 0 {
				resume = func() error { return s.Resume(t.Context(), "") }
			}
			if err := resume(); err != nil {
				t.Fatal(err)
			}
			env.Pass(time.Minute)
			d, err := s.Describe(t.Context())
			if err != nil || d.TotalRuns != int64(c.runs) || d.SkippedTicks != int64(3-c.runs) {
				t.Errorf("catch-up %d of at most %d: got %d runs and %d skipped, %v, want %d and %d",
					c.catchup, c.most, d.TotalRuns, d.SkippedTicks, err, c.runs, 3-c.runs)
			}
		})
	}
}
