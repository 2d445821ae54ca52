package kagzi_test

import (
	"context"
	"fmt"
	"log"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// A report every night at 02:30 in Berlin, in summer and winter. If the last report is still
// running, the night is skipped.
func ExampleCreateSchedule() {
	ctx := context.Background()
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	nightly, err := kagzi.CreateSchedule(ctx, c, "report", "30 2 * * *", "sales", kagzi.ScheduleOptions{
		Name:       "nightly-sales",
		Queue:      "reports",
		TimeZone:   "Europe/Berlin",
		Overlap:    kagzi.OverlapSkip,
		MaxCatchup: 1, // after downtime only the last missed night
	})
	if err != nil {
		log.Fatal(err)
	}
	details, err := nightly.Describe(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the first run starts at", details.NextFireAt)

	if _, err := nightly.Trigger(ctx, kagzi.TriggerOptions{}); err != nil { // one more now
		log.Fatal(err)
	}
	if _, err := nightly.Update(ctx, kagzi.ScheduleUpdate{
		Cron: new("30 3 * * *"), Reason: "the books close later"}); err != nil {
		log.Fatal(err)
	}
}
