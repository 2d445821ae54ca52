package kagzitest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// night is a sleep that nothing else of the run should wait for.
const night = time.Hour

// works is a step that takes d.
func works(ctx kagzi.Context, name string, d time.Duration) {
	_, _ = kagzi.Step(ctx, name, func(context.Context) (int, error) { time.Sleep(d); return 0, nil })
}

// What a branch waits for may happen while another branch is active, before the branch has asked
// the server. It must not be missed when the other branch's sleep parks the run.
func TestABranchGoesOnWhenItsWaitIsOverAlthoughASiblingSleeps(t *testing.T) {
	nap := func(ctx kagzi.Context, d time.Duration) (int, error) { kagzi.Sleep(ctx, "nap", d); return 1, nil }
	for _, c := range []struct {
		name   string
		signal time.Duration // when it is sent; 0 for never
		want   time.Duration // when the first branch continues
		code   func(ctx kagzi.Context) (time.Time, error)
	}{
		{"a child that has ended meanwhile", 0, 0,
			func(ctx kagzi.Context) (time.Time, error) {
				f := kagzi.Go(ctx, func(ctx kagzi.Context) (time.Time, error) {
					if _, err := kagzi.RunChild[int](ctx, "child", "nap", time.Duration(0),
						kagzi.ChildOptions{}); err != nil {
						return time.Time{}, err
					}
					return kagzi.Now(ctx), nil
				})
				works(ctx, "work", 500*time.Millisecond)
				kagzi.Sleep(ctx, "night", night)
				return f.Wait(ctx)
			}},
		{"a child that ends later than another", 0, 10 * time.Minute,
			func(ctx kagzi.Context) (time.Time, error) {
				child := func(name string, d time.Duration) *kagzi.Future[time.Time] {
					return kagzi.Go(ctx, func(ctx kagzi.Context) (time.Time, error) {
						if _, err := kagzi.RunChild[int](ctx, name, "nap", d, kagzi.ChildOptions{}); err != nil {
							return time.Time{}, err
						}
						return kagzi.Now(ctx), nil
					})
				}
				child("short", 0)
				f := child("long", 10*time.Minute)
				works(ctx, "work", 500*time.Millisecond)
				kagzi.Sleep(ctx, "night", night)
				return f.Wait(ctx)
			}},
		{"a signal that has come meanwhile", time.Minute + 200*time.Millisecond, time.Minute + 200*time.Millisecond,
			func(ctx kagzi.Context) (time.Time, error) {
				f := kagzi.Go(ctx, func(ctx kagzi.Context) (time.Time, error) {
					if _, err := kagzi.WaitSignal[int](ctx, "go", 0); err != nil {
						return time.Time{}, err
					}
					return kagzi.Now(ctx), nil
				})
				kagzi.Sleep(ctx, "minute", time.Minute)
				works(ctx, "work", 500*time.Millisecond)
				kagzi.Sleep(ctx, "night", night)
				return f.Wait(ctx)
			}},
		{"a child whose end another branch was told of", 0, 5 * time.Second,
			func(ctx kagzi.Context) (time.Time, error) {
				child, err := kagzi.StartChild[int](ctx, "child", "nap", 5*time.Second, kagzi.ChildOptions{})
				if err != nil {
					return time.Time{}, err
				}
				kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
					if _, err := child.Wait(ctx); err != nil {
						return 0, err
					}
					kagzi.Sleep(ctx, "night", night)
					return 0, nil
				})
				f := kagzi.Go(ctx, func(ctx kagzi.Context) (time.Time, error) {
					works(ctx, "late", 500*time.Millisecond)
					if _, err := child.Wait(ctx); err != nil {
						return time.Time{}, err
					}
					return kagzi.Now(ctx), nil
				})
				works(ctx, "work", 7200*time.Millisecond)
				return f.Wait(ctx)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
				began := time.Now()
				kagzi.Handle(env.Worker, "nap", nap)
				kagzi.Handle(env.Worker, "order", func(ctx kagzi.Context, _ int) (time.Time, error) {
					return c.code(ctx)
				})
				env.Start()
				run, err := kagzi.Start(t.Context(), env.Client, "order", 0, kagzi.StartOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if c.signal > 0 {
					env.Pass(c.signal)
					if err := kagzi.Signal(t.Context(), run, "go", 1, kagzi.SignalOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				at, err := kagzi.Result[time.Time](t.Context(), run)
				if err != nil {
					t.Fatal(err)
				}
				if got := at.Sub(began).Round(50 * time.Millisecond); got != c.want {
					t.Errorf("the branch went on after %v, want %v", got, c.want)
				}
			})
		})
	}
}

// The pauses between a wait's questions do not extend its limit.
func TestALimitHoldsBesideABusyBranch(t *testing.T) {
	for _, limit := range []time.Duration{-1, 300 * time.Millisecond, 1500 * time.Millisecond, 30 * time.Second} {
		t.Run(limit.String(), func(t *testing.T) {
			kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
				kagzi.Handle(env.Worker, "order", func(ctx kagzi.Context, _ int) (time.Duration, error) {
					beside := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
						works(ctx, "work", time.Minute)
						return 0, nil
					})
					began := kagzi.Now(ctx)
					_, err := kagzi.WaitSignal[int](ctx, "go", limit)
					if !errors.Is(err, kagzi.ErrTimeout) {
						t.Errorf("err = %v, want a timeout", err)
					}
					took := kagzi.Now(ctx).Sub(began)
					_, _ = beside.Wait(ctx)
					return took, nil
				})
				env.Start()
				run, err := kagzi.Start(t.Context(), env.Client, "order", 0, kagzi.StartOptions{})
				if err != nil {
					t.Fatal(err)
				}
				took, err := kagzi.Result[time.Duration](t.Context(), run)
				if err != nil {
					t.Fatal(err)
				}
				if late := took - max(limit, 0); late < 0 || late > 100*time.Millisecond {
					t.Errorf("the wait took %v, want %v", took, max(limit, 0))
				}
			})
		})
	}
}
