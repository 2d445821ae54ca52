package kagzi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// awaitSteps waits until a run has n steps.
func (f *fake) awaitSteps(t *testing.T, runID string, n int) {
	t.Helper()
	f.until(t, func() bool { return len(f.runs[runID].steps) == n })
}

func (f *fake) awaitParked(t *testing.T, runID string) {
	t.Helper()
	f.until(t, func() bool { return f.runs[runID].Status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING })
}

func isCancelled(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, ErrCancelled) {
		t.Errorf("%s: %v, want ErrCancelled", what, err)
	}
}

func TestGracefulCancel(t *testing.T) {
	t.Run("a running step is told and fails; only cleanup continues", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
				_, err := Step(ctx, "long", func(ctx context.Context) (int, error) {
					err := wait(ctx, time.Hour)
					isCancelled(t, "cause of the step's context", context.Cause(ctx))
					return 0, err
				})
				isCancelled(t, "the running step", err)
				isCancelled(t, "cause of the context", context.Cause(ctx))
				_, err = Step(ctx, "next", func(context.Context) (int, error) {
					t.Error("a step began")
					return 0, nil
				})
				isCancelled(t, "a new step", err)
				Sleep(ctx, "no-time-for-that", time.Hour)
				_, err = WaitSignal[int](ctx, "signal", 0)
				isCancelled(t, "a wait", err)
				_, err = RunChild[int](ctx, "child", "w", 1, ChildOptions{})
				isCancelled(t, "a child", err)
				_, err = ContinueAsNew[int](ctx, 1)
				isCancelled(t, "a continuation", err)
				clean := Cleanup(ctx)
				return Step(clean, "undo", func(ctx context.Context) (string, error) {
					return "undone", errors.Join(clean.Err(), ctx.Err())
				})
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitSteps(t, "r", 1)
			asked := time.Now()
			f.askCancel("r", time.Minute)
			r := f.await(t, "r")
			if took := time.Since(asked); took > time.Second {
				t.Fatalf("cleaned up after %v", took)
			}
			equal(t, r.Status, cancelled)
			equal(t, string(r.Output.GetData()), `"undone"`)
			equal(t, r.steps[0].Error.GetCode(), kagziv1.ErrorCode_ERROR_CODE_CANCELLED)
			equal(t, r.steps[0].Error.GetNonRetryable(), true)
			equal(t, f.operations(), []string{"hello ", "claim r", "begin long", "complete kagzi:cancelled",
				"failed long hold=false", "complete undo", "end r"})
		})
	})

	t.Run("a failure that is final by itself keeps its words", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "s", func(ctx context.Context) (int, error) {
					<-ctx.Done()
					return 0, NonRetryable(WithType(errors.New("half done"), "half"))
				})
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitSteps(t, "r", 1)
			f.askCancel("r", time.Minute)
			d := f.await(t, "r").steps[0].Error
			equal(t, []string{d.GetType(), d.GetMessage(), d.GetCode().String()},
				[]string{"half", "half done", "ERROR_CODE_UNSPECIFIED"})
		})
	})

	t.Run("a parked run is first replayed to where it was", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var seen []string
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, _ = Step(ctx, "a", constant(1))
				before := ctx.Err() == nil
				_, _ = Step(ctx, "b", constant(1))
				Sleep(ctx, "s", time.Hour)
				seen = append(seen, fmt.Sprint(before, context.Cause(ctx)))
				_, err := Step(ctx, "c", constant(1))
				return 0, err
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitParked(t, "r")
			began := time.Now()
			f.askCancel("r", time.Minute)
			r := f.await(t, "r")
			equal(t, seen, []string{"true kagzi: run cancelled"})
			equal(t, r.Status, cancelled)
			if took := time.Since(began); took > time.Second {
				t.Fatalf("took %v", took)
			}
			equal(t, f.operations(), []string{"hello ", "claim r", "complete a", "complete b",
				"sleep s hold=false", "claim r",
				"complete kagzi:cancelled", "fail r"})
		})
	})

	// Sleep, signal and child are over by the second activation, which must behave like the first.
	refused := func(ctx Context) { _, _ = StartChild[int](ctx, "refused", "child", 1, ChildOptions{Delay: -1}) }
	for what, code := range map[string]func(ctx Context, look func()){
		"a sleep that never parked": func(ctx Context, look func()) {
			Sleep(ctx, "none", 0)
			look()
			_, _ = Step(ctx, "b", constant(1))
			Sleep(ctx, "s", time.Hour)
		},
		"a child whose start was refused": func(ctx Context, look func()) {
			refused(ctx)
			look()
			_, _ = Step(ctx, "b", constant(1))
			Sleep(ctx, "s", time.Hour)
		},
		"a refused start between a child's start and its wait": func(ctx Context,
			look func()) {
			child, _ := StartChild[int](ctx, "child", "child", 1, ChildOptions{})
			look()
			refused(ctx)
			_, _ = child.Wait(ctx)
		},
	} {
		t.Run("a parked run that is woken for it comes back past "+what, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				var seen []string
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					before := false
					code(ctx, func() { before = ctx.Err() == nil })
					seen = append(seen, fmt.Sprint(before, context.Cause(ctx)))
					return 0, nil
				})
				Handle(w, "child", func(ctx Context, _ int) (int, error) {
					Sleep(ctx, "long", time.Hour)
					return 0, nil
				})
				running(t, w)
				f.start("r", "w", "")
				f.awaitParked(t, "r")
				f.askCancel("r", time.Minute)
				f.await(t, "r")
				equal(t, seen, []string{"true kagzi: run cancelled"})
			})
		})
	}

	for what, wait := range map[string]func(ctx Context) error{
		"sleep": func(ctx Context) error {
			Sleep(ctx, "stay", 2*time.Minute)
			return context.Cause(ctx)
		},
		"wait for a signal": func(ctx Context) error {
			_, err := WaitSignal[int](ctx, "stay", 0)
			return err
		},
		"child": func(ctx Context) error {
			_, err := RunChild[int](ctx, "stay", "child", 0, ChildOptions{})
			return err
		},
	} {
		t.Run("what it has ended stays ended in every replay: a "+what, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				var errs []error
				undone := 0
				Handle(w, "child", func(ctx Context, _ int) (int, error) {
					Sleep(ctx, "s", 2*time.Minute)
					return 1, nil
				})
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					err := wait(ctx)
					errs = append(errs, err)
					if err == nil {
						return Step(ctx, "on", constant(1))
					}
					clean := Cleanup(ctx)
					_, _ = Step(clean, "undo", func(context.Context) (int, error) { undone++; return 1, nil })
					Sleep(clean, "pause", 3*time.Minute)
					_, err = Step(clean, "undo-more", constant(1))
					return 0, err
				})
				running(t, w)
				f.start("r", "w", "")
				f.awaitParked(t, "r")
				f.askCancel("r", time.Hour)
				f.until(t, func() bool { return count(f.log, "sleep pause hold=false") == 1 })
				if what == "wait for a signal" {
					if err := Signal(t.Context(), testClient(t, f).Run("r"), "stay", 1, SignalOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				r := f.await(t, "r")
				equal(t, r.Status, cancelled)
				equal(t, undone, 1)
				equal(t, count(f.operations(), "complete undo-more"), 1)
				equal(t, count(f.operations(), "complete kagzi:cancelled"), 1)
				if len(errs) < 2 {
					t.Fatalf("passes = %d", len(errs))
				}
				for _, err := range errs {
					isCancelled(t, what, err)
				}
			})
		})
	}

	t.Run("a cancelled sleep beside a busy branch stays cancelled", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var causes []error
			began, slept := make(chan struct{}), make(chan struct{})
			goOn := sync.OnceFunc(func() { close(slept) })
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				beside := Go(ctx, func(ctx Context) (int, error) {
					return Step(ctx, "beside", func(context.Context) (int, error) {
						close(began)
						<-slept
						return 1, nil
					})
				})
				Sleep(ctx, "stay", 2*time.Minute)
				causes = append(causes, context.Cause(ctx))
				goOn()
				n, err := beside.Wait(ctx)
				Sleep(Cleanup(ctx), "pause", 3*time.Minute)
				return n, err
			})
			running(t, w)
			f.start("r", "w", "")
			f.until(t, func() bool { return count(f.log, "sleep stay hold=true") == 1 })
			<-began
			f.askCancel("r", time.Hour)
			equal(t, string(f.await(t, "r").Output.GetData()), "1")
			equal(t, len(causes) > 1, true)
			for _, cause := range causes {
				isCancelled(t, "cause after the sleep", cause)
			}
		})
	})

	t.Run("a step waiting for earlier results does not start", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var refused, told bool
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if r.GetCompleteStep().GetStepName() != "first" || told {
					return nil
				}
				refused = true
				return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE}
			}
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, _ = Step(ctx, "first", constant(1))
				_, err := Step(ctx, "second", func(context.Context) (int, error) {
					t.Error("a step began")
					return 2, nil
				})
				isCancelled(t, "the second step", err)
				return 0, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.until(t, func() bool { return refused })
			f.askCancel("r", time.Minute)
			f.mu.Lock()
			told = true
			f.mu.Unlock()
			equal(t, f.await(t, "r").Status, cancelled)
			equal(t, f.operations(), []string{"hello ", "claim r", "complete first",
				"complete kagzi:cancelled", "end r"})
		})
	})

	t.Run("a step waiting for its retry ends with its last failure", func(t *testing.T) {
		for _, held := range []bool{false, true} {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
					if held {
						Go(ctx, func(ctx Context) (int, error) {
							return Step(ctx, "beside", func(ctx context.Context) (int, error) {
								return 0, wait(ctx, time.Hour)
							})
						})
					}
					_, err := Step(ctx, "s", func(context.Context) (int, error) {
						return 0, errors.New("no")
					}, Retry{Initial: time.Hour})
					isCancelled(t, "step", err)
					return err.Error(), nil
				})
				running(t, w)
				f.start("r", "w", "")
				f.until(t, func() bool { return count(f.log, fmt.Sprintf("failed s hold=%v", held)) == 1 })
				f.askCancel("r", time.Minute)
				equal(t, string(f.await(t, "r").Output.GetData()),
					`"step s: the run is being cancelled; last error: no"`)
				equal(t, count(f.operations(), "release park=true"), 0)
			})
		}
	})
}

func TestHowAWorkerLearnsOfACancel(t *testing.T) {
	t.Run("a heartbeat tells a worker of the cancellation", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w, began, ended := oneLongStep(f)
			running(t, w)
			f.start("r", "w", "")
			at := <-began
			f.mu.Lock()
			f.runs["r"].cancelAsk, f.runs["r"].CancelGraceUntil = true, timestamppb.New(at.Add(time.Minute))
			f.mu.Unlock()
			if took := (<-ended).Sub(at); took > f.heartbeat {
				t.Fatalf("told after %v", took)
			}
			equal(t, f.await(t, "r").Status, cancelled)
		})
	})

	t.Run("nothing changes if the server ignores what was cancelled", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if r.GetFailStep() != nil {
					return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED}
				}
				return nil
			}
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				Sleep(ctx, "s", time.Hour)
				return Step(Cleanup(ctx), "undo", constant(7))
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitParked(t, "r")
			f.askCancel("r", time.Minute)
			equal(t, string(f.await(t, "r").Output.GetData()), "7")
		})
	})

	t.Run("the client cancels only with a valid grace", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) { Sleep(ctx, "s", time.Hour); return 1, nil })
			running(t, w)
			run, err := Start(t.Context(), testClient(t, f), "w", struct{}{}, StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			f.awaitParked(t, run.ID())
			if err := run.CancelGracefully(t.Context(), time.Minute, "changed my mind"); err != nil {
				t.Fatal(err)
			}
			_, err = Result[int](t.Context(), run)
			equal(t, err, error(&RunError{RunID: run.ID(), Status: StatusCancelled, Message: "changed my mind",
				Code: CodeCancelled}))
		})
	})

	t.Run("without a grace the cause is the same, and nothing cleans up", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			began, cause := make(chan struct{}), make(chan error, 1)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, _ = Step(ctx, "long", func(ctx context.Context) (int, error) {
					close(began)
					<-ctx.Done()
					cause <- context.Cause(ctx)
					return 0, ctx.Err()
				})
				t.Error("the code goes on")
				return 0, nil
			})
			running(t, w)
			run, err := Start(t.Context(), testClient(t, f), "w", struct{}{}, StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			<-began
			if _, err := run.c.workflows.CancelWorkflow(t.Context(), &kagziv1.CancelWorkflowRequest{
				RunId: run.ID(), Reason: "now"}); err != nil {
				t.Fatal(err)
			}
			isCancelled(t, "cause", <-cause)
		})
	})

	for end, want := range map[kagziv1.WorkflowStatus]error{
		cancelled: ErrCancelled, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED: errLeaseLost} {
		t.Run("a heartbeat tells the cause if nothing else did: "+end.String(),
			func(t *testing.T) {
				withFake(t, func(t *testing.T, f *fake) {
					w := testWorker(f)
					began, cause := make(chan struct{}), make(chan error, 1)
					Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
						return Step(ctx, "long", func(ctx context.Context) (int, error) {
							close(began)
							<-ctx.Done()
							cause <- context.Cause(ctx)
							return 0, ctx.Err()
						})
					})
					running(t, w)
					f.start("r", "w", "")
					<-began
					f.awaitSteps(t, "r", 1) // its announcement would get the end of the run as its answer
					f.mu.Lock()
					f.end(f.runs["r"], end, nil)
					f.mu.Unlock()
					if got := <-cause; !errors.Is(got, want) {
						t.Errorf("cause = %v, want %v", got, want)
					}
				})
			})
	}
}

// With many contexts to end, the last one ends long after the first.
func TestContextsEndInTimeWithTheCauseOfTheRun(t *testing.T) {
	for range 20 {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			began, cause, deferred := make(chan struct{}), make(chan error, 1), make(chan error, 2)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				clean := Cleanup(ctx)
				for range 5000 {
					for _, parent := range []context.Context{ctx, clean} {
						_, cancel := context.WithCancel(parent)
						defer cancel()
					}
				}
				defer func() { deferred <- ctx.Err(); deferred <- clean.Err() }() // ended before the others
				return Step(ctx, "long", func(ctx context.Context) (int, error) {
					close(began)
					<-ctx.Done()
					cause <- context.Cause(ctx)
					return 0, ctx.Err()
				})
			})
			running(t, w)
			f.start("r", "w", "")
			<-began
			f.awaitSteps(t, "r", 1)
			f.mu.Lock()
			f.end(f.runs["r"], cancelled, nil)
			f.mu.Unlock()
			isCancelled(t, "cause", <-cause)
			for _, of := range []string{"the Context", "that for cleaning up"} {
				if err := <-deferred; !errors.Is(err, context.Canceled) {
					t.Errorf("%s has the error %v in a deferred function, want %v", of, err, context.Canceled)
				}
			}
		})
	}
}
