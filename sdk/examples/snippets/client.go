package snippets

import (
	"context"
	"errors"
	"fmt"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// StartOrder starts an order's run once, however often it is called while that run is open.
func StartOrder(ctx context.Context, c *kagzi.Client, id string, total int) (*kagzi.Run, error) {
	return kagzi.Start(ctx, c, "order", total, kagzi.StartOptions{
		Queue:            "orders",
		ExternalID:       "order-" + id,
		ExecutionTimeout: 24 * time.Hour,
		Tags:             map[string]string{"customer": "ada"},
	})
}

// Gross starts a run of a type that its worker serves with invoice.Handle(w, Invoice).
func Gross(ctx context.Context, c *kagzi.Client, net int) (int, error) {
	run, err := invoice.Start(ctx, c, net, kagzi.StartOptions{})
	if err != nil {
		return 0, err
	}
	return run.Result(ctx)
}

var invoice = kagzi.Define[int, int]("invoice")

// Outcome waits for the end of a run and tells the ends apart.
func Outcome(ctx context.Context, run *kagzi.Run) (string, error) {
	total, err := kagzi.Result[int](ctx, run)
	var ended *kagzi.RunError
	switch {
	case errors.As(err, &ended):
		return fmt.Sprintf("%s: %s", ended.Status, ended.Message), nil
	case err != nil: // ctx is over, or the server refuses the call
		return "", err
	}
	return fmt.Sprintf("completed with %d", total), nil
}

// StartAll starts one run for each number in one commit, and returns the ids of those that were
// started.
func StartAll(ctx context.Context, c *kagzi.Client, totals []int) (ids []string, err error) {
	runs, err := kagzi.StartMany(ctx, c, "order", totals, kagzi.StartOptions{Queue: "orders"},
		func(i int, o *kagzi.StartOptions) { o.ExternalID = fmt.Sprintf("order-%d", i) })
	for _, run := range runs {
		if run != nil { // a start that was refused fails alone
			ids = append(ids, run.ID())
		}
	}
	return ids, err
}

// Failures lists the runs of the last day that failed, newest first.
func Failures(ctx context.Context, c *kagzi.Client) (texts []string, err error) {
	for d, err := range c.List(ctx, kagzi.ListOptions{
		Statuses:     []kagzi.Status{kagzi.StatusFailed, kagzi.StatusTimedOut},
		CreatedAfter: time.Now().Add(-24 * time.Hour),
		Query:        `type = "order*" and not tag.customer = test`,
	}) {
		if err != nil {
			return texts, err
		}
		texts = append(texts, d.RunID+" "+d.Error.Message)
	}
	return texts, nil
}

// Stop asks a run to end within a minute, and waits for that.
func Stop(ctx context.Context, run *kagzi.Run) (kagzi.Status, error) {
	if err := run.CancelGracefully(ctx, time.Minute, "changed my mind"); err != nil {
		return "", err
	}
	ended, err := run.Wait(ctx)
	if err != nil {
		return "", err
	}
	return ended.Status, nil
}

// Again runs an ended run again from its step "charge" on, under a new id.
func Again(ctx context.Context, run *kagzi.Run) (*kagzi.Run, error) {
	return run.Retry(ctx, kagzi.RetryOptions{FromStep: "charge", Reason: "the bank is back"})
}
