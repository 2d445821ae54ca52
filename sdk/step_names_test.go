package kagzi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestStepsWithinSteps(t *testing.T) {
	var (
		branch *Future[int]
		child  *Child[int]
	)
	for call, inner := range map[string]func(Context){
		"step inner": func(ctx Context) {
			_, _ = Step(ctx, "inner", func(context.Context) (int, error) { return 1, nil })
		},
		"sleep inner":             func(ctx Context) { Sleep(ctx, "inner", time.Hour) },
		"wait for a signal inner": func(ctx Context) { _, _ = WaitSignal[int](ctx, "inner", 0) },
		"child run inner":         func(ctx Context) { _, _ = StartChild[int](ctx, "inner", "w", 1, ChildOptions{}) },
		"a branch":                func(ctx Context) { Go(ctx, func(Context) (int, error) { return 1, nil }) },
		"a wait for a branch":     func(ctx Context) { _, _ = branch.Wait(ctx) },
		"a wait for child runs":   func(ctx Context) { _, _ = child.Wait(ctx) },
		"Random":                  func(ctx Context) { Random(ctx) },
		"NewUUID":                 func(ctx Context) { NewUUID(ctx) },
	} {
		t.Run(call+" fails the run with a word on what to do", func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				Handle(w, "child", func(Context, int) (int, error) { return 1, nil })
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					var err error
					if child, err = StartChild[int](ctx, "child", "child", 1, ChildOptions{}); err != nil {
						return 0, err
					}
					branch = Go(ctx, func(Context) (int, error) { return 1, nil })
					_, _ = branch.Wait(ctx)
					NewUUID(ctx)
					return Step(ctx, "outer", func(context.Context) (int, error) {
						inner(ctx)
						return 1, nil
					})
				})
				running(t, w)
				f.start("r", "w", "")
				r := f.await(t, "r")
				equal(t, r.Error.GetType(), "within_step")
				equal(t, r.Error.GetMessage(),
					call+" is called inside a step; call it from workflow code, before or after the step")
			})
		})
	}
}

func TestReservedStepNamesAreRefused(t *testing.T) {
	for _, name := range []string{"kagzi:ended", "kagzi:cancelled"} {
		for what, call := range map[string]func(ctx Context) error{
			"a step":   func(ctx Context) error { _, err := Step(ctx, name, constant(1)); return err },
			"a sleep":  func(ctx Context) error { Sleep(ctx, name, time.Hour); return nil },
			"a signal": func(ctx Context) error { _, err := WaitSignal[int](ctx, name, time.Hour); return err },
			"a child": func(ctx Context) error {
				_, err := StartChild[int](ctx, name, "w", 1, ChildOptions{})
				return err
			},
		} {
			t.Run(what+" "+name, func(t *testing.T) {
				d := failure(t, func(ctx Context, _ struct{}) (int, error) { return 0, call(ctx) })
				equal(t, d.GetMessage(), `step name "`+name+
					`": names that begin with kagzi: are reserved for the SDK`)
				equal(t, d.GetNonRetryable(), true)
			})
		}
	}
	t.Run("similar names are not reserved", func(t *testing.T) {
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			_, _ = Step(ctx, "kagzi-ended", constant(1))
			return 0, errors.New("as it should")
		})
		equal(t, d.GetMessage(), "as it should")
	})
}

func TestInvalidStepOptionsFailTheRunBeforeTheStep(t *testing.T) {
	for want, o := range map[string]StepOption{
		"step s: option Timeout is -1s, want more than 0": Timeout(
			-time.Second),
		"step s: option Retry.Attempts is -2, want 1 to 10000, or -1 for no end": Retry{
			Attempts: -2},
		"step s: option Retry.Initial is -1s, want 0 to 10 years": Retry{
			Initial: -time.Second},
		"step s: option Retry.Max is -1s, want 0 to 10 years": Retry{
			Max: -time.Second},
		"step s: option Retry.Coefficient is 0.5, want 1 to 1e9": Retry{
			Coefficient: 0.5},
		"step s: option Retry.Jitter is 1.5, want 0 to 1, or less than 0 for none": Retry{
			Jitter: 1.5},
		"step s: option Retry.NonRetryable has 65 entries, want at most 64": Retry{
			NonRetryable: make([]string, 65)},
		`step s: option Retry.NonRetryable[1] is "\xff", want UTF-8 without NUL of at most 255 bytes`: Retry{
			NonRetryable: []string{"a", "\xff"}},
		`step s: option Retry.NonRetryable[0] is "\x00", want UTF-8 without NUL of at most 255 bytes`: Retry{
			NonRetryable: []string{"\x00"}},
		`step s: option Retry.NonRetryable[0] is "` + strings.Repeat("x", 256) +
			`", want UTF-8 without NUL of at most 255 bytes`: Retry{NonRetryable: []string{strings.Repeat("x", 256)}},
	} {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "s", func(context.Context) (int, error) {
					t.Error("the step was run")
					return 1, nil
				}, o)
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, f.await(t, "r").Error.GetMessage(), want)
		})
	}
}
