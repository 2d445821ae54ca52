//go:build unix

package kagzi

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"testing"
)

func TestASignalDrainsAndASecondOneReleases(t *testing.T) {
	f := newFake(t)
	w := NewWorker(WorkerOptions{Address: "passthrough:///fake", DialOptions: f.dial(),
		Logger:        slog.New(slog.DiscardHandler),
		HandleSignals: []os.Signal{syscall.SIGUSR1}})
	began := make(chan struct{})
	Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
		return Step(ctx, "s", func(ctx context.Context) (int, error) {
			close(began)
			<-ctx.Done()
			return 0, ctx.Err()
		})
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(context.Background()) }()
	f.start("r", "w", "")
	<-began
	self, _ := os.FindProcess(os.Getpid())
	_ = self.Signal(syscall.SIGUSR1)
	f.until(t, func() bool { return slices.Contains(f.log, "goodbye drain=true") })
	_ = self.Signal(syscall.SIGUSR1)
	equal(t, fmt.Sprint(<-done), "kagzi: second signal: released 1 unfinished runs")
}
