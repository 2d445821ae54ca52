package kagzi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/transport"
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
		}, Timeout(24*time.Hour))
	})
	return w, began, ended
}

// slowLog writes so slowly that everything else in the bubble has happened before a line is
// written.
type slowLog struct{ slog.Handler }

func (slowLog) Enabled(context.Context, slog.Level) bool  { return true }
func (slowLog) Handle(context.Context, slog.Record) error { synctest.Wait(); return nil }

func TestLease(t *testing.T) {
	t.Run("a run whose lease is lost is dropped within 500 ms", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
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
		withFake(t, func(t *testing.T, f *fake) {
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
		withFake(t, func(t *testing.T, f *fake) {
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
			// the dropped activation only reached the first step
			equal(t, string(f.await(t, "r").Output.GetData()), "21")
		})
	})

	for what, c := range map[string]struct {
		own  time.Duration // heartbeat timeout of the run
		back time.Duration // when heartbeats are answered again
		late time.Duration // how much later the next may come
	}{
		"no step starts past 80 % of an unconfirmed lease": {
			0, 45 * time.Second, 6 * time.Second},
		"a longer lease of the run does not change the 80 %": {
			10 * time.Minute, 3 * time.Minute, 11 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				var second time.Time
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					_, _ = Step(ctx, "first", func(ctx context.Context) (int, error) {
						f.stall(true)
						return 0, wait(ctx, 29*time.Second)
					})
					return Step(ctx, "second", func(context.Context) (int, error) {
						second = time.Now()
						return 1, nil
					})
				})
				running(t, w)
				began := time.Now()
				f.startLeased("r", c.own)
				time.AfterFunc(c.back, func() { f.stall(false) })
				equal(t, string(f.await(t, "r").Output.GetData()), "1")
				if gap := second.Sub(began); gap < c.back || gap > c.back+c.late {
					t.Fatalf("the second step began %v after the start, want with the heartbeat after %v", gap, c.back)
				}
				equal(t, count(f.operations(), "claim r"), 1)
			})
		})
	}

	t.Run(
		"no step starts on a new session before its first heartbeat", func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				w.log = slog.New(slowLog{slog.DiscardHandler})
				first, second := 0, 0
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					_, _ = Step(ctx, "first", func(ctx context.Context) (int, error) {
						if first++; first > 1 {
							return 0, nil
						}
						f.stall(true)
						return 0, wait(ctx, 29*time.Second)
					})
					return Step(ctx, "second", func(context.Context) (int, error) { second++; return second, nil })
				})
				running(t, w)
				f.start("r", "w", "")
				time.AfterFunc(40*time.Second, func() { f.take("r", false); f.cut() })
				time.AfterFunc(50*time.Second, func() { f.stall(false) })
				equal(t, string(f.await(t, "r").Output.GetData()), "1")
				equal(t, f.operations(), []string{"hello ", "claim r", "begin first", "complete first",
					"hello worker-1",
					"claim r", "complete second", "end r"})
			})
		})

	t.Run("after twice the lease, steps end and the run is released",
		func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				at, ended := stalledStep(t, f, 0)
				took := (<-ended).Sub(at)
				if took < 50*time.Second || took > 61*time.Second {
					t.Fatalf("cancelled after %v, want about 60 s", took)
				}
				f.until(t, func() bool { return count(f.log, "release park=false") == 1 })
			})
		})

	t.Run("a new session is contact: runs continue", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			at, ended := stalledStep(t, f, 0)
			time.AfterFunc(50*time.Second, f.cut)
			if took := (<-ended).Sub(at); took < 110*time.Second || took > 112*time.Second {
				t.Fatalf("cancelled after %v, want about 60 s after the session that began after 50", took)
			}
		})
	})

	for _, c := range []struct{ own, after time.Duration }{
		{45 * time.Second, time.Minute}, {time.Minute, time.Minute}, {61 * time.Second, 61 * time.Second},
		{10 * time.Minute, 10 * time.Minute},
	} {
		t.Run(fmt.Sprintf("a run with a heartbeat timeout of %v is given up after %v without contact", c.own, c.after),
			func(t *testing.T) {
				withFake(t, func(t *testing.T, f *fake) {
					at, ended := stalledStep(t, f, c.own)
					took := (<-ended).Sub(at)
					if took < c.after-time.Second || took >
						c.after { // the last contact was the registration
						t.Fatalf("cancelled after %v, want %v from a moment before", took, c.after)
					}
					f.until(t, func() bool { return count(f.log, "release park=false") == 1 })
					time.Sleep(time.Hour)
					equal(t, count(f.operations(), "release park=false"), 1)
				})
			})
	}

	t.Run("a new session is contact for longer leases as well", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			at, ended := stalledStep(t, f, 10*time.Minute)
			time.AfterFunc(9*time.Minute, f.cut)
			if took := (<-ended).Sub(at); took < 19*time.Minute || took > 19*time.Minute+2*time.Second {
				t.Fatalf("cancelled after %v, want 10 min after the session that began after 9", took)
			}
		})
	})

	t.Run(
		"without a server each run is given up once, in its time", func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				var away atomic.Bool
				f.onHello = func(*kagziv1.RegisterRequest) error {
					if away.Load() {
						return errCut
					}
					return nil
				}
				w := testWorker(f)
				var log bytes.Buffer
				w.log = slog.New(slog.NewTextHandler(&log, nil))
				var mu sync.Mutex
				var ends []string
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					run, began := Info(ctx).RunID, time.Now()
					return Step(ctx, "long", func(ctx context.Context) (int, error) {
						err := wait(ctx, 9*time.Minute)
						mu.Lock()
						defer mu.Unlock()
						ends = append(ends, fmt.Sprintf("%s after %v: %v", run,
							time.Since(began).Round(10*time.Second), err))
						return 1, err
					})
				})
				running(t, w)
				for _, own := range []time.Duration{0, 80 * time.Second, 100 * time.Second, 10 * time.Minute} {
					f.startLeased(own.String(), own)
				}
				_ = transport.Sleep(t.Context(), time.Second)
				f.mu.Lock()
				for _, r := range f.runs {
					r.WorkflowType = "other" // so that nobody claims it again
				}
				f.mu.Unlock()
				away.Store(true)
				f.cut()
				time.AfterFunc(5*time.Minute, func() { away.Store(false) })
				f.until(t, func() bool { return count(f.log, "end 10m0s") == 1 })
				synctest.Wait()
				equal(t, ends, []string{"0s after 1m0s: context canceled", "1m20s after 1m20s: context canceled",
					"1m40s after 1m40s: context canceled", "10m0s after 9m0s: <nil>"})
				equal(t, strings.Count(log.String(), "giving up a run"), 3)
				equal(t, count(f.operations(), "claim 10m0s"), 1)
				equal(t, count(f.operations(), "release park=false"), 3)
			})
		})

	t.Run("Cancel ends the step's context; the worker sends no more", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
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
			equal(t, err, error(&RunError{RunID: "run-1", Status: StatusCancelled, Message: "no longer wanted",
				Code: CodeCancelled}))
		})
	})
}

// startLeased adds a run with its own heartbeat timeout.
func (f *fake) startLeased(runID string, own time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.add(runID, &kagziv1.StartWorkflowRequest{WorkflowType: "w", Input: &kagziv1.Payload{}})
	r.Timeouts = &kagziv1.TimeoutConfig{HeartbeatTimeoutMs: own.Milliseconds()}
	f.pump()
}

// stalledStep runs a long step of a run with a heartbeat timeout; from its start on the server
// answers no heartbeats.
func stalledStep(t *testing.T, f *fake, own time.Duration) (at time.Time, ended <-chan time.Time) {
	w, began, ended := oneLongStep(f)
	running(t, w)
	f.startLeased("r", own)
	at = <-began
	f.stall(true)
	f.mu.Lock()
	f.runs["r"].WorkflowType = "other" // so that nobody claims it again
	f.mu.Unlock()
	return at, ended
}
