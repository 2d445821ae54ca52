package snippets

import (
	"context"
	"errors"
	"fmt"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

var errDeclined, errBusy = errors.New("card declined"), errors.New("bank busy")

// bank is what the steps below call.
var bank = func(ctx context.Context, card, key string) (charge string, err error) {
	return "charge-" + card, nil
}

// post is what the steps below show to people.
var post = func(ctx context.Context, text string) error { return nil }

// Charge runs its step up to ten times, but never after the card was declined.
func Charge(ctx kagzi.Context, card string) (string, error) {
	id, err := kagzi.Step(ctx, "charge", func(ctx context.Context) (string, error) {
		id, err := bank(ctx, card, kagzi.IdempotencyKey(ctx))
		switch {
		case errors.Is(err, errDeclined):
			return "", kagzi.WithType(err, "card_declined")
		case errors.Is(err, errBusy):
			return "", kagzi.RetryAfter(err, 5*time.Minute) // in place of the policy's delay
		}
		return id, err
	}, kagzi.Retry{Attempts: 10, NonRetryable: []string{"card_declined"}}, kagzi.Timeout(time.Minute))

	var failed *kagzi.StepError
	if errors.As(err, &failed) && failed.Type == "card_declined" {
		return "another card is needed", nil
	}
	return id, err
}

// Announce has a step without a result.
func Announce(ctx kagzi.Context, text string) (bool, error) {
	err := kagzi.Do(ctx, "post", func(ctx context.Context) error { return post(ctx, text) })
	return err == nil, err
}

// Restock logs in workflow code and in a step.
func Restock(ctx kagzi.Context, sku string) (int, error) {
	n, err := kagzi.Step(ctx, "count", func(ctx context.Context) (int, error) {
		kagzi.Logger(ctx).Debug("counting", "sku", sku) // with step=count
		return len(sku), nil
	})
	kagzi.Logger(ctx).Info("counted", "sku", sku, "n", n) // once, however often the code is replayed
	kagzi.Sleep(ctx, "delivery", 24*time.Hour)
	return n, err
}

// Ticket shows values that differ from run to run, and are the same in every replay of one run.
func Ticket(ctx kagzi.Context, event string) (string, error) {
	number := 1 + kagzi.Random(ctx).IntN(100)
	return fmt.Sprintf("%s %s #%d of %s", event, kagzi.NewUUID(ctx), number, kagzi.Now(ctx).Format(time.DateOnly)), nil
}

// Prepare does two things at once, each with steps and sleeps of its own.
func Prepare(ctx kagzi.Context, order string) (string, error) {
	invoice := kagzi.Go(ctx, func(ctx kagzi.Context) (string, error) {
		return kagzi.Step(ctx, "invoice", func(context.Context) (string, error) { return "invoice for " + order, nil })
	})
	kagzi.Sleep(ctx, "pack", time.Hour)
	return invoice.Wait(ctx)
}

// Remind asks again each day until somebody answers, for a week at most. The waits are recorded as
// answer, answer:2 and so on.
func Remind(ctx kagzi.Context, question string) (string, error) {
	for range 7 {
		if err := kagzi.Do(ctx, "ask", func(ctx context.Context) error { return post(ctx, question) }); err != nil {
			return "", err
		}
		answer, err := kagzi.WaitSignal[string](ctx, "answer", 24*time.Hour)
		if !errors.Is(err, kagzi.ErrTimeout) {
			return answer, err
		}
	}
	return "no answer", nil
}

// Ship bounds a child, and tells its ends apart.
func Ship(ctx kagzi.Context, order string) (string, error) {
	parcel, err := kagzi.RunChild[string](ctx, "ship", "shipping", order, kagzi.ChildOptions{
		ExecutionTimeout: 24 * time.Hour,
	})
	var failed *kagzi.RunError
	if errors.As(err, &failed) && failed.Status == kagzi.StatusTimedOut {
		return "picked up in the shop", nil
	}
	return parcel, err
}

// Total is the input of Ledger, and its result.
type Total struct{ Days, Sum int }

// Ledger adds up one number a day for ever, in runs of a week each.
func Ledger(ctx kagzi.Context, total Total) (Total, error) {
	for range 7 {
		n, err := kagzi.Step(ctx, "collect", func(context.Context) (int, error) { return 1, nil })
		if err != nil {
			return total, err
		}
		total.Days, total.Sum = total.Days+1, total.Sum+n
		kagzi.Sleep(ctx, "night", 24*time.Hour)
	}
	return kagzi.ContinueAsNew[Total](ctx, total)
}

// Invoice goes on as it began: runs that were started with version 1 take no tax.
func Invoice(ctx kagzi.Context, net int) (int, error) {
	if kagzi.Info(ctx).Version == "1" {
		return net, nil
	}
	return kagzi.Step(ctx, "tax", func(context.Context) (int, error) { return net * 119 / 100, nil })
}

// Report is started by the server for each run of the namespace that fails or times out, where a
// worker handles kagzi.GlobalFailureHandler; or for the runs whose StartOptions.OnFailure names its
// type.
func Report(ctx kagzi.Context, event kagzi.WorkflowFailedEvent) (string, error) {
	return kagzi.Step(ctx, "page", func(context.Context) (string, error) {
		return fmt.Sprintf("%s %s: %s", event.WorkflowType, event.Status, event.Error.Message), nil
	})
}

// Deliver checks the address of orders that were not past this place when the check was added.
func Deliver(ctx kagzi.Context, order string) (string, error) {
	if kagzi.Patched(ctx, "check-address") {
		if err := kagzi.Do(ctx, "check-address", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
	}
	return kagzi.Step(ctx, "ship", func(context.Context) (string, error) { return "parcel of " + order, nil })
}

// Approve waits two days for an answer.
func Approve(ctx kagzi.Context, order string) (string, error) {
	answer := kagzi.GoSignal[bool](ctx, "answer", 0)
	late := kagzi.GoSleep(ctx, "late", 48*time.Hour)
	if kagzi.First(ctx, answer, late) == 1 {
		return "nobody answered for " + order, nil
	}
	yes, err := answer.Wait(ctx)
	return fmt.Sprint(order, " approved: ", yes), err
}
