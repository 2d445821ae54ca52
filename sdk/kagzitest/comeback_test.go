package kagzitest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// Code that checks its Context, rather than the errors of calls, comes back to where it was
// cancelled in every activation of its cleanup: it undoes what it has done, and its history
// replays.
func TestCodeReplaysToWhereItWasCancelled(t *testing.T) {
	for _, test := range []struct {
		name string
		at   time.Duration // after the start
		code func(undo func(kagzi.Context, ...string)) func(kagzi.Context, int) (int, error)
		want []string
	}{
		{"two branches that check their Context stop where they did", 150 * time.Second, lookInBranches,
			[]string{"ada-0", "ada-1", "ada-2", "bob-0", "bob-1", "bob-2"}},
		{"a branch without calls ends it beside one that has booked", 150 * time.Second, lookBeforeAnyCall,
			[]string{"room-0", "room-1", "room-2"}},
		{"a branch that ended before looks at a Context that goes on", 90 * time.Second, lookBehindABranch,
			[]string{"early", "second"}},
		{"a branch that waited for such a one is no other", 90 * time.Second, lookBehindABranchOfABranch,
			[]string{"early"}},
		{"a branch waits for its Context beside a cancelled step", 90 * time.Second,
			waitBesideAStep, []string{"pay", "tell"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
				var undone []string
				code := test.code(func(ctx kagzi.Context, names ...string) {
					for _, name := range names {
						_, _ = kagzi.Step(kagzi.Cleanup(ctx), "undo-"+name, func(context.Context) (int, error) {
							undone = append(undone, name)
							return 0, nil
						})
						kagzi.Sleep(kagzi.Cleanup(ctx), "rest-"+name, time.Minute) // for the next activation
					}
				})
				cancelled(t, env, code, test.at)
				if !slices.Equal(undone, test.want) {
					t.Errorf("undone were %q, want %q", undone, test.want)
				}
			})
		})
	}
}

// bookUntilCancelled books a room every minute until it sees that the run is being cancelled.
func bookUntilCancelled(ctx kagzi.Context, guest string) (booked []string, err error) {
	for i := 0; i < 5 && ctx.Err() == nil; i++ {
		name := fmt.Sprintf("%s-%d", guest, i)
		if _, err := kagzi.Step(ctx, name, func(context.Context) (int, error) {
			time.Sleep(time.Minute)
			return 0, nil
		}); err != nil {
			return booked, err
		}
		booked = append(booked, name)
	}
	return booked, nil
}

func lookInBranches(undo func(kagzi.Context, ...string)) func(kagzi.Context, int) (int, error) {
	return func(ctx kagzi.Context, _ int) (int, error) {
		works(ctx, "quote", time.Second)
		booked, err := kagzi.Map(ctx, []string{"ada", "bob"}, bookUntilCancelled)
		if err != nil || ctx.Err() == nil {
			return 0, err
		}
		undo(ctx, slices.Concat(booked...)...)
		return 0, kagzi.ErrCancelled
	}
}

func lookBeforeAnyCall(undo func(kagzi.Context, ...string)) func(kagzi.Context, int) (int, error) {
	return func(ctx kagzi.Context, _ int) (int, error) {
		booking := kagzi.Go(ctx, func(ctx kagzi.Context) ([]string, error) { return bookUntilCancelled(ctx, "room") })
		<-ctx.Done()
		works(kagzi.Cleanup(ctx), "tell", time.Second)
		kagzi.Sleep(kagzi.Cleanup(ctx), "rest", 5*time.Minute)
		booked, _ := booking.Wait(ctx)
		undo(ctx, booked...)
		return 0, kagzi.ErrCancelled
	}
}

// bookAndLook is a branch that takes another path if it is cancelled.
func bookAndLook(name string) func(kagzi.Context) (string, error) {
	return func(ctx kagzi.Context) (string, error) {
		works(ctx, name, time.Second)
		if ctx.Err() != nil {
			return "", kagzi.ErrCancelled
		}
		return name, nil
	}
}

func lookBehindABranch(undo func(kagzi.Context, ...string)) func(kagzi.Context, int) (int, error) {
	return func(ctx kagzi.Context, _ int) (int, error) {
		works(ctx, "quote", time.Second)
		early, second := kagzi.Go(ctx, bookAndLook("early")), kagzi.Go(ctx, bookAndLook("second"))
		one, err := early.Wait(ctx)
		if err != nil {
			return 0, err
		}
		two, err := second.Wait(ctx)
		if err != nil {
			return 0, err
		}
		if works(ctx, "look", 2*time.Minute); ctx.Err() == nil {
			return 0, nil
		}
		undo(ctx, one, two)
		return 0, kagzi.ErrCancelled
	}
}

func lookBehindABranchOfABranch(undo func(kagzi.Context, ...string)) func(kagzi.Context, int) (int, error) {
	return func(ctx kagzi.Context, _ int) (int, error) {
		outer := kagzi.Go(ctx, func(ctx kagzi.Context) (string, error) {
			early, err := kagzi.Go(ctx, bookAndLook("early")).Wait(ctx)
			works(ctx, "look", 2*time.Minute)
			return early, err
		})
		booked, err := outer.Wait(ctx)
		if err != nil || ctx.Err() == nil {
			return 0, err
		}
		undo(ctx, booked)
		return 0, kagzi.ErrCancelled
	}
}

func waitBesideAStep(undo func(kagzi.Context, ...string)) func(kagzi.Context, int) (int, error) {
	return func(ctx kagzi.Context, _ int) (int, error) {
		works(ctx, "quote", time.Second)
		watcher := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) { <-ctx.Done(); return 0, nil })
		_, err := kagzi.Step(ctx, "pay", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		undo(ctx, "pay", "tell")
		_, _ = watcher.Wait(ctx)
		return 0, err
	}
}
