package main

import (
	"context"
	"errors"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// The ten seconds of the pause pass in no time: the clock of the test jumps.
func TestGreet(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "greet", Greet)
		env.Start()
		began := time.Now()
		run, err := kagzi.Start(t.Context(), env.Client, "greet", "Ada", kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		greeting, err := kagzi.Result[Greeting](t.Context(), run)
		want := Greeting{Text: "hello Ada", Key: run.ID() + "/send"}
		if err != nil || greeting != want {
			t.Errorf("got %+v, %v, want %+v", greeting, err, want)
		}
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("took %v of the test's clock, want about 10s", took)
		}
	})
}

// A step that fails is run again, and the steps before it are not.
func TestGreetRetriesSend(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "greet", Greet)
		composed := 0
		kagzitest.ReplaceStep(env, "compose", func(context.Context) (string, error) {
			composed++
			return "hi", nil
		})
		kagzitest.ReplaceStep(env, "send", func(ctx context.Context) (Greeting, error) {
			if kagzi.Attempt(ctx) < 3 {
				return Greeting{}, errors.New("mail server is away")
			}
			return Greeting{Text: "hi", Key: kagzi.IdempotencyKey(ctx)}, nil
		})
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "greet", "Ada", kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		greeting, err := kagzi.Result[Greeting](t.Context(), run)
		if err != nil || greeting.Text != "hi" {
			t.Errorf("got %+v, %v", greeting, err)
		}
		if composed != 1 {
			t.Errorf("the first step ran %d times, want once", composed)
		}
	})
}
