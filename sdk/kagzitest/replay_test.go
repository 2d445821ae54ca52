package kagzitest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// exported returns the current record of the run for a replay.
func exported(t *testing.T, _ *kagzitest.Env, run *kagzi.Run) *kagzi.Capsule {
	t.Helper()
	c, err := record(t, run)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// record is exported for times when the server may be away.
func record(t *testing.T, run *kagzi.Run) (*kagzi.Capsule, error) {
	name := filepath.Join(t.TempDir(), "run.kagzi")
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(run.Export(t.Context(), file, kagzi.ExportOptions{}), file.Close()); err != nil {
		return nil, err
	}
	c, err := kagzi.OpenCapsule(name)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// Code agrees with its own record, whenever that is taken.
func TestARunAgreesWithItsOwnCode(t *testing.T) {
	for _, c := range []struct {
		name  string
		retry *kagzi.Retry
		after time.Duration // its start
		code  func(ctx kagzi.Context, in int) (int, error)
	}{
		{"past a sleep that ended while a branch kept the run", nil, 2 * time.Minute,
			func(ctx kagzi.Context, _ int) (int, error) {
				beside := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
					works(ctx, "long", 10*time.Minute)
					return 0, nil
				})
				kagzi.Sleep(ctx, "short", time.Minute)
				works(ctx, "after", time.Second)
				return beside.Wait(ctx)
			}},
		{"retried as a whole, without a step that had failed", &kagzi.Retry{Attempts: 2},
			time.Minute,
			func(ctx kagzi.Context, _ int) (int, error) {
				fail := func(context.Context) (int, error) { return 0, kagzi.NonRetryable(errors.New("out of order")) }
				if _, err := kagzi.Step(ctx, "charge", func(ctx context.Context) (int, error) {
					if kagzi.Attempt(ctx) == 1 {
						return 0, kagzi.NonRetryable(errors.New("no bank"))
					}
					return 1, nil
				}); err != nil {
					_, _ = kagzi.Step(ctx, "complain", fail)
					kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
						return kagzi.WaitSignal[int](ctx, "answer", 0)
					})
					works(ctx, "meanwhile", time.Second)
					return 0, errors.New("not charged")
				}
				kagzi.Sleep(ctx, "cool-off", time.Hour)
				return 1, nil
			}},
		{"with the first of two results, without the other", nil, time.Minute,
			func(ctx kagzi.Context, _ int) (int, error) {
				results := make(chan int, 2)
				for i, took := range []time.Duration{time.Second, 10 * time.Minute} {
					kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
						n, err := kagzi.Step(ctx, []string{"fast", "slow"}[i], func(ctx context.Context) (int, error) {
							select {
							case <-time.After(took):
							case <-ctx.Done():
							}
							return 1, ctx.Err()
						})
						if err != nil {
							n = -1
						}
						results <- n
						return n, nil
					})
				}
				select {
				case n := <-results:
					return n, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
				kagzi.Handle(env.Worker, "order", c.code)
				env.Start()
				run, err := kagzi.Start(t.Context(), env.Client, "order", 0, kagzi.StartOptions{RunRetry: c.retry})
				if err != nil {
					t.Fatal(err)
				}
				env.Pass(c.after)
				record := exported(t, env, run)
				for range 20 {
					if err := kagzi.Replay(record, c.code, kagzi.ReplayOptions{}); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// The server completes a sleep only when the run's lease ends. A sleep that was over while another
// branch kept the run on its worker is not the end of the record.
func TestACancelledRunReplaysPastASleepThatWasOver(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		code := func(ctx kagzi.Context, _ int) (int, error) {
			beside := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
				works(ctx, "long", 10*time.Minute)
				return 0, nil
			})
			kagzi.Sleep(ctx, "short", time.Minute)
			if ctx.Err() != nil {
				works(kagzi.Cleanup(ctx), "undo", time.Second)
				return 0, kagzi.ErrCancelled
			}
			works(ctx, "after", time.Second)
			return beside.Wait(ctx)
		}
		kagzi.Handle(env.Worker, "order", code)
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "order", 0, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		env.Pass(2 * time.Minute)
		if err := run.CancelGracefully(t.Context(), time.Hour, ""); err != nil {
			t.Fatal(err)
		}
		env.Pass(time.Minute)
		if err := kagzi.Replay(exported(t, env, run), code, kagzi.ReplayOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := run.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
