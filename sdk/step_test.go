package kagzi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/transport"
)

func TestStep(t *testing.T) {
	t.Run("steps run once, names are numbered, the end comes last", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "sum", func(ctx Context, in []int) (int, error) {
				total := 0
				for _, n := range in {
					n, err := Step(ctx, "double", constant(2*n))
					if err != nil {
						return 0, err
					}
					total += n
				}
				return total, nil
			})
			running(t, w)
			f.start("r", "sum", "[1,2,3]")
			r := f.await(t, "r")
			equal(t, string(r.Output.GetData()), "12")
			equal(t, f.operations(), []string{"hello ", "claim r", "complete double", "complete double:2",
				"complete double:3", "end r"})
		})
	})

	t.Run(
		"code that outlives its context is logged, and so is its end",
		func(t *testing.T) {
			for _, c := range []struct {
				what  string
				stays time.Duration
				lost  bool // the lease ends, not the timeout
				want  []string
			}{
				{"past its timeout", 30 * time.Second, false, []string{
					`level=WARN msg="step code still runs after its context ended; it should return when ctx.Done() is closed" run=r step=s attempt=1 for=10s`,
					`level=INFO msg="step code that ran on after its context ended has returned" run=r step=s attempt=1 after=29s`,
				}},
				{"past its timeout, but not for long", 10 * time.Second, false, nil},
				{"past its lease", 30 * time.Second, true, []string{"still runs after", "after=25s"}},
			} {
				t.Run(c.what, func(t *testing.T) {
					withFake(t, func(t *testing.T, f *fake) {
						var log bytes.Buffer
						w := testWorker(f)
						w.log = slog.New(slog.NewTextHandler(&log, nil))
						Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
							timeout := time.Second
							if c.lost {
								timeout = time.Hour
							}
							return Step(ctx, "s", func(context.Context) (int, error) {
								time.Sleep(c.stays)
								return 1, nil
							}, Timeout(timeout), Retry{Attempts: 1})
						})
						running(t, w)
						f.start("r", "w", "")
						if c.lost {
							time.Sleep(5 * time.Second)
							f.take("r", true) // another worker claims it in an hour
						}
						f.await(t, "r")
						time.Sleep(time.Minute)
						synctest.Wait()
						for _, want := range c.want {
							if strings.Count(log.String(), want) != 1 {
								t.Errorf("%q is not in the log once:\n%s", want, &log)
							}
						}
						if n := strings.Count(log.String(), "after its context ended"); n != len(c.want) {
							t.Errorf("%d lines about code that goes on, want %d:\n%s", n, len(c.want), &log)
						}
					})
				})
			}
		})

	t.Run(
		"numbering skips names used in full, in replay too", func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				ran := 0
				Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
					results := ""
					for _, name := range []string{"a:2", "a", "a", "a:2", "nap", "a", "nap", "a:4"} {
						if name == "nap" {
							Sleep(ctx, "a", time.Hour)
							continue
						}
						result, err := Step(ctx, name, func(context.Context) (int, error) { ran++; return ran, nil })
						if err != nil {
							return "", err
						}
						results += fmt.Sprintf("%d ", result)
					}
					return results, nil
				})
				running(t, w)
				f.start("r", "w", "{}")
				equal(t, string(f.await(t, "r").Output.GetData()), `"1 2 3 4 5 6 "`)
				equal(t, slices.DeleteFunc(f.operations(), func(s string) bool { return s == "claim r" }), []string{
					"hello ", "complete a:2", "complete a", "complete a:3", "complete a:2:2", "sleep a:4 hold=false",
					"complete a:5", "sleep a:6 hold=false", "complete a:4:2", "end r",
				})
			})
		})

	t.Run("a recorded result or failure returns without running", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			ran := map[string]int{}
			Handle(w, "order", func(ctx Context, _ struct{}) (string, error) {
				charge, _ := Step(ctx, "charge", func(context.Context) (string, error) {
					ran["charge"]++
					return "paid", nil
				})
				_, err := Step(ctx, "ship", func(context.Context) (string, error) {
					ran["ship"]++
					return "", NonRetryable(WithType(errors.New("no stock"), "stock"))
				})
				Sleep(ctx, "cool-off", 24*time.Hour)
				var failed *StepError
				if !errors.As(err, &failed) {
					return "", err
				}
				return charge + " but " + failed.Type + ": " + failed.Message, nil
			})
			running(t, w)
			f.start("r", "order", "{}")
			r := f.await(t, "r")
			equal(t, string(r.Output.GetData()), `"paid but stock: no stock"`)
			equal(t, ran, map[string]int{"charge": 1, "ship": 1})
			equal(t, f.operations(), []string{"hello ", "claim r", "complete charge", "failed ship hold=false",
				"sleep cool-off hold=false", "claim r", "end r"})
		})
	})

	t.Run("a failed step is retried with the same idempotency key", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var keys []string
			var attempts []int
			Handle(w, "flaky", func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "call", func(ctx context.Context) (int, error) {
					keys, attempts = append(keys, IdempotencyKey(ctx)), append(attempts, Attempt(ctx))
					if len(keys) < 4 {
						return 0, errors.New("try again")
					}
					return len(keys), nil
				}, Retry{Attempts: 5, Initial: time.Minute})
			})
			running(t, w)
			began := time.Now()
			f.start("r", "flaky", "")
			r := f.await(t, "r")
			equal(t, string(r.Output.GetData()), "4")
			equal(t, keys, []string{"r/call", "r/call", "r/call", "r/call"})
			equal(t, attempts, []int{1, 2, 3, 4})
			if took := time.Since(began); took < 7*time.Minute || took > 8*time.Minute {
				t.Fatalf("took %v, want 1+2+4 minutes", took)
			}
		})
	})

	t.Run("RetryAfter and error types reach the server and come back",
		func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				var got *StepError
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					n, err := Step(ctx, "call", func(ctx context.Context) (int, error) {
						if Attempt(ctx) == 1 {
							return 0, RetryAfter(errors.New("busy"), time.Hour)
						}
						return 0, WithType(errors.New("declined"), "card")
					}, Retry{Attempts: -1, NonRetryable: []string{"card"}})
					errors.As(err, &got)
					return n, err
				})
				running(t, w)
				began := time.Now()
				f.start("r", "w", "")
				r := f.await(t, "r")
				equal(t, got, &StepError{Step: "call", Type: "card", Message: "declined", Attempts: 2})
				equal(t, r.Error.GetType(), "card")
				equal(t, r.Error.GetMessage(), "step call: declined")
				if took := time.Since(began); took < time.Hour {
					t.Fatalf("retried after %v, want an hour", took)
				}
			})
		})

	t.Run("a step is announced after 250 ms and not before", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				for _, d := range []time.Duration{249 * time.Millisecond, 251 * time.Millisecond} {
					_, _ = Step(ctx, d.String(), func(ctx context.Context) (int, error) { return 0, wait(ctx, d) })
				}
				return 0, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			equal(t, f.operations(), []string{"hello ", "claim r", "complete 249ms", "begin 251ms",
				"complete 251ms", "end r"})
		})
	})

	t.Run("a step with too long a timeout has the longest on the wire",
		func(t *testing.T) {
			for _, timeout := range []time.Duration{maxDelay - time.Second, maxDelay, 2 * maxDelay, math.MaxInt64} {
				withFake(t, func(t *testing.T, f *fake) {
					var begun *kagziv1.BeginStepRequest
					f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
						if r.GetBeginStep() != nil {
							begun = r.GetBeginStep()
						}
						return nil
					}
					w := testWorker(f)
					Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
						return Step(ctx, "s", func(ctx context.Context) (int, error) {
							return 0, wait(ctx, time.Second)
						}, Timeout(timeout), Retry{Attempts: 7})
					})
					running(t, w)
					f.start("r", "w", "")
					f.await(t, "r")
					equal(t, time.Duration(begun.GetStartToCloseTimeoutMs())*time.Millisecond, maxDelay)
					equal(t, begun.GetRetryPolicy().GetMaximumAttempts(), 7) // the server that ends it uses this policy
				})
			}
		})

	t.Run("no step starts before all earlier results are durable", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			refusals, second := 0, 0
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if r.GetCompleteStep().GetStepName() == "first" && refusals < 3 {
					refusals++
					equal(t, second, 0)
					return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE}
				}
				return nil
			}
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, _ = Step(ctx, "first", constant(1))
				return Step(ctx, "second", func(context.Context) (int, error) { second++; return 2, nil })
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			equal(t, refusals, 3)
			equal(t, second, 1)
			equal(t, f.operations(), []string{"hello ", "claim r", "complete first", "complete second", "end r"})
		})
	})

	t.Run("the run's end has no effect without the last result", func(t *testing.T) {
		for _, code := range []kagziv1.ErrorCode{
			kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, kagziv1.ErrorCode_ERROR_CODE_INTERNAL} {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				refusals := 0
				f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
					if r.GetCompleteStep() != nil && refusals < 2 {
						refusals++
						return &kagziv1.ErrorDetail{Code: code}
					}
					return nil
				}
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) { return Step(ctx, "last", constant(1)) })
				running(t, w)
				f.start("r", "w", "")
				f.await(t, "r")
				equal(t, f.operations(), []string{"hello ", "claim r", "complete last", "end r"})
			})
		}
	})

	t.Run("a result refused for good fails the run despite its end", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if r.GetCompleteStep() != nil {
					return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED,
						NonRetryable: true, Message: "no room"}
				}
				return nil
			}
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) { return Step(ctx, "last", constant(1)) })
			running(t, w)
			f.start("r", "w", "")
			equal(t, f.await(t, "r").Error.GetMessage(),
				"the server refused to record the result of step last: no room")
		})
	})

	t.Run("a step of a lost worker runs again and keeps its budget", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			attempts := make(chan int, 2)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "long", func(ctx context.Context) (int, error) {
					attempts <- Attempt(ctx)
					if Attempt(ctx) == 1 {
						return 0, wait(ctx, time.Hour)
					}
					return 7, nil
				})
			})
			running(t, w)
			f.start("r", "w", "")
			f.until(t, func() bool { return len(f.runs["r"].steps) == 1 })
			f.take("r", true)
			equal(t, string(f.await(t, "r").Output.GetData()), "7")
			equal(t, []int{<-attempts, <-attempts}, []int{1, 2})
		})
	})

	t.Run("the first result is as JSON carries it", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			type value struct {
				Kept   int
				hidden int
			}
			w := testWorker(f)
			var seen []value
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				v, err := Step(ctx, "make", constant(value{1, 2}))
				seen = append(seen, v)
				Sleep(ctx, "s", time.Second)
				return v.Kept + v.hidden, err
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "1")
			if len(seen) != 2 || seen[0] != seen[1] {
				t.Fatalf("seen = %v, want the same twice", seen)
			}
		})
	})

	t.Run("no step starts after a result refused for a lost lease", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if r.GetCompleteStep() == nil {
					return nil
				}
				return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST,
					Message: "the lease is another's"}
			}
			lost := make(chan struct{})
			w := NewWorker(WorkerOptions{
				Address: "passthrough:///fake", DialOptions: f.dial(), HandleSignals: []os.Signal{},
				Logger: slog.New(slog.NewTextHandler(saying(func(line string) {
					if strings.Contains(line, "lease lost") {
						synctest.Wait() // everything that can continue does
						close(lost)
					}
				}), nil)),
			})
			begun := false
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				if _, err := Step(ctx, "first", constant(1)); err != nil {
					return 0, err
				}
				return Step(ctx, "second", func(context.Context) (int, error) { begun = true; return 2, nil })
			})
			running(t, w)
			f.start("r", "w", "")
			<-lost
			if begun {
				t.Error("the second step has begun")
			}
		})
	})

	t.Run("values in interfaces have JSON's types the first time", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var seen []string
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				v, err := Step(ctx, "make", constant(any(42)))
				seen = append(seen, fmt.Sprintf("%T", v))
				Sleep(ctx, "s", time.Second)
				return 0, err
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			equal(t, seen, []string{"float64", "float64"})
		})
	})
}

// saying is a log that calls a function with each line.
type saying func(line string)

func (s saying) Write(line []byte) (int, error) {
	s(string(line))
	return len(line), nil
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	if !transport.Sleep(ctx, d) {
		return ctx.Err()
	}
	return nil
}

func TestLoadingAHistoryIsRetried(t *testing.T) {
	for name, c := range map[string]struct {
		code     codes.Code
		refusals int
		asked    int // in all, for the only page left
		released int
	}{
		"a short server error":                           {codes.Internal, 5, 6, 0},
		"a longer server error gives the run back":       {codes.Internal, 6, 7, 1},
		"a permanent error is not retried":               {codes.NotFound, 1, 2, 1},
		"a denied history is not retried by this worker": {codes.PermissionDenied, 1, 2, 1},
		"a denied run is not claimed again and again":    {codes.PermissionDenied, 30, 31, 30},
	} {
		t.Run(name, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				asked := 0
				f.pageSize = 1
				f.onHistory = func() error {
					if asked++; asked <= c.refusals {
						return status.Error(c.code, "no")
					}
					return nil
				}
				w := testWorker(f)
				runs := 0
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					n, err := Step(ctx, "first", func(context.Context) (int, error) { runs++; return runs, nil })
					Sleep(ctx, "nap", time.Hour)
					return n, err
				})
				running(t, w)
				f.start("r", "w", "")
				began := time.Now()
				equal(t, string(f.await(t, "r").Output.GetData()), "1")
				if took := time.Since(began) - time.Hour; took < time.Duration(c.refusals/30)*time.Second {
					// half a minute each on average
					t.Errorf("%d claims took no more than %s", c.released, took)
				}
				equal(t, asked, c.asked)
				equal(t, count(f.operations(), "release park=false"), c.released)
				equal(t, count(f.operations(), "claim r"), 2+c.released)
			})
		})
	}
}
