// Command saga processes orders: it charges, reserves and ships. When a step fails for good, or the
// run is cancelled with a grace, it undoes what was done, last first.
//
//	saga                    runs a worker
//	saga start ORDER [SKU]  starts a run and waits for its end; the SKU "piano" cannot be shipped
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

const queue = "orders"

type Order struct{ ID, SKU string }

type Receipt struct{ Charge, Parcel string }

// Process fulfils an order. Compensations run under Cleanup, whose context does not end with the
// cancellation of the run but with its grace.
func Process(ctx kagzi.Context, in Order) (Receipt, error) {
	var s saga
	receipt, err := fulfil(ctx, in, &s)
	if err != nil {
		return Receipt{}, errors.Join(err, s.compensate(kagzi.Cleanup(ctx)))
	}
	return receipt, nil
}

// fulfil names the compensation before each step: a step that was cut short may have had its
// effect.
func fulfil(ctx kagzi.Context, in Order, s *saga) (r Receipt, err error) {
	s.undo("refund", in, refund)
	if r.Charge, err = do(ctx, "charge", in, charge); err != nil {
		return r, err
	}
	s.undo("release", in, release)
	err = kagzi.Do(ctx, "reserve", func(ctx context.Context) error { return reserve(ctx, in) })
	if err != nil {
		return r, err
	}
	kagzi.Sleep(ctx, "cool-off", 10*time.Second) // time to cancel; returns at once when the run is cancelled
	r.Parcel, err = do(ctx, "ship", in, ship)
	return r, err
}

// saga remembers what is to be undone. It lives in the workflow function, so every replay builds it
// again.
type saga struct{ undos []func(kagzi.Context) error }

func (s *saga) undo(name string, in Order, fn func(context.Context, Order) error) {
	s.undos = append(s.undos, func(ctx kagzi.Context) error {
		return kagzi.Do(ctx, name, func(ctx context.Context) error { return fn(ctx, in) },
			kagzi.Retry{Attempts: -1}) // until it works
	})
}

// compensate undoes in reverse order. Compensations are steps: a worker that dies among them loses
// none.
func (s *saga) compensate(ctx kagzi.Context) error {
	var errs []error
	for _, undo := range slices.Backward(s.undos) {
		errs = append(errs, undo(ctx))
	}
	return errors.Join(errs...)
}

// do runs a step whose result is part of the receipt.
func do(ctx kagzi.Context, name string, in Order, fn func(context.Context, Order) (string, error)) (string, error) {
	return kagzi.Step(ctx, name, func(ctx context.Context) (string, error) { return fn(ctx, in) })
}

// These stand for the bank, the warehouse and the carrier. Undoing what was never done must be
// harmless.

func charge(ctx context.Context, o Order) (string, error) { return say("charged", o), nil }
func refund(ctx context.Context, o Order) error           { say("refunded", o); return nil }
func reserve(ctx context.Context, o Order) error          { say("reserved", o); return nil }
func release(ctx context.Context, o Order) error          { say("released", o); return nil }

func ship(ctx context.Context, o Order) (string, error) {
	if o.SKU == "piano" {
		return "", kagzi.NonRetryable(errors.New("carrier: too heavy"))
	}
	return say("shipped", o), nil
}

func say(what string, o Order) string {
	log.Println(what, o.SKU, "of order", o.ID)
	return what + " " + o.ID
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "start" {
		order := Order{ID: os.Args[2], SKU: "book"}
		if len(os.Args) > 3 {
			order.SKU = os.Args[3]
		}
		if err := start(context.Background(), order); err != nil {
			log.Fatal(err)
		}
		return
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: queue})
	kagzi.Handle(w, "order", Process)
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// start starts the order's run. The order's id as external id keeps a second start from charging
// twice.
func start(ctx context.Context, order Order) error {
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := kagzi.Start(ctx, c, "order", order, kagzi.StartOptions{Queue: queue, ExternalID: order.ID})
	if err != nil {
		return err
	}
	fmt.Println("started", run.ID())
	receipt, err := kagzi.Result[Receipt](ctx, run)
	if err != nil {
		return err
	}
	fmt.Println(receipt.Charge+",", receipt.Parcel)
	return nil
}
