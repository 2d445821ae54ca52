// Package check compares what clients and workers saw, and what a database holds at the end, with
// the promises. It knows nothing of how the server keeps them.
package check

import (
	"fmt"
	"strings"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// Case is everything known about one torture.
type Case struct {
	Events   []history.Event
	Dump     Dump
	Expected map[string]Wanted // by request id: what should have been started
	Ended    bool              // everything should have ended by the time of the dump
	// Lossy allows the loss of acknowledged writes: a lagging standby was promoted, or a control
	// run must lose some.
	Lossy bool
}

// Wanted is what a start asked for.
type Wanted struct {
	Type, Queue string
	Input       string // a history.Digest
	OnFailure   string // type of its handler; "": none
}

// Line is the result of one invariant.
type Line struct {
	ID         string
	Claim      string
	Checked    int    // number of things that were checked
	Of         string // their kind: "acknowledged starts"
	Violations []string
	Note       string // an additional figure
}

// String formats the line for printing, with the first violations below.
func (l Line) String() string {
	verdict := "ok"
	if len(l.Violations) > 0 {
		verdict = "VIOLATED"
	}
	text := fmt.Sprintf("%-4s %-8s %7d %s, %d violations%s", l.ID, verdict, l.Checked, l.Of, len(l.Violations), l.Note)
	for i, v := range l.Violations {
		if i == shownViolations {
			return text + fmt.Sprintf("\n       … and %d more", len(l.Violations)-i)
		}
		text += fmt.Sprintf("\n       %.400q", v)
	}
	return text
}

const shownViolations = 5

func (l *Line) violate(format string, args ...any) {
	l.Violations = append(l.Violations, fmt.Sprintf(format, args...))
}

// Invariants checks the case against I1 to I13 and a sequential specification of each run. I14,
// that it proves anything, depends on the scenario: see Vacuous.
func Invariants(c *Case) []Line {
	i := index(c)
	lines := []Line{
		i.startsExist(), i.resultsAreRecorded(), i.resultsNeverChange(), i.endsAreFinal(), i.tokensNeverOverlap(),
		i.ticksFireOnce(),
		i.nothingIsStuck(), i.attemptsCountFailures(), i.recordedStepsRunNoMore(), i.sleepsEndInTime(),
		i.failuresHaveOneHandler(),
		i.requestsHaveOneRun(), i.rowsBelongTogether(), i.linearizable(linearLimit),
	}
	return lines
}

// Violated counts the violations of all lines.
func Violated(lines []Line) int {
	n := 0
	for _, l := range lines {
		n += len(l.Violations)
	}
	return n
}

// indexed is a case with the indexes that checks use.
type indexed struct {
	*Case
	runs  map[string]*Run
	steps map[stepKey]*Step // the latest attempts
	byRun map[string][]history.Event

	faults []history.Event // without those of workers
}

type stepKey struct{ run, step string }

func index(c *Case) *indexed {
	i := &indexed{Case: c, runs: map[string]*Run{}, steps: map[stepKey]*Step{}, byRun: map[string][]history.Event{}}
	for n := range c.Dump.Runs {
		i.runs[c.Dump.Runs[n].ID] = &c.Dump.Runs[n]
	}
	for n := range c.Dump.Steps {
		if s := &c.Dump.Steps[n]; s.Latest {
			i.steps[stepKey{s.Run, s.Name}] = s
		}
	}
	for _, e := range c.Events {
		if e.Op == history.Fault && !strings.HasPrefix(e.Step, OnWorker) {
			i.faults = append(i.faults, e)
		}
		if e.Run != "" {
			i.byRun[e.Run] = append(i.byRun[e.Run], e)
		}
	}
	return i
}

// acknowledged returns the events of an operation that was answered with OK.
func (i *indexed) acknowledged(op history.Op, do func(e history.Event)) {
	for _, e := range i.Events {
		if e.Op == op && e.Outcome == history.OK {
			do(e)
		}
	}
}

// startsExist is I1 and its reverse: no run exists that nobody started, or whose start was refused
// each time.
func (i *indexed) startsExist() Line {
	l := Line{ID: "I1", Of: "acknowledged starts and runs"}
	asked, possible := map[string]bool{}, map[string]bool{}
	for _, e := range i.Events {
		switch {
		case e.Op == history.Start:
			asked[e.Request] = true
			possible[e.Request] = possible[e.Request] || e.Outcome != history.Refused
		case e.Op == history.Tried: // a start that counted may have been refused when it was repeated
			possible[e.Request] = true
		}
	}
	i.acknowledged(history.Start, func(e history.Event) {
		l.Checked++
		r, want := i.runs[e.Run], i.Expected[e.Request]
		switch {
		case r == nil && i.Lossy:
		case r == nil:
			l.violate("run %s was acknowledged for request %s and is not there", e.Run, e.Request)
		case Wanted{r.Type, r.Queue, r.Input, r.OnFailure} != want:
			l.violate("run %s is of type %s in queue %s with input %s and handler %q, want %+v", e.Run, r.Type, r.Queue,
				r.Input, r.OnFailure, want)
		}
	})
	for _, r := range i.Dump.Runs {
		l.Checked++
		switch {
		case r.Schedule != "" || r.FailedRun != "":
		case !asked[r.Request]:
			l.violate("run %s (request %q) is there and nobody has started it", r.ID, r.Request)
		case !possible[r.Request]:
			l.violate("run %s (request %q) was refused and yet is there", r.ID, r.Request)
		}
	}
	return l
}

// resultsAreRecorded is I2.
func (i *indexed) resultsAreRecorded() Line {
	l := Line{ID: "I2", Of: "acknowledged step results"}
	i.acknowledged(history.Complete, func(e history.Event) {
		l.Checked++
		s := i.steps[stepKey{e.Run, e.Step}]
		switch {
		case (s == nil || s.Status != Completed || s.Output != e.Value) && i.Lossy:
		case s == nil:
			l.violate("step %s of run %s was acknowledged and is not there", e.Step, e.Run)
		case s.Status != Completed || s.Output != e.Value:
			l.violate("step %s of run %s is %s with %s, but %s was acknowledged", e.Step, e.Run, s.Status,
				s.Output, e.Value)
		}
	})
	return l
}

// resultsNeverChange is I3.
func (i *indexed) resultsNeverChange() Line {
	l := Line{ID: "I3", Of: "answers with a recorded result"}
	completed := map[stepKey]int{}
	for _, s := range i.Dump.Steps {
		if s.Status == Completed {
			completed[stepKey{s.Run, s.Name}]++
		}
	}
	for k, n := range completed {
		if n > 1 {
			l.violate("step %s of run %s has %d completed attempts", k.step, k.run, n)
		}
	}
	seen := map[stepKey]string{}
	saw := func(run, step, value string) {
		l.Checked++
		k := stepKey{run, step}
		s := i.steps[k]
		first, again := seen[k]
		switch {
		case i.Lossy && (s == nil || s.Output != value):
		case s == nil || s.Status != Completed || s.Output != value:
			l.violate("step %s of run %s was seen with %s and ends as %+v", step, run, value, s)
		case again && first != value && !i.Lossy: // a lost write was done again
			l.violate("step %s of run %s was seen with %s, and then with %s", step, run, first, value)
		}
		seen[k] = value
	}
	i.acknowledged(history.Claim, func(e history.Event) {
		for step, value := range e.Steps {
			saw(e.Run, step, value)
		}
	})
	i.acknowledged(history.Begin, func(e history.Event) {
		if e.Status == string(Completed) {
			saw(e.Run, e.Step, e.Value)
		}
	})
	i.acknowledged(history.ListedSteps, func(e history.Event) {
		for step, value := range e.Steps {
			saw(e.Run, step, value)
		}
	})
	i.listsHaveResults(&l)
	return l
}

// listsHaveResults is the part of I3 about lists of steps: a list must not omit what was
// acknowledged before it was requested.
func (i *indexed) listsHaveResults(l *Line) {
	if i.Lossy {
		return
	}
	acknowledged := map[stepKey]int64{}
	i.acknowledged(history.Complete, func(e history.Event) {
		keepEarliest(acknowledged, stepKey{e.Run, e.Step}, e.Returned)
	})
	i.acknowledged(history.ListedSteps, func(e history.Event) {
		if e.Part {
			return
		}
		for _, other := range i.byRun[e.Run] {
			at, ok := acknowledged[stepKey{e.Run, other.Step}]
			if _, shown := e.Steps[other.Step]; ok && at < e.Invoked && !shown {
				l.violate(
					"step %s of run %s was acknowledged, and was not in the list of its steps that was asked for then",
					other.Step, e.Run)
				return
			}
		}
	})
}

// endsAreFinal is I4.
func (i *indexed) endsAreFinal() Line {
	l := Line{ID: "I4", Of: "acknowledged and observed ends"}
	ended := func(e history.Event, status, value string) {
		l.Checked++
		r := i.runs[e.Run]
		switch {
		case i.Lossy: // a lost run may have been done again, with another end
		case r == nil:
			l.violate("run %s had ended and is not there", e.Run)
		case r.Status != status, status == string(Completed) && r.Output != value:
			l.violate("run %s is %s with %s, but %s (%s) was acknowledged as %s with %s", e.Run, r.Status, r.Output,
				e.Op, e.Proc, status, value)
		}
	}
	i.acknowledged(history.End, func(e history.Event) { ended(e, string(Completed), e.Value) })
	i.acknowledged(history.Cancel, func(e history.Event) { ended(e, "CANCELLED", "") })
	i.acknowledged(history.EndBadly, func(e history.Event) {
		if e.Status == "FAILED" {
			ended(e, e.Status, "")
		}
	})
	i.acknowledged(history.Observe, func(e history.Event) {
		if Ended(e.Status) {
			ended(e, e.Status, e.Value)
		}
	})
	i.acknowledged(history.Listed, func(e history.Event) {
		switch over, r := overAt(i.byRun[e.Run]), i.runs[e.Run]; {
		case Ended(e.Status) && r != nil:
			ended(e, e.Status, r.Output) // which lists omit
		case Ended(e.Status):
			ended(e, e.Status, "")
		case over < e.Invoked && !i.Lossy:
			l.violate("run %s was listed as %s after somebody had been told that it had ended", e.Run, e.Status)
		}
	})
	i.endsNeverChange(&l)
	return l
}

// endsNeverChange is the part of I4 about the details of an end: reason and time. All clients are
// told the same, and it is what the database holds.
func (i *indexed) endsNeverChange(l *Line) {
	if i.Lossy { // a lost run may have ended again, with another end
		return
	}
	answers, codes, messages, times := map[string]string{}, map[string]string{}, map[string]string{}, map[string]int64{}
	for _, r := range i.Dump.Runs {
		if r.EndedAt != 0 {
			messages[r.ID], times[r.ID] = r.Message, r.EndedAt
		}
	}
	i.acknowledged(history.EndBadly, func(e history.Event) {
		if e.Status == "FAILED" && e.Message != "" && !history.IsHash(e.Message) { // a long message is cut
			same(l, e, "for", messages, e.Message)
		}
	})
	shown := func(e history.Event) {
		if !Ended(e.Status) {
			return
		}
		if e.Answer != "" {
			same(l, e, "as", answers, e.Answer)
		}
		same(l, e, "with the code", codes, e.Code)
		if e.Ended != 0 { // otherwise the history is from before these were recorded
			same(l, e, "for", messages, e.Message)
			same(l, e, "at", times, e.Ended)
		}
	}
	i.acknowledged(history.Observe, shown)
	i.acknowledged(history.Listed, shown)
}

// same compares what an event says of its run's end with earlier events.
func same[V comparable](l *Line, e history.Event, how string, told map[string]V, value V) {
	if was, ok := told[e.Run]; ok && was != value {
		l.violate("run %s ended %s %v, and by another answer (%s, %s) %s %v", e.Run, how, was, e.Op, e.Proc, how, value)
	}
	told[e.Run] = value
}

// nothingIsStuck is I7.
func (i *indexed) nothingIsStuck() Line {
	l := Line{ID: "I7", Of: "runs that were to end"}
	for _, r := range i.Dump.Runs {
		l.Checked++
		if i.Ended && !Ended(r.Status) {
			l.violate("run %s (%s) is still %s", r.ID, r.Request, r.Status)
		}
	}
	return l
}
