// Command hello is the smallest Kagzi program: a workflow of two steps with a pause between them.
//
//	hello              runs a worker until SIGTERM or Ctrl-C
//	hello start NAME   starts a run and waits for its result
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

const queue = "hello"

// Greeting is the result of a run. Inputs, results of steps and outputs travel as JSON.
type Greeting struct {
	Text string
	Key  string // the idempotency key under which it was sent
}

// Greet is the workflow: plain Go between its steps, and everything that touches the world inside
// them.
func Greet(ctx kagzi.Context, name string) (Greeting, error) {
	text, err := kagzi.Step(ctx, "compose", func(context.Context) (string, error) {
		return "hello " + name, nil
	})
	if err != nil {
		return Greeting{}, err
	}
	kagzi.Sleep(ctx, "pause", 10*time.Second) // holds no worker, survives restarts
	return kagzi.Step(ctx, "send", func(ctx context.Context) (Greeting, error) {
		return send(ctx, text)
	}, kagzi.Retry{Attempts: 5})
}

// send stands for a mail server. A real one would refuse a second mail with the same key.
func send(ctx context.Context, text string) (Greeting, error) {
	log.Printf("sending %q, attempt %d", text, kagzi.Attempt(ctx))
	return Greeting{Text: text, Key: kagzi.IdempotencyKey(ctx)}, nil
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "start" {
		if err := start(context.Background(), os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: queue})
	kagzi.Handle(w, "greet", Greet)
	if err := w.Run(context.Background()); err != nil { // until SIGTERM or Ctrl-C, then it drains
		log.Fatal(err)
	}
}

// start starts a run and prints its result.
func start(ctx context.Context, name string) error {
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := kagzi.Start(ctx, c, "greet", name, kagzi.StartOptions{Queue: queue})
	if err != nil {
		return err
	}
	fmt.Println("started", run.ID())
	greeting, err := kagzi.Result[Greeting](ctx, run)
	if err != nil {
		return err
	}
	fmt.Println(greeting.Text)
	return nil
}
