package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// The workflow types of the scene with children and a signal, and values used by its check.
const (
	purchaseType = "purchase"
	quoteType    = "quote"

	suppliers       = 5
	quoteWork       = 100 * time.Millisecond
	approvalSignal  = "approval"
	waitForApproval = "signal " + approvalSignal
	approvalLimit   = time.Hour
	approvalID      = "boss-1" // of the one signal, which is sent twice
	approvedPrice   = 750
)

// quote is a supplier's price.
type quote struct {
	Supplier string `json:"supplier"`
	Price    int    `json:"price"`
}

// purchase is the quoted suppliers, the approved price, and the supplier at that price, or none if
// all ask more.
type purchase struct {
	Quotes   []quote `json:"quotes"`
	Approved int     `json:"approved"`
	Supplier string  `json:"supplier,omitempty"`
}

// purchase starts a child run per supplier for a quote, waits until a price is approved, and orders
// from the cheapest.
func (a *author) purchase(ctx kagzi.Context, suppliers int) (purchase, error) {
	asked := make([]*kagzi.Child[quote], suppliers)
	for i := range asked {
		var err error
		if asked[i], err = kagzi.StartChild[quote](
			ctx, quoteName(i+1), quoteType, i+1, kagzi.ChildOptions{}); err != nil {
			return purchase{}, err
		}
	}
	quotes, err := kagzi.WaitAll(ctx, asked...)
	if err != nil {
		return purchase{}, err
	}
	approved, err := kagzi.WaitSignal[int](ctx, approvalSignal, approvalLimit)
	if err != nil {
		return purchase{}, err
	}
	supplier, err := do(a, ctx, "order", func(context.Context) (string, error) {
		cheapest := slices.MinFunc(quotes, func(a, b quote) int { return a.Price - b.Price })
		if cheapest.Price > approved {
			return "", nil
		}
		return cheapest.Supplier, nil
	})
	return purchase{Quotes: quotes, Approved: approved, Supplier: supplier}, err
}

// quote asks the n-th supplier.
func (a *author) quote(ctx kagzi.Context, n int) (quote, error) {
	return do(a, ctx, "ask", func(ctx context.Context) (quote, error) { return quoteOf(n), pause(ctx, quoteWork) })
}

// quoteName is the name of the step that starts the n-th quote, from 1.
func quoteName(n int) string { return fmt.Sprintf("quote-%d", n) }

// quoteOf is the n-th supplier's price; the last of five is the cheapest.
func quoteOf(n int) quote {
	return quote{Supplier: fmt.Sprintf("supplier-%d", n), Price: 500 + 100*(3*n%suppliers)}
}
