package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// check compares the facts about a run with the expected ones and collects the differences.
type check struct {
	facts
	differs []string
}

func (c *check) differ(format string, args ...any) {
	c.differs = append(c.differs, fmt.Sprintf(format, args...))
}

// ended checks how the run ended and what its caller got.
func ended[T any](c *check, want T) {
	if c.status != kagzi.StatusCompleted {
		c.differ("status is %s (%s), want %s", c.status, c.err, kagzi.StatusCompleted)
		return
	}
	var got T
	if err := json.Unmarshal(c.output, &got); err != nil {
		c.differ("result %q: %v", c.output, err)
		return
	}
	wanted, _ := json.Marshal(want) // a value of this package
	if again, _ := json.Marshal(got); string(again) != string(wanted) {
		c.differ("result is %s, want %s", c.output, wanted)
	}
}

// attempts checks the names and statuses of all recorded attempts, in order.
func (c *check) attempts(want ...string) {
	got := make([]string, len(c.steps))
	for i, s := range c.steps {
		got[i] = s.name + " " + s.status
	}
	if !slices.Equal(got, want) {
		c.differ("recorded steps are %q, want %q", got, want)
	}
}

// ran checks which steps' code ran, in order, using the ledger.
func (c *check) ran(want ...string) {
	got := make([]string, len(c.ledger))
	for i, e := range c.ledger {
		got[i] = e.Step
	}
	if !slices.Equal(got, want) {
		c.differ("the code of steps ran as %q, want %q", got, want)
	}
}

// each checks each of the runs of a scene, and names the one that differs.
func (c *check) each(name func(i int) string, look func(i int, c *check)) {
	for i, run := range c.runs {
		one := check{facts: run}
		look(i, &one)
		for _, d := range one.differs {
			c.differ("%s: %s", name(i), d)
		}
	}
}

// find returns the last attempt of a step; if there is none, it returns false and adds a
// difference.
func (c *check) find(name string) (attempt, bool) {
	for _, s := range slices.Backward(c.steps) {
		if s.name == name {
			return s, true
		}
	}
	c.differ("step %s is not recorded", name)
	return attempt{}, false
}

func checkSaga(c *check) (note string) {
	ended(c, outcome{Reason: "no_courier", Undone: []string{"refund-card", "release-stock"}})
	c.attempts("reserve-stock COMPLETED", "charge-card COMPLETED", "ship-parcel FAILED", "refund-card COMPLETED",
		"release-stock COMPLETED")
	c.ran("reserve-stock", "charge-card", "ship-parcel", "refund-card", "release-stock")
	if ship, ok := c.find("ship-parcel"); ok && ship.errType != "no_courier" {
		c.differ("ship-parcel failed with type %q, want no_courier", ship.errType)
	}
	return "ship-parcel failed for good; card refunded, then stock released"
}

func checkFanOut(c *check) (note string) {
	ended(c, fanWidth*(fanWidth+1)*(2*fanWidth+1)/6)
	runs := map[string]int{}
	for _, e := range c.ledger {
		runs[e.Step]++
	}
	recorded := map[string]bool{}
	for _, s := range c.steps {
		recorded[s.name] = s.completed() && !recorded[s.name]
	}
	for n := 1; n <= fanWidth; n++ {
		name := fmt.Sprintf("square-%02d", n)
		if !recorded[name] {
			c.differ("step %s is not recorded as COMPLETED, once", name)
		}
		if runs[name] != 1 {
			c.differ("the code of step %s ran %d times, want 1", name, runs[name])
		}
	}
	if len(c.steps) != fanWidth {
		c.differ("%d attempts are recorded, want %d", len(c.steps), fanWidth)
	}
	peak := overlap(c.steps)
	if peak < 2 {
		c.differ("no two steps ran at the same time")
	}
	return fmt.Sprintf("%d steps, up to %d at once, sum of squares correct", fanWidth, peak)
}

// overlap returns the largest number of attempts that ran at the same time.
func overlap(steps []attempt) (peak int) {
	for _, s := range steps {
		at := 0
		for _, other := range steps {
			if !other.started.After(s.started) && other.finished.After(s.started) {
				at++
			}
		}
		peak = max(peak, at)
	}
	return peak
}

func checkFlaky(c *check) (note string) {
	ended(c, flakyFails+1)
	c.ran(slices.Repeat([]string{"call-service"}, flakyFails+1)...)
	if len(c.steps) != flakyFails+1 {
		c.differ("%d attempts are recorded, want %d", len(c.steps), flakyFails+1)
		return ""
	}
	wait := flakyInitial
	for i, s := range c.steps {
		if s.name != "call-service" || s.number != i+1 || s.completed() != (i == flakyFails) {
			c.differ("attempt %d is recorded as %s %s, number %d", i+1, s.name, s.status, s.number)
		}
		if want := fmt.Sprintf("service out of order, call %d", i+1); i < flakyFails && s.errText != want {
			c.differ("attempt %d failed with %q, want %q", i+1, s.errText, want)
		}
		if i > 0 {
			if waited := s.started.Sub(c.steps[i-1].started); waited < wait {
				c.differ("attempt %d began %s after the one before, want at least %s", i+1, waited, wait)
			}
			wait *= 2
		}
	}
	return fmt.Sprintf("failed %d times, waited %s and %s, succeeded", flakyFails, flakyInitial, 2*flakyInitial)
}

// napSlack is how late a sleeper may wake: a slow machine is not an error of the demo.
const napSlack = 2 * time.Second

func checkNap(c *check) (note string) {
	ended(c, "rested")
	c.attempts("before COMPLETED", "nap COMPLETED", "after COMPLETED")
	c.ran("before", "after")
	if !slices.Contains(c.waits, waitForNap) {
		c.differ("the run was never seen SLEEPING for %s", waitForNap)
	}
	if c.took < napLength {
		c.differ("the run took %s, want at least %s", c.took, napLength)
	}
	nap, napped := c.find("nap")
	after, went := c.find("after")
	if !napped || !went {
		return ""
	}
	late := after.started.Sub(nap.wakeUp)
	if late < 0 || late > napSlack {
		c.differ("the step after the sleep began %s after the sleep's end, want 0s to %s", late, napSlack)
	}
	return fmt.Sprintf("slept %s without a worker, woke %s late", napLength, late.Round(100*time.Microsecond))
}

func checkTenSteps(c *check) (note string) {
	if c.killed == nil {
		c.differ("no worker was killed")
		return ""
	}
	stamps := make([]stamp, tenSteps)
	by := map[string]int{}
	for i := range stamps {
		step, ok := c.find(stepName(i + 1))
		if !ok {
			continue
		}
		if !step.completed() {
			c.differ("step %s is %s, want COMPLETED", step.name, step.status)
		} else if err := json.Unmarshal([]byte(step.output), &stamps[i]); err != nil {
			c.differ("result of step %s: %v", step.name, err)
		}
		by[stamps[i].Worker]++
	}
	ended(c, stamps)
	c.kept()
	inFlight := "once"
	if c.repeats(stamps) {
		inFlight = "twice"
	}
	before := by[c.killed.worker]
	if before < len(c.killed.recorded) || before == 0 || before == tenSteps {
		c.differ("%d steps have a result of the killed worker, of %d; %d were recorded before the kill", before,
			tenSteps, len(c.killed.recorded))
	}
	return fmt.Sprintf("%s killed after %d steps, another did %d; recorded ones ran once, the one in flight %s",
		c.killed.worker, before, tenSteps-before, inFlight)
}

// kept checks that what was recorded before the kill has not changed.
func (c *check) kept() {
	for _, was := range c.killed.recorded {
		if is, ok := c.find(was.name); ok && (is.output != was.output || is.number != was.number) {
			c.differ("the recorded result of step %s was %s, now is %s", was.name, was.output, is.output)
		}
	}
}

// repeats checks that the code of each step ran once. The step in flight when its worker was
// killed, whose result is another worker's, may have run twice; repeated reports that.
func (c *check) repeats(stamps []stamp) (repeated bool) {
	times := map[string]int{}
	for _, e := range c.ledger {
		times[e.Step]++
	}
	for i, s := range stamps {
		name := stepName(i + 1)
		switch ran := times[name]; {
		case ran == 1:
		case ran == 2 && s.Worker != c.killed.worker && !repeated:
			repeated = true
		default:
			c.differ("the code of step %s ran %d times, want 1", name, ran)
		}
	}
	return repeated
}
