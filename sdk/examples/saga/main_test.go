package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// world replaces every step by one that is written down in order.
func world(env *kagzitest.Env) *[]string {
	var done []string
	for _, name := range []string{"charge", "ship"} {
		kagzitest.ReplaceStep(env, name, func(context.Context) (string, error) {
			done = append(done, name)
			return name, nil
		})
	}
	for _, name := range []string{"reserve", "release", "refund"} {
		kagzitest.ReplaceDo(env, name, func(context.Context) error {
			done = append(done, name)
			return nil
		})
	}
	kagzi.Handle(env.Worker, "order", Process)
	return &done
}

func begin(t *testing.T, env *kagzitest.Env) *kagzi.Run {
	t.Helper()
	env.Start()
	run, err := kagzi.Start(t.Context(), env.Client, "order", Order{ID: "o-1", SKU: "book"}, kagzi.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func wantDone(t *testing.T, got *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*got, want) {
		t.Errorf("ran %q, want %q", *got, want)
	}
}

func TestOrderIsShipped(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		done := world(env)
		receipt, err := kagzi.Result[Receipt](t.Context(), begin(t, env))
		if err != nil || receipt != (Receipt{Charge: "charge", Parcel: "ship"}) {
			t.Errorf("got %+v, %v", receipt, err)
		}
		wantDone(t, done, "charge", "reserve", "ship")
	})
}

func TestFailureIsCompensatedLastFirst(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		done := world(env)
		kagzitest.ReplaceStep(env, "ship", func(context.Context) (string, error) {
			return "", kagzi.NonRetryable(errors.New("too heavy"))
		})
		_, err := kagzi.Result[Receipt](t.Context(), begin(t, env))
		var failed *kagzi.RunError
		if !errors.As(err, &failed) || failed.Status != kagzi.StatusFailed {
			t.Errorf("got %v, want a failed run", err)
		}
		wantDone(t, done, "charge", "reserve", "release", "refund")
	})
}

func TestCancelledOrderIsCompensated(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		done := world(env)
		run := begin(t, env)
		env.Settle() // the run sleeps
		if err := run.CancelGracefully(t.Context(), time.Minute, "changed my mind"); err != nil {
			t.Fatal(err)
		}
		ended, err := run.Wait(t.Context())
		if err != nil || ended.Status != kagzi.StatusCancelled {
			t.Errorf("got %+v, %v, want CANCELLED", ended, err)
		}
		wantDone(t, done, "charge", "reserve", "release", "refund")
	})
}

func TestCompensationIsRetriedUntilItWorks(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		done := world(env)
		kagzitest.ReplaceDo(env, "reserve", func(context.Context) error {
			return kagzi.NonRetryable(errors.New("sold out"))
		})
		kagzitest.ReplaceDo(env, "refund", func(ctx context.Context) error {
			if kagzi.Attempt(ctx) < 20 {
				return errors.New("bank is closed")
			}
			*done = append(*done, "refund")
			return nil
		})
		if _, err := kagzi.Result[Receipt](t.Context(), begin(t, env)); err == nil {
			t.Error("the run completed, want it to fail")
		}
		wantDone(t, done, "charge", "release", "refund")
	})
}
