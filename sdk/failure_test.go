package kagzi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
)

// failure runs a workflow that must fail and returns the recorded error.
func failure(t *testing.T, fn func(ctx Context, in struct{}) (int, error)) (detail *kagziv1.ErrorDetail) {
	t.Helper()
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		Handle(w, "w", fn)
		running(t, w)
		f.start("r", "w", "")
		r := f.await(t, "r")
		if r.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED {
			t.Fatalf("run ended %v, want FAILED", r.Status)
		}
		detail = r.Error
	})
	return detail
}

type pointerError struct{ text string }

func (e *pointerError) Error() string { return e.text }

type wrapper struct{ inner *pointerError }

func (*wrapper) Error() string   { return "wrapper" }
func (w *wrapper) Unwrap() error { panic("no " + w.inner.text) }

type typeless struct{}

func (typeless) Error() string     { return "typeless" }
func (typeless) ErrorType() string { panic("no type") }

type unprintable struct{}

func (e unprintable) Error() string { panic(e) }

func TestFailures(t *testing.T) {
	once := Retry{Attempts: 1}
	t.Run("a panic in workflow code fails the run with its stack", func(t *testing.T) {
		d := failure(t, func(Context, struct{}) (int, error) { return explode() })
		equal(t, d.GetType(), "panic")
		equal(t, d.GetMessage(), "panic: boom")
		frames := strings.Split(d.GetStack(), "\n")
		contains(t, frames[0], "goroutine ")
		contains(t, frames[1], "sdk.explode(")
		contains(t, frames[2], "_test.go:")
	})
	t.Run("a panic fails the step with its stack and is retried", func(t *testing.T) {
		tries := 0
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			return Step(ctx, "s", func(context.Context) (int, error) { tries++; return explode() })
		})
		equal(t, tries, 3)
		equal(t, d.GetType(), "panic")
		equal(t, d.GetMessage(), "step s: panic: boom")
	})
	t.Run("a panic is in the worker's log, with where it was", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			var log bytes.Buffer
			w := testWorker(f)
			w.log = slog.New(slog.NewTextHandler(&log, nil))
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, err := Step(ctx, "s", func(context.Context) (int, error) { return explode() }, once)
				equal(t, err != nil, true)
				return Go(ctx, func(Context) (int, error) { return explode() }).Wait(ctx)
			})
			Handle(w, "v", func(Context, struct{}) (int, error) { panic("ouch\x1b") })
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			f.start("q", "v", "")
			f.await(t, "q")
			for _, want := range []string{
				`msg="panic in workflow or step code" step=r/s attempt=1 error="panic: boom"`,
				`msg="panic in workflow or step code" run=r type=w error="panic: boom"`,
				`msg="panic in workflow or step code" run=q type=v error="panic: ouch\x1b"`,
			} {
				contains(t, log.String(), want)
			}
		})
	})
	t.Run("a panic in a branch fails the run", func(t *testing.T) {
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			return Go(ctx, func(Context) (int, error) { return explode() }).Wait(ctx)
		})
		equal(t, d.GetMessage(), "panic: boom")
		contains(t, d.GetStack(), "explode")
	})
	t.Run("a panic that cannot be printed counts like any other", func(t *testing.T) {
		const want = "panic: a kagzi.unprintable, whose methods panic"
		equal(t, failure(t, func(Context, struct{}) (int, error) { return 0, unprintable{} }).GetMessage(), want)
		equal(t, failure(t, func(ctx Context, _ struct{}) (int, error) {
			return Go(ctx, func(Context) (int, error) { panic(unprintable{}) }).Wait(ctx)
		}).GetMessage(), want)
		equal(t, failure(t, func(ctx Context, _ struct{}) (int, error) {
			return Step(ctx, "s", func(context.Context) (int, error) { return 0, unprintable{} }, once)
		}).GetMessage(), "step s: "+want)
	})
	t.Run("an error whose methods panic is a panic of its code", func(t *testing.T) {
		for method, bad := range map[string]error{
			"Error": (*pointerError)(nil), "Unwrap": fmt.Errorf("%w", &wrapper{}), "ErrorType": typeless{}} {
			for _, fn := range []func(ctx Context, _ struct{}) (int, error){
				func(Context, struct{}) (int, error) { return 0, bad },
				func(ctx Context, _ struct{}) (int, error) {
					return Go(ctx, func(Context) (int, error) { return 0, bad }).Wait(ctx)
				},
			} {
				d := failure(t, fn)
				equal(t, d.GetType(), "panic")
				contains(t, d.GetStack(), method)
			}
			tries := 0
			d := failure(t, func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "s", func(context.Context) (int, error) { tries++; return 0, bad })
			})
			equal(t, d.GetType(), "panic")
			contains(t, d.GetMessage(), "step s: panic: ")
			equal(t, tries, 3)
		}
	})
	t.Run("code that ends its own goroutine fails", func(t *testing.T) {
		d := failure(t, func(Context, struct{}) (int, error) { runtime.Goexit(); return 0, nil })
		equal(t, d.GetType(), "goexit")
		d = failure(t, func(ctx Context, _ struct{}) (int, error) {
			return Go(ctx, func(Context) (int, error) { runtime.Goexit(); return 0, nil }).Wait(ctx)
		})
		equal(t, d.GetType(), "goexit")
		d = failure(t, func(ctx Context, _ struct{}) (int, error) {
			return Step(ctx, "s", func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }, once)
		})
		equal(t, d.GetType(), "goexit")
	})
	t.Run("a step times out even if its code ignores its context", func(t *testing.T) {
		var got *StepError
		began := time.Time{}
		var took time.Duration
		withFake(t, func(t *testing.T, f *fake) {
			ignorant := make(chan struct{})
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				began = time.Now()
				n, err := Step(ctx, "slow", func(context.Context) (int, error) {
					<-ignorant
					return 1, nil
				}, once, Timeout(2*time.Second))
				took = time.Since(began)
				errors.As(err, &got)
				return n, err
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			close(ignorant)
		})
		equal(t, took, 2*time.Second)
		equal(t, got, &StepError{Step: "slow", Message: "step slow timed out after 2s", Code: CodeTimeout, Attempts: 1})
		equal(t, errors.Is(got, context.DeadlineExceeded), true)
	})
	t.Run("a step that heeds its timeout fails with the same words", func(t *testing.T) {
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			return Step(ctx, "slow", func(ctx context.Context) (int, error) {
				return 0, wait(ctx, time.Hour)
			}, once, Timeout(2*time.Second))
		})
		equal(t, d.GetMessage(), "step slow timed out after 2s")
	})
	t.Run("a result over 2 MiB fails its step and names the limit", func(t *testing.T) {
		room := MaxPayload - len(`""`) - len("content-type"+"application/json")
		for n, want := range map[int]string{room: "fits",
			room + 1: "step big: result: 2097153 bytes are more than the limit of 2097152 (2 MiB)"} {
			tries := 0
			d := failure(t, func(ctx Context, _ struct{}) (int, error) {
				_, err := Step(ctx, "big", func(context.Context) (string, error) {
					tries++
					return strings.Repeat("x", n), nil
				})
				if err == nil {
					err = errors.New("fits")
				}
				return 0, err
			})
			equal(t, d.GetMessage(), want)
			equal(t, tries, 1)
		}
	})
	t.Run("what JSON cannot carry fails at once", func(t *testing.T) {
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			_, err := Step(ctx, "chan", constant(make(chan int)))
			return 0, err
		})
		contains(t, d.GetMessage(), "unsupported type: chan int")
		equal(t, d.GetNonRetryable(), true)
	})
	t.Run("a name in flight twice fails the run and is named", func(t *testing.T) {
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			slow := func(ctx context.Context) (int, error) { return 0, wait(ctx, time.Second) }
			go func() { _, _ = Step(ctx, "same", slow) }()
			return Step(ctx, "same", slow)
		})
		contains(t, d.GetMessage(), "step name same is used by two goroutines or branches at once")
		equal(t, d.GetNonRetryable(), true)
	})
	t.Run("a name used by two branches fails the run", func(t *testing.T) {
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			a := Go(ctx, func(ctx Context) (int, error) { return Step(ctx, "same", constant(1)) })
			b := Go(ctx, func(ctx Context) (int, error) {
				Sleep(ctx, "later", time.Hour)
				return Step(ctx, "same", constant(1))
			})
			_, _ = a.Wait(ctx)
			return b.Wait(ctx)
		})
		contains(t, d.GetMessage(), "step name same is used")
	})
	t.Run(
		"a name used by a branch that was not waited for is a clash", func(t *testing.T) {
			for _, first := range []bool{false, true} {
				d := failure(t, func(ctx Context, _ struct{}) (int, error) {
					a := Go(ctx, func(ctx Context) (int, error) { return Step(ctx, "same", constant(1)) })
					none := Go(ctx, func(ctx Context) (int, error) { return 1, nil })
					b := Go(ctx, func(ctx Context) (int, error) {
						Sleep(ctx, "later", time.Hour)
						if first {
							_, _ = none.Wait(ctx)
							return Step(ctx, "same", constant(1))
						}
						_, _ = Step(ctx, "same", constant(1))
						return a.Wait(ctx)
					})
					c := Go(ctx, func(ctx Context) (int, error) { return a.Wait(ctx) })
					_, _ = b.Wait(ctx)
					return c.Wait(ctx)
				})
				contains(t, d.GetMessage(), "step name same is used")
			}
		})
	t.Run("a numbered name that another branch uses is a clash",
		func(t *testing.T) {
			for _, later := range []string{"same", "same:2"} {
				d := failure(t, func(ctx Context, _ struct{}) (int, error) {
					use := func(names ...string) *Future[int] {
						return Go(ctx, func(ctx Context) (sum int, err error) {
							for _, name := range names {
								if name == later {
									Sleep(ctx, "later", time.Hour)
								}
								_, err = Step(ctx, name, constant(1))
							}
							return sum, err
						})
					}
					twice, full := use("same", "same"), use("same:2")
					_, _ = full.Wait(ctx)
					return twice.Wait(ctx)
				})
				contains(t, d.GetMessage(), "step name same:2 is used by two")
			}
		})
	t.Run("malformed names fail the run", func(t *testing.T) {
		for _, name := range []string{"", "a b", "ä", strings.Repeat("x", 256)} {
			d := failure(t, func(ctx Context, _ struct{}) (int, error) { return Step(ctx, name, constant(1)) })
			contains(t, d.GetMessage(), "step name")
			equal(t, d.GetNonRetryable(), true)
		}
	})
	t.Run("a name may have all the characters of the alphabet for names", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) { return Step(ctx, "azAZ09._:/-", constant(1)) })
			running(t, w)
			f.start("r", "w", "")
			equal(t, f.await(t, "r").Status, kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED)
		})
	})
	t.Run("a numbered name that is too long fails the run", func(t *testing.T) {
		ran := 0
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			for range 2 {
				if _, err := Step(ctx, strings.Repeat("x", maxName), func(context.Context) (int, error) {
					ran++
					return ran, nil
				}); err != nil {
					return 0, err
				}
			}
			return ran, nil
		})
		contains(t, d.GetMessage(), "is 257 bytes long, want 1 to 255")
		equal(t, ran, 1)
	})
	t.Run("an error text is cut to 16 KiB with a mark", func(t *testing.T) {
		d := failure(t, func(Context, struct{}) (int, error) {
			return 0, errors.New("\x00\xff" + strings.Repeat("é", 10_000))
		})
		if n := len(d.GetMessage()); n > convert.MaxErrorText || n < convert.MaxErrorText-2 {
			t.Fatalf("message is %d bytes long", n)
		}
		if !strings.HasPrefix(d.GetMessage(), "\uFFFD\uFFFDé") || !strings.HasSuffix(d.GetMessage(), convert.CutMark) {
			t.Fatalf("message = %.20q..%q", d.GetMessage(), d.GetMessage()[convert.MaxErrorText-20:])
		}
	})
	t.Run("a full disk is waited for", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			full := 0
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if r.GetCompleteStep() != nil && full < 20 {
					full++
					return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED,
						Message: "disk full"}
				}
				return nil
			}
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) { return Step(ctx, "a", constant(1)) })
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "1")
		})
	})
	t.Run("a refused announcement does not matter", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if r.GetBeginStep() != nil {
					return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED}
				}
				return nil
			}
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "a", func(ctx context.Context) (int, error) { return 1, wait(ctx, time.Minute) })
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "1")
		})
	})
	t.Run("a server refusal fails the run and says of what", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if r.GetCompleteStep() != nil {
					return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED,
						Message: "10,000 steps", NonRetryable: true}
				}
				return nil
			}
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, _ = Step(ctx, "a", constant(1))
				return Step(ctx, "b", constant(1))
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, f.await(t, "r").Error.GetMessage(),
				"the server refused to record the result of step a: 10,000 steps")
		})
	})
	t.Run("an error that the server cannot record fails the run", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if strings.Contains(r.GetFailWorkflow().GetError().GetMessage(), "世") {
					return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT,
						Message: "its encoding is LATIN1", NonRetryable: true}
				}
				return nil
			}
			w := testWorker(f)
			Handle(w, "w", func(Context, struct{}) (int, error) { return 0, errors.New("no 世") })
			running(t, w)
			f.start("r", "w", "")
			equal(t, f.await(t, "r").Error.GetMessage(),
				"the run failed, and the server refused to record its error: its encoding is LATIN1")
		})
	})
	t.Run("a wrong input fails the run and names the wanted type", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(Context, map[string]int) (int, error) { return 0, nil })
			running(t, w)
			f.start("r", "w", "[1]")
			d := f.await(t, "r").Error
			contains(t, d.GetMessage(), "input of workflow type w: cannot be read as map[string]int")
			equal(t, d.GetType(), "unreadable")
			equal(t, d.GetNonRetryable(), true)
		})
	})
}

func explode() (int, error) { panic("boom") }

func TestATooShortRetryDelayIsNotThePolicys(t *testing.T) {
	for delay, want := range map[time.Duration]int64{
		0: 0, time.Microsecond: 1, 1500 * time.Microsecond: 1, time.Second: 1000} {
		if got := errorDetail(RetryAfter(errors.New("busy"), delay)).GetRetryAfterMs(); got != want {
			t.Errorf("RetryAfter %v is recorded as %d ms, want %d", delay, got, want)
		}
	}
}

func TestTextIsCutBetweenRunes(t *testing.T) {
	for limit := 50; limit < 54; limit++ {
		cut := convert.CleanText(strings.Repeat("€", 100), limit)
		if !utf8.ValidString(cut) || len(cut) > limit || !strings.HasSuffix(cut, convert.CutMark) {
			t.Errorf("cut at %d it is %q of %d bytes", limit, cut, len(cut))
		}
	}
}
