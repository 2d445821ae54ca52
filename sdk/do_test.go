package kagzi

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestDo(t *testing.T) {
	t.Run("records null once and returns from the record in a replay", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			ran := 0
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				if err := Do(ctx, "s", func(context.Context) error { ran++; return nil }); err != nil {
					return 0, err
				}
				Sleep(ctx, "nap", time.Hour)
				return ran, nil
			})
			running(t, w)
			f.start("r", "w", "")
			r := f.await(t, "r")
			equal(t, string(r.Output.GetData()), "1")
			equal(t, string(r.steps[0].GetOutput().GetData()), "null")
		})
	})
	t.Run("retries, and returns the error of the last attempt", func(t *testing.T) {
		ran := 0
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			return 0, Do(ctx, "s", func(context.Context) error { ran++; return errors.New("no") }, Retry{Attempts: 2})
		})
		equal(t, d.GetMessage(), "step s: no")
		equal(t, ran, 2)
	})
	t.Run("takes the place of a step that recorded a result", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			first := true
			Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
				if first {
					_, err := Step(ctx, "s", constant("a result"))
					first = false
					Sleep(ctx, "nap", time.Hour)
					return "", err
				}
				err := Do(ctx, "s", func(context.Context) error { return errors.New("ran again") })
				Sleep(ctx, "nap", time.Hour)
				return "done", err
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), `"done"`)
		})
	})
}
