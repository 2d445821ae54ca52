package kagzi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/sdk/internal/transport"
)

func TestSuspension(t *testing.T) {
	t.Run("deferred functions run, recover is nil, returns are dropped", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var mu sync.Mutex
			var seen []string
			Handle(w, "w", func(ctx Context, _ struct{}) (out string, err error) {
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					if p := recover(); p != nil {
						t.Errorf("recovered %v", p)
					}
					if ctx.Err() != nil {
						seen = append(seen, "suspended")
					} else {
						seen = append(seen, "returned")
					}
					out, err = "swallowed", nil
				}()
				Sleep(ctx, "s", time.Hour)
				return "slept", nil
			})
			running(t, w)
			f.start("r", "w", "")
			// from the second activation, where the deferred function ran after a return
			equal(t, string(f.await(t, "r").Output.GetData()), `"swallowed"`)
			equal(t, seen, []string{"suspended", "returned"})
			equal(t, f.operations(), []string{"hello ", "claim r", "sleep s hold=false", "claim r", "end r"})
		})
	})

	t.Run("a deferred step does not run during suspension", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			cleaned := 0
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				defer func() {
					_, _ = Step(ctx, "clean", func(context.Context) (int, error) { cleaned++; return 0, nil })
				}()
				_, err := Step(ctx, "try", func(ctx context.Context) (int, error) {
					if Attempt(ctx) < 3 {
						return 0, errors.New("again")
					}
					return 1, nil
				})
				return 1, err
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			equal(t, cleaned, 1)
			equal(t, f.operations(), []string{"hello ", "claim r", "failed try hold=false", "claim r",
				"failed try hold=false",
				"claim r", "complete try", "complete clean", "end r"})
		})
	})

	t.Run("code that ignores all errors leaves no goroutines", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var left sync.WaitGroup
			passes := 0
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				passes++
				left.Add(3)
				go func() { // waits for its context
					defer left.Done()
					<-ctx.Done()
				}()
				go func() { // calls the SDK in a loop
					defer left.Done()
					for {
						_ = Now(ctx)
						_ = transport.Sleep(ctx, time.Second)
					}
				}()
				stuck := Go(ctx, func(ctx Context) (int, error) {
					defer left.Done()
					<-ctx.Done()
					return 0, nil
				})
				if passes == 1 {
					Go(ctx, func(ctx Context) (int, error) { return stuck.Wait(ctx) })
				}
				_, _ = Step(ctx, "fails", func(ctx context.Context) (int, error) {
					if Attempt(ctx) == 1 {
						return 0, errors.New("again")
					}
					return 0, nil
				}, Retry{Initial: time.Minute})
				return passes, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			left.Wait()
		})
	})

	t.Run("an errgroup-like caller of a suspended goroutine ends", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			after := 0
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				var group sync.WaitGroup
				for _, name := range []string{"a", "b"} {
					group.Go(func() { Sleep(ctx, name, time.Hour) })
				}
				group.Wait()
				_, err := Step(ctx, "after", func(context.Context) (int, error) { after++; return 0, nil })
				return after, err
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			equal(t, after, 1)
			equal(t, count(f.operations(), "claim r"), 2)
			equal(t, count(f.operations(), "release park=true"), 1)
		})
	})

	t.Run("what a freed function returns is not even sent", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				var group sync.WaitGroup
				slept := 0
				group.Go(func() { Sleep(ctx, "s", time.Hour); slept++ })
				group.Wait()
				return slept, nil
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "1")
			equal(t, f.operations(), []string{"hello ", "claim r", "sleep s hold=true", "release park=true",
				"claim r", "end r"})
		})
	})

	t.Run("a suspended run holds no slot", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			w.options.MaxConcurrent = 1
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) { Sleep(ctx, "s", time.Hour); return 0, nil })
			running(t, w)
			began := time.Now()
			for _, id := range []string{"a", "b", "c"} {
				f.start(id, "w", "")
			}
			for _, id := range []string{"a", "b", "c"} {
				f.await(t, id)
			}
			if took := time.Since(began); took > time.Hour+time.Second {
				t.Fatalf("three sleeps of an hour took %v beside one slot", took)
			}
		})
	})

	t.Run("sleeps of no length, and times that have passed, do not park", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				Sleep(ctx, "none", 0)
				SleepUntil(ctx, "past", time.Now().Add(-time.Hour))
				SleepUntil(ctx, "future", time.Now().Add(time.Hour))
				return 0, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			equal(t, f.operations(), []string{"hello ", "claim r", "sleep none hold=false",
				"sleep past hold=false", "sleep future hold=false", "claim r", "end r"})
		})
	})
}

func count(all []string, what string) (n int) {
	for _, s := range all {
		if s == what {
			n++
		}
	}
	return n
}
