package kagzi

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
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
}
