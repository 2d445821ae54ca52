package demo

import (
	"fmt"
	"slices"
	"time"
)

func checkApproval(c *check) (note string) {
	quotes := make([]quote, suppliers)
	recorded := make([]string, suppliers, suppliers+2)
	for i := range quotes {
		quotes[i], recorded[i] = quoteOf(i+1), quoteName(i+1)+" COMPLETED"
	}
	ended(c, purchase{Quotes: quotes, Approved: approvedPrice, Supplier: quoteOf(suppliers).Supplier})
	c.attempts(append(recorded, approvalSignal+" COMPLETED", "order COMPLETED")...)
	c.ran("order")
	if len(c.runs) != suppliers {
		c.differ("the run has %d children, want %d", len(c.runs), suppliers)
		return ""
	}
	c.each(func(i int) string { return "child " + quoteName(i+1) }, func(i int, c *check) {
		ended(c, quotes[i])
		c.attempts("ask COMPLETED")
		c.ran("ask")
	})
	c.shared()
	c.approved()
	return fmt.Sprintf("%d children ran in their parent's slot; signal sent twice, taken once", suppliers)
}

// shared checks that the run and its children all ran in the one slot of one worker, which means
// that the run did not hold the slot while waiting.
func (c *check) shared() {
	var work []attempt
	for _, run := range append([]facts{c.facts}, c.runs...) {
		for _, e := range run.ledger {
			if e.Worker != slotWorker {
				c.differ("step %s ran on %s, want %s", e.Step, e.Worker, slotWorker)
			}
		}
		for _, s := range run.steps {
			if s.kind == "function" {
				work = append(work, s)
			}
		}
	}
	if peak := overlap(work); peak > 1 {
		c.differ("%d steps ran at once on a worker with one slot", peak)
	}
}

// approved checks that the run got one signal of those sent, waited for it with a limit and
// consumed it.
func (c *check) approved() {
	want := []signal{{name: approvalSignal, id: approvalID, payload: fmt.Sprint(approvedPrice), step: approvalSignal}}
	if c.sent != 2 || !slices.Equal(c.signals, want) {
		c.differ("of %d signals sent the run has %+v, want %+v of 2", c.sent, c.signals, want)
	}
	if !slices.Contains(c.waits, waitForApproval) {
		c.differ("the run was never seen SLEEPING for %s, only for %q", waitForApproval, c.waits)
	}
	wait, ok := c.find(approvalSignal)
	if !ok {
		return
	}
	if limit := wait.wakeUp.Sub(wait.started).Round(time.Second); limit != approvalLimit {
		c.differ("the wait for the signal has a limit of %s, want %s", limit, approvalLimit)
	}
}
