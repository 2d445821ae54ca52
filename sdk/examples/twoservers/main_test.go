package main

import (
	"context"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends"
	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/e2e"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

func TestCountdown(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "countdown", Countdown)
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "countdown", 3, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		workers, err := kagzi.Result[[]string](t.Context(), run)
		if err != nil || len(workers) != 3 {
			t.Errorf("got %q, %v, want three steps", workers, err)
		}
	})
}

// A run that began at one server goes on at the other when the first is gone. Where this machine
// has no Postgres the test is skipped and says so, or fails when CI is set; KAGZI_TEST_POSTGRES
// names one.
func TestRunGoesOnAtTheOtherServer(t *testing.T) {
	url := pgtest.Lend(t, backends.Migrate).URL
	first, second := serve(t, url), serve(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	activations := make(chan string, 100)
	leave := work(ctx, t, first.Address, "first", activations)
	run, err := kagzi.Start(ctx, client(t, first.Address), "countdown", 3, kagzi.StartOptions{Queue: queue})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one comes after the first step and its sleep are recorded
		select {
		case <-activations:
		case <-ctx.Done():
			t.Fatal("the run does not go on")
		}
	}
	first.Stop()
	leave() // its goodbye, for which there is no server, takes five seconds

	work(ctx, t, second.Address, "second", activations)
	other := client(t, second.Address)
	workers, err := kagzi.Result[[]string](ctx, other.Run(run.ID()))
	if err != nil || len(workers) != 3 || workers[0] != "first" || workers[2] != "second" {
		t.Errorf("counted by %q, %v, want three steps, the first by first and the last by second", workers, err)
	}
}

func serve(t *testing.T, url string) *e2e.Server {
	t.Helper()
	store, err := backends.Open(t.Context(), url, engine.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return e2e.New(t, store, e2e.Options{})
}

func client(t *testing.T, address string) *kagzi.Client {
	t.Helper()
	c, err := kagzi.NewClient(kagzi.ClientOptions{Profile: kagzi.NoProfile, Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// work runs a worker that tells of each activation of its runs, until the end of the test.
func work(ctx context.Context, t *testing.T, address, id string, activations chan<- string) (leave func()) {
	t.Helper()
	w := kagzi.NewWorker(kagzi.WorkerOptions{
		Profile: kagzi.NoProfile, Address: address, Queue: queue, WorkerID: id, DrainTimeout: -1,
		Cache: -1, // each return of a run is an activation
	})
	kagzi.Handle(w, "countdown", func(ctx kagzi.Context, n int) ([]string, error) {
		activations <- id
		return Countdown(ctx, n)
	})
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.Run(ctx) // where its server is gone it cannot say goodbye
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return cancel
}
