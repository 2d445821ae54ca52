// Command approval waits for a person: a purchase goes on when somebody has decided about it, and
// is dropped when nobody has within two days.
//
//	approval                      runs a worker
//	approval start ORDER          starts a run
//	approval decide ORDER yes|no  delivers the decision, and prints how the run ended
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

const queue = "purchases"

// Decision is what the signal "decision" carries.
type Decision struct {
	Approved bool
	By       string
}

// Purchase holds no worker while it waits.
func Purchase(ctx kagzi.Context, order string) (string, error) {
	err := kagzi.Do(ctx, "ask", func(context.Context) error {
		log.Println("please decide about", order)
		return nil
	})
	if err != nil {
		return "", err
	}
	kagzi.Note(ctx, "waits for a decision") // shown in lists of runs
	decision, err := kagzi.WaitSignal[Decision](ctx, "decision", 48*time.Hour)
	switch {
	case errors.Is(err, kagzi.ErrTimeout):
		return "nobody decided about " + order, nil
	case err != nil: // the run is being cancelled, or the signal holds no Decision
		return "", err
	case !decision.Approved:
		return order + " was declined by " + decision.By, nil
	}
	return kagzi.Step(ctx, "buy", func(context.Context) (string, error) {
		return order + " was bought for " + decision.By, nil
	})
}

func main() {
	var err error
	switch ctx := context.Background(); {
	case len(os.Args) == 3 && os.Args[1] == "start":
		err = start(ctx, os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == "decide":
		err = decide(ctx, os.Args[2], Decision{Approved: os.Args[3] == "yes", By: os.Getenv("USER")})
	default:
		w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: queue})
		kagzi.Handle(w, "purchase", Purchase)
		err = w.Run(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// start gives the run the order's id, so that others find it by that.
func start(ctx context.Context, order string) error {
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := kagzi.Start(ctx, c, "purchase", order, kagzi.StartOptions{Queue: queue, ExternalID: order})
	if err != nil {
		return err
	}
	fmt.Println("started", run.ID())
	return nil
}

// decide delivers the signal. It is on the server's disk when Signal returns, also where no worker
// runs.
func decide(ctx context.Context, order string, d Decision) error {
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		return err
	}
	defer c.Close()
	details, err := c.GetByExternalID(ctx, order)
	if err != nil {
		return err
	}
	run := c.Run(details.RunID)
	if err := kagzi.Signal(ctx, run, "decision", d, kagzi.SignalOptions{}); err != nil {
		return err
	}
	result, err := kagzi.Result[string](ctx, run)
	if err != nil {
		return err
	}
	fmt.Println(result)
	return nil
}
