package kagzi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

type Approval struct{ By string }

// A purchase waits up to two days for its approval and holds no worker meanwhile. The application
// sends the approval with Signal.
func ExampleWaitSignal() {
	purchase := func(ctx kagzi.Context, item string) (string, error) {
		approval, err := kagzi.WaitSignal[Approval](ctx, "approval", 48*time.Hour)
		switch {
		case errors.Is(err, kagzi.ErrTimeout):
			return "nobody approved " + item, nil
		case err != nil:
			return "", err
		}
		return item + " approved by " + approval.By, nil
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{})
	kagzi.Handle(w, "purchase", purchase)
}

// Children are separate runs, also on other workers. The parent is parked until the last one has
// ended.
func ExampleWaitAll() {
	survey := func(ctx kagzi.Context, regions []string) (int, error) {
		var children []*kagzi.Child[int]
		for _, region := range regions {
			child, err := kagzi.StartChild[int](ctx, "count-"+region, "count", region, kagzi.ChildOptions{
				Queue: "counters", ParentClose: kagzi.ParentCloseCancel,
			})
			if err != nil {
				return 0, err
			}
			children = append(children, child)
		}
		counts, err := kagzi.WaitAll(ctx, children...)
		total := 0
		for _, n := range counts {
			total += n
		}
		return total, err
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{})
	kagzi.Handle(w, "survey", survey)
}

// A child with a time limit.
func ExampleRunChild() {
	order := func(ctx kagzi.Context, id string) (string, error) {
		parcel, err := kagzi.RunChild[string](ctx, "ship", "shipping", id,
			kagzi.ChildOptions{ExecutionTimeout: 24 * time.Hour})
		var failed *kagzi.RunError
		if errors.As(err, &failed) && failed.Status == kagzi.StatusTimedOut {
			return "", fmt.Errorf("the shipping %s took too long", failed.RunID)
		}
		return parcel, err
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{})
	kagzi.Handle(w, "order", order)
}

// When the run is cancelled gracefully, the code refunds the money before it ends.
func ExampleCleanup() {
	order := func(ctx kagzi.Context, card string) (string, error) {
		charge, err := kagzi.Step(ctx, "charge", func(ctx context.Context) (string, error) {
			return chargeCard(ctx, card, kagzi.IdempotencyKey(ctx))
		})
		if err != nil {
			return "", err
		}
		kagzi.Sleep(ctx, "cool-off", 24*time.Hour) // returns at once when the run is cancelled
		parcel, err := kagzi.Step(ctx, "ship", func(context.Context) (string, error) {
			return "parcel for " + charge, nil
		})
		if errors.Is(err, kagzi.ErrCancelled) {
			undoErr := kagzi.Do(kagzi.Cleanup(ctx), "refund", func(ctx context.Context) error {
				return refund(ctx, charge)
			}, kagzi.Retry{Attempts: -1})
			return "", errors.Join(err, undoErr)
		}
		return parcel, err
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{})
	kagzi.Handle(w, "order", order)
}

// An endless workflow: a step a day, and every week a new run with an empty history.
func ExampleContinueAsNew() {
	type state struct{ Total int }
	collector := func(ctx kagzi.Context, s state) (state, error) {
		for day := range 7 {
			n, err := kagzi.Step(ctx, "collect", func(context.Context) (int, error) { return day, nil })
			if err != nil {
				return s, err
			}
			s.Total += n
			kagzi.Note(ctx, fmt.Sprintf("day %d, %d so far", day+1, s.Total))
			kagzi.Sleep(ctx, "night", 24*time.Hour)
		}
		return kagzi.ContinueAsNew[state](ctx, s)
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{})
	kagzi.Handle(w, "collector", collector)
}

// One workflow handles all failures in the namespace, as soon as a worker serves its type.
func ExampleOriginalInput() {
	report := func(ctx kagzi.Context, event kagzi.WorkflowFailedEvent) (struct{}, error) {
		trip, err := kagzi.OriginalInput[Trip](ctx, event)
		if err != nil && !errors.Is(err, kagzi.ErrInputOmitted) {
			return struct{}{}, err
		}
		return struct{}{}, kagzi.Do(ctx, "page", func(ctx context.Context) error {
			return send(ctx, fmt.Sprintf(
				"%s %s %s: %s (%s)", event.WorkflowType, event.FailedRunID, event.Status, event.Error.Message,
				trip.Flight))
		})
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{})
	kagzi.Handle(w, kagzi.GlobalFailureHandler, report)
}

// Cancel a run, give it a minute to clean up, and wait for its end.
func ExampleRun_CancelGracefully() {
	ctx := context.Background()
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	run := c.Run("0199a000-0000-7000-8000-000000000001")
	if err := run.CancelGracefully(ctx, time.Minute, "changed my mind"); err != nil {
		log.Fatal(err)
	}
	ended, err := run.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ended.Status, ended.Note)
}

func refund(context.Context, string) error { return nil }
