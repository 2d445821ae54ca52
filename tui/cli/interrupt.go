package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kagzi/kagzi/tui/view"
)

// UntilInterrupted is a context that ends with the first Ctrl-C or SIGTERM; the next one ends the process at once. What is typed while the
// terminal is lent to another program is for that one.
func UntilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer cancel()
		defer signal.Stop(heard)
		for {
			select {
			case s := <-heard:
				if s != os.Interrupt || !view.Lent() {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}
