package kagzitest_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// cancelled runs code that is cancelled, with an hour to clean up, at a time after its start. Its
// history must replay.
func cancelled(t *testing.T, env *kagzitest.Env, code func(ctx kagzi.Context, _ int) (int, error),
	after time.Duration) {
	t.Helper()
	kagzi.Handle(env.Worker, "book", code)
	env.Start()
	run, err := kagzi.Start(t.Context(), env.Client, "book", 0, kagzi.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	env.Pass(after)
	if err := run.CancelGracefully(t.Context(), time.Hour, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := kagzi.Replay(exported(t, env, run), code, kagzi.ReplayOptions{}); err != nil {
		t.Error(err)
	}
}

// If code learns of the cancellation only from its Context, it learns it at the same place in every
// activation. Otherwise it would not come back to its cleanup.
func TestCodeThatChecksItsContextCleansUpInFull(t *testing.T) {
	ship := func(ctx kagzi.Context) { works(ctx, "ship", time.Minute) }
	first := map[string]func(ctx kagzi.Context){ // its first call when it cleans up
		"a step":   func(ctx kagzi.Context) {},
		"the time": func(ctx kagzi.Context) { kagzi.Now(kagzi.Cleanup(ctx)) },
		"the time, by the Context that has ended": func(ctx kagzi.Context) { kagzi.Now(ctx) },
		"randomness": func(ctx kagzi.Context) { kagzi.NewUUID(ctx) },
	}
	for _, c := range []struct {
		name   string
		cancel time.Duration // after the start
		code   func(ctx kagzi.Context)
		begin  string // key of first
	}{
		{"behind a step that was at work and succeeds", time.Second,
			func(ctx kagzi.Context) { works(ctx, "ship", time.Minute) }, "a step"},
		{"behind a step, while it computes", 90 * time.Second,
			func(ctx kagzi.Context) { works(ctx, "ship", time.Minute); <-ctx.Done() }, "a step"},
		{"behind a sleep and in branches", 30 * time.Second,
			func(ctx kagzi.Context) {
				kagzi.Sleep(ctx, "nap", time.Second)
				_, _ = kagzi.Map(ctx, []string{"a", "b"}, func(ctx kagzi.Context, name string) (int, error) {
					works(ctx, name, time.Minute)
					return 0, nil
				})
			}, "a step"},
		{"before its first call", time.Second,
			func(ctx kagzi.Context) { <-ctx.Done() }, "a step"},
		{"and its cleanup uses the time", time.Second, ship, "the time"},
		{"and its cleanup uses the time, before the first call", time.Second,
			func(ctx kagzi.Context) { <-ctx.Done() }, "the time"},
		{"and its cleanup uses the time of the ended Context", time.Second, ship,
			"the time, by the Context that has ended"},
		{"and its cleanup uses randomness", time.Second, ship, "randomness"},
	} {
		t.Run(c.name, func(t *testing.T) {
			kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
				var undone []string
				undo := func(ctx kagzi.Context, name string) {
					_, _ = kagzi.Step(ctx, name, func(context.Context) (int, error) {
						undone = append(undone, name)
						return 0, nil
					})
				}
				code := func(ctx kagzi.Context, _ int) (int, error) {
					if c.code(ctx); ctx.Err() == nil {
						return 1, nil
					}
					first[c.begin](ctx)
					ctx = kagzi.Cleanup(ctx)
					undo(ctx, "refund")
					kagzi.Sleep(ctx, "rest", time.Minute)
					undo(ctx, "apologise")
					return 0, kagzi.ErrCancelled
				}
				kagzi.Handle(env.Worker, "order", code)
				env.Start()
				run, err := kagzi.Start(t.Context(), env.Client, "order", 0, kagzi.StartOptions{})
				if err != nil {
					t.Fatal(err)
				}
				env.Pass(c.cancel)
				if err := run.CancelGracefully(t.Context(), time.Hour, ""); err != nil {
					t.Fatal(err)
				}
				if _, err := run.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				record := exported(t, env, run)
				if err := kagzi.Replay(record, code, kagzi.ReplayOptions{}); err != nil {
					t.Error(err)
				}
				if got := undone; !slices.Equal(got, []string{"refund", "apologise"}) {
					t.Errorf("undone was %q, want all, each once", got)
				}
			})
		})
	}
}

// The records of a branch come before the end of its Context, even if another branch has fewer.
func TestABranchReplaysInFullBeforeItsContextEnds(t *testing.T) {
	const rooms = 30
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		var mu sync.Mutex
		undone := map[string]int{}
		undo := func(ctx kagzi.Context, guest, name string) {
			_, _ = kagzi.Step(ctx, "undo-"+name, func(context.Context) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				undone[guest]++
				return 0, nil
			})
		}
		book := func(ctx kagzi.Context, guest string) (int, error) {
			var booked []string
			for i := 0; i < rooms && ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%s-%d", guest, i)
				if _, err := kagzi.Step(ctx, name, func(context.Context) (int, error) { return i, nil }); err != nil {
					break
				}
				booked = append(booked, name)
			}
			kagzi.Sleep(ctx, "until-they-come-"+guest, 24*time.Hour)
			if ctx.Err() == nil {
				return len(booked), nil
			}
			for i, name := range booked {
				undo(kagzi.Cleanup(ctx), guest, name)
				if i == rooms/2 {
					kagzi.Sleep(kagzi.Cleanup(ctx), "rest-"+guest, time.Minute)
				}
			}
			return 0, kagzi.ErrCancelled
		}
		code := func(ctx kagzi.Context, _ int) (int, error) {
			kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
				kagzi.Sleep(ctx, "night", 24*time.Hour)
				return 0, nil
			})
			_, err := kagzi.Map(ctx, []string{"ada", "bob"}, book)
			return 0, err
		}
		cancelled(t, env, code, time.Hour)
		if undone["ada"] != rooms || undone["bob"] != rooms {
			t.Errorf("undone were %v, want %d of each guest's", undone, rooms)
		}
	})
}

// Code that sees its Context ended after waiting for branches sees it ended after their last calls,
// not before their first.
func TestBranchesReplayInFullBeforeCodeThatChecksItsContext(t *testing.T) {
	const rooms = 5
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		var undone []string
		book := func(ctx kagzi.Context, guest string) (booked []string, _ error) {
			for i := 0; i < rooms && ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%s-%d", guest, i)
				works(ctx, name, time.Minute)
				booked = append(booked, name)
			}
			return booked, nil
		}
		code := func(ctx kagzi.Context, _ int) (int, error) {
			works(ctx, "quote", time.Second)
			booked, err := kagzi.Map(ctx, []string{"ada", "bob"}, book)
			if err != nil || ctx.Err() == nil {
				return 0, err
			}
			for _, name := range slices.Concat(booked...) {
				_, _ = kagzi.Step(kagzi.Cleanup(ctx), "undo-"+name, func(context.Context) (int, error) {
					undone = append(undone, name)
					return 0, nil
				})
				kagzi.Sleep(kagzi.Cleanup(ctx), "rest-"+name, time.Minute)
			}
			return 0, kagzi.ErrCancelled
		}
		cancelled(t, env, code, rooms*time.Minute-time.Second) // the last are being booked
		if len(undone) != 2*rooms {
			t.Errorf("undone were %q, want %d rooms of each guest's", undone, rooms)
		}
	})
}

// A branch that makes no call, because it waits for the end of its Context, does not delay the
// cancellation of the others, nor they its own.
func TestABranchThatOnlyWaitsForItsContextIsCancelledToo(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		var told, slept time.Time
		kagzi.Handle(env.Worker, "watched", func(ctx kagzi.Context, _ int) (int, error) {
			watcher := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
				<-ctx.Done()
				told = time.Now()
				return kagzi.Step(kagzi.Cleanup(ctx), "undo", func(context.Context) (int, error) { return 7, nil })
			})
			works(ctx, "ship", time.Second)
			kagzi.Sleep(ctx, "night", 24*time.Hour)
			slept = time.Now()
			return watcher.Wait(ctx)
		})
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "watched", 0, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		env.Pass(time.Minute)
		if err := run.Pause(t.Context(), "so that it comes back"); err != nil {
			t.Fatal(err)
		}
		env.Pass(time.Minute)
		asked := time.Now()
		if err := run.CancelGracefully(t.Context(), time.Hour, ""); err != nil {
			t.Fatal(err)
		}
		ended, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := kagzi.Output[int](ended); n != 7 || err != nil {
			t.Errorf("it came to %d, %v, want 7", n, err)
		}
		if told.Sub(asked) > time.Second || slept.Sub(asked) > time.Second {
			t.Errorf("told after %v and %v, want at once", told.Sub(asked), slept.Sub(asked))
		}
	})
}
