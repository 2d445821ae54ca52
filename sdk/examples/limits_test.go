package examples

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/cron"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// Every number of the chapter about limits that is a constant of the code.
func TestTheLimitsOfTheGuideAreThoseOfTheCode(t *testing.T) {
	text, err := os.ReadFile(root + "/sdk/guide/12-limits.md")
	if err != nil {
		t.Fatal(err)
	}
	years := fmt.Sprintf("1 ms to %d years", engine.MaxDelay/(365*24*time.Hour))
	for _, r := range []struct{ row, want string }{
		{"name, external id, signal id", amount(engine.MaxName) + " bytes"},
		{"namespace", amount(engine.MaxNamespace) + " bytes"},
		{"worker id", amount(engine.MaxWorkerID) + " bytes"},
		{"request id", amount(engine.MaxRequestID) + " bytes"},
		{"capabilities of a worker", fmt.Sprintf("%s entries | keys of %d bytes of printable ASCII",
			amount(engine.MaxCapabilities), engine.MaxLabelKey)},
		{"tags, labels, requirements", fmt.Sprintf(
			"%d entries each | keys of %d bytes as names, values of %d bytes",
			engine.MaxLabels, engine.MaxLabelKey, engine.MaxLabelValue)},
		{"note", amount(engine.MaxNote) + " bytes"},
		{"reason", amount(engine.MaxReason) + " bytes"},
		{"error message, stack", fmt.Sprintf("%d KiB each", engine.MaxError>>10)},
		{"cron expression", amount(cron.MaxExpr) + " bytes"},

		{"payload (input, output, step result, signal)", fmt.Sprintf("%d MiB", kagzi.MaxPayload>>20)},
		{"all that a run records, input included", fmt.Sprintf("%d MiB", engine.MaxRunBytes>>20)},
		{"steps of a run", amount(engine.MaxSteps)},
		{"signals that a run has not taken", amount(engine.MaxSignals)},
		{"runs in one batch", amount(kagzi.MaxBatch)},
		{"starts in one batch", fmt.Sprintf("%d MiB", engine.MaxBatchBytes>>20)},
		{"page of a list", fmt.Sprintf("%s | refused; %d by default", amount(engine.MaxPage), engine.DefaultPage)},
		{"message on the wire", fmt.Sprintf("%d MiB", engine.MaxMessage>>20)},
		{"imported file", fmt.Sprintf("%d MiB", engine.MaxCapsule>>20)},

		{"sleep, delay, timeout, retry delay", "| " + years},
		{"timeout of a step's attempt", fmt.Sprintf("%d s | 10 years", engine.DefaultStepTimeout/time.Second)},
		{"age of a schedule's newest due tick before it counts as missed",
			fmt.Sprintf("%d s", engine.OnTime/time.Second)},

		{"attempts of a step", fmt.Sprintf("%d | %s, or -1", engine.DefaultAttempts, amount(engine.MaxRetryAttempts))},
		{"attempts of a run", "1 | " + amount(engine.MaxRetryAttempts)},
		{"first delay", fmt.Sprintf("%d s", engine.DefaultInitialInterval/time.Second)},
		{"coefficient", fmt.Sprintf("%v | at least 1", engine.DefaultCoefficient)},
		{"longest delay", fmt.Sprintf("%d s", engine.DefaultMaximumInterval/time.Second)},
		{"jitter", fmt.Sprintf("%v | 1", engine.DefaultJitter)},
		{"final errors in a policy", fmt.Sprintf(
			"none | %d entries of %d bytes", engine.MaxNonRetryable, engine.MaxName)},
		{"workers lost in a row with one run as the only suspect",
			fmt.Sprintf("| %d, then the run fails", engine.MaxLeaseLosses)},

		{"runs in hand of a worker", fmt.Sprintf("%d | %s", engine.DefaultConcurrent, amount(engine.MaxConcurrent))},
		{"queues of a worker", "1 | " + amount(engine.MaxQueues)},
		{"workflow types of a worker", "| " + amount(engine.MaxTypes)},
		{"limit of a queue, a type or a concurrency key", "none | " + amount(engine.MaxConcurrencyLimit)},
		{"priority", fmt.Sprintf("0 | -%d to %d", engine.MaxPriority, engine.MaxPriority)},
		{"runs handed out by age instead of priority", fmt.Sprintf("1 in %d", engine.ClaimByAgeEvery)},
		{"missed ticks that are replayed", fmt.Sprintf("%d | %s", engine.DefaultCatchup, amount(engine.MaxCatchup))},
		{"keys that are not revoked", amount(engine.MaxKeys)},
		{"namespaces of a key", amount(engine.MaxKeyNamespaces)},
		{"patterns of queues, and of types, of a key", amount(engine.MaxKeyGlobs) + " each"},
	} {
		if !strings.Contains(string(text), "\n| "+r.row+" | "+r.want) {
			t.Errorf("no row %q with %q", r.row, r.want)
		}
	}
}

// amount writes 10000 as 10,000.
func amount(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return amount(n/1000) + fmt.Sprintf(",%03d", n%1000)
}
