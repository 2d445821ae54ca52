package kagzi

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// oneLongStep makes a worker whose only workflow has one step that lasts until its context ends.
func oneLongStep(f *fake) (w *Worker, began, ended chan time.Time) {
	w = testWorker(f)
	began, ended = make(chan time.Time, 10), make(chan time.Time, 10)
	Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
		return Step(ctx, "long", func(ctx context.Context) (int, error) {
			began <- time.Now()
			<-ctx.Done()
			ended <- time.Now()
			return 0, ctx.Err()
		})
	})
	return w, began, ended
}

func TestLease(t *testing.T) {
	t.Run("a run whose lease the server says is lost is dropped within 500 ms", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
			w, began, ended := oneLongStep(f)
			running(t, w)
			f.start("r", "w", "")
			<-began
			f.take("r", true)
			taken := time.Now()
			if took := (<-ended).Sub(taken); took > 500*time.Millisecond {
				t.Fatalf("the step's context ended after %v", took)
			}
			equal(t, count(f.operations(), "failed long hold=false"), 0)
		})
	})

	t.Run("a heartbeat that is answered with a lost lease drops the run", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
			w, began, ended := oneLongStep(f)
			running(t, w)
			f.start("r", "w", "")
			<-began
			f.take("r", false)
			taken := time.Now()
			if took := (<-ended).Sub(taken); took > f.heartbeat {
				t.Fatalf("the step's context ended after %v", took)
			}
		})
	})

	t.Run("a write with a lost lease drops the run without a word", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var first, second atomic.Int64
			Handle(w, "w", func(ctx Context, _ struct{}) (int64, error) {
				_, _ = Step(ctx, "first", func(context.Context) (int, error) {
					if first.Add(1) == 1 {
						f.take("r", false)
					}
					return 1, nil
				})
				_, err := Step(ctx, "second", func(context.Context) (int, error) { second.Add(1); return 1, nil })
				return 10*first.Load() + second.Load(), err
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "21") // the pass that was dropped came to the first step only
		})
	})

	t.Run("no step begins past 80 % of the lease without a confirmed heartbeat", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var second time.Time
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, _ = Step(ctx, "first", func(ctx context.Context) (int, error) {
					f.mu.Lock()
					f.stalled = true
					f.mu.Unlock()
					return 0, wait(ctx, 29*time.Second)
				})
				return Step(ctx, "second", func(context.Context) (int, error) { second = time.Now(); return 1, nil })
			})
			running(t, w)
			began := time.Now()
			f.start("r", "w", "")
			time.AfterFunc(45*time.Second, func() {
				f.mu.Lock()
				f.stalled = false
				f.mu.Unlock()
			})
			equal(t, string(f.await(t, "r").Output.GetData()), "1")
			if gap := second.Sub(began); gap < 45*time.Second || gap > 51*time.Second {
				t.Fatalf("the second step began %v after the start, want with the heartbeat after 45 s", gap)
			}
		})
	})

	t.Run("after twice the lease without contact running steps are cancelled and the run is given back", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
			w, began, ended := oneLongStep(f)
			running(t, w)
			f.start("r", "w", "")
			at := <-began
			f.mu.Lock()
			f.stalled = true
			f.runs["r"].WorkflowType = "other" // so that nobody takes it again
			f.mu.Unlock()
			took := (<-ended).Sub(at)
			if took < 50*time.Second || took > 61*time.Second {
				t.Fatalf("cancelled after %v, want about 60 s", took)
			}
			f.until(t, func() bool { return count(f.log, "release park=false") == 1 })
		})
	})

	t.Run("cancellation at once ends the step's context, and nothing more is said of the run", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
			w, began, ended := oneLongStep(f)
			running(t, w)
			c := testClient(t, f)
			run, err := Start(t.Context(), c, "w", struct{}{}, StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			<-began
			if err := run.Cancel(t.Context(), "no longer wanted"); err != nil {
				t.Fatal(err)
			}
			<-ended
			_, err = Result[int](t.Context(), run)
			equal(t, err, error(&RunError{RunID: "run-1", Status: StatusCancelled, Message: "no longer wanted", Code: CodeCancelled}))
		})
	})

	t.Run("with a grace the code is told, its step fails for good, and clean-up steps run", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var cause error
			Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
				_, err := Step(ctx, "long", func(ctx context.Context) (int, error) { return 0, wait(ctx, time.Hour) })
				cause = context.Cause(ctx)
				Sleep(ctx, "no-time-for-that", time.Hour)
				_, clean := Step(ctx, "clean", func(ctx context.Context) (int, error) { return 0, ctx.Err() })
				if err == nil || clean != nil {
					t.Errorf("long = %v, clean = %v", err, clean)
				}
				return "cleaned", nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.until(t, func() bool { return len(f.runs["r"].steps) == 1 })
			asked := time.Now()
			f.askCancel("r", time.Minute)
			f.await(t, "r")
			if took := time.Since(asked); took > time.Second {
				t.Fatalf("cleaned up after %v", took)
			}
			equal(t, cause == ErrCancelled, true)
			equal(t, f.operations(), []string{"hello ", "claim r", "begin long", "failed long hold=false", "complete clean", "end r"})
		})
	})

	t.Run("a step that waits for its retry gives its error to code that is to clean up", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
				_, err := Step(ctx, "s", func(context.Context) (int, error) { return 0, errors.New("no") }, Retry{Initial: time.Hour})
				return err.Error(), nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.until(t, func() bool { return f.runs["r"].Status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING })
			f.askCancel("r", time.Minute)
			equal(t, string(f.await(t, "r").Output.GetData()), `"step s: no"`)
			equal(t, f.operations(), []string{"hello ", "claim r", "failed s hold=false", "claim r", "end r"})
		})
	})

	t.Run("a parked run that is woken for its cancellation is told from the start", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (bool, error) {
				Sleep(ctx, "s", time.Hour)
				return ctx.Err() != nil, nil
			})
			running(t, w)
			began := time.Now()
			f.start("r", "w", "")
			f.until(t, func() bool { return f.runs["r"].Status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING })
			f.askCancel("r", time.Minute)
			equal(t, string(f.await(t, "r").Output.GetData()), "true")
			if took := time.Since(began); took > time.Minute {
				t.Fatalf("took %v", took)
			}
		})
	})
}
