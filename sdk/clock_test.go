package kagzi

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestStartTimesOfStepsUseTheServersClock(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(fmt.Sprintf("which is off by %v", skew), func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				f.skew = skew
				var began atomic.Int64
				var told []string
				f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
					for what, at := range map[string]*timestamppb.Timestamp{
						"begin": r.GetBeginStep().GetStartedAt(), "fail": r.GetFailStep().GetStartedAt(),
						"complete": r.GetCompleteStep().GetStartedAt(),
					} {
						if at != nil {
							told = append(told, fmt.Sprintf("%s %v", what, at.AsTime().Sub(time.Unix(0, began.Load()))))
						}
					}
					return nil
				}
				w := testWorker(f)
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					return Step(ctx, "s", func(ctx context.Context) (int, error) {
						began.Store(f.now().UnixNano())
						if Attempt(ctx) == 1 {
							return 0, errors.New("try again")
						}
						return 1, wait(ctx, 20*time.Second)
					})
				})
				running(t, w)
				f.start("r", "w", "")
				f.await(t, "r")
				equal(t, told, []string{"fail 0s", "begin 0s", "complete 0s"})
			})
		})
	}
}

func TestAHeldRetryIgnoresChangesOfTheServersClock(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(fmt.Sprintf("by %v", by), func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				var failed, again time.Time
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					slow := Go(ctx, func(ctx Context) (int, error) { // keeps the run on the worker
						return Step(ctx, "slow", func(ctx context.Context) (int, error) {
							return 1, wait(ctx, 3*time.Hour)
						}, Timeout(10*time.Hour))
					})
					_, err := Step(ctx, "flaky", func(ctx context.Context) (int, error) {
						if Attempt(ctx) == 1 {
							f.mu.Lock()
							f.skew = by
							f.mu.Unlock()
							failed = time.Now()
							return 0, errors.New("no")
						}
						again = time.Now()
						return 1, nil
					}, Retry{Initial: 5 * time.Second})
					_, _ = slow.Wait(ctx)
					return 1, err
				})
				running(t, w)
				f.start("r", "w", "")
				f.await(t, "r")
				equal(t, again.Sub(failed).Round(time.Second), 5*time.Second)
			})
		})
	}
}

func TestTheTimeOfARunIgnoresChangesOfTheClock(t *testing.T) {
	e, _ := boxed()
	claimed := e.now()
	setBack(&e.stay.Load().since, time.Hour) // the clock was set an hour forward meanwhile
	e.stay.Load().ahead = time.Hour
	if passed := e.now().Sub(claimed); passed > time.Minute {
		t.Errorf("%v have passed since the claim, want none of the hour by which the clock was set", passed)
	}
}

// Otherwise times compared with the server's would be off by the difference of the leases.
func TestTheServersClockIsDerivedFromTheLease(t *testing.T) {
	w := NewWorker(WorkerOptions{})
	w.lease.Start(30*time.Second, w.expired)
	defer w.lease.Stop()
	for own, lease := range map[time.Duration]time.Duration{
		0: 30 * time.Second, 10 * time.Second: 30 * time.Second, 10 * time.Minute: 10 * time.Minute} {
		e := newExecution(w, &kagziv1.Task{RunId: "r",
			Timeouts:       &kagziv1.TimeoutConfig{HeartbeatTimeoutMs: own.Milliseconds()},
			LeaseExpiresAt: timestamppb.New(time.Now().Add(time.Hour + lease))})
		if ahead := e.stay.Load().ahead.Round(time.Minute); ahead != time.Hour {
			t.Errorf("with a lease of %v of its own the server's clock is %v ahead, want 1h0m0s", own, ahead)
		}
	}
}

// setBack changes the wall clock of a time, not its monotonic clock.
func setBack(t *time.Time, by time.Duration) {
	wall := (*uint64)(unsafe.Pointer(t)) // seconds are above 30 bits of nanoseconds
	before := t.Round(0)
	*wall -= uint64(by/time.Second) << 30
	if before.Sub(t.Round(0)) != by {
		panic("time.Time is made otherwise")
	}
}

func TestAGracePeriodUsesTheServersClockAndItsDeadlineOurs(t *testing.T) {
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
		bubble(func(t *testing.T) {
			w := NewWorker(WorkerOptions{})
			w.lease.Start(30*time.Second, w.expired)
			defer w.lease.Stop()
			server := time.Now().Add(skew)
			e := newExecution(w, &kagziv1.Task{RunId: "r",
				LeaseExpiresAt:  timestamppb.New(server.Add(30 * time.Second)),
				CancelRequested: true, CancelGraceUntil: timestamppb.New(server.Add(10 * time.Second))})
			e.mu.Lock()
			e.armGrace()
			e.mu.Unlock()
			began := time.Now()
			if deadline, ok := e.grace.Deadline(); !ok || !deadline.Equal(began.Add(10*time.Second)) {
				t.Errorf("with a server %v ahead the code may clean up until %v from now, want 10s", skew,
					deadline.Sub(began))
			}
			equal(t, e.graceIsOver(), false)
			<-e.grace.Done()
			if took := time.Since(began); took != 10*time.Second || !e.graceIsOver() {
				t.Errorf("with a server %v ahead the grace was over after %v, want 10s", skew, took)
			}
		})(t)
	}
}
