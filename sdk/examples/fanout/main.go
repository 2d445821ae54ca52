// Command fanout counts the words of many texts in parallel: a child run for each text, and a
// report that says which of them failed.
//
//	fanout                 runs a worker
//	fanout start TEXT...   starts a run and waits for its report; an empty text fails
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	kagzi "github.com/kagzi/kagzi/sdk"
)

const queue = "words"

// Report is the result of the parent run.
type Report struct {
	Words  int
	Failed []string // why, one for each text that could not be counted
}

// CountAll starts all children before it waits for the first. The parent is parked until the last
// child has ended, so it takes no slot of a worker meanwhile.
func CountAll(ctx kagzi.Context, texts []string) (Report, error) {
	var children []*kagzi.Child[int]
	for i, text := range texts {
		child, err := kagzi.StartChild[int](ctx, fmt.Sprintf("count-%d", i), "count", text, kagzi.ChildOptions{
			ParentClose: kagzi.ParentCloseCancel, // a parent that ends early takes its children with it
		})
		if err != nil {
			return Report{}, err
		}
		children = append(children, child)
	}
	counts, err := kagzi.WaitAll(ctx, children...)
	if errors.Is(err, kagzi.ErrCancelled) {
		return Report{}, err
	}
	var report Report
	for i, n := range counts { // a zero value for a child that failed
		report.Words += n
		if _, err := children[i].Wait(ctx); err != nil { // known already: this does not wait
			report.Failed = append(report.Failed, reason(err))
		}
	}
	return report, nil
}

// reason is how a child ended, without its run id, which differs from run to run.
func reason(err error) string {
	if failed, ok := errors.AsType[*kagzi.RunError](err); ok {
		return failed.Message
	}
	return err.Error()
}

// Count is the child. Its steps are branches of one run; a child would be too much for a line.
func Count(ctx kagzi.Context, text string) (int, error) {
	if text == "" {
		return 0, errors.New("the text is empty")
	}
	lines := strings.Split(text, "\n")
	numbers := make([]int, len(lines))
	for i := range numbers {
		numbers[i] = i
	}
	counts, err := kagzi.Map(ctx, numbers, func(ctx kagzi.Context, i int) (int, error) {
		return kagzi.Step(ctx, fmt.Sprintf("line-%d", i), func(context.Context) (int, error) {
			return len(strings.Fields(lines[i])), nil
		})
	})
	total := 0
	for _, n := range counts {
		total += n
	}
	return total, err
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "start" {
		if err := start(context.Background(), os.Args[2:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: queue, MaxConcurrent: 20})
	kagzi.Handle(w, "count-all", CountAll)
	kagzi.Handle(w, "count", Count)
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// start starts a run and prints its report.
func start(ctx context.Context, texts []string) error {
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := kagzi.Start(ctx, c, "count-all", texts, kagzi.StartOptions{Queue: queue})
	if err != nil {
		return err
	}
	fmt.Println("started", run.ID())
	report, err := kagzi.Result[Report](ctx, run)
	if err != nil {
		return err
	}
	fmt.Printf("%d words, %d texts failed %q\n", report.Words, len(report.Failed), report.Failed)
	return nil
}
