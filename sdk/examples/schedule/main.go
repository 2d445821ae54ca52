// Command schedule makes a report every night at half past two in Berlin, summer and winter.
//
//	schedule          makes or updates the schedule, and runs a worker
//	schedule trigger  starts one report now, beside the ticks, and prints it
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

const (
	queue = "reports"
	name  = "nightly-sales"
	cron  = "30 2 * * *" // minute, hour, day of the month, month, day of the week
)

// Report works for the night of its tick, not for the time at which it happens to run: after
// downtime the missed ticks run late.
func Report(ctx kagzi.Context, department string) (string, error) {
	night := kagzi.Info(ctx).ScheduledAt
	if night.IsZero() { // started by hand
		night = kagzi.Now(ctx)
	}
	day := night.Format(time.DateOnly)
	return kagzi.Step(ctx, "sum", func(context.Context) (string, error) {
		return fmt.Sprintf("%s sold 42 on %s", department, day), nil
	})
}

// Ensure makes the schedule, or gives the one of that name these settings, in one call.
func Ensure(ctx context.Context, c *kagzi.Client, opts kagzi.ScheduleOptions) (*kagzi.Schedule, error) {
	opts.OrUpdate = true
	return kagzi.CreateSchedule(ctx, c, "report", cron, "sales", opts)
}

func options() kagzi.ScheduleOptions {
	return kagzi.ScheduleOptions{
		Name:       name,
		Queue:      queue,
		TimeZone:   "Europe/Berlin",
		Overlap:    kagzi.OverlapSkip, // leave a night out while the report of the one before is at work
		MaxCatchup: 1,                 // after downtime only the last night
	}
}

func main() {
	ctx := context.Background()
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	s, err := Ensure(ctx, c, options())
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 1 && os.Args[1] == "trigger" {
		if err := trigger(ctx, s); err != nil {
			log.Fatal(err)
		}
		return
	}
	if d, err := s.Describe(ctx); err == nil {
		log.Println("the next report is due at", d.NextFireAt)
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: queue})
	kagzi.Handle(w, "report", Report)
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// trigger starts a run of the schedule now and prints its result.
func trigger(ctx context.Context, s *kagzi.Schedule) error {
	run, err := s.Trigger(ctx, kagzi.TriggerOptions{})
	if err != nil {
		return err
	}
	text, err := kagzi.Result[string](ctx, run)
	if err != nil {
		return err
	}
	fmt.Println(text)
	return nil
}
