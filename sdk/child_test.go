package kagzi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// square handles "square", which takes a while.
func square(w *Worker) {
	Handle(w, "square", func(ctx Context, n int) (int, error) {
		Sleep(ctx, "think", time.Duration(n)*time.Hour)
		if n%7 == 0 {
			return 0, WithType(fmt.Errorf("no luck with %d", n), "luck")
		}
		return n * n, nil
	})
}

func TestChildren(t *testing.T) {
	t.Run("a child's result reaches its parent, which holds no slot", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			w.options.MaxConcurrent = 1
			square(w)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				n, err := RunChild[int](ctx, "three", "square", 3, ChildOptions{Tags: map[string]string{"of": "r"}})
				Sleep(ctx, "s", time.Hour)
				return n, err
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "9")
			c := f.order[1]
			equal(t, []string{c.GetParentRunId(), c.TaskQueue, c.Tags["of"]}, []string{"r", "default", "r"})
			equal(t, f.operations(), []string{"hello ", "claim r", "child three", "children 1 any=false hold=false",
				"claim r.1", "sleep think hold=false",
				"claim r.1", "end r.1", "claim r", "sleep s hold=false", "claim r", "end r"})
		})
	})

	t.Run("a failed child has the same error in every replay", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			square(w)
			var errs []*RunError
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				c, err := StartChild[int](ctx, "seven", "square", 7, ChildOptions{})
				if err != nil {
					return 0, err
				}
				_, err = c.Wait(ctx)
				_, again := c.Wait(ctx)
				var failed *RunError
				if !errors.As(err, &failed) || fmt.Sprint(err) != fmt.Sprint(again) {
					t.Errorf("err = %v, again %v", err, again)
				}
				errs = append(errs, failed)
				Sleep(ctx, "s", time.Hour)
				return 0, err
			})
			running(t, w)
			f.start("r", "w", "")
			r := f.await(t, "r")
			want := &RunError{RunID: "r.1", Status: StatusFailed, Type: "luck", Message: "no luck with 7",
				Step: "seven", WorkflowType: "square"}
			equal(t, errs, []*RunError{want, want})
			equal(t, []string{r.Error.GetType(), r.Error.GetMessage()},
				[]string{"luck", "child seven of type square (run r.1) failed: no luck with 7"})
		})
	})

	t.Run("a child with invalid options is never started", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var errs []string
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, err := StartChild[int](ctx, "seven", "square", 7, ChildOptions{Delay: -time.Second})
				errs = append(errs, fmt.Sprint(err))
				Sleep(ctx, "s", time.Hour)
				return 0, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			want := "step seven: start of workflow type square: option Delay is -1s, want 0 or more"
			equal(t, errs, []string{want, want})
			equal(t, len(f.order), 1)
		})
	})

	t.Run("an unsendable child affects no other run of the session",
		func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					_, err := StartChild[int](ctx, "a", "square\xff", 7, ChildOptions{})
					equal(t, fmt.Sprint(err),
						"step a: start of workflow type square\uFFFD: workflow type \"square\\xff\", want UTF-8")
					_, err = StartChild[int](ctx, "b", "square", 7,
						ChildOptions{Retry: &Retry{NonRetryable: []string{"\xff"}}})
					equal(t, fmt.Sprint(err),
						"step b: start of workflow type square: option Retry.NonRetryable[0] is \"\\xff\", want UTF-8 without NUL of at most 255 bytes")
					return 0, nil
				})
				running(t, w)
				f.start("r", "w", "")
				equal(t, f.await(t, "r").Status, kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED)
				equal(t, f.operations(), []string{"hello ", "claim r", "failed kagzi:ended hold=true",
					"failed kagzi:ended:2 hold=true", "end r"})
			})
		})

	t.Run("an unknown ParentClosePolicy is left to the server",
		func(t *testing.T) {
			equal(t, []kagziv1.ParentClosePolicy{ParentClosePolicy(-1).wire(), ParentCloseAbandon.wire(),
				ParentCloseTerminate.wire()},
				[]kagziv1.ParentClosePolicy{-1, kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_ABANDON,
					kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_TERMINATE})
		})

	t.Run("a cancelled child is not the parent's cancellation", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			square(w)
			Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
				_, err := RunChild[int](ctx, "c", "square", 3, ChildOptions{})
				var failed *RunError
				return fmt.Sprint(errors.As(err, &failed), errors.Is(err, ErrCancelled),
					cmp.Or(failed, &RunError{}).Status), nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.until(t, func() bool { return len(f.order) == 2 && f.order[1].Status == sleeping })
			if err := testClient(t, f).Run("r.1").Cancel(t.Context(), "no"); err != nil {
				t.Fatal(err)
			}
			equal(t, string(f.await(t, "r").Output.GetData()), `"true falseCANCELLED"`)
		})
	})

	t.Run("WaitAll asks once for all and joins the errors", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.pageSize = 3 // histories and answers come in pages
			w := testWorker(f)
			square(w)
			var outs []int
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				var all []*Child[int]
				for n := range 8 {
					c, err := StartChild[int](ctx, "square", "square", n, ChildOptions{})
					if err != nil {
						return 0, err
					}
					all = append(all, c)
				}
				var err error
				outs, err = WaitAll(ctx, all...)
				return 0, err
			})
			running(t, w)
			f.start("r", "w", "")
			d := f.await(t, "r").Error
			equal(t, outs, []int{0, 1, 4, 9, 16, 25, 36, 0})
			equal(t, d.GetMessage(), "child square of type square (run r.1) failed: no luck with 0\n"+
				"child square:8 of type square (run r.8) failed: no luck with 7")
			equal(t, count(f.operations(), "claim r"), 2)
			equal(t, count(f.operations(), "children 8 any=false hold=false"), 1)
		})
	})

	t.Run("results that come in parts are asked for until all are there", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.pageSize = 3
			w := testWorker(f)
			Handle(w, "square", func(ctx Context, n int) (int, error) { return n * n, nil })
			Handle(w, "w", func(ctx Context, _ struct{}) ([]int, error) {
				var all []*Child[int]
				for n := range 8 {
					c, _ := StartChild[int](ctx, fmt.Sprint("square-", n), "square", n, ChildOptions{})
					all = append(all, c)
				}
				_, _ = Step(ctx, "meanwhile", func(ctx context.Context) (int, error) {
					return 0, wait(ctx, time.Minute)
				})
				return WaitAll(ctx, all...)
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "[0,1,4,9,16,25,36,49]")
			equal(t, count(f.operations(), "claim r"), 1)
		})
	})

	t.Run("a parked run waits for children of branches together", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			square(w)
			Handle(w, "w", func(ctx Context, _ struct{}) ([]int, error) {
				return Map(ctx, []int{1, 2, 3}, func(ctx Context, n int) (int, error) {
					return RunChild[int](ctx, fmt.Sprint("square-", n), "square", n, ChildOptions{})
				})
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "[1,4,9]")
			ops := f.operations()
			equal(t, []int{count(ops, "children 3 any=true hold=true"), count(ops, "children 2 any=true hold=true"),
				count(ops, "claim r")}, []int{1, 1, 4})
		})
	})

	t.Run("a child's end is noticed within 10 s beside a busy branch", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			square(w)
			var took time.Duration
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				slow := Go(ctx, func(ctx Context) (int, error) {
					return Step(ctx, "slow", func(ctx context.Context) (int, error) {
						return 1, wait(ctx, 2*time.Hour)
					}, Timeout(3*time.Hour))
				})
				began := time.Now()
				n, err := RunChild[int](ctx, "one", "square", 1, ChildOptions{})
				took = time.Since(began) - time.Hour
				_, _ = slow.Wait(ctx)
				return n, err
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "1")
			if took > 10*time.Second {
				t.Fatalf("noticed after %v", took)
			}
		})
	})

	t.Run("branches that wait for one child all get its end",
		func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				Handle(w, "three", func(Context, int) (int, error) { return 3, nil })
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					c, err := StartChild[int](ctx, "c", "three", 0, ChildOptions{})
					if err != nil {
						return 0, err
					}
					if _, err := Step(ctx, "work", func(ctx context.Context) (int, error) {
						return 0, wait(ctx, time.Minute)
					}); err != nil {
						return 0, err
					}
					outs, err := Map(ctx, make([]int, 50), func(ctx Context, _ int) (int, error) { return c.Wait(ctx) })
					total := 0
					for _, n := range outs {
						total += n
					}
					return total, err
				})
				running(t, w)
				f.start("r", "w", "")
				equal(t, string(f.await(t, "r").Output.GetData()), "150")
			})
		})

	t.Run("a refused start is an error, recorded for every replay", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			square(w)
			var errs []error
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, err := RunChild[int](ctx, "child", "square", 3, ChildOptions{ExternalID: "taken"})
				errs = append(errs, err)
				Sleep(ctx, "s", 40*time.Hour) // the id is free again
				return Step(ctx, "on", constant(1))
			})
			running(t, w)
			if _, err := Start(t.Context(), testClient(t, f), "square", 30,
				StartOptions{ExternalID: "taken"}); err != nil {
				t.Fatal(err)
			}
			f.start("r", "w", "")
			f.await(t, "r")
			want := &StepError{Step: "child", Message: "external id taken is taken", Code: CodeConflict, Attempts: 1,
				NonRetryable: true}
			equal(t, errs, []error{want, want})
			equal(t, len(f.order), 2)
		})
	})

	t.Run("the options reach the server", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			asked := make(chan *kagziv1.StartChildRequest, 1)
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if c := r.GetStartChild(); c != nil {
					asked <- c
				}
				return nil
			}
			w := testWorker(f)
			square(w)
			Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
				c, err := StartChild[int](ctx, "c", "square", 3,
					ChildOptions{ParentClose: ParentCloseTerminate, ExternalID: "x", Queue: "q", Version: "2",
						StepRetry: &Retry{Attempts: 2}, ExecutionTimeout: time.Minute, Priority: 5, ConcurrencyKey: "k",
						OnFailure: "cleanup", Delay: time.Hour})
				return c.RunID(), err
			})
			running(t, w)
			now := time.Now()
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), `"r.1"`)
			c := <-asked
			equal(t, c.GetParentClosePolicy(), kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_TERMINATE)
			got := c.GetChild()
			equal(t, fmt.Sprint(got.GetExternalId(), got.GetTaskQueue(), got.GetVersion(),
				got.GetRetryPolicy().GetMaximumAttempts(), got.GetRunRetryPolicy().GetMaximumAttempts(),
				got.GetTimeouts().GetExecutionTimeoutMs(),
				got.GetPriority(), got.GetConcurrencyKey(), got.GetOnFailureWorkflow(),
				got.GetStartAt().AsTime().Sub(now), got.GetStartIn().AsDuration(), got.GetParentRunId()),
				"xq22 1 60000 5kcleanup1h0m0s 1h0m0sr")
			equal(t, f.order[1].Status, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED)
		})
	})

	t.Run("a child that continues as new returns its last result", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "count", func(ctx Context, n int) (string, error) {
				Sleep(ctx, "s", time.Hour)
				if n < 3 {
					return ContinueAsNew[string](ctx, n+1)
				}
				return fmt.Sprint("counted to ", n), nil
			})
			Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
				return RunChild[string](ctx, "c", "count", 1, ChildOptions{})
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), `"counted to 3"`)
		})
	})
}

// A parent of a thousand children is activated twice: to start them, and when the last has ended.
func TestAThousandChildrenAreWaitedForAtOnce(t *testing.T) {
	const n = 1000
	withFake(t, func(t *testing.T, f *fake) {
		f.pageSize = n / 2
		w := testWorker(f)
		w.options.MaxConcurrent = 4
		Handle(w, "child", func(ctx Context, n int) (int, error) { return n, nil })
		Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
			all := make([]*Child[int], n)
			for i := range all {
				all[i], _ = StartChild[int](ctx, "child", "child", i, ChildOptions{Delay: time.Hour})
			}
			outs, err := WaitAll(ctx, all...)
			total := 0
			for _, out := range outs {
				total += out
			}
			return total, err
		})
		running(t, w)
		f.start("r", "w", "")
		equal(t, string(f.await(t, "r").Output.GetData()), fmt.Sprint(n*(n-1)/2))
		equal(t, count(f.operations(), "claim r"), 2)
		equal(t, count(f.operations(), "children 1000 any=false hold=false"), 1)
	})
}

func TestChildErrorsNameTypeExternalIDAndStep(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		Handle(w, "shipment", func(ctx Context, _ int) (int, error) {
			return Step(ctx, "book", func(context.Context) (int, error) {
				return 0, NonRetryable(errors.New("carrier: too heavy"))
			})
		})
		Handle(w, "order", func(ctx Context, _ struct{}) (int, error) {
			return RunChild[int](ctx, "ship:piano", "shipment", 1, ChildOptions{ExternalID: "o-9-piano"})
		})
		running(t, w)
		f.start("r", "order", "")
		equal(t, f.await(t, "r").Error.GetMessage(),
			"child ship:piano of type shipment (external id o-9-piano, run r.1) "+
				"failed: step book: carrier: too heavy")
	})
}
