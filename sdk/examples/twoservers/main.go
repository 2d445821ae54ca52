// Command twoservers counts down on two Kagzi servers that share one Postgres. Each worker is
// connected to one of them (KAGZI_ADDRESS); a run goes on at the other one when a server or a
// worker is killed.
//
//	twoservers            runs a worker
//	twoservers start N    starts a countdown of N seconds, and prints who counted
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

const queue = "countdowns"

// Countdown returns the worker that took each step, in order.
func Countdown(ctx kagzi.Context, n int) ([]string, error) {
	var workers []string
	for ; n > 0; n-- {
		worker := kagzi.Info(ctx).WorkerID // of this activation; steps that are recorded keep theirs
		counted, err := kagzi.Step(ctx, "count", func(context.Context) (string, error) {
			log.Println(n)
			return worker, nil
		})
		if err != nil {
			return nil, err
		}
		workers = append(workers, counted)
		kagzi.Sleep(ctx, "second", time.Second) // afterwards whichever worker is free goes on
	}
	return workers, nil
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "start" {
		if err := start(context.Background(), os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: queue, WorkerID: os.Getenv("WORKER")})
	kagzi.Handle(w, "countdown", Countdown)
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// start starts a run and prints its result. The wait outlasts restarts of the server.
func start(ctx context.Context, seconds string) error {
	n, err := strconv.Atoi(seconds)
	if err != nil {
		return err
	}
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := kagzi.Start(ctx, c, "countdown", n, kagzi.StartOptions{Queue: queue})
	if err != nil {
		return err
	}
	fmt.Println("started", run.ID())
	workers, err := kagzi.Result[[]string](ctx, run)
	if err != nil {
		return err
	}
	fmt.Println("counted by", strings.Join(workers, ", "))
	return nil
}
