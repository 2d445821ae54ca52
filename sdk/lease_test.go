package kagzi

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// slowLog is written so slowly that whatever else can go on in the bubble has done so before a line is out.
type slowLog struct{ slog.Handler }

func (slowLog) Enabled(context.Context, slog.Level) bool  { return true }
func (slowLog) Handle(context.Context, slog.Record) error { synctest.Wait(); return nil }

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
					f.stall(true)
					return 0, wait(ctx, 29*time.Second)
				})
				return Step(ctx, "second", func(context.Context) (int, error) { second = time.Now(); return 1, nil })
			})
			running(t, w)
			began := time.Now()
			f.start("r", "w", "")
			time.AfterFunc(45*time.Second, func() { f.stall(false) })
			equal(t, string(f.await(t, "r").Output.GetData()), "1")
			if gap := second.Sub(began); gap < 45*time.Second || gap > 51*time.Second {
				t.Fatalf("the second step began %v after the start, want with the heartbeat after 45 s", gap)
			}
		})
	})

	t.Run("nor with a new session, until a heartbeat of that is confirmed: the runs may have been handed to others meanwhile", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
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
			equal(t, f.operations(), []string{"hello ", "claim r", "begin first", "complete first", "hello worker-1", "claim r", "complete second", "end r"})
		})
	})

	t.Run("after twice the lease without contact running steps are cancelled and the run is given back", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
			at, ended := stalledStep(t, f)
			took := (<-ended).Sub(at)
			if took < 50*time.Second || took > 61*time.Second {
				t.Fatalf("cancelled after %v, want about 60 s", took)
			}
			f.until(t, func() bool { return count(f.log, "release park=false") == 1 })
		})
	})

	t.Run("a new session is contact: what runs goes on for twice the lease from its beginning", func(t *testing.T) {
		world(t, func(t *testing.T, f *fake) {
			at, ended := stalledStep(t, f)
			time.AfterFunc(50*time.Second, f.cut)
			if took := (<-ended).Sub(at); took < 110*time.Second || took > 112*time.Second {
				t.Fatalf("cancelled after %v, want about 60 s after the session that began after 50", took)
			}
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

// stalledStep runs a step that goes on for long, and has the server answer no heartbeats from when it began.
func stalledStep(t *testing.T, f *fake) (at time.Time, ended <-chan time.Time) {
	w, began, ended := oneLongStep(f)
	running(t, w)
	f.start("r", "w", "")
	at = <-began
	f.stall(true)
	f.mu.Lock()
	f.runs["r"].WorkflowType = "other" // so that nobody takes it again
	f.mu.Unlock()
	return at, ended
}

func TestLeaseClock(t *testing.T) {
	t.Run("a confirmation that was overtaken by a later one changes nothing", func(t *testing.T) {
		var l leaseClock
		now := time.Now()
		l.confirm(now)
		l.confirm(now.Add(-time.Minute))
		equal(t, l.confirmed.Equal(now), true)
	})

	t.Run("twice the lease is measured from when the message was sent, and not past the end of the worker", bubble(func(t *testing.T) {
		var l leaseClock
		expired := make(chan time.Time, 2)
		began := time.Now()
		l.start(30*time.Second, func() { expired <- time.Now() })
		time.AfterFunc(50*time.Second, func() { l.confirm(time.Now().Add(-20 * time.Second)) })
		equal(t, (<-expired).Sub(began), 90*time.Second)
		l.confirm(time.Now())
		l.stop()
		time.Sleep(time.Hour)
		equal(t, len(expired), 0)
	}))

	t.Run("a server that comes back with another lease is gone by", func(t *testing.T) {
		var l leaseClock
		l.start(30*time.Second, func() {})
		l.start(6*time.Second, func() {})
		l.stop()
		equal(t, l.duration(), 6*time.Second)
	})

	t.Run("time in which the machine was suspended counts, which only the wall clock shows", func(t *testing.T) {
		sent := time.Now()
		setBack(&sent, time.Hour)
		if passed := elapsed(sent); passed < time.Hour {
			t.Errorf("%v have passed, want the hour", passed)
		}
	})

	t.Run("a clock that was set back hides no time that has passed", func(t *testing.T) {
		sent := time.Now().Add(-time.Minute)
		setBack(&sent, -time.Hour)
		if passed := elapsed(sent); passed < time.Minute {
			t.Errorf("%v have passed, want the minute", passed)
		}
	})
}
