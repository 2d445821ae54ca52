package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine/torture/history"
)

// story is a history being written, a millisecond after the other.
type story struct {
	Case
	clock int64
}

// tell adds an operation that is answered at once.
func (s *story) tell(e history.Event) *history.Event {
	s.clock += 1e6
	if e.Proc == "" {
		e.Proc = "someone"
	}
	e.Seq = int64(len(s.Events))
	e.Invoked, e.Returned = s.clock, s.clock+1e5
	if e.Outcome == history.Unknown && e.Code == "" {
		e.Outcome = history.OK
	}
	s.Events = append(s.Events, e)
	return &s.Events[len(s.Events)-1]
}

// find is the first event of an operation.
func (s *story) find(op history.Op) *history.Event {
	return &s.Events[slices.IndexFunc(s.Events, func(e history.Event) bool { return e.Op == op })]
}

// last is the last event of an operation.
func (s *story) last(op history.Op) *history.Event {
	for i := range slices.Backward(s.Events) {
		if s.Events[i].Op == op {
			return &s.Events[i]
		}
	}
	return nil
}

const second = 1_000_000 // microseconds

// sound is a story in which everything is as it should be: a run whose first worker is lost after a step, and which sleeps and fails an
// attempt later on; another that is cancelled; one that fails, with a handler; and a schedule.
func sound() *story {
	s := &story{Case: Case{Ended: true, Expected: map[string]Wanted{}}}
	for _, request := range []string{"a", "b", "c"} {
		s.Expected[request] = Wanted{"t", "q", "in-" + request}
		s.tell(history.Event{Op: history.Start, Request: request, Run: "run-" + request})
	}
	s.tell(history.Event{Op: history.Start, Request: "a", Run: "run-a"})

	s.tell(history.Event{Op: history.Claim, Run: "run-a", Token: "1", Proc: "w1"})
	s.tell(history.Event{Op: history.CodeBegins, Run: "run-a", Step: "s0", Token: "1", Proc: "w1"})
	s.tell(history.Event{Op: history.Complete, Run: "run-a", Step: "s0", Token: "1", Value: "v0", Proc: "w1"})
	s.tell(history.Event{Op: history.CodeBegins, Run: "run-a", Step: "s1", Token: "1", Proc: "w1"})
	s.tell(history.Event{Op: history.Claim, Run: "run-a", Token: "2", Proc: "w2", Steps: map[string]string{"s0": "v0"}})
	s.tell(history.Event{Op: history.Complete, Run: "run-a", Step: "s1", Token: "1", Value: "late", Proc: "w1", Outcome: history.Refused, Code: "LEASE_LOST"})
	s.tell(history.Event{Op: history.CodeBegins, Run: "run-a", Step: "s1", Token: "2", Proc: "w2"})
	s.tell(history.Event{Op: history.Fail, Run: "run-a", Step: "s1", Token: "2", Status: "PENDING", Proc: "w2"})
	s.tell(history.Event{Op: history.Claim, Run: "run-a", Token: "3", Proc: "w2", Steps: map[string]string{"s0": "v0"}})
	s.tell(history.Event{Op: history.Complete, Run: "run-a", Step: "s1", Token: "3", Value: "v1", Proc: "w2"})
	s.tell(history.Event{Op: history.Complete, Run: "run-a", Step: "s1", Token: "3", Value: "v1", Proc: "w2"}) // sent again
	s.tell(history.Event{Op: history.Park, Run: "run-a", Step: "nap", Token: "3", Proc: "w2"})
	s.tell(history.Event{Op: history.Claim, Run: "run-a", Token: "4", Proc: "w2", Steps: map[string]string{"s0": "v0", "s1": "v1"}, Woken: true, Early: -1e6})
	s.tell(history.Event{Op: history.End, Run: "run-a", Token: "4", Value: "out", Proc: "w2"})
	for range 2 {
		s.tell(history.Event{Op: history.Observe, Run: "run-a", Status: "COMPLETED", Value: "out", Answer: "completed at noon"})
	}

	s.tell(history.Event{Op: history.Claim, Run: "run-b", Token: "5", Proc: "w1"})
	s.tell(history.Event{Op: history.Cancel, Run: "run-b"})
	s.tell(history.Event{Op: history.End, Run: "run-b", Token: "5", Value: "too late", Outcome: history.Refused, Code: "LEASE_LOST", Status: "CANCELLED"})

	s.tell(history.Event{Op: history.Claim, Run: "run-c", Token: "6", Proc: "w1"})
	s.tell(history.Event{Op: history.EndBadly, Run: "run-c", Token: "6", Status: "FAILED"})

	s.Dump = Dump{
		Rows: 10,
		Runs: []Run{
			{ID: "run-a", Request: "a", Type: "t", Queue: "q", Input: "in-a", Status: "COMPLETED", Output: "out", Attempts: 2},
			{ID: "run-b", Request: "b", Type: "t", Queue: "q", Input: "in-b", Status: "CANCELLED", Attempts: 1},
			{ID: "run-c", Request: "c", Type: "t", Queue: "q", Input: "in-c", Status: "FAILED", Attempts: 1, OnFailure: "h"},
			{ID: "run-h", Status: "COMPLETED", FailedRun: "run-c", Attempts: 1},
			{ID: "run-1", Status: "COMPLETED", Schedule: "s", Attempts: 1},
			{ID: "run-2", Status: "COMPLETED", Schedule: "s", Attempts: 1},
		},
		Steps: []Step{
			{Run: "run-a", Name: "s0", Status: Completed, Latest: true, Output: "v0"},
			{Run: "run-a", Name: "s1", Status: "FAILED"},
			{Run: "run-a", Name: "s1", Status: Completed, Latest: true, Output: "v1"},
		},
		Schedules: []Schedule{{ID: "s", Every: 5, CreatedAt: 3 * second, LastFired: 15 * second, Skipped: 1}},
		Fires: []Fire{
			{Schedule: "s", Run: "run-1", Tick: 5 * second, FiredAt: 5 * second},
			{Schedule: "s", Run: "run-2", Tick: 15 * second, FiredAt: 16 * second},
		},
	}
	return s
}

func violated(s *story) []string {
	var ids []string
	for _, l := range Invariants(&s.Case) {
		if len(l.Violations) > 0 {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

func TestInvariants(t *testing.T) {
	for _, test := range []struct {
		name string
		harm func(s *story)
		want string // what has to be violated; others may be as well
	}{
		{"a sound story is sound", func(*story) {}, ""},
		{"an acknowledged run is not there", func(s *story) { s.Dump.Runs = s.Dump.Runs[1:]; s.Dump.Steps = nil }, "I1"},
		{"a run has another input", func(s *story) { s.Dump.Runs[0].Input = "else" }, "I1"},
		{"a run is there that nobody has started", func(s *story) {
			s.Dump.Runs = append(s.Dump.Runs, Run{ID: "x", Request: "x", Status: "COMPLETED", Attempts: 1})
		}, "I1"},
		{"an acknowledged result is not there", func(s *story) { s.Dump.Steps = s.Dump.Steps[1:] }, "I2"},
		{"a result has changed", func(s *story) { s.Dump.Steps[0].Output = "else" }, "I2"},
		{"a replay has seen another result", func(s *story) {
			s.last(history.Claim).Steps = nil
			s.find(history.Claim).Steps = map[string]string{"s0": "else"}
		}, "I3"},
		{"a step is completed twice", func(s *story) { s.Dump.Steps[1].Status = Completed }, "I3"},
		{"an acknowledged end is not that of the database", func(s *story) { s.Dump.Runs[0].Output = "else" }, "I4"},
		{"a cancelled run is completed", func(s *story) { s.Dump.Runs[1].Status = "COMPLETED" }, "I4"},
		{"an end was seen in two ways", func(s *story) { s.last(history.Observe).Answer = "completed at one" }, "I4"},
		{"two leases write at the same time", func(s *story) {
			s.tell(history.Event{Op: history.Complete, Run: "run-a", Step: "x", Token: "1", Value: "v"})
		}, "I5"},
		{"a tick fired twice", func(s *story) { s.Dump.Fires = append(s.Dump.Fires, s.Dump.Fires[0]) }, "I6"},
		{"a tick was missed and not counted", func(s *story) { s.Dump.Schedules[0].Skipped = 0 }, "I6"},
		{"a tick fired that is none", func(s *story) { s.Dump.Fires[0].Tick++ }, "I6"},
		{"a tick has two runs", func(s *story) {
			s.Dump.Runs = append(s.Dump.Runs, Run{ID: "x", Schedule: "s", Status: "COMPLETED", Attempts: 1})
		}, "I6"},
		{"a run is stuck", func(s *story) { s.Dump.Runs[5].Status = "SLEEPING" }, "I7"},
		{"a lost worker counted as a failure", func(s *story) { s.Dump.Runs[0].Attempts = 3 }, "I8"},
		{"a run failed for its lost workers too soon", func(s *story) { s.Dump.Runs[2].Crashed, s.Dump.Runs[2].LeaseLosses = true, 9 }, "I8"},
		{"a recorded step ran again", func(s *story) {
			s.tell(history.Event{Op: history.CodeBegins, Run: "run-a", Step: "s0", Token: "3", Proc: "w2"})
		}, "I9"},
		{"a sleep ended early", func(s *story) { s.last(history.Claim).Woken = true; s.last(history.Claim).Early = 1 }, "I10"},
		{"a failed run has no handler", func(s *story) { s.Dump.Runs[3].FailedRun, s.Dump.Runs[3].Schedule = "", "s" }, "I11"},
		{"a failed run has two handlers", func(s *story) { s.Dump.Runs[4].FailedRun = "run-c" }, "I11"},
		{"one request has two answers", func(s *story) { s.Events[3].Run = "run-b" }, "I12"},
		{"one request has two runs", func(s *story) { s.Dump.Runs[4].Request = "a" }, "I12"},
		{"a lease is left over", func(s *story) { s.Dump.Leases = []Lease{{Run: "run-a"}} }, "I13"},
		{"a step has no run", func(s *story) { s.Dump.Steps = append(s.Dump.Steps, Step{Run: "x", Name: "s"}) }, "I13"},
		{"the server's own check finds something", func(s *story) { s.Dump.Unsound = []string{"x"} }, "I13"},
		{"a claim misses a result that was acknowledged", func(s *story) { s.claim("4").Steps = map[string]string{"s0": "v0"} }, "LIN"},
		{"a late write counted", func(s *story) { e := s.refusedWrite(); e.Outcome, e.Code = history.OK, "" }, "LIN"},
		{"a result was overwritten by the same lease", func(s *story) {
			e := *s.find(history.Complete)
			e.Value = "else"
			s.Events = slices.Insert(s.Events, slices.Index(ops(s), history.Complete)+1, e)
		}, "LIN"},
		{"a cancelled run went on", func(s *story) { e := s.last(history.End); e.Outcome, e.Code = history.OK, "" }, "LIN"},
		{"an ended run was handed out", func(s *story) { s.tell(history.Event{Op: history.Claim, Run: "run-c", Token: "9"}) }, "LIN"},
		{"a token was handed out twice", func(s *story) { s.claim("2").Token = "1" }, "LIN"},
		{"an acknowledged start could not be found", func(s *story) {
			s.tell(history.Event{Op: history.Cancel, Run: "run-a", Outcome: history.Refused, Code: "NOT_FOUND"})
		}, "LIN"},
		{"a write counted after its lease was said to be lost", func(s *story) {
			s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "7"})
			s.tell(history.Event{Op: history.Complete, Run: "run-d", Step: "x", Token: "7", Value: "v", Outcome: history.Refused, Code: "LEASE_LOST"})
			s.tell(history.Event{Op: history.Complete, Run: "run-d", Step: "y", Token: "7", Value: "v"})
		}, "LIN"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := sound()
			test.harm(s)
			got := violated(s)
			if test.want == "" && len(got) > 0 {
				for _, l := range Invariants(&s.Case) {
					t.Log(l)
				}
				t.Fatalf("violated = %v, want none", got)
			}
			if test.want != "" && !slices.Contains(got, test.want) {
				t.Fatalf("violated = %v, want %s among them", got, test.want)
			}
		})
	}
}

func (s *story) claim(token string) *history.Event {
	return &s.Events[slices.IndexFunc(s.Events, func(e history.Event) bool { return e.Op == history.Claim && e.Token == token })]
}

func (s *story) refusedWrite() *history.Event {
	return &s.Events[slices.IndexFunc(s.Events, func(e history.Event) bool { return e.Op == history.Complete && e.Outcome == history.Refused })]
}

func ops(s *story) []history.Op {
	var list []history.Op
	for _, e := range s.Events {
		list = append(list, e.Op)
	}
	return list
}

func TestAnOperationWithoutAnAnswer(t *testing.T) {
	unanswered := func(s *story, step, value string) {
		e := s.tell(history.Event{Op: history.Complete, Run: "run-d", Step: step, Token: "7", Value: value})
		e.Outcome, e.Returned = history.Unknown, 0
	}
	for _, counted := range []bool{true, false} {
		s := &story{}
		s.tell(history.Event{Op: history.Start, Request: "d", Run: "run-d"})
		s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "7"})
		unanswered(s, "s0", "v")
		next := history.Event{Op: history.Claim, Run: "run-d", Token: "8"}
		if counted {
			next.Steps = map[string]string{"s0": "v"}
		}
		s.tell(next)
		if l := index(&s.Case).linearizable(); len(l.Violations) > 0 {
			t.Errorf("counted %t: %v, want both to be possible", counted, l.Violations)
		}
	}
	s := &story{}
	s.tell(history.Event{Op: history.Start, Request: "d", Run: "run-d"})
	s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "7"})
	s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "8"})
	unanswered(s, "s0", "v") // under a lease that was over
	s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "9", Steps: map[string]string{"s0": "v"}})
	if l := index(&s.Case).linearizable(); len(l.Violations) != 1 {
		t.Errorf("violations = %v, want one: the write of a lost lease counted", l.Violations)
	}
}

func TestAResultThatWasLostMayBeAnother(t *testing.T) {
	for lossy, want := range map[bool]int{true: 0, false: 2} {
		s := &story{Case: Case{Lossy: lossy}}
		s.Dump.Steps = []Step{{Run: "r", Name: "s0", Status: Completed, Latest: true, Output: "second"}}
		s.tell(history.Event{Op: history.Claim, Run: "r", Token: "1", Steps: map[string]string{"s0": "first"}})
		s.tell(history.Event{Op: history.Claim, Run: "r", Token: "2", Steps: map[string]string{"s0": "second"}})
		if l := index(&s.Case).resultsNeverChange(); len(l.Violations) != want {
			t.Errorf("lossy %t: violations = %v, want %d", lossy, l.Violations, want)
		}
	}
}

func TestAClaimMayTellAPartOfTheSteps(t *testing.T) {
	for _, test := range []struct {
		name  string
		part  bool
		steps map[string]string
		want  int
	}{
		{"a part, and said to be one", true, map[string]string{"s1": "v1"}, 0},
		{"a part, as if it were all", false, map[string]string{"s1": "v1"}, 1},
		{"a part that is not true", true, map[string]string{"s1": "v0"}, 1},
		{"all", false, map[string]string{"s0": "v0", "s1": "v1"}, 0},
	} {
		s := &story{}
		s.tell(history.Event{Op: history.Start, Request: "d", Run: "run-d"})
		s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "7"})
		s.tell(history.Event{Op: history.Complete, Run: "run-d", Step: "s0", Token: "7", Value: "v0"})
		s.tell(history.Event{Op: history.Complete, Run: "run-d", Step: "s1", Token: "7", Value: "v1"})
		s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "8", Steps: test.steps, Part: test.part})
		if l := index(&s.Case).linearizable(); len(l.Violations) != test.want {
			t.Errorf("%s: violations = %v, want %d", test.name, l.Violations, test.want)
		}
	}
}

func TestManyUnansweredRepetitionsAreDecided(t *testing.T) {
	s := &story{}
	s.tell(history.Event{Op: history.Start, Request: "d", Run: "run-d"})
	s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "7"})
	for n := range 120 { // of two kinds, so that their order among each other counts
		e := history.Event{Op: history.Cancel, Run: "run-d"}
		if n%2 == 0 {
			e = history.Event{Op: history.Complete, Run: "run-d", Step: "s0", Token: "7", Value: "v"}
		}
		told := s.tell(e)
		told.Outcome, told.Returned = history.Unknown, 0
	}
	s.tell(history.Event{Op: history.Observe, Run: "run-d", Status: "CANCELLED"})
	if l := index(&s.Case).linearizable(); len(l.Violations) > 0 {
		t.Errorf("violations = %.300v, want none", l.Violations)
	}
}

func TestALineShowsNoControlCharacters(t *testing.T) {
	l := Line{ID: "I1", Of: "things"}
	l.violate("\x1b[2J")
	if strings.Contains(l.String(), "\x1b") {
		t.Errorf("line = %q", l.String())
	}
}
