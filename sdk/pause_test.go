package kagzi

import (
	"context"
	"slices"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// awaitPaused waits until a run is held.
func (f *fake) awaitPaused(t *testing.T, runID string) {
	t.Helper()
	f.until(t, func() bool { return f.runs[runID].Paused })
}

func TestPause(t *testing.T) {
	t.Run("a worker says that it knows how to pause", func(t *testing.T) {
		w := testWorker(newFake(t))
		Handle(w, "w", func(Context, int) (int, error) { return 0, nil })
		equal(t, w.hello().GetPausesRuns(), true)
	})

	t.Run("the running step finishes, and the next does not begin", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				sum := 0
				for _, name := range []string{"a", "b"} {
					n, err := Step(ctx, name, after(time.Minute, 1))
					if err != nil {
						return 0, err
					}
					sum += n
				}
				return sum, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitSteps(t, "r", 1)
			f.askPause("r", true)
			f.awaitPaused(t, "r")
			equal(t, f.operations(), []string{"hello ", "claim r", "begin a", "complete a", "release park=false"})
			f.resume("r")
			equal(t, string(f.await(t, "r").Output.GetData()), "2")
			equal(t, f.operations()[5:], []string{"claim r", "begin b", "complete b", "end r"})
		})
	})

	t.Run("short steps of parallel branches finish, too", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			asked, works := make(chan struct{}), make(chan struct{})
			began := map[string]int{}
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				long := Go(ctx, func(ctx Context) (int, error) {
					_, err := Step(ctx, "long", func(ctx context.Context) (int, error) {
						close(works)
						return 1, wait(ctx, time.Minute)
					})
					if err != nil {
						return 0, err
					}
					return Step(ctx, "after-long", func(context.Context) (int, error) { return 1, nil })
				})
				// pauses its own run while it is younger than what is announced
				_, err := Step(ctx, "short", func(ctx context.Context) (int, error) {
					began["short"]++
					<-works
					f.askPause("r", true)
					close(asked)
					return 2, wait(ctx, 100*time.Millisecond)
				})
				if err != nil {
					return 0, err
				}
				if _, err := Step(ctx, "next", func(context.Context) (int, error) { return 3, nil }); err != nil {
					return 0, err
				}
				return long.Wait(ctx)
			})
			running(t, w)
			f.start("r", "w", "")
			<-asked
			f.awaitPaused(t, "r")
			operations := f.operations()
			for _, want := range []string{"complete short", "complete long"} {
				if !slices.Contains(operations, want) {
					t.Errorf("%q is missing in %q", want, operations)
				}
			}
			for _, next := range []string{"complete next", "complete after-long"} {
				if slices.Contains(operations, next) {
					t.Errorf("%q began during the pause: %q", next, operations)
				}
			}
			equal(t, operations[len(operations)-1], "release park=false")
			f.resume("r")
			f.await(t, "r")
			equal(t, began["short"], 1)
		})
	})

	t.Run("a run without a running step is released at once", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			release := make(chan struct{})
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				select { // computes
				case <-release:
				case <-ctx.Done():
				}
				return Step(ctx, "s", func(context.Context) (int, error) { return 1, nil })
			})
			running(t, w)
			f.start("r", "w", "")
			f.until(t, func() bool { return f.runs["r"].token != "" })
			f.askPause("r", true)
			f.awaitPaused(t, "r")
			close(release)
			f.resume("r")
			f.await(t, "r")
			equal(t, f.operations(), []string{"hello ", "claim r", "release park=false", "claim r", "complete s", "end r"})
		})
	})

	t.Run("a run whose branches wait in hand is released", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				nap := Go(ctx, func(ctx Context) (int, error) {
					Sleep(ctx, "nap", time.Hour)
					return 0, nil
				})
				_, err := Step(ctx, "long", func(ctx context.Context) (int, error) { return 1, wait(ctx, time.Minute) })
				if err != nil {
					return 0, err
				}
				return nap.Wait(ctx)
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitSteps(t, "r", 2)
			f.askPause("r", true)
			f.awaitPaused(t, "r")
			operations := f.operations()
			equal(t, operations[len(operations)-2:], []string{"complete long", "release park=false"})
			f.resume("r")
			f.await(t, "r")
		})
	})

	t.Run("a request that is taken back lets the next step begin", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var second time.Duration
			began := time.Now()
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				long := Go(ctx, func(ctx Context) (int, error) {
					return Step(ctx, "long", func(ctx context.Context) (int, error) { return 1, wait(ctx, time.Hour) })
				})
				_, err := Step(ctx, "first", func(ctx context.Context) (int, error) { return 1, wait(ctx, time.Minute) })
				if err != nil {
					return 0, err
				}
				_, err = Step(ctx, "second", func(context.Context) (int, error) {
					second = time.Since(began)
					return 1, nil
				})
				if err != nil {
					return 0, err
				}
				return long.Wait(ctx)
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitSteps(t, "r", 2)
			f.askPause("r", true)
			time.AfterFunc(2*time.Minute, func() { f.askPause("r", false) })
			f.until(t, func() bool { return slices.Contains(f.log, "complete second") })
			if second < 2*time.Minute || second > 3*time.Minute {
				t.Errorf("the second step began after %v, want it when the request was taken back", second)
			}
			f.await(t, "r")
			equal(t, slices.Contains(f.operations(), "release park=false"), false)
		})
	})

	t.Run("a cancellation during the pause is told to the code", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, err := Step(ctx, "long", func(ctx context.Context) (int, error) { return 1, wait(ctx, time.Hour) })
				isCancelled(t, "the running step", err)
				return Step(Cleanup(ctx), "undo", func(context.Context) (int, error) { return 1, nil })
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitSteps(t, "r", 1)
			f.askPause("r", true)
			f.askPause("r", false) // as the server does
			f.askCancel("r", time.Minute)
			equal(t, f.await(t, "r").Status, cancelled)
			equal(t, f.operations()[2:], []string{"begin long", "complete kagzi:cancelled", "failed long hold=false",
				"complete undo", "end r"})
		})
	})

	t.Run("a step that fails while the run is to be paused is retried later", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "s", func(ctx context.Context) (int, error) {
					if Attempt(ctx) == 1 {
						_ = wait(ctx, time.Minute)
						return 0, context.DeadlineExceeded
					}
					return 1, nil
				})
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitSteps(t, "r", 1)
			f.askPause("r", true)
			f.awaitPaused(t, "r")
			f.resume("r")
			equal(t, f.await(t, "r").Status, kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED)
		})
	})

	t.Run("a new session tells again what is to be paused", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, err := Step(ctx, "a", func(ctx context.Context) (int, error) { return 1, wait(ctx, time.Hour) })
				if err != nil {
					return 0, err
				}
				return Step(ctx, "b", func(context.Context) (int, error) { return 1, nil })
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitSteps(t, "r", 1)
			f.askPause("r", true)
			f.mu.Lock()
			f.runs["r"].Pausing = false // taken back while the worker was away
			f.mu.Unlock()
			f.cut()
			f.await(t, "r")
			equal(t, slices.Contains(f.operations(), "release park=false"), false)
		})
	})
}
