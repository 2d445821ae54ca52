package kagzi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// after returns step code that takes a while.
func after[T any](d time.Duration, v T) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) { return v, wait(ctx, d) }
}

// outputs returns what the code of a run saw in each of its activations, which a wait at its end
// makes at least two.
func outputs(t *testing.T, code func(ctx Context) (string, error)) []string {
	t.Helper()
	var seen []string
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		Handle(w, "double", func(_ Context, n int) (int, error) { return 2 * n, nil })
		Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
			out, err := code(ctx)
			if err != nil {
				return 0, err
			}
			seen = append(seen, out)
			Sleep(ctx, "again", time.Hour)
			return 0, nil
		})
		running(t, w)
		f.start("r", "w", "")
		f.until(t, func() bool { return f.runs["r"] != nil && len(f.runs["r"].steps) > 0 })
		synctest.Wait() // all that the code waits for is recorded now
		for _, signal := range []string{"late", "early"} {
			if err := Signal(t.Context(), testClient(t, f).Run("r"), signal, signal, SignalOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if r := f.await(t, "r"); r.Error != nil || len(f.reports) > 0 {
			t.Fatalf("error %v, reports %v", r.Error, f.reports)
		}
	})
	if len(seen) < 2 {
		t.Fatalf("activations: %q", seen)
	}
	return seen
}

func TestFirst(t *testing.T) {
	step := func(name string, d time.Duration) func(Context) Awaitable {
		return func(ctx Context) Awaitable {
			return Go(ctx, func(ctx Context) (string, error) { return Step(ctx, name, after(d, name)) })
		}
	}
	for _, c := range []struct {
		name  string
		waits []func(Context) Awaitable
		want  int
	}{
		{"the quickest step", []func(Context) Awaitable{step("a", 3*time.Second), step("b", time.Second),
			step("c", 2*time.Second)}, 1},
		{"of steps that end together, the one whose result is recorded first", []func(Context) Awaitable{
			step("a", 2*time.Second), step("b", time.Millisecond)}, 1},
		{"a timer before a step", []func(Context) Awaitable{step("a", time.Minute),
			func(ctx Context) Awaitable { return GoSleep(ctx, "limit", time.Second) }}, 1},
		{"a signal before a timer", []func(Context) Awaitable{
			func(ctx Context) Awaitable { return GoSleep(ctx, "limit", 30*time.Minute) },
			func(ctx Context) Awaitable { return GoSignal[string](ctx, "early", 0) }}, 1},
		{"a child before a signal that never comes", []func(Context) Awaitable{
			func(ctx Context) Awaitable { return GoSignal[string](ctx, "never", 0) },
			func(ctx Context) Awaitable {
				child, _ := StartChild[int](ctx, "double", "double", 4, ChildOptions{})
				return child
			}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, seen := range outputs(t, func(ctx Context) (string, error) {
				waits := make([]Awaitable, len(c.waits))
				for i, wait := range c.waits {
					waits[i] = wait(ctx)
				}
				return fmt.Sprint(First(ctx, waits...)), nil
			}) {
				equal(t, seen, fmt.Sprint(c.want))
			}
		})
	}

	t.Run("the others can be waited for later", func(t *testing.T) {
		for _, seen := range outputs(t, func(ctx Context) (string, error) {
			early, late := GoSignal[string](ctx, "early", 0), GoSignal[string](ctx, "late", 0)
			first := First(ctx, early, late)
			a, _ := early.Wait(ctx)
			b, _ := late.Wait(ctx)
			return fmt.Sprintln(first, First(ctx, early, late), a, b), nil
		}) {
			equal(t, seen, "1 1 early late\n")
		}
	})
	t.Run("a branch counts with the result that ended it, not with its own name", func(t *testing.T) {
		for _, seen := range outputs(t, func(ctx Context) (string, error) {
			chain := Go(ctx, func(ctx Context) (int, error) {
				_, _ = Step(ctx, "a-1", after(time.Second, 1))
				return Step(ctx, "a-2", after(time.Second, 1))
			})
			long := Go(ctx, func(ctx Context) (int, error) { return Step(ctx, "b", after(1500*time.Millisecond, 1)) })
			first := First(ctx, chain, long)
			_, _ = chain.Wait(ctx)
			return fmt.Sprint(first, First(ctx, chain, long)), nil
		}) {
			equal(t, seen, "1 1")
		}
	})
	t.Run("nothing to wait for panics", func(t *testing.T) {
		d := failure(t, func(ctx Context, _ struct{}) (int, error) { return First(ctx), nil })
		contains(t, d.GetMessage(), "First: nothing to wait for")
	})
}

// Branches share a list. In what order they add to it is decided by the order of results alone.
func TestResultsReachTheCodeInOneOrder(t *testing.T) {
	seen := outputs(t, func(ctx Context) (string, error) {
		var order []string
		_, err := Map(ctx, []int{3, 1, 4, 2, 5}, func(ctx Context, n int) (int, error) {
			for i := range 3 {
				name := fmt.Sprintf("%d-%d", n, i)
				if _, err := Step(ctx, name, after(time.Duration(n*(i+1))*time.Second, 1)); err != nil {
					return 0, err
				}
				order = append(order, name)
			}
			Sleep(ctx, fmt.Sprint("nap-", n), time.Duration(10-n)*time.Second)
			order = append(order, fmt.Sprint("nap-", n))
			return 0, nil
		})
		return fmt.Sprint(order), err
	})
	for _, again := range seen[1:] {
		equal(t, again, seen[0])
	}
}

// A branch that waits for another through a channel is left alone, or neither would go on.
func TestCodeThatWaitsForOtherCodeHoldsBackNoResult(t *testing.T) {
	for _, seen := range outputs(t, func(ctx Context) (string, error) {
		values := make(chan int)
		reader := Go(ctx, func(ctx Context) (int, error) {
			select {
			case n := <-values:
				return Step(ctx, "read", constant(n+1))
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		n, err := Step(ctx, "write", after(time.Second, 41))
		if err != nil {
			return "", err
		}
		values <- n
		n, err = reader.Wait(ctx)
		return fmt.Sprint(n), err
	}) {
		equal(t, seen, "42")
	}
}

func TestAHeldWaitLearnsOfItsEndAtOnce(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		var waited time.Duration
		Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
			busy := Go(ctx, func(ctx Context) (int, error) { return Step(ctx, "busy", after(time.Minute, 1)) })
			if _, err := WaitSignal[int](ctx, "go", 0); err != nil {
				return 0, err
			}
			waited = time.Since(f.sent)
			return busy.Wait(ctx)
		})
		running(t, w)
		f.start("r", "w", "")
		f.until(t, func() bool { return count(f.log, "begin busy") == 1 })
		time.Sleep(20 * time.Second)
		f.sent = time.Now()
		send(t, f, "r", "go", 1)
		f.await(t, "r")
		if waited > 5*time.Millisecond {
			t.Errorf("the code had the signal after %s", waited)
		}
		equal(t, count(f.operations(), "claim r"), 1)
	})
}

func TestASignalThatTheCodeDidNotReceiveIsGivenBack(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		Handle(w, "w", func(ctx Context, n int) (int, error) {
			stop := GoSignal[int](ctx, "stop", 0)
			if n == 1 {
				return stop.Wait(ctx)
			}
			got := GoSignal[int](ctx, "got", 0)
			if _, err := got.Wait(ctx); err != nil {
				return 0, err
			}
			for blocked := true; blocked; { // until the worker has the other signal
				f.mu.Lock()
				blocked = count(f.log, "wait stop hold=true") == 0 || len(f.runs["r"].signals) > 0
				f.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
			return ContinueAsNew[int](ctx, 1)
		})
		running(t, w)
		f.start("r", "w", "0")
		f.untilParked(t, "r")
		f.mu.Lock()
		r := f.runs["r"]
		come := func(name string) {
			r.signals = append(r.signals, &kagziv1.Signal{Name: name, Payload: &kagziv1.Payload{Data: []byte("7")}})
		}
		come("got")
		f.wake(r)
		f.pump()
		f.mu.Unlock()
		f.until(t, func() bool { return count(f.log, "claim r") == 2 })
		f.mu.Lock()
		come("stop")
		f.hint(r, r.steps[slices.IndexFunc(r.steps, func(st *kagziv1.Step) bool { return st.Name == "stop" })])
		f.mu.Unlock()
		f.await(t, "r")
		equal(t, f.unreceived, []string{"stop"})
	})
}

func TestPatched(t *testing.T) {
	// run plays old code until it sleeps, and then new code.
	run := func(t *testing.T, old, now func(ctx Context) (int, error), options ...func(*Worker)) *fake {
		var fake1 *fake
		withFake(t, func(t *testing.T, f *fake) {
			fake1 = f
			w := testWorker(f)
			for _, o := range options {
				o(w)
			}
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
		return fake1
	}
	done := func(f *fake) []string {
		return slices.DeleteFunc(f.operations(), func(s string) bool { return strings.HasPrefix(s, "goodbye") })
	}
	one := func(ctx Context, name string) int {
		v, err := Step(ctx, name, constant(1))
		if err != nil {
			t.Error(err)
		}
		return v
	}
	sleeps := func(ctx Context) { Sleep(ctx, "night", time.Hour) }

	t.Run("a run that has passed the place stays on the old way", func(t *testing.T) {
		f := run(t, func(ctx Context) (int, error) { one(ctx, "a"); one(ctx, "b"); sleeps(ctx); return 0, nil },
			func(ctx Context) (int, error) {
				one(ctx, "a")
				if Patched(ctx, "check") {
					one(ctx, "new")
				}
				one(ctx, "b")
				sleeps(ctx)
				return 0, nil
			})
		equal(t, done(f), []string{"hello ", "claim r", "complete a", "complete b", "sleep night hold=false",
			"claim r", "complete kagzi:patched:check", "end r"})
		equal(t, string(f.step(f.runs["r"], "kagzi:patched:check", 0).GetOutput().GetData()), "false")
	})
	t.Run("a run that comes to the place takes the new way, and stays on it", func(t *testing.T) {
		f := run(t, func(ctx Context) (int, error) { one(ctx, "a"); sleeps(ctx); return 0, nil },
			func(ctx Context) (int, error) {
				one(ctx, "a")
				sleeps(ctx)
				if Patched(ctx, "check") {
					one(ctx, "new")
				}
				Sleep(ctx, "again", time.Hour)
				return one(ctx, "b"), nil
			})
		equal(t, done(f), []string{"hello ", "claim r", "complete a", "sleep night hold=false", "claim r",
			"complete kagzi:patched:check", "complete new", "sleep again hold=false", "claim r", "complete b", "end r"})
	})
	t.Run("an answer of true is owed, unless the patch is removed", func(t *testing.T) {
		patched := func(ctx Context) (int, error) { Patched(ctx, "check"); sleeps(ctx); return 0, nil }
		without := func(ctx Context) (int, error) { sleeps(ctx); return one(ctx, "b"), nil }
		f := run(t, patched, without)
		equal(t, callNames(f.reports[0].GetOwed()), "step kagzi:patched:check")
		f = run(t, patched, without, func(w *Worker) { w.options.RemovedPatches = []string{"check"} })
		equal(t, len(f.reports), 0)
	})
	t.Run("each call in a loop and in a branch answers for itself", func(t *testing.T) {
		f := run(t, func(ctx Context) (int, error) {
			for range 2 {
				Patched(ctx, "p")
			}
			_, err := Map(ctx, []int{1, 2}, func(ctx Context, _ int) (bool, error) { return Patched(ctx, "p"), nil })
			return 0, err
		}, nil)
		var names []string
		for _, s := range f.runs["r"].steps {
			names = append(names, s.GetName())
		}
		slices.Sort(names)
		equal(t, names, []string{"kagzi:patched:p", "kagzi:patched:p/1", "kagzi:patched:p/2", "kagzi:patched:p:2"})
	})
	t.Run("a malformed id fails the run", func(t *testing.T) {
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			Patched(ctx, "no id")
			return 0, nil
		})
		contains(t, d.GetMessage(), `patch name "no id"`)
	})
}
