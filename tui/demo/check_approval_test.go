package demo

import (
	"encoding/json"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

func slotRan(step string) []execution { return []execution{{Step: step, Worker: slotWorker, PID: 4}} }

func approvalFacts() facts {
	result := purchase{Approved: approvedPrice, Supplier: "supplier-5"}
	f := facts{
		status: kagzi.StatusCompleted, ledger: slotRan("order"), sent: 2, waits: []string{"children", waitForApproval},
		signals: []signal{{name: approvalSignal, id: approvalID, payload: "750", step: approvalSignal}},
	}
	for n := 1; n <= suppliers; n++ {
		quoted, _ := json.Marshal(quoteOf(n))
		result.Quotes = append(result.Quotes, quoteOf(n))
		start := did(quoteName(n), n, string(quoted))
		start.kind = "child_workflow"
		f.steps = append(f.steps, start)
		f.runs = append(f.runs, facts{
			status: kagzi.StatusCompleted, output: quoted, steps: []attempt{did("ask", n*300, string(quoted))},
			ledger: slotRan("ask"),
		})
	}
	wait := did(approvalSignal, 2000, "750")
	wait.kind, wait.wakeUp = "signal", wait.started.Add(approvalLimit)
	f.steps = append(f.steps, wait, did("order", 2300, `"supplier-5"`))
	f.output, _ = json.Marshal(result)
	return f
}

func approvalTamperings() (all []tampering) {
	add := func(name string, tamper func(f *facts), says string) {
		all = append(all, tampering{"approval: " + name, approvalFacts(), checkApproval, tamper, says})
	}
	add("a quote is missing in the result", func(f *facts) {
		f.output = json.RawMessage(`{"approved":750}`)
	}, "result is")
	add("another price was approved", func(f *facts) {
		var p purchase
		_ = json.Unmarshal(f.output, &p)
		p.Approved++
		f.output, _ = json.Marshal(p)
	}, "751")
	add("a child is missing", func(f *facts) { f.runs = f.runs[:4] }, "4 children")
	add("a child failed", func(f *facts) {
		f.runs[2].status, f.runs[2].err = kagzi.StatusFailed, "no answer"
	}, "child quote-3: status is FAILED (no answer)")
	add("a child has the result of another", func(f *facts) {
		f.runs[1].output = f.runs[0].output
	}, "child quote-2: result is")
	add("a child's step ran twice", func(f *facts) {
		f.runs[4].ledger = append(f.runs[4].ledger, slotRan("ask")...)
	}, "child quote-5: the code")
	add("two children at once", func(f *facts) {
		f.runs[1].steps[0].started = f.runs[0].steps[0].started
	}, "2 steps ran at once")
	add("a child on another worker", func(f *facts) { f.runs[0].ledger[0].Worker = steadyWorker }, "ran on worker-1")
	add("the run never waited for the signal", func(f *facts) { f.waits = f.waits[:1] }, "never seen SLEEPING")
	add("both signals were kept", func(f *facts) { f.signals = append(f.signals, f.signals[0]) }, "of 2 signals sent")
	add("the signal was sent once", func(f *facts) { f.sent = 1 }, "of 1 signals sent")
	add("the signal was not consumed", func(f *facts) { f.signals[0].step = "" }, "of 2 signals sent")
	add("the signal changed on its way", func(f *facts) { f.signals[0].payload = "75" }, "of 2 signals sent")
	add("the wait has no limit", func(f *facts) { f.steps[suppliers].wakeUp = time.Time{} }, "has a limit of")
	return all
}

func TestTheLastOfFiveSuppliersIsTheCheapestAndWithinWhatIsApproved(t *testing.T) {
	prices := map[int]bool{}
	for n := 1; n <= suppliers; n++ {
		if price := quoteOf(n).Price; prices[price] || n < suppliers && price <= quoteOf(suppliers).Price {
			t.Errorf("supplier %d asks %d, want more than supplier %d's %d and a price of its own", n, price, suppliers,
				quoteOf(suppliers).Price)
		}
		prices[quoteOf(n).Price] = true
	}
	if price := quoteOf(suppliers).Price; price > approvedPrice {
		t.Errorf("the cheapest asks %d, more than the approved %d", price, approvedPrice)
	}
}
