package snippets

import (
	"context"
	"sync/atomic"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"google.golang.org/grpc/metadata"
)

// Figures are what a program measures of its runs.
type Figures struct {
	Steps, FailedSteps, Began, Returned atomic.Int64
	StepTime                            atomic.Int64 // nanoseconds
}

// Measured counts runs and steps, and takes the time of steps. Give it to WorkerOptions.Interceptors.
func Measured(f *Figures) kagzi.WorkerInterceptor {
	return kagzi.WorkerInterceptor{
		Run: func(ctx kagzi.Context, a kagzi.Activation, next func(kagzi.Context) error) error {
			if !a.Replays && !a.Check {
				f.Began.Add(1)
			}
			err := next(ctx) // does not return when the run is parked
			if !a.Check {
				f.Returned.Add(1)
			}
			return err
		},
		Step: func(ctx context.Context, _ kagzi.StepAttempt, next func(context.Context) error) error {
			began := time.Now()
			err := next(ctx)
			f.Steps.Add(1)
			f.StepTime.Add(int64(time.Since(began)))
			if err != nil {
				f.FailedSteps.Add(1)
			}
			return err
		},
	}
}

type tenantKey struct{}

// WithTenant says for which tenant the calls with a context are made.
func WithTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// SendTenant sends the tenant of a call to a proxy in front of the server. Give it to
// ClientOptions.Interceptors.
func SendTenant(ctx context.Context, _ kagzi.ClientCall, next func(context.Context) error) error {
	if tenant, ok := ctx.Value(tenantKey{}).(string); ok {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-tenant", tenant)
	}
	return next(ctx)
}
