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

func TestWhenAStepBeganIsToldByTheServersClock(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(fmt.Sprintf("which is off by %v", skew), func(t *testing.T) {
			world(t, func(t *testing.T, f *fake) {
				f.skew = skew
				var began atomic.Int64
				var told []string
				f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
					for what, at := range map[string]*timestamppb.Timestamp{
						"begin": r.GetBeginStep().GetStartedAt(), "fail": r.GetFailStep().GetStartedAt(), "complete": r.GetCompleteStep().GetStartedAt(),
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

func TestTheTimeOfARunGoesOnAsItDidWhenTheClockIsSet(t *testing.T) {
	e, _ := boxed()
	claimed := e.now()
	setBack(&e.since, time.Hour) // the clock has been put an hour forward since
	e.ahead = time.Hour
	if passed := e.now().Sub(claimed); passed > time.Minute {
		t.Errorf("%v have passed since the claim, want none of the hour by which the clock was set", passed)
	}
}

// setBack makes a reading of the clocks one with another wall clock.
func setBack(t *time.Time, by time.Duration) {
	wall := (*uint64)(unsafe.Pointer(t)) // its seconds stand above 30 bits of nanoseconds
	before := t.Round(0)
	*wall -= uint64(by/time.Second) << 30
	if before.Sub(t.Round(0)) != by {
		panic("time.Time is made otherwise")
	}
}
