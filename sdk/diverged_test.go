package kagzi

import (
	"context"
	"testing"
	"time"
)

// changed runs old code until it sleeps, and then new code, until the run has ended or diverged.
func changed(t *testing.T, mode OnDivergence, old, now func(ctx Context) (int, error)) *fake {
	t.Helper()
	var got *fake
	withFake(t, func(t *testing.T, f *fake) {
		got = f
		w := testWorker(f)
		w.options.OnDivergence = mode
		pass := 0
		Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
			if pass++; pass == 1 {
				return old(ctx)
			}
			return now(ctx)
		})
		running(t, w)
		f.start("r", "w", "")
		f.until(t, func() bool { return ended(f.runs["r"]) || len(f.reports) > 0 })
	})
	return got
}

func TestDivergence(t *testing.T) {
	do := func(ctx Context, name string) { _, _ = Step(ctx, name, constant(1)) }
	night := func(ctx Context) { Sleep(ctx, "night", time.Hour) }
	charged := func(ctx Context) (int, error) { do(ctx, "charge"); do(ctx, "ship"); night(ctx); return 0, nil }
	for _, c := range []struct {
		name       string
		old, now   func(ctx Context) (int, error)
		made, owed string
	}{
		{"a renamed step does not run", charged, func(ctx Context) (int, error) {
			do(ctx, "bill")
			do(ctx, "ship")
			night(ctx)
			return 0, nil
		}, "step bill", "step charge, step ship, sleep night"},
		{"a step that is added before recorded ones does not run", charged, func(ctx Context) (int, error) {
			do(ctx, "charge")
			do(ctx, "check")
			do(ctx, "ship")
			night(ctx)
			return 0, nil
		}, "step check", "step ship, sleep night"},
		{"steps that change places are matched by name", charged, func(ctx Context) (int, error) {
			do(ctx, "ship")
			do(ctx, "charge")
			night(ctx)
			return 0, nil
		}, "", ""},
		{"a step that is added at the end runs", charged, func(ctx Context) (int, error) {
			_, _ = charged(ctx)
			do(ctx, "thank")
			return 0, nil
		}, "", ""},
		{"a step that was removed is owed by the next new one", charged, func(ctx Context) (int, error) {
			do(ctx, "ship")
			night(ctx)
			do(ctx, "thank")
			return 0, nil
		}, "step thank", "step charge"},
		{"another kind of call", charged, func(ctx Context) (int, error) {
			Sleep(ctx, "charge", time.Hour)
			return 0, nil
		}, "sleep charge", "step charge, step ship, sleep night"},
		{"another signal", func(ctx Context) (int, error) {
			GoSignal[int](ctx, "yes", 0)
			do(ctx, "a")
			night(ctx)
			return 0, nil
		}, func(ctx Context) (int, error) {
			GoSignal[int](ctx, "no", 0)
			do(ctx, "a")
			night(ctx)
			do(ctx, "b")
			return 0, nil
		}, "wait for a signal no in branch 1, step b", "wait for a signal yes in branch 1"},
		{"a child of another type", func(ctx Context) (int, error) {
			_, _ = StartChild[int](ctx, "ship", "letter", 1, ChildOptions{})
			do(ctx, "a")
			night(ctx)
			return 0, nil
		}, func(ctx Context) (int, error) {
			_, err := StartChild[int](ctx, "ship", "parcel", 1, ChildOptions{})
			return 0, err
		}, "child run ship of type parcel", "child run ship of type letter, step a, sleep night"},
		{"the calls of a plain goroutine that has not run yet", func(ctx Context) (int, error) {
			do(ctx, "a")
			night(ctx)
			return 0, nil
		}, func(ctx Context) (int, error) {
			go func() {
				<-time.After(10 * time.Millisecond)
				do(ctx, "a")
				night(ctx)
			}()
			beside := Go(ctx, func(ctx Context) (int, error) { do(ctx, "b"); return 0, nil })
			return beside.Wait(ctx)
		}, "", ""},
		{"a new call waits for owed ones of other branches", func(ctx Context) (int, error) {
			slow := Go(ctx, func(ctx Context) (int, error) {
				do(ctx, "s-1")
				do(ctx, "s-2")
				night(ctx)
				return 0, nil
			})
			return slow.Wait(ctx)
		}, func(ctx Context) (int, error) {
			slow := Go(ctx, func(ctx Context) (int, error) {
				do(ctx, "s-1")
				do(ctx, "s-2")
				night(ctx)
				return 0, nil
			})
			do(ctx, "quick")
			return slow.Wait(ctx)
		}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := changed(t, DivergencePause, c.old, c.now)
			if c.made == "" {
				if len(f.reports) > 0 {
					t.Fatalf("reported: %v", f.reports)
				}
				return
			}
			if len(f.reports) == 0 {
				t.Fatalf("not reported; operations: %q", f.operations())
			}
			equal(t, callNames(f.reports[0].GetMade()), c.made)
			equal(t, callNames(f.reports[0].GetOwed()), c.owed)
			for _, s := range f.runs["r"].steps {
				switch s.GetName() {
				case "bill", "check", "thank", "b", "no":
					t.Errorf("%s took effect", s.GetName())
				}
			}
		})
	}

	renamed := func(ctx Context) (int, error) { do(ctx, "bill"); night(ctx); return 0, nil }
	t.Run("DivergenceFail fails the run for good", func(t *testing.T) {
		f := changed(t, DivergenceFail, charged, renamed)
		d := f.runs["r"].Error
		equal(t, d.GetType(), kindNondeterministic)
		equal(t, d.GetNonRetryable(), true)
		contains(t, d.GetMessage(), "it makes step bill, and not the recorded step charge, step ship, sleep night")
	})
	t.Run("DivergenceWarn goes on", func(t *testing.T) {
		f := changed(t, DivergenceWarn, charged, renamed)
		equal(t, count(f.operations(), "complete bill"), 1)
		equal(t, len(f.reports), 0)
	})
	t.Run("code that ends with owed calls names them", func(t *testing.T) {
		f := changed(t, DivergencePause, charged, func(Context) (int, error) { return 1, nil })
		equal(t, f.unreached, []string{"charge", "ship", "night"})
	})
	t.Run("code that ends waits for branches that make owed calls", func(t *testing.T) {
		code := func(left bool) func(ctx Context) (int, error) {
			return func(ctx Context) (int, error) {
				Go(ctx, func(ctx Context) (int, error) {
					if !left {
						do(ctx, "left")
						return 0, nil
					}
					<-time.After(10 * time.Millisecond)
					do(ctx, "left")
					return 0, nil
				})
				if !left {
					night(ctx)
				}
				return 1, nil
			}
		}
		f := changed(t, DivergencePause, code(false), code(true))
		equal(t, f.unreached, []string{"night"})
	})
	t.Run("a server that keeps no order is not asked for more than before", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.keepsNoOrder = true
			w := testWorker(f)
			pass := 0
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				if pass++; pass == 1 {
					return charged(ctx)
				}
				return renamed(ctx)
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, f.await(t, "r").Error == nil, true)
			equal(t, count(f.operations(), "complete bill"), 1)
		})
	})
}

// The cancellation was recorded while a step ran. The worker was lost before the step had a result.
func TestAStepThatALostWorkerRanAtTheCancellationFails(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		pass := 0
		var errs []string
		Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
			pass++
			_, err := Step(ctx, "long", func(ctx context.Context) (int, error) {
				<-time.After(2 * time.Second) // ignores the cancellation
				return 1, nil
			})
			errs = append(errs, err.Error())
			_, err = Step(Cleanup(ctx), "undo", constant(1))
			return 0, err
		})
		running(t, w)
		f.start("r", "w", "")
		f.until(t, func() bool { return count(f.log, "begin long") == 1 })
		f.askCancel("r", 5*time.Hour)
		f.until(t, func() bool { return count(f.log, "complete kagzi:cancelled") == 1 })
		f.take("r", true)
		f.mu.Lock()
		f.runs["r"].available = f.now()
		f.pump()
		f.mu.Unlock()
		equal(t, f.await(t, "r").Status, cancelled)
		equal(t, len(errs), 1)
		contains(t, errs[0], "the step ran on a worker that is lost")
		equal(t, count(f.operations(), "failed long hold=true"), 1)
	})
}
