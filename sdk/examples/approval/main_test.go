package main

import (
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// purchase starts a run and lets after do what a person would.
func purchase(
	t *testing.T, after func(t *testing.T, env *kagzitest.Env, run *kagzi.Run),
) (result string, took time.Duration) {
	t.Helper()
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "purchase", Purchase)
		env.Start()
		began := time.Now()
		run, err := kagzi.Start(t.Context(), env.Client, "purchase", "chair", kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		after(t, env, run)
		if result, err = kagzi.Result[string](t.Context(), run); err != nil {
			t.Fatal(err)
		}
		took = time.Since(began)
	})
	return result, took
}

func decideNow(t *testing.T, run *kagzi.Run, d Decision) {
	t.Helper()
	if err := kagzi.Signal(t.Context(), run, "decision", d, kagzi.SignalOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestApprovalAfterADay(t *testing.T) {
	result, _ := purchase(t, func(t *testing.T, env *kagzitest.Env, run *kagzi.Run) {
		env.Pass(24 * time.Hour)
		decideNow(t, run, Decision{Approved: true, By: "ada"})
	})
	if result != "chair was bought for ada" {
		t.Error(result)
	}
}

func TestDecline(t *testing.T) {
	result, _ := purchase(t, func(t *testing.T, _ *kagzitest.Env, run *kagzi.Run) {
		decideNow(t, run, Decision{By: "ada"}) // kept, even where the code does not wait for it yet
	})
	if result != "chair was declined by ada" {
		t.Error(result)
	}
}

func TestNobodyDecides(t *testing.T) {
	result, took := purchase(t, func(*testing.T, *kagzitest.Env, *kagzi.Run) {})
	if result != "nobody decided about chair" || took < 48*time.Hour || took > 49*time.Hour {
		t.Error(result, "after", took)
	}
}
