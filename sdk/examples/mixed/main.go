// Command mixed settles insurance claims with workflows in three languages: this one, in Go, starts a
// child in Python, which asks a model, and that starts a child in TypeScript, which asks a person.
//
//	mixed                       runs the Go worker
//	mixed start CLAIM TEXT...   starts a run, and waits for its result
//	mixed decide CLAIM yes|no   delivers the decision of a person
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

const queue = "settle"

// Claim is the input of Settle, and of the Python workflow assess.
type Claim struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Review is the result of the TypeScript workflow review, and what the signal "decision" carries.
type Review struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
}

// Assessment is the result of the Python workflow.
type Assessment struct {
	Label  string `json:"label"`
	Amount int    `json:"amount"`
	Review Review `json:"review"`
}

// Desk settles claims. Its client is for signals that steps send.
type Desk struct{ client *kagzi.Client }

// Settle knows of the other languages only names of workflow types and queues, and the form of JSON.
func (d *Desk) Settle(ctx kagzi.Context, claim Claim) (string, error) {
	assess, err := kagzi.StartChild[Assessment](ctx, "assess", "assess", claim, kagzi.ChildOptions{
		Queue: "assess", ParentClose: kagzi.ParentCloseCancel, ExecutionTimeout: 7 * 24 * time.Hour})
	if err != nil {
		return "", err
	}
	err = kagzi.Do(ctx, "send-limit", func(ctx context.Context) error {
		const limit = 1000 // of the contract
		return kagzi.Signal(ctx, d.client.Run(assess.RunID()), "limit", limit,
			kagzi.SignalOptions{ID: "limit:" + claim.ID}) // a repeated step sends no second signal
	})
	if err != nil {
		return "", err
	}
	found, err := assess.Wait(ctx)
	if err != nil {
		return "", err
	}
	if !found.Review.Approved {
		return fmt.Sprintf("claim %s (%s) was declined by %s", claim.ID, found.Label, found.Review.By), nil
	}
	return kagzi.Step(ctx, "pay", func(context.Context) (string, error) {
		return fmt.Sprintf("claim %s (%s): %d paid, approved by %s", claim.ID, found.Label, found.Amount,
			found.Review.By), nil
	})
}

func main() {
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	switch ctx := context.Background(); {
	case len(os.Args) > 3 && os.Args[1] == "start":
		err = start(ctx, c, Claim{ID: os.Args[2], Text: strings.Join(os.Args[3:], " ")})
	case len(os.Args) == 4 && os.Args[1] == "decide":
		err = decide(ctx, c, os.Args[2], Review{Approved: os.Args[3] == "yes", By: os.Getenv("USER")})
	default:
		w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: queue})
		kagzi.Handle(w, "settle", (&Desk{c}).Settle)
		err = w.Run(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func start(ctx context.Context, c *kagzi.Client, claim Claim) error {
	run, err := kagzi.Start(ctx, c, "settle", claim, kagzi.StartOptions{Queue: queue, ExternalID: "settle:" + claim.ID})
	if err != nil {
		return err
	}
	result, err := kagzi.Result[string](ctx, run)
	if err == nil {
		fmt.Println(result)
	}
	return err
}

// decide delivers the signal to the TypeScript run, which has the claim's id.
func decide(ctx context.Context, c *kagzi.Client, claim string, r Review) error {
	review, err := c.GetByExternalID(ctx, "review:"+claim)
	if err != nil {
		return err
	}
	return kagzi.Signal(ctx, c.Run(review.RunID), "decision", r, kagzi.SignalOptions{})
}
