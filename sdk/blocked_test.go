package kagzi

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

//go:noinline
func stuckFor(d time.Duration) { time.Sleep(d) }

func TestBlockedWorkflowCode(t *testing.T) {
	const says = "workflow code is blocked outside of SDK calls"
	for _, c := range []struct {
		name    string
		code    func(ctx Context, _ struct{}) (int, error)
		reports int
		has     string
	}{
		{"for ten seconds is reported once with its stack",
			func(Context, struct{}) (int, error) {
				stuckFor(10 * time.Second)
				return 0, nil
			}, 1, "run=r type=w for=5s"},
		{"for ten minutes is reported less and less often",
			func(Context, struct{}) (int, error) { stuckFor(10 * time.Minute); return 0, nil }, 4, "run=r type=w for="},
		{"after a step is reported",
			func(ctx Context, _ struct{}) (int, error) {
				_, err := Step(ctx, "s", func(context.Context) (int, error) { time.Sleep(time.Minute); return 1, nil })
				stuckFor(10 * time.Second)
				return 0, err
			}, 1, "for=5s"},
		{"in a branch is reported with the branch",
			func(ctx Context, _ struct{}) (int, error) {
				Go(ctx, func(Context) (int, error) { return 0, nil })
				return Go(ctx, func(Context) (int, error) { stuckFor(10 * time.Second); return 0, nil }).Wait(ctx)
			}, 1, "branch=2 for=5s"},
		{"for less than five seconds at a time is not reported",
			func(ctx Context, _ struct{}) (int, error) {
				for range 5 {
					stuckFor(4 * time.Second)
					if _, err := Step(ctx, "s", constant(1)); err != nil {
						return 0, err
					}
				}
				return 0, nil
			}, 0, ""},
		{"that waits in calls of the SDK is not reported",
			func(ctx Context, _ struct{}) (int, error) {
				f := Go(ctx, func(ctx Context) (int, error) {
					return Step(ctx, "long", func(context.Context) (int, error) {
						time.Sleep(5 * time.Minute)
						return 1, nil
					})
				})
				Sleep(ctx, "nap", time.Minute)
				if _, err := f.Wait(ctx); err != nil {
					return 0, err
				}
				_, err := RunChild[int](ctx, "c", "child", 1, ChildOptions{})
				return 0, err
			}, 0, ""},
		{"that waits for its goroutine's step is not reported",
			func(ctx Context, _ struct{}) (n int, err error) {
				var group sync.WaitGroup
				group.Go(func() {
					n, err = Step(ctx, "long", func(context.Context) (int, error) {
						time.Sleep(time.Minute)
						return 1, nil
					})
				})
				group.Wait()
				return n, err
			}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := logOf(t, c.code).with(says)
			if len(got) != c.reports {
				t.Errorf("got %q, want %d reports", got, c.reports)
			}
			for _, line := range got {
				if !strings.Contains(line, c.has) || !strings.Contains(line, "sdk.stuckFor(") ||
					strings.Contains(line, "(*execution).run(") {
					t.Errorf("got %q, want %q and the stack of stuckFor", line, c.has)
				}
			}
		})
	}
}

func TestBlockedCodeInHeartbeats(t *testing.T) {
	t.Run("has its branch, time and stack, until it goes on", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				Sleep(ctx, "nap", time.Hour)
				_, err := Go(ctx, func(Context) (int, error) { stuckFor(30 * time.Second); return 0, nil }).Wait(ctx)
				return 0, errors.Join(err, Do(ctx, "long", func(context.Context) error { time.Sleep(time.Minute); return nil }))
			})
			running(t, w)
			f.start("r", "w", "")
			f.until(t, func() bool { return len(f.blocked) > 0 })
			b := f.blocked[0]
			if len(f.blocked) != 1 || b.GetRunId() != "r" || b.GetBranch() != "1" || len(b.GetHeld()) > 0 ||
				!strings.Contains(b.GetStack(), "sdk.stuckFor(") || len(b.GetStack()) > 4096 {
				t.Fatalf("reported %v", f.blocked)
			}
			if d := f.now().Sub(b.GetSince().AsTime()); d < 5*time.Second || d > 16*time.Second {
				t.Fatalf("blocked for %v", d)
			}
			f.until(t, func() bool { return len(f.blocked) == 0 })
			f.await(t, "r")
		})
	})

	t.Run("has the calls that are held and those that are owed", func(t *testing.T) {
		lines := &logLines{}
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			w.log = lines.logger()
			pass := 0
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				if pass++; pass == 1 {
					_ = Do(ctx, "a", func(context.Context) error { return nil })
					Sleep(ctx, "nap", time.Hour)
				}
				other := Go(ctx, func(ctx Context) (int, error) {
					stuckFor(30 * time.Second)
					err := Do(ctx, "a", func(context.Context) error { return nil })
					Sleep(ctx, "nap", time.Hour)
					return 0, err
				})
				err := Do(ctx, "b", func(context.Context) error { return nil })
				_, failed := other.Wait(ctx)
				return 0, errors.Join(err, failed)
			})
			running(t, w)
			f.start("r", "w", "")
			f.until(t, func() bool { return len(f.blocked) == 2 })
			b := f.blocked[0]
			if b.GetStack() != "" {
				b = f.blocked[1]
			}
			equal(t, callNames(b.GetHeld()), "step b")
			equal(t, callNames(b.GetOwed()), "step a, sleep nap")
			if r := f.await(t, "r"); r.Error != nil {
				t.Fatalf("failed: %v", r.Error)
			}
		})
		if got := lines.with("are held until"); len(got) != 1 || !strings.Contains(got[0], "for=5s") ||
			!strings.Contains(got[0], `held="step b" owed="step a, sleep nap"`) {
			t.Fatalf("logged %q", got)
		}
	})
}
