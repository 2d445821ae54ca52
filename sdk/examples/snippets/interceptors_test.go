package snippets

import (
	"context"
	"errors"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
	"google.golang.org/grpc/metadata"
)

func TestMeasuredCountsNothingTwice(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		var f Figures
		env.Intercept(Measured(&f))
		kagzi.Handle(env.Worker, "order", func(ctx kagzi.Context, id string) (string, error) {
			err := kagzi.Do(ctx, "charge", func(ctx context.Context) error {
				time.Sleep(time.Second)
				if kagzi.Attempt(ctx) == 1 {
					return errors.New("busy")
				}
				return nil
			})
			kagzi.Sleep(ctx, "pause", time.Hour)
			return id, errors.Join(err, kagzi.Do(ctx, "ship", func(context.Context) error { return nil }))
		})
		env.Start()
		want(t, start(t, env, "order", "o-1", kagzi.StartOptions{}), "o-1")
		got := [...]int64{f.Began.Load(), f.Returned.Load(), f.Steps.Load(), f.FailedSteps.Load(), f.StepTime.Load()}
		if want := [...]int64{1, 1, 3, 1, int64(2 * time.Second)}; got != want {
			t.Errorf("began, returned, steps, failed steps, their time: %v, want %v", got, want)
		}
	})
}

func TestSendTenant(t *testing.T) {
	err := SendTenant(WithTenant(t.Context(), "acme"), kagzi.ClientCall{}, func(ctx context.Context) error {
		if md, _ := metadata.FromOutgoingContext(ctx); len(md.Get("x-tenant")) != 1 || md.Get("x-tenant")[0] != "acme" {
			t.Errorf("metadata %v, want the tenant", md)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
