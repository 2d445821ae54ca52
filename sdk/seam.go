package kagzi

import (
	"context"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/sdk/internal/seam"
)

func init() {
	seam.ReplaceSteps = func(worker any, replaced func(name string) seam.Step) { worker.(*Worker).replaced = replaced }
	seam.CodeEnds = func(worker any, limit time.Duration) bool { return worker.(*Worker).codeEnds(limit) }
	seam.AwaitEnds = func(client any, await func(ctx context.Context, runID string)) { client.(*Client).await = await }
}

// replacedStep is the code that a test has put in the place of the step's own, or the step's own.
func replacedStep[T any](w *Worker, name string, fn func(context.Context) (T, error)) func(context.Context) (T, error) {
	if w.replaced == nil {
		return fn
	}
	other := w.replaced(name)
	if other == nil {
		return fn
	}
	return func(ctx context.Context) (T, error) {
		var result T
		v, err := other(ctx)
		if err != nil || v == nil {
			return result, err
		}
		typed, ok := v.(T)
		if !ok {
			return result, NonRetryable(fmt.Errorf("step %s returns %T, but the code in its place returns %T", name, result, v))
		}
		return typed, nil
	}
}
