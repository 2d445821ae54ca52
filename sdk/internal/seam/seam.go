// Package seam is where package kagzitest reaches into a worker, without the means for it standing in the public API.
package seam

import (
	"context"
	"fmt"
	"time"
)

// Step is the code of a step with its types taken off.
type Step = func(ctx context.Context) (any, error)

// Typed gives the code that replaces a step the step's type. A value of another type is an error, marked by final.
func Typed[T any](name string, code Step, final func(error) error) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		var result T
		v, err := code(ctx)
		if err != nil || v == nil {
			return result, err
		}
		typed, ok := v.(T)
		if !ok {
			return result, final(fmt.Errorf("step %s returns %T, but the code in its place returns %T", name,
				result, v))
		}
		return typed, nil
	}
}

// ReplaceSteps makes a *kagzi.Worker run other code for the steps that replaced names: it is given
// a step's name and answers nil to leave it alone. Package kagzi sets it.
var ReplaceSteps func(worker any, replaced func(name string) Step)

// CodeEnds waits for the code of steps and workflows that a *kagzi.Worker runs, or has left behind,
// for up to limit, and reports whether it has ended. Package kagzi sets it.
var CodeEnds func(worker any, limit time.Duration) bool

// AwaitEnds has a *kagzi.Client call await, which returns when the run has ended or ctx is over,
// before it asks the server whether a run has ended. Package kagzi sets it.
var AwaitEnds func(client any, await func(ctx context.Context, runID string))
