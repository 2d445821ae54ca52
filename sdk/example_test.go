package kagzi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

type Greeting struct{ Text string }

// A first workflow: two steps with a night between them.
func Example() {
	greet := func(ctx kagzi.Context, name string) (Greeting, error) {
		text, err := kagzi.Step(ctx, "compose", func(context.Context) (string, error) {
			return "hello " + name, nil
		})
		if err != nil {
			return Greeting{}, err
		}
		kagzi.Sleep(ctx, "until-tomorrow", 24*time.Hour)
		err = kagzi.Do(ctx, "send", func(ctx context.Context) error { return send(ctx, text) })
		return Greeting{Text: text}, err
	}

	w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: "greetings"})
	kagzi.Handle(w, "greet", greet)
	if err := w.Run(context.Background()); err != nil { // until SIGTERM
		log.Fatal(err)
	}
}

// A client starts a run and waits for its typed result.
func ExampleStart() {
	ctx := context.Background()
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	run, err := kagzi.Start(ctx, c, "greet", "Ada", kagzi.StartOptions{
		Queue:      "greetings",
		ExternalID: "greet-ada",
		Tags:       map[string]string{"customer": "ada"},
	})
	if err != nil {
		log.Fatal(err)
	}
	greeting, err := kagzi.Result[Greeting](ctx, run)
	var failed *kagzi.RunError
	switch {
	case errors.As(err, &failed):
		fmt.Println("the run ended", failed.Status, failed.Message)
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println(greeting.Text)
	}
}

// Many runs started in one commit, then a list of those that failed.
func ExampleStartMany() {
	ctx := context.Background()
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	names := []string{"Ada", "Grace", "Barbara"}
	runs, err := kagzi.StartMany(ctx, c, "greet", names, kagzi.StartOptions{Queue: "greetings"},
		func(i int, o *kagzi.StartOptions) { o.ExternalID = "greet-" + names[i] })
	if err != nil {
		log.Print(err) // a start that is refused fails alone
	}
	for _, run := range runs {
		if run != nil {
			fmt.Println(run.ID())
		}
	}
	for d, err := range c.List(ctx, kagzi.ListOptions{Statuses: []kagzi.Status{kagzi.StatusFailed}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.RunID, d.Error.Message)
	}
}

// A step without a result.
func ExampleDo() {
	remind := func(ctx kagzi.Context, name string) (bool, error) {
		err := kagzi.Do(ctx, "send", func(ctx context.Context) error {
			return send(ctx, "dear "+name+", "+kagzi.IdempotencyKey(ctx))
		}, kagzi.Timeout(time.Minute))
		return err == nil, err
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{})
	kagzi.Handle(w, "remind", remind)
}

type Trip struct{ Flight, Hotel string }

// A saga: when a step fails for good or the run is cancelled, what was done before is undone, last
// first. The compensations are steps, so that none is forgotten when the worker dies among them, and
// they run under Cleanup, so that a cancelled run undoes its work, too. Each is named before its step:
// a step that was cut short may have had its effect.
func ExampleStep_saga() {
	book := func(ctx kagzi.Context, trip Trip) (err error) {
		type undo struct {
			name string
			run  func(context.Context) error
		}
		var undos []undo
		do := func(name string, act, compensate func(context.Context) error) error {
			undos = append(undos, undo{"undo-" + name, compensate})
			return kagzi.Do(ctx, name, act)
		}
		err = do("flight", bookFlight(trip.Flight), cancelFlight(trip.Flight))
		if err == nil {
			err = do("hotel", bookHotel(trip.Hotel), cancelHotel(trip.Hotel))
		}
		if err == nil {
			return nil
		}
		cleanup := kagzi.Cleanup(ctx)
		for i := len(undos) - 1; i >= 0; i-- {
			u := undos[i]
			retry := kagzi.Retry{Attempts: -1} // until it works, or the grace is over
			err = errors.Join(err, kagzi.Do(cleanup, u.name, u.run, retry))
		}
		return err
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{})
	kagzi.Handle(w, "trip", func(ctx kagzi.Context, in Trip) (struct{}, error) { return struct{}{}, book(ctx, in) })
}

// A fan-out: one branch per picture; the results keep the order.
func ExampleMap() {
	thumbnails := func(ctx kagzi.Context, ids []string) ([]string, error) {
		return kagzi.Map(ctx, ids, func(ctx kagzi.Context, id string) (string, error) {
			return kagzi.Step(ctx, "shrink-"+id, func(ctx context.Context) (string, error) { return shrink(ctx, id) })
		})
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{})
	kagzi.Handle(w, "thumbnails", thumbnails)
}

// Two branches at once, each with its own steps and sleeps.
func ExampleGo() {
	order := func(ctx kagzi.Context, id string) (string, error) {
		receipt := kagzi.Go(ctx, func(ctx kagzi.Context) (string, error) {
			return kagzi.Step(ctx, "receipt", func(context.Context) (string, error) { return "receipt of " + id, nil })
		})
		kagzi.Sleep(ctx, "cool-off", time.Hour)
		return receipt.Wait(ctx)
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{})
	kagzi.Handle(w, "order", order)
}

// A step with its own policy: up to ten attempts of at most a minute, but none after a declined
// card.
func ExampleRetry() {
	charge := func(ctx kagzi.Context, card string) (string, error) {
		id, err := kagzi.Step(ctx, "charge", func(ctx context.Context) (string, error) {
			id, err := chargeCard(ctx, card, kagzi.IdempotencyKey(ctx))
			switch {
			case errors.Is(err, errDeclined):
				return "", kagzi.WithType(err, "card_declined")
			case errors.Is(err, errBusy):
				return "", kagzi.RetryAfter(err, 5*time.Minute)
			}
			return id, err
		}, kagzi.Retry{Attempts: 10, Initial: time.Second, NonRetryable: []string{"card_declined"}},
			kagzi.Timeout(time.Minute))

		var failed *kagzi.StepError
		if errors.As(err, &failed) && failed.Type == "card_declined" {
			return "", fmt.Errorf("ask for another card: %w", err)
		}
		return id, err
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{})
	kagzi.Handle(w, "charge", charge)
}

var errDeclined, errBusy = errors.New("card declined"), errors.New("bank busy")

func chargeCard(context.Context, string, string) (string, error) { return "", errBusy }

func shrink(_ context.Context, id string) (string, error) { return id + ".small", nil }

func send(_ context.Context, text string) error {
	_, err := fmt.Fprintln(os.Stderr, text)
	return err
}

func bookFlight(string) func(context.Context) error {
	return func(context.Context) error { return nil }
}
func cancelFlight(string) func(context.Context) error {
	return func(context.Context) error { return nil }
}
func bookHotel(string) func(context.Context) error { return func(context.Context) error { return nil } }
func cancelHotel(string) func(context.Context) error {
	return func(context.Context) error { return nil }
}
