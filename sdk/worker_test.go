package kagzi

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("KAGZI_CONFIG", NoProfile) // the developer may have a settings file
	goleak.VerifyTestMain(m)
}

// withFake runs a test in a synctest bubble with a fake server.
func withFake(t *testing.T, body func(t *testing.T, f *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { body(t, newFake(t)) })
}

func testWorker(f *fake) *Worker {
	return NewWorker(WorkerOptions{
		Address: "passthrough:///fake", DialOptions: f.dial(), Logger: slog.New(slog.DiscardHandler),
		HandleSignals: []os.Signal{},
	})
}

// running runs a worker until the test ends.
func running(t testing.TB, w *Worker) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	<-w.Ready()
}

func constant[T any](v T) func(context.Context) (T, error) {
	return func(context.Context) (T, error) { return v, nil }
}

func TestActiveCountsTheRunsOfAWorker(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
			return Step(ctx, "s", func(ctx context.Context) (int, error) { return 1, wait(ctx, 20*time.Second) })
		})
		Handle(w, "sleeper", func(ctx Context, _ struct{}) (int, error) {
			Sleep(ctx, "nap", time.Hour)
			return 1, nil
		})
		equal(t, w.Active(), 0)
		running(t, w)
		f.start("a", "w", "")
		f.start("b", "w", "")
		f.start("c", "sleeper", "")
		f.awaitParked(t, "c")
		synctest.Wait()
		equal(t, w.Active(), 2)
		f.await(t, "a")
		f.await(t, "b")
		synctest.Wait()
		equal(t, w.Active(), 0)
	})
}
