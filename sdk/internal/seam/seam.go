// Package seam lets package kagzitest reach into workers and clients without a public API for it.
package seam

import (
	"context"
	"fmt"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Step is the code of a step with its types taken off.
type Step = func(ctx context.Context) (any, error)

// Typed adapts replacement code to the step's type. A value of another type is an error, marked by
// final.
func Typed[T any](name string, code Step, final func(error) error) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		var result T
		v, err := code(ctx)
		if err != nil || v == nil {
			return result, err
		}
		typed, ok := v.(T)
		if !ok {
			return result, final(fmt.Errorf("step %s returns %T, but its replacement returns %T", name,
				result, v))
		}
		return typed, nil
	}
}

// ReplaceSteps sets a function on a *kagzi.Worker that returns replacement code for a step's name,
// nil for none. Package kagzi sets this variable.
var ReplaceSteps func(worker any, replaced func(name string) Step)

// CodeEnds waits up to limit for step and workflow code that a *kagzi.Worker runs or has abandoned,
// and reports whether it has ended. Package kagzi sets this variable.
var CodeEnds func(worker any, limit time.Duration) bool

// AwaitEnds sets a function on a *kagzi.Client that it calls before asking the server whether a run
// has ended. It returns when the run has ended or ctx is done. Package kagzi sets this variable.
var AwaitEnds func(client any, await func(ctx context.Context, runID string))

// Keep sets how many parked runs a *kagzi.Worker that does not run yet keeps in memory, and for how long.
// Package kagzi sets this variable.
var Keep func(worker any, runs int, limit time.Duration)

// Replay compares a run, with all attempts of its steps, with the code that a *kagzi.Worker has for
// its type, as kagzi.Replay does with a capsule. Package kagzi sets this variable.
var Replay func(ctx context.Context, worker any, run *kagziv1.Workflow, steps []*kagziv1.Step) error

// Intercept adds interceptors ([]kagzi.WorkerInterceptor) to a *kagzi.Worker that does not run yet.
// Package kagzi sets this variable.
var Intercept func(worker, interceptors any)
