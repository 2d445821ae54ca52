package kagzi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestDrain(t *testing.T) {
	// drained stops a worker whose only run has a step of 20 s, and returns when and how Run ended.
	// then is called after the step; nil ends the run.
	drained := func(t *testing.T, f *fake, timeout time.Duration,
		then func(Context) (int, error)) (time.Duration, error) {
		t.Helper()
		w := testWorker(f)
		w.options.DrainTimeout = timeout
		began := make(chan struct{})
		Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
			n, err := Step(ctx, "s", func(ctx context.Context) (int, error) {
				close(began)
				return 1, wait(ctx, 20*time.Second)
			})
			if err != nil || then == nil {
				return n, err
			}
			return then(ctx)
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		f.start("r", "w", "")
		<-began
		cancel()
		stopped := time.Now()
		err := <-done
		return time.Since(stopped).Round(time.Second), err
	}

	t.Run("finishes its runs, sends heartbeats, says goodbye twice", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			took, err := drained(t, f, 300*time.Second, nil)
			equal(t, fmt.Sprint(err), "<nil>")
			equal(t, took, 20*time.Second)
			equal(t, f.operations(), []string{"hello ", "claim r", "goodbye drain=true", "begin s", "complete s",
				"end r", "goodbye drain=false"})
			if beats := count(f.log, "heartbeat held=1 of=1"); beats < 1 {
				t.Fatalf("%d heartbeats while draining", beats)
			}
		})
	})

	t.Run("a broken session is told of the drain again", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			time.AfterFunc(10*time.Second, func() { f.cut(); f.start("late", "w", "") })
			_, err := drained(t, f, 300*time.Second, nil)
			equal(t, fmt.Sprint(err), "<nil>")
			equal(t, f.operations(), []string{"hello ", "claim r", "goodbye drain=true", "begin s", "hello worker-1",
				"goodbye drain=true",
				"complete s", "end r", "goodbye drain=false"})
		})
	})

	t.Run("at the drain timeout the runs are handed back", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			took, err := drained(t, f, 5*time.Second, nil)
			equal(t, fmt.Sprint(err), "kagzi: drain timeout: released 1 unfinished runs")
			equal(t, took, 5*time.Second)
			equal(t, f.operations(), []string{"hello ", "claim r", "goodbye drain=true", "begin s",
				"release park=false", "goodbye drain=false"})
		})
	})

	t.Run("parks a waiting run instead of waiting for it", func(t *testing.T) {
		for parked, waits := range map[string]func(ctx Context) (int, error){
			"sleep nap hold=false": func(ctx Context) (int, error) { Sleep(ctx, "nap", time.Hour); return 1, nil },
			"wait go hold=false":   func(ctx Context) (int, error) { return WaitSignal[int](ctx, "go", 0) },
			"children 1 any=false hold=false": func(ctx Context) (int, error) {
				return RunChild[int](ctx, "child", "elsewhere", 1, ChildOptions{Queue: "other"})
			},
			"failed bad hold=false": func(ctx Context) (int, error) {
				return Step(ctx, "bad", func(context.Context) (int, error) {
					return 0, errors.New("no")
				}, Retry{Initial: time.Hour, Max: time.Hour})
			},
			"release park=true": func(ctx Context) (int, error) {
				nap := Go(ctx, func(ctx Context) (int, error) { Sleep(ctx, "nap", time.Hour); return 1, nil })
				if _, err := Step(ctx, "beside", func(ctx context.Context) (int, error) {
					return 1, wait(ctx, 10*time.Second)
				}); err != nil {
					return 0, err
				}
				return nap.Wait(ctx)
			},
		} {
			withFake(t, func(t *testing.T, f *fake) {
				took, err := drained(t, f, 300*time.Second, waits)
				if err != nil || took > time.Minute {
					t.Errorf("%s: the worker ended after %v (%v), want it not to wait for what the run waits for",
						parked, took, err)
				}
				operations := f.operations()
				equal(t, operations[len(operations)-2:], []string{parked, "goodbye drain=false"})
			})
		}
	})

	t.Run("without runs it ends cleanly, even with no timeout", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			for _, timeout := range []time.Duration{-1, 1} {
				w := testWorker(f)
				w.options.DrainTimeout = timeout
				Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
				ctx, cancel := context.WithCancel(t.Context())
				go func() { <-w.Ready(); cancel() }()
				if err := w.Run(ctx); err != nil {
					t.Errorf("with %v: %v", timeout, err)
				}
			}
		})
	})

	t.Run("logs its deregistration only if the server confirms it", func(t *testing.T) {
		for refused, want := range map[bool]string{
			false: "worker deregistered", true: "did not confirm the deregistration"} {
			withFake(t, func(t *testing.T, f *fake) {
				f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
					if bye := r.GetGoodbye(); refused && bye != nil && !bye.GetDrain() {
						return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, Message: "no disk"}
					}
					return nil
				}
				var log bytes.Buffer
				w := testWorker(f)
				w.log = slog.New(slog.NewTextHandler(&log, nil))
				Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
				ctx, cancel := context.WithCancel(t.Context())
				go func() { <-w.Ready(); cancel() }()
				if err := w.Run(ctx); err != nil {
					t.Error(err)
				}
				for _, text := range []string{"worker deregistered", "did not confirm the deregistration"} {
					if strings.Contains(log.String(), text) != (text == want) {
						t.Errorf("refused %v: the log says\n%s\nwant of the two only %q", refused, &log, want)
					}
				}
			})
		}
	})

	t.Run("reports what ended since the last heartbeat", func(t *testing.T) {
		for _, silent := range []bool{false, true} {
			withFake(t, func(t *testing.T, f *fake) {
				f.stalled = silent // no reason to wait
				var completed, atGoodbye int32
				f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
					completed += r.GetHeartbeat().GetCompletedDelta()
					if bye := r.GetGoodbye(); bye != nil && !bye.GetDrain() {
						atGoodbye = completed
					}
					return nil
				}
				took, err := drained(t, f, 300*time.Second, nil)
				equal(t, fmt.Sprint(err), "<nil>")
				operations := f.operations()
				equal(t, operations[len(operations)-2:], []string{"end r", "goodbye drain=false"})
				if !silent {
					equal(t, took, 20*time.Second)
					equal(t, atGoodbye, 1)
				} else if took > 20*time.Second+partingTimeout {
					t.Errorf("a worker whose heartbeats are not answered left after %v", took)
				}
			})
		}
	})

	t.Run("a drain by an operator ends Run", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
			done := make(chan error, 1)
			go func() { done <- w.Run(t.Context()) }()
			<-w.Ready()
			f.until(t, func() bool { return len(f.sessions) == 1 })
			f.sessions[0].send(&kagziv1.SessionResponse{
				Event: &kagziv1.SessionResponse_Drain{Drain: &kagziv1.DrainRequest{}}})
			equal(t, <-done == nil, true)
			f.until(t, func() bool { return slices.Contains(f.log, "goodbye drain=false") })
		})
	})

	t.Run(
		"without a server it reconnects at once and often", func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				f.lease = 24 * time.Hour
				began, done := make(chan struct{}), make(chan error, 1)
				var refusals, late int
				var stopped time.Time
				away := make(chan struct{})
				w := testWorker(f)
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					return Step(ctx, "s", func(context.Context) (int, error) { close(began); <-away; return 1, nil })
				})
				ctx, cancel := context.WithCancel(t.Context())
				go func() { done <- w.Run(ctx) }()
				f.start("r", "w", "")
				<-began
				f.onHello = func(*kagziv1.RegisterRequest) error {
					refusals++
					switch {
					case refusals == 30: // the next attempt is up to a minute away
						time.AfterFunc(time.Millisecond, func() { stopped = time.Now(); cancel() })
					case refusals > 30 && late < 8:
						late++
					case refusals > 30:
						return nil
					}
					return status.Error(codes.Unavailable, "no")
				}
				close(away)
				f.cut()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if took := time.Since(stopped); late != 8 || took > 18*time.Second {
					t.Errorf("it was refused %d times more, and ended after %s", late, took)
				}
				equal(t, slices.Contains(f.operations(), "end r"), true)
			})
		})

	t.Run("a worker that never met its server ends when told to", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.onHello = func(*kagziv1.RegisterRequest) error { return status.Error(codes.Unavailable, "no") }
			w := testWorker(f)
			Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := w.Run(ctx); err != nil {
				t.Fatal(err)
			}
		})
	})
}
