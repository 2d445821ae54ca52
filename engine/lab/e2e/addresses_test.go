package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// keptOpen is a store that a server which stops does not close.
type keptOpen struct{ engine.Store }

func (keptOpen) Close() error { return nil }

func TestAWorkerAndAClientGoOnWithTheNextAddress(t *testing.T) {
	first := patient
	first.Wrap = func(s engine.Store) engine.Store { return keptOpen{s} }
	eachServer(t, first, func(t *testing.T, first *Server) {
		second := New(t, first.clock.Store, patient) // closes it
		addresses := first.Address + "," + second.Address
		w := kagzi.NewWorker(kagzi.WorkerOptions{Profile: kagzi.NoProfile, Address: addresses, WorkerID: "mover"})
		kagzi.Handle(w, "t", func(kagzi.Context, int) (int, error) { return 7, nil })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		defer func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		c, err := kagzi.NewClient(kagzi.ClientOptions{Profile: kagzi.NoProfile, Address: addresses})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		finish := func(when string) {
			t.Helper()
			within, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			run, err := kagzi.Start(within, c, "t", 1, kagzi.StartOptions{})
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if got, err := kagzi.Result[int](within, run); err != nil || got != 7 {
				t.Fatalf("%s: %d, %v", when, got, err)
			}
		}
		finish("with both servers")
		first.Stop()
		finish("after the first has gone")
		info := fine(second.admin().GetWorker(within(t, time.Minute), &kagziv1.GetWorkerRequest{WorkerId: "mover"}))(t)
		if info.Worker.GetStatus() != kagziv1.WorkerStatus_WORKER_STATUS_ONLINE {
			t.Errorf("the worker is %v", info.Worker)
		}
	})
}
