package check

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// linearLimit limits the search over one run's history.
const linearLimit = 20 * time.Second

// linearizable checks each run's operations: there must be an order, with each operation at some
// moment between its begin and its answer, in which a server that does one thing at a time gives
// the same answers.
func (i *indexed) linearizable(limit time.Duration) Line {
	l := Line{ID: "LIN", Of: "operations"}
	runs, undecided := 0, 0
	for _, run := range slices.Sorted(maps.Keys(i.byRun)) {
		operations := operationsOf(i.byRun[run])
		if len(operations) == 0 || i.Lossy {
			continue
		}
		runs++
		l.Checked += len(operations)
		switch porcupine.CheckOperationsTimeout(model, operations, limit) {
		case porcupine.Illegal:
			l.violate("run %s: no order of its %d operations explains their answers: %s", run, len(operations),
				describe(operations))
		case porcupine.Unknown:
			undecided++
			l.violate("run %s: undecided within %s (%d operations)", run, limit, len(operations))
		}
	}
	l.Note = fmt.Sprintf("; %d runs, %d undecided", runs, undecided)
	return l
}

// operationsOf returns a run's operations. Of repeated ones without an answer it returns only the
// first: what the others may have done, it may have done at the same time, and trying all orders
// would take too long.
func operationsOf(events []history.Event) []porcupine.Operation {
	type deed struct {
		op                 history.Op
		token, step, value string
	}
	var operations []porcupine.Operation
	procs, open := map[string]int{}, map[deed]bool{}
	events = slices.SortedStableFunc(slices.Values(events), func(a, b history.Event) int {
		return cmp.Compare(a.Invoked, b.Invoked)
	})
	for _, e := range events {
		switch e.Op {
		case history.CodeBegins, history.Fault, history.Listed, history.ListedSteps:
			continue // I3 and I4 compare lists with what was acknowledged
		}
		if d := (deed{e.Op, e.Token, e.Step, e.Value}); e.Outcome == history.Unknown {
			if open[d] {
				continue
			}
			open[d] = true
		}
		if _, ok := procs[e.Proc]; !ok {
			procs[e.Proc] = len(procs)
		}
		returned := e.Returned
		if e.Outcome == history.Unknown {
			switch e.Op {
			case history.Observe, history.Begin:
				continue // no visible change
			}
			returned = math.MaxInt64 // it may count at any time, or never
		}
		operations = append(operations, porcupine.Operation{
			ClientId: procs[e.Proc], Input: e, Call: e.Invoked, Output: e.Outcome, Return: returned})
	}
	return operations
}

func describe(operations []porcupine.Operation) string {
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	origin := operations[0].Call
	var text strings.Builder
	for _, o := range operations {
		text.WriteString(tell(o.Input.(history.Event), origin) + "; ")
	}
	return text.String()
}

func tell(e history.Event, origin int64) string {
	token := e.Token
	if len(token) > 4 {
		token = token[len(token)-4:]
	}
	end := "…"
	if e.Returned > 0 {
		end = fmt.Sprint((e.Returned - origin) / 1e6)
	}
	return fmt.Sprintf("%s %d-%s %s %s %s %s %s%s %v", e.Proc, (e.Invoked-origin)/1e6, end, e.Op, token, e.Step,
		e.Status, e.Outcome, e.Code, e.Steps)
}

// state is a run in the specification. It is a value, so that the search can compare and keep it.
type state struct {
	exists bool
	status string // of its end; "": open
	output string
	token  string // of the lease that may write; "": none
	dead   string // ended tokens, each followed by a space
	steps  string // recorded results in order: "name=value\n"
	writes string // writes that counted, one a line: a repetition counts again
}

// model is the sequential specification of one run. It is written from the promises, not from the
// server's code.
var model = porcupine.Model{
	Init:  func() any { return state{} },
	Step:  func(s, input, _ any) (bool, any) { return step(s.(state), input.(history.Event)) },
	Equal: func(a, b any) bool { return a.(state) == b.(state) },
	DescribeOperation: func(input, _ any) string {
		return tell(input.(history.Event), 0)
	},
}

// step applies one operation: whether its answer is possible in this state, and the state after it.
// An operation with an unknown answer is always possible: it counts if it can.
func step(s state, e history.Event) (bool, state) {
	next, ok := s.apply(e)
	switch {
	case e.Outcome == history.OK:
		return ok, next
	case e.Outcome == history.Unknown && ok:
		return true, next
	case e.Outcome == history.Unknown:
		return true, s
	}
	return s.refuses(e)
}

// apply applies an operation that counts; false if it cannot count.
func (s state) apply(e history.Event) (state, bool) {
	if e.Op == history.Start {
		s.exists = true
		return s, true
	}
	if !s.exists && e.Op != history.Claim && e.Op != history.Observe {
		return s, false
	}
	switch e.Op {
	case history.Observe:
		return s.observe(e)
	case history.Cancel:
		if s.status != "" {
			return s, s.status == "CANCELLED"
		}
		return s.end("CANCELLED", ""), true
	case history.Claim:
		return s.claim(e)
	}
	w := fmt.Sprintf("%s %s %s %s\n", e.Token, e.Op, e.Step, e.Value)
	if strings.Contains(s.writes, w) {
		return s, true
	}
	if s.status != "" || s.token != e.Token {
		return s, false
	}
	return s.write(e, w)
}

// write applies a write of the lease's holder.
func (s state) write(e history.Event, w string) (state, bool) {
	recorded, completed := s.recorded(e.Step)
	switch e.Op {
	case history.Begin:
		if e.Status == string(Completed) {
			return s, completed && recorded == e.Value
		}
		return s, !completed
	case history.Complete:
		if completed {
			return s, false // a recorded result never changes
		}
		s = s.record(e.Step, e.Value)
	case history.Fail:
		if completed {
			return s, false
		}
		if e.Status == "PENDING" && !e.Held {
			s = s.free()
		}
	case history.Park:
		if !e.Held {
			s = s.free()
		}
	case history.Release:
		s = s.free()
	case history.End:
		s = s.end(string(Completed), e.Value)
	case history.EndBadly:
		if e.Status == "PENDING" {
			s = s.free()
		} else {
			s = s.end("FAILED", "")
		}
	}
	s.writes += w
	return s, true
}

// claim hands out the run with everything recorded. A previous holder has lost it.
func (s state) claim(e history.Event) (state, bool) {
	if s.status != "" || s.token == e.Token || strings.Contains(s.dead, e.Token+" ") {
		return s, false
	}
	told := state{}
	for _, name := range slices.Sorted(maps.Keys(e.Steps)) {
		told = told.record(name, e.Steps[name])
	}
	if told.steps != s.steps && !(e.Part && s.holds(told)) {
		return s, false
	}
	s = s.free()
	s.exists, s.token = true, e.Token
	return s, true
}

// holds reports whether everything recorded in another state is recorded here.
func (s state) holds(part state) bool {
	for line := range strings.Lines(part.steps) {
		if !strings.Contains("\n"+s.steps, "\n"+line) {
			return false
		}
	}
	return true
}

// observe reads the run. A run can fail or time out without an operation: the server ends it.
func (s state) observe(e history.Event) (state, bool) {
	switch {
	case s.status != "":
		return s, s.status == e.Status && s.output == e.Value
	case !Ended(e.Status):
		return s, true
	case e.Status == "FAILED" && e.Code == "CRASHED":
		return s.end(e.Status, ""), true
	}
	return s, false
}

// refuses checks an operation that did not count, for a reason.
func (s state) refuses(e history.Event) (bool, state) {
	switch e.Code {
	case "LEASE_LOST":
		// The server may take the lease from a silent worker. From now on it stays lost.
		if s.token == e.Token {
			s = s.free()
		}
		return e.Status == "" || !Ended(e.Status) || s.status == e.Status || s.status == "" && e.Status == "FAILED", s
	case "NOT_FOUND":
		return !s.exists, s
	case "PRECONDITION_FAILED", "CONFLICT":
		if e.Op == history.Cancel {
			return s.status == e.Status || s.status == "" && e.Status == "FAILED", s
		}
	}
	return true, s
}

func (s state) end(status, output string) state {
	s = s.free()
	s.status, s.output = status, output
	return s
}

// free takes the lease from its holder.
func (s state) free() state {
	if s.token != "" {
		s.dead += s.token + " "
		s.token = ""
	}
	return s
}

func (s state) recorded(step string) (value string, ok bool) {
	for line := range strings.Lines(s.steps) {
		if name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "="); name == step {
			return value, true
		}
	}
	return "", false
}

func (s state) record(step, value string) state {
	lines := slices.Collect(strings.Lines(s.steps))
	lines = append(lines, step+"="+value+"\n")
	slices.Sort(lines)
	s.steps = strings.Join(lines, "")
	return s
}
