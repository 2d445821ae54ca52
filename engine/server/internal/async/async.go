// Package async has concurrency helpers for the server's packages: notification channels, parallel
// calls, and a pool of goroutines.
package async

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

// Notify wakes the receiver of a channel of capacity one. It does not block. Notifications that
// were not yet received are merged into one.
func Notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // already notified
	}
}

// Await waits for c, the end of the call, or the server's stop.
func Await[T any](ctx context.Context, stopping <-chan struct{}, c <-chan T) error {
	select {
	case <-c:
		return nil
	case <-stopping:
		return wire.ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Parallel calls do concurrently for 0 to n-1, and returns when all calls have returned. n is at
// least 1.
func Parallel(n int, do func(i int)) {
	var others sync.WaitGroup
	for i := range n - 1 {
		others.Go(func() { do(i + 1) })
	}
	do(0)
	others.Wait()
}

// Recovered returns a recovered panic as an error, with its stack.
func Recovered(v any) error {
	return fmt.Errorf("panic: %v\n%s", v, debug.Stack())
}
