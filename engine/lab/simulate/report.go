package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// invariants are the rules that a simulation checks, by number.
var invariants = map[int]string{
	1:  "an acknowledged start exists, and no run that nobody asked for",
	2:  "a result that a step is known to have returned is recorded",
	3:  "a step's result never changes",
	4:  "an ended run never changes, and all clients see the same end",
	5:  "only the current lease writes",
	6:  "each tick fires once, and none is missed",
	7:  "everything ends",
	8:  "attempts count only failures of the code",
	9:  "a step with a result does not run again",
	10: "no timer ends early",
	11: "a failed run has its handler exactly once",
	12: "a request has one answer and one run",
	13: "runs, leases and steps are consistent",
	15: "a concurrency key is held by at most its limit of runs",
	16: "the store on disk gives the same answers and holds the same rows as the one in memory",
}

// Violation is one broken rule.
type Violation struct {
	Invariant int
	What      string
}

func (v Violation) String() string {
	return fmt.Sprintf("I%d (%s): %s", v.Invariant, invariants[v.Invariant], v.What)
}

// maxViolations limits how many are kept: those that follow from the first say little.
const maxViolations = 20

// Report is the result of a simulation. Counts says what really happened, because a simulation in
// which nothing happened proves nothing.
type Report struct {
	failedOver atomic.Bool // the database lost its last commits

	mu         sync.Mutex
	Violations []Violation
	Counts     map[string]int
	Trace      uint64   // hash of all committed calls in order: equal traces are the same history
	Log        []string // these calls, if requested
}

func (r *Report) check(invariant int, holds bool, format string, args ...any) {
	if holds {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.Violations) < maxViolations {
		r.Violations = append(r.Violations, Violation{invariant, fmt.Sprintf(format, args...)})
	}
}

// told checks what a client was told. After a fail-over that lost commits, nobody can rely on that.
func (r *Report) told(invariant int, holds bool, format string, args ...any) {
	r.check(invariant, holds || r.failedOver.Load(), format, args...)
}

// note counts something that happened.
func (r *Report) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Counts[what]++
}

// hit counts a fault that took effect.
func (r *Report) hit(fault string) { r.note("fault: " + fault) }

// Broken returns the numbers of the broken invariants in order.
func (r *Report) Broken() (numbers []int) {
	for _, v := range r.Violations {
		numbers = append(numbers, v.Invariant)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// Add adds the counts of another simulation, which may have run at the same time. Trace becomes
// that of the last.
func (r *Report) Add(other *Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Counts == nil {
		r.Counts = map[string]int{}
	}
	for what, n := range other.Counts {
		r.Counts[what] += n
	}
	r.Trace = other.Trace
}

func (r *Report) String() string {
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintln(&b, v)
	}
	for _, what := range slices.Sorted(maps.Keys(r.Counts)) {
		fmt.Fprintf(&b, "%8d %s\n", r.Counts[what], what)
	}
	return b.String()
}
