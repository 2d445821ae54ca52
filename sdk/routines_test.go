package kagzi

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// settledAs sets the places of results in their order; 0 for a call that is open.
func (r *runRecord) settledAs(places ...int64) *runRecord {
	for i, place := range places {
		r.steps[i].Settled = place
	}
	return r
}

// A plain goroutine makes its calls whenever it runs. Until then nobody knows of it.
func TestReplayOfPlainGoroutines(t *testing.T) {
	for _, c := range []struct {
		name   string
		record *runRecord
		code   func(ctx Context, _ int) (int, error)
	}{
		{"a result reaches a goroutine beside others of its branch that wait",
			recorded(sleeping, "1", done("a", "2"), waitingFor("never")).settledAs(1, 0),
			func(ctx Context, _ int) (int, error) {
				ended := make(chan int, 1)
				go func() {
					<-time.After(10 * time.Millisecond)
					n, _ := Step(ctx, "a", never(t))
					ended <- n
				}()
				_, _ = WaitSignal[int](ctx, "never", 0)
				return <-ended, nil
			}},
		{"a call that the code owes may come from a goroutine that has not run yet",
			recorded(sleeping, "1", done("a", "2")).settledAs(1),
			func(ctx Context, _ int) (int, error) {
				go func() {
					<-time.After(10 * time.Millisecond)
					_, _ = Step(ctx, "a", never(t))
				}()
				beside := Go(ctx, func(ctx Context) (int, error) { return Step(ctx, "b", never(t)) })
				return beside.Wait(ctx)
			}},
		{"the code ends beside a goroutine that waits",
			recorded(sleeping, "1", waitingFor("never"), done("a", "2")).settledAs(0, 1),
			func(ctx Context, _ int) (int, error) {
				called := make(chan struct{})
				go func() {
					close(called)
					_, _ = WaitSignal[int](ctx, "never", 0)
				}()
				<-called
				return Step(ctx, "a", never(t))
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(t, replayed(t, c.record, c.code), "") })
		})
	}
}

// A branch whose own code runs is not ready for a result, though a plain goroutine of it is in a call, or
// though the branch was blocked on a channel until another result came.
func TestOrderBesidePlainGoroutines(t *testing.T) {
	// first calls late before early; early was recorded first.
	first := func(ctx Context, late *Future[struct{}]) int {
		return First(ctx, late, GoSleep(ctx, "early", time.Hour))
	}
	for _, c := range []struct {
		name   string
		record *runRecord
		code   func(ctx Context, _ int) (int, error)
	}{
		{"a goroutine waits in a call", recorded(completed, "1", waitingFor("never"), done("a", "1"), slept("late"),
			slept("early")).settledAs(0, 1, 3, 2).with("1"),
			func(ctx Context, _ int) (int, error) {
				go func() { _, _ = WaitSignal[int](ctx, "never", 0) }()
				time.Sleep(time.Millisecond) // of the bubble: the goroutine is in its call
				late := GoSleep(ctx, "late", 3*time.Hour)
				_, _ = Step(ctx, "a", never(t))
				return first(ctx, late), nil
			}},
		{"a goroutine wakes the branch", recorded(completed, "1", done("a", "1"), slept("late"),
			slept("early")).settledAs(1, 3, 2).with("1"),
			func(ctx Context, _ int) (int, error) {
				late := GoSleep(ctx, "late", 3*time.Hour)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = Step(ctx, "a", never(t))
				}()
				<-ended
				return first(ctx, late), nil
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(t, replayed(t, c.record, c.code), "") })
		})
	}
}

// What happens to a child after the cancellation does not reach code outside of cleanup: in another
// replay the code asks before it is known.
func TestAChildThatEndsAfterTheCancellation(t *testing.T) {
	cancelled := done(cancelName, "{}")
	for _, c := range []struct {
		name           string
		ended, cancels int64
		want           bool
	}{{"after", 2, 1, true}, {"before", 1, 2, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := recorded(kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED, "1", childStep("ship", childEnded, "3"),
					cancelled, waitingFor("never")).settledAs(c.ended, c.cancels, 0)
				check(t, replayed(t, r, func(ctx Context, _ int) (int, error) {
					ship, err := StartChild[int](ctx, "ship", "parcel", 1, ChildOptions{})
					if err != nil {
						return 0, err
					}
					_, _ = WaitSignal[int](ctx, "never", 0)
					if _, err := ship.Wait(ctx); errors.Is(err, ErrCancelled) != c.want {
						t.Errorf("the result is %v, want a cancelled wait: %v", err, c.want)
					}
					return 0, ErrCancelled
				}), "")
			})
		})
	}
}

// A server that keeps the order of results says which timers were over and which calls are owed.
func TestReplayOfARecordWithTheOrderOfResults(t *testing.T) {
	first := func(ctx Context, _ int) (int, error) {
		timer := GoSleep(ctx, "timer", time.Hour)
		step := Go(ctx, func(ctx Context) (int, error) { return Step(ctx, "step", never(t)) })
		if First(ctx, timer, step) == 0 {
			return Step(ctx, "late", never(t))
		}
		return Step(ctx, "quick", never(t))
	}
	late := done("step", "1")
	late.FinishedAt = timestamppb.New(time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)) // after the timer's time
	quick := recorded(pending, "1", sleepingIn("timer"), late, done("quick", "2")).settledAs(0, 1, 2)
	t.Run("a timer was not over because something later was recorded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { check(t, replayed(t, quick, first), "") })
	})

	retried := func() *runRecord {
		r := recorded(pending, "1", done("a", "2"), done("b", "3")).settledAs(1, 2)
		r.run.RetriedFromRunId, r.run.OwedFrom = new(childRun), 1
		return r
	}
	code := func(ctx Context, _ int) (int, error) { return Step(ctx, "c", never(t)) }
	t.Run("results from before a retry are not owed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { check(t, replayed(t, retried(), code), "") })
	})
	t.Run("those of the retried run are", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := retried()
			r.steps[1].BegunIn = 1
			check(t, replayed(t, r, code), "at step b: expected step b, got step c")
		})
	})

	t.Run("a child of another type is another call", func(t *testing.T) {
		ship := childStep("ship", childEnded, "3")
		ship.ChildType = "letter"
		parcel := func(ctx Context, _ int) (int, error) {
			return RunChild[int](ctx, "ship", "parcel", 1, ChildOptions{})
		}
		synctest.Test(t, func(t *testing.T) {
			check(t, replayed(t, recorded(pending, "1", ship).settledAs(1), parcel),
				"at step ship: expected child run ship of type letter, got child run ship of type parcel")
		})
		t.Run("and takes the next name once that was accepted", func(t *testing.T) {
			again := childStep("ship:2", childEnded, "5")
			again.ChildType, again.BegunIn = "parcel", 1
			r := recorded(completed, "1", ship, again).settledAs(1, 2).with("5")
			r.run.OwedFrom = 1
			synctest.Test(t, func(t *testing.T) { check(t, replayed(t, r, parcel), "") })
		})
	})
	t.Run("a recorded child of unknown type is of any", func(t *testing.T) {
		r := recorded(completed, "1", childStep("ship", childEnded, "3")).settledAs(1).with("3")
		synctest.Test(t, func(t *testing.T) {
			check(t, replayed(t, r, func(ctx Context, _ int) (int, error) {
				return RunChild[int](ctx, "ship", "parcel", 1, ChildOptions{})
			}), "")
		})
	})
}
