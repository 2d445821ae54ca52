package kagzi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/transport"
)

// send delivers a signal like a client.
func send[T any](t *testing.T, f *fake, runID, name string, v T) {
	t.Helper()
	if err := Signal(t.Context(), testClient(t, f).Run(runID), name, v, SignalOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestSignals(t *testing.T) {
	type approval struct{ By string }
	t.Run("a signal wakes its parked run, and replays see it again", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			w.options.MaxConcurrent = 1
			var seen []string
			Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
				a, err := WaitSignal[approval](ctx, "approval", 48*time.Hour)
				seen = append(seen, a.By)
				Sleep(ctx, "s", time.Hour)
				return a.By, err
			})
			Handle(w, "other", func(Context, struct{}) (int, error) { return 1, nil })
			running(t, w)
			f.start("r", "w", "")
			f.awaitParked(t, "r")
			f.start("o", "other", "")
			f.await(t, "o") // a waiting run holds no slot
			_ = transport.Sleep(t.Context(), time.Hour)
			send(t, f, "r", "approval", approval{"Ada"})
			equal(t, string(f.await(t, "r").Output.GetData()), `"Ada"`)
			equal(t, seen, []string{"Ada", "Ada"})
			equal(t, f.operations(), []string{"hello ", "claim r", "wait approval hold=false", "claim o", "end o",
				"claim r", "sleep s hold=false", "claim r", "end r"})
		})
	})

	t.Run("earlier signals are received in order, names numbered", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) ([]int, error) {
				Sleep(ctx, "first", time.Hour)
				var all []int
				for range 3 {
					n, err := WaitSignal[int](ctx, "n", 0)
					if err != nil {
						return nil, err
					}
					all = append(all, n)
				}
				return all, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitParked(t, "r")
			for n := range 3 {
				send(t, f, "r", "n", n)
			}
			equal(t, string(f.await(t, "r").Output.GetData()), "[0,1,2]")
			equal(t, f.operations(), []string{"hello ", "claim r", "sleep first hold=false", "claim r",
				"wait n hold=false", "wait n:2 hold=false", "wait n:3 hold=false", "end r"})
		})
	})

	t.Run("a passed limit is a timeout, also in replay", func(t *testing.T) {
		for _, held := range []bool{false, true} {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				var texts []string
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					if held {
						Go(ctx, func(ctx Context) (int, error) {
							return Step(ctx, "beside", func(ctx context.Context) (int, error) {
								return 1, wait(ctx, 90*time.Second)
							})
						})
					}
					began := Now(ctx)
					_, err := WaitSignal[int](ctx, "s", time.Minute)
					var step *StepError
					if !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) ||
						!errors.As(err, &step) || step.Step != "s" {
						t.Errorf("err = %v", err)
					}
					texts = append(texts, fmt.Sprint(err, " after ", Now(ctx).Sub(began).Round(time.Second)))
					Sleep(ctx, "later", time.Hour)
					return 1, nil
				})
				running(t, w)
				f.start("r", "w", "")
				f.await(t, "r")
				for _, text := range texts {
					equal(t, text, "step s: no signal s within 1m0s after 1m0s")
				}
				if len(texts) != 2 {
					t.Fatalf("held=%v: %q", held, f.operations())
				}
			})
		}
	})

	t.Run("a wait past its limit is asked for at once, then less",
		func(t *testing.T) {
			for _, c := range []struct {
				back, late time.Duration
				most       int
			}{
				{50 * time.Millisecond, 100 * time.Millisecond, 14}, // ten before the limit
				{5 * time.Minute, askMost, 50},
			} {
				t.Run(fmt.Sprintf("the server's was set back by %v", c.back), func(t *testing.T) {
					withFake(t, func(t *testing.T, f *fake) {
						w := testWorker(f)
						var took time.Duration
						Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
							slow := Go(ctx, func(ctx Context) (int, error) {
								return Step(ctx, "slow", func(ctx context.Context) (int, error) {
									return 1, wait(ctx, 9*time.Minute)
								})
							})
							began := time.Now()
							if _, err := WaitSignal[int](ctx, "s", time.Minute); !errors.Is(err, ErrTimeout) {
								t.Errorf("err = %v", err)
							}
							took = time.Since(began)
							return slow.Wait(ctx)
						})
						running(t, w)
						f.start("r", "w", "")
						_ = transport.Sleep(t.Context(), 500*time.Millisecond)
						f.mu.Lock()
						f.skew = -c.back
						f.mu.Unlock()
						f.await(t, "r")
						if late := took - time.Minute - c.back; late < 0 || late > c.late {
							t.Errorf("timed out %v after the server's clock said so, want within %v", late, c.late)
						}
						if asked := count(f.operations(), "wait s hold=true"); asked > c.most {
							t.Errorf("asked %d times, want at most %d", asked, c.most)
						}
					})
				})
			}
		})

	t.Run("a negative limit takes only what is there", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
				Sleep(ctx, "s", time.Hour)
				n, err := WaitSignal[int](ctx, "n", -time.Second)
				_, none := WaitSignal[int](ctx, "n", -time.Second)
				return fmt.Sprint(n, err, errors.Is(none, ErrTimeout)), nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitParked(t, "r")
			send(t, f, "r", "n", 7)
			equal(t, string(f.await(t, "r").Output.GetData()), `"7 \u003cnil\u003e true"`)
		})
	})

	t.Run("beside a sibling at work a signal is noticed within 10 s", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var took time.Duration
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				slow := Go(ctx, func(ctx Context) (int, error) {
					return Step(ctx, "slow", func(ctx context.Context) (int, error) {
						return 1, wait(ctx, 9*time.Minute)
					})
				})
				sent, err := WaitSignal[time.Time](ctx, "s", 0)
				took = time.Since(sent)
				_, _ = slow.Wait(ctx)
				return 1, err
			})
			running(t, w)
			f.start("r", "w", "")
			_ = transport.Sleep(t.Context(), 5*time.Minute+3*time.Second)
			send(t, f, "r", "s", time.Now())
			f.await(t, "r")
			if took > 10*time.Second {
				t.Fatalf("noticed after %v", took)
			}
			equal(t, count(f.operations(), "claim r"), 1)
		})
	})

	t.Run("signals between the last question and parking are seen", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				slow := Go(ctx, func(ctx Context) (int, error) {
					return Step(ctx, "slow", func(ctx context.Context) (int, error) {
						return 1, wait(ctx, 5*time.Second)
					})
				})
				n, err := WaitSignal[int](ctx, "s", 0)
				_, _ = slow.Wait(ctx)
				return n, err
			})
			running(t, w)
			began := time.Now()
			f.start("r", "w", "")
			_ = transport.Sleep(t.Context(), 4*time.Second+900*time.Millisecond)
			send(t, f, "r", "s", 7)
			equal(t, string(f.await(t, "r").Output.GetData()), "7")
			if took := time.Since(began); took > 6*time.Second {
				t.Fatalf("took %v", took)
			}
		})
	})

	t.Run("waiting branches park the run and wait again each time", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				outs, err := Map(ctx, []string{"a", "b", "c"}, func(ctx Context, s string) (int, error) {
					return WaitSignal[int](ctx, s, 0)
				})
				return len(outs), err
			})
			running(t, w)
			f.start("r", "w", "")
			for i, name := range []string{"c", "a", "b"} {
				f.awaitParked(t, "r")
				send(t, f, "r", name, i)
			}
			equal(t, string(f.await(t, "r").Output.GetData()), "3")
			equal(t, count(f.operations(), "claim r"), 4)
			equal(t, count(f.operations(), "wait a hold=true"), 2) // a new one, and one after the wake-up by c
		})
	})

	t.Run("the wait survives a lost worker, and keeps its limit", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
				Go(ctx, func(ctx Context) (int, error) { Sleep(ctx, "beside", 30*time.Hour); return 1, nil })
				_, err := WaitSignal[int](ctx, "s", 3*time.Hour)
				return fmt.Sprint(errors.Is(err, ErrTimeout)), nil
			})
			running(t, w)
			began := time.Now()
			f.start("r", "w", "")
			f.until(t, func() bool { return count(f.log, "release park=true") == 1 })
			_ = transport.Sleep(t.Context(), time.Hour)
			f.mu.Lock()
			f.runs["r"].available = time.Now() // woken without a reason
			f.pump()
			f.mu.Unlock()
			equal(t, string(f.await(t, "r").Output.GetData()), `"true"`)
			equal(t, time.Since(began).Round(time.Minute), 3*time.Hour)
		})
	})

	t.Run("a signal that does not decode is an error of the code", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, err := WaitSignal[int](ctx, "n", 0)
				var step *StepError
				if !errors.As(err, &step) || step.Code != CodeInvalidArgument ||
					!strings.Contains(step.Message, "cannot be read as int") {
					t.Errorf("err = %v", err)
				}
				return WaitSignal[int](ctx, "n", 0)
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitParked(t, "r")
			send(t, f, "r", "n", "seven")
			send(t, f, "r", "n", 7)
			equal(t, string(f.await(t, "r").Output.GetData()), "7")
		})
	})

	t.Run("a wait where the history has a step fails the run with DivergenceFail", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			w.options.OnDivergence = DivergenceFail
			pass := 0
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				if pass++; pass == 1 {
					_, _ = Step(ctx, "x", constant(1))
					Sleep(ctx, "s", time.Hour)
				}
				return WaitSignal[int](ctx, "x", 0)
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, f.await(t, "r").Error.GetType(), "nondeterministic")
		})
	})

	t.Run("a wait that the server refuses fails the run", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if r.GetAwaitSignal() != nil {
					return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, Message: "timeout"}
				}
				return nil
			}
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) { return WaitSignal[int](ctx, "s", 0) })
			running(t, w)
			f.start("r", "w", "")
			equal(t, f.await(t, "r").Error.GetMessage(), "the server refused to record the wait for signal s: timeout")
		})
	})
}
