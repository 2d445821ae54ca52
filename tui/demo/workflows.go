package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// The workflow types, and values used by their checks.
const (
	sagaType  = "order-saga"
	fanType   = "fan-out"
	flakyType = "flaky-step"
	napType   = "nap"
	tenType   = "ten-steps"
	tickType  = "tick"

	fanWidth     = 50
	fanWork      = 200 * time.Millisecond
	flakyFails   = 2
	flakyInitial = 250 * time.Millisecond
	napSeconds   = 3
	napLength    = napSeconds * time.Second
	waitForNap   = "timer nap"
	tenSteps     = 10
	tenWork      = 200 * time.Millisecond
)

// author is the code of the sample workflows, as run by one worker.
type author struct {
	worker string // name of the worker that runs it
	ledger ledger
	client *kagzi.Client // for signals that steps send
}

func (a *author) handle(w *kagzi.Worker) {
	kagzi.Handle(w, sagaType, a.saga)
	kagzi.Handle(w, fanType, a.fanOut)
	kagzi.Handle(w, flakyType, a.flaky)
	kagzi.Handle(w, napType, a.nap)
	kagzi.Handle(w, tenType, a.tenSteps)
	kagzi.Handle(w, tickType, a.tick)
	kagzi.Handle(w, purchaseType, a.purchase)
	kagzi.Handle(w, quoteType, a.quote)
	kagzi.Handle(w, claimType, a.claim)
}

// do returns a step that first writes each execution to the ledger and then does some work.
func do[T any](a *author, ctx kagzi.Context, name string, work func(ctx context.Context) (T, error),
	opts ...kagzi.StepOption) (T, error) {
	runID := kagzi.Info(ctx).RunID
	return kagzi.Step(ctx, name, func(ctx context.Context) (T, error) {
		if err := a.ledger.add(runID, execution{Step: name, Worker: a.worker, PID: os.Getpid()}); err != nil {
			var zero T
			return zero, kagzi.NonRetryable(err)
		}
		return work(ctx)
	}, opts...)
}

type order struct {
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
}

// outcome of an order. Undone lists the compensations in order.
type outcome struct {
	Shipped bool     `json:"shipped"`
	Reason  string   `json:"reason,omitempty"`
	Undone  []string `json:"undone,omitempty"`
}

var errNoCourier = kagzi.WithType(errors.New("no courier goes there"), "no_courier")

// saga does three steps, of which the last fails for good, and undoes the first two in reverse.
func (a *author) saga(ctx kagzi.Context, in order) (outcome, error) {
	var undo []string
	forward := []struct {
		name, compensation string
		err                error
	}{
		{"reserve-stock", "release-stock", nil},
		{"charge-card", "refund-card", nil},
		{"ship-parcel", "", kagzi.NonRetryable(errNoCourier)},
	}
	for _, s := range forward {
		_, err := do(a, ctx, s.name, func(context.Context) (string, error) {
			return fmt.Sprintf("%d x %s", in.Quantity, in.Item), s.err
		})
		var failed *kagzi.StepError
		if errors.As(err, &failed) {
			undone, err := a.compensate(ctx, undo)
			return outcome{Reason: failed.Type, Undone: undone}, err
		}
		undo = append(undo, s.compensation)
	}
	return outcome{Shipped: true}, nil
}

func (a *author) compensate(ctx kagzi.Context, undo []string) (undone []string, err error) {
	for i := len(undo) - 1; i >= 0; i-- {
		name, err := do(a, ctx, undo[i], func(context.Context) (string, error) { return undo[i], nil })
		if err != nil {
			return undone, err
		}
		undone = append(undone, name)
	}
	return undone, nil
}

// fanOut squares the numbers from 1 to width in parallel and returns their sum.
func (a *author) fanOut(ctx kagzi.Context, width int) (int, error) {
	numbers := make([]int, width)
	for i := range numbers {
		numbers[i] = i + 1
	}
	squares, err := kagzi.Map(ctx, numbers, func(ctx kagzi.Context, n int) (int, error) {
		return do(a, ctx, fmt.Sprintf("square-%02d", n), func(ctx context.Context) (int, error) {
			return n * n, pause(ctx, fanWork)
		})
	})
	sum := 0
	for _, s := range squares {
		sum += s
	}
	return sum, err
}

// flaky calls a service that fails at first; the ledger counts the calls, so that a new process
// knows them too.
func (a *author) flaky(ctx kagzi.Context, fails int) (int, error) {
	runID := kagzi.Info(ctx).RunID
	return do(a, ctx, "call-service", func(context.Context) (int, error) {
		calls, err := a.ledger.read(runID)
		if err != nil {
			return 0, kagzi.NonRetryable(err)
		}
		if len(calls) <= fails {
			return 0, fmt.Errorf("service out of order, call %d", len(calls))
		}
		return len(calls), nil
	}, kagzi.Retry{Attempts: 5, Initial: flakyInitial, Coefficient: 2, Jitter: -1})
}

// nap sleeps between two steps.
func (a *author) nap(ctx kagzi.Context, seconds int) (string, error) {
	for _, name := range []string{"before", "after"} {
		if name == "after" {
			kagzi.Sleep(ctx, "nap", time.Duration(seconds)*time.Second)
		}
		if _, err := do(a, ctx, name, func(context.Context) (string, error) { return a.worker, nil }); err != nil {
			return "", err
		}
	}
	return "rested", nil
}

// stamp is the process that ran a step.
type stamp struct {
	Worker string `json:"worker"`
	PID    int    `json:"pid"`
}

// tenSteps returns which process ran each of its steps. It expects its worker to be killed.
func (a *author) tenSteps(ctx kagzi.Context, steps int) ([]stamp, error) {
	runID, stamps := kagzi.Info(ctx).RunID, make([]stamp, 0, steps)
	for i := range steps {
		s, err := do(a, ctx, stepName(i+1), func(ctx context.Context) (stamp, error) {
			work := tenWork
			if i == steps/2 && a.hasRun(runID, i+1) {
				work = playLimit // it waits to be killed, however slow the machine is
			}
			return stamp{Worker: a.worker, PID: os.Getpid()}, pause(ctx, work)
		})
		if err != nil {
			return nil, err
		}
		stamps = append(stamps, s)
	}
	return stamps, nil
}

// hasRun reports whether n steps of the run have started, each once.
func (a *author) hasRun(runID string, n int) bool {
	executions, err := a.ledger.read(runID)
	return err == nil && len(executions) == n
}

// stepName is the name of the n-th of the ten steps, from 1.
func stepName(n int) string { return fmt.Sprintf("step-%02d", n) }

// tick records the tick that started it.
func (a *author) tick(ctx kagzi.Context, _ struct{}) (time.Time, error) {
	at := kagzi.Info(ctx).ScheduledAt
	return do(a, ctx, "record", func(context.Context) (time.Time, error) { return at, nil })
}

// pause stands for work that takes some time.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
