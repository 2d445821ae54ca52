package kagzi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestBranchesThatWait(t *testing.T) {
	t.Run("waking one branch does not hasten a retry of another", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var tried []time.Time
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				nap := Go(ctx, func(ctx Context) (int, error) { Sleep(ctx, "nap", time.Minute); return 1, nil })
				n, err := Step(ctx, "flaky", func(ctx context.Context) (int, error) {
					if tried = append(tried, time.Now()); len(tried) == 1 {
						return 0, RetryAfter(errors.New("again"), time.Hour)
					}
					return 2, nil
				})
				if err != nil {
					return 0, err
				}
				m, err := nap.Wait(ctx)
				return n + m, err
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "3")
			equal(t, count(f.operations(), "claim r"), 3)
			equal(t, tried[1].Sub(tried[0]).Round(time.Minute), time.Hour)
		})
	})

	t.Run("a retry beside a busy branch keeps the lease", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				slow := Go(ctx, func(ctx Context) (int, error) {
					return Step(ctx, "slow", func(ctx context.Context) (int, error) {
						return 1, wait(ctx, time.Minute)
					})
				})
				n, err := Step(ctx, "flaky", func(ctx context.Context) (int, error) {
					if Attempt(ctx) < 3 {
						return 0, errors.New("again")
					}
					return 2, nil
				})
				if err != nil {
					return 0, err
				}
				m, err := slow.Wait(ctx)
				return n + m, err
			})
			running(t, w)
			began := time.Now()
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "3")
			equal(t, time.Since(began).Round(time.Second), time.Minute)
			equal(t, f.operations(), []string{"hello ", "claim r", "failed flaky hold=true", "begin slow",
				"failed flaky hold=true",
				"complete flaky", "complete slow", "end r"})
		})
	})

	t.Run("parks until the earliest timer once all branches wait", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				long := Go(ctx, func(ctx Context) (int, error) { Sleep(ctx, "long", 3*time.Hour); return 1, nil })
				short := Go(ctx, func(ctx Context) (int, error) {
					_, _ = Step(ctx, "work", func(ctx context.Context) (int, error) {
						return 0, wait(ctx, 200*time.Millisecond)
					})
					Sleep(ctx, "short", time.Hour)
					return Step(ctx, "then", constant(1))
				})
				a, _ := long.Wait(ctx)
				b, _ := short.Wait(ctx)
				return a + b, nil
			})
			running(t, w)
			began := time.Now()
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "2")
			equal(t, time.Since(began).Round(time.Minute), 3*time.Hour)
			equal(t, f.operations(), []string{"hello ", "claim r", "sleep long hold=true", "complete work",
				"sleep short hold=true",
				"release park=true", "claim r", "complete then", "release park=true", "claim r", "end r"})
		})
	})

	for _, skew := range []time.Duration{-time.Minute, time.Minute} {
		t.Run(fmt.Sprintf("timers are read by the server's clock, also when it is off by %v", skew),
			func(t *testing.T) {
				withFake(t, func(t *testing.T, f *fake) {
					f.skew = skew
					w := testWorker(f)
					Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
						slow := Go(ctx, func(ctx Context) (int, error) {
							return Step(ctx, "slow", func(ctx context.Context) (int, error) {
								return 1, wait(ctx, 20*time.Second)
							})
						})
						_, _ = Step(ctx, "flaky", func(ctx context.Context) (int, error) {
							return 0, fmt.Errorf("attempt %d", Attempt(ctx))
						})
						Sleep(ctx, "held", 5*time.Second)
						_, _ = slow.Wait(ctx)
						Sleep(ctx, "parked", time.Hour)
						SleepUntil(ctx, "until", Now(ctx).Add(time.Hour))
						return 1, nil
					})
					running(t, w)
					began := time.Now()
					f.start("r", "w", "")
					if r := f.await(t, "r"); r.Error != nil {
						t.Fatal(r.Error)
					}
					equal(t, time.Since(began).Round(time.Second), 2*time.Hour+20*time.Second)
					equal(t, f.operations(), []string{"hello ", "claim r", "failed flaky hold=true", "begin slow",
						"failed flaky hold=true",
						"failed flaky hold=true", "sleep held hold=true", "over held", "complete slow",
						"sleep parked hold=false", "claim r",
						"complete kagzi:now", "sleep until hold=false", "claim r", "end r"})
				})
			})
	}

	t.Run("a run claimed with nothing due is not released at once", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) { Sleep(ctx, "s", time.Hour); return 0, nil })
			running(t, w)
			f.start("r", "w", "")
			f.until(t, func() bool { return f.runs["r"].token == "" && len(f.runs["r"].steps) == 1 })
			f.mu.Lock()
			f.runs["r"].available = time.Now()
			f.pump()
			f.mu.Unlock()
			again := time.Now()
			f.until(t, func() bool { return f.log[len(f.log)-1] == "release park=true" })
			equal(t, time.Since(again).Round(100*time.Millisecond), parkAfterNothing)
			f.await(t, "r")
		})
	})
}
