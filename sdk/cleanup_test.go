package kagzi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestCleanupAfterCancel(t *testing.T) {
	t.Run("cleaning up may retry, sleep, and use branches", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				Sleep(ctx, "s", time.Hour)
				clean := Cleanup(ctx)
				outs, err := Map(clean, []int{1, 2}, func(ctx Context, n int) (int, error) {
					return Step(ctx, fmt.Sprint("undo-", n), func(ctx context.Context) (int, error) {
						if Attempt(ctx) < 3 {
							return 0, errors.New("again")
						}
						return n, ctx.Err()
					})
				})
				Sleep(clean, "pause", time.Minute)
				return len(outs), err
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitParked(t, "r")
			f.askCancel("r", time.Hour)
			r := f.await(t, "r")
			equal(t, string(r.Output.GetData()), "2")
			equal(t, r.Status, cancelled)
		})
	})

	t.Run("cleanup ends with the grace period, its deadline", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			left, cause := make(chan time.Duration, 1), make(chan error, 1)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				Sleep(ctx, "s", time.Hour)
				return Step(Cleanup(ctx), "undo", func(ctx context.Context) (int, error) {
					deadline, _ := ctx.Deadline()
					left <- time.Until(deadline)
					<-ctx.Done()
					cause <- context.Cause(ctx)
					return 0, ctx.Err()
				})
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitParked(t, "r")
			asked := time.Now()
			f.askCancel("r", time.Minute)
			equal(t, f.await(t, "r").Status, cancelled)
			equal(t, time.Since(asked), time.Minute)
			equal(t, <-left, time.Minute)
			isCancelled(t, "cause", <-cause)
		})
	})

	t.Run("the worker ends the grace period, and accepts a shorter one", func(t *testing.T) {
		for _, graces := range [][]time.Duration{{time.Minute}, {time.Hour, time.Minute}} {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				began, ended := make(chan struct{}), make(chan time.Time, 1)
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					_, err := Step(Cleanup(ctx), "undo", func(ctx context.Context) (int, error) {
						close(began)
						<-ctx.Done()
						ended <- time.Now()
						return 0, ctx.Err()
					})
					isCancelled(t, "clean-up", err)
					return 0, err
				})
				running(t, w)
				f.start("r", "w", "")
				<-began
				asked := time.Now()
				for _, grace := range graces {
					f.mu.Lock()
					r := f.runs["r"]
					r.cancelAsk, r.CancelGraceUntil = true, timestamppb.New(asked.Add(grace))
					r.session.send(&kagziv1.SessionResponse{
						Event: &kagziv1.SessionResponse_CancelTask{CancelTask: r.cancelTask()}})
					f.mu.Unlock()
				}
				equal(t, (<-ended).Sub(asked), time.Minute)
				equal(t, f.await(t, "r").Status, cancelled)
			})
		}
	})

	t.Run("branches are told, and waited for while they clean up", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, err := Map(ctx, []string{"a", "b"}, func(ctx Context, name string) (int, error) {
					_, err := Step(ctx, name, func(ctx context.Context) (int, error) { return 0, wait(ctx, time.Hour) })
					_, undo := Step(Cleanup(ctx), "undo-"+name, func(ctx context.Context) (int, error) {
						return 0, wait(ctx, time.Second)
					})
					return 0, errors.Join(err, undo)
				})
				isCancelled(t, "Map", err)
				return 0, err
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitSteps(t, "r", 2)
			f.askCancel("r", time.Minute)
			r := f.await(t, "r")
			equal(t, r.Status, cancelled)
			equal(t, count(f.operations(), "complete undo-a")+count(f.operations(), "complete undo-b"), 2)
		})
	})
}
