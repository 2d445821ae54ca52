package kagzitest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// Each failure of the step waits a minute, each of the function an hour.
func TestStepsAndFunctionAreRetriedByTheirOwnPolicies(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "order", func(ctx kagzi.Context, _ int) (int, error) {
			return kagzi.Step(ctx, "charge", func(context.Context) (int, error) { return 0, errors.New("declined") })
		})
		env.Start()
		begun := time.Now()
		run, err := kagzi.Start(t.Context(), env.Client, "order", 0, kagzi.StartOptions{
			StepRetry: &kagzi.Retry{Attempts: 3, Initial: time.Minute, Coefficient: 1, Jitter: -1},
			RunRetry:  &kagzi.Retry{Attempts: 2, Initial: time.Hour, Max: time.Hour, Jitter: -1}})
		if err != nil {
			t.Fatal(err)
		}
		d, err := run.Wait(t.Context())
		if err != nil || d.Status != kagzi.StatusFailed || d.Attempts != 2 || d.StepRetries != 4 {
			t.Errorf("it ended as %+v, %v, want FAILED in the second attempt after four retries of the step", d, err)
		}
		if took := time.Since(begun).Round(time.Minute); took != time.Hour+4*time.Minute {
			t.Errorf("it took %s, want an hour and four minutes", took)
		}
	})
}
