package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

func TestAnOperationWithoutAnAnswer(t *testing.T) {
	unanswered := func(s *draft, step, value string) {
		e := s.tell(history.Event{Op: history.Complete, Run: "run-d", Step: step, Token: "7", Value: value})
		e.Outcome, e.Returned = history.Unknown, 0
	}
	for _, counted := range []bool{true, false} {
		s := &draft{}
		s.tell(history.Event{Op: history.Start, Request: "d", Run: "run-d"})
		s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "7"})
		unanswered(s, "s0", "v")
		next := history.Event{Op: history.Claim, Run: "run-d", Token: "8"}
		if counted {
			next.Steps = map[string]string{"s0": "v"}
		}
		s.tell(next)
		if l := index(&s.Case).linearizable(linearLimit); len(l.Violations) > 0 {
			t.Errorf("counted %t: %v, want both to be possible", counted, l.Violations)
		}
	}
	s := &draft{}
	s.tell(history.Event{Op: history.Start, Request: "d", Run: "run-d"})
	s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "7"})
	s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "8"})
	unanswered(s, "s0", "v") // under a lease that was over
	s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "9", Steps: map[string]string{"s0": "v"}})
	if l := index(&s.Case).linearizable(linearLimit); len(l.Violations) != 1 {
		t.Errorf("violations = %v, want one: the write of a lost lease counted", l.Violations)
	}
}

func TestAResultThatWasLostMayBeAnother(t *testing.T) {
	for lossy, want := range map[bool]int{true: 0, false: 2} {
		s := &draft{Case: Case{Lossy: lossy}}
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
		s := &draft{}
		s.tell(history.Event{Op: history.Start, Request: "d", Run: "run-d"})
		s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "7"})
		s.tell(history.Event{Op: history.Complete, Run: "run-d", Step: "s0", Token: "7", Value: "v0"})
		s.tell(history.Event{Op: history.Complete, Run: "run-d", Step: "s1", Token: "7", Value: "v1"})
		s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "8", Steps: test.steps, Part: test.part})
		if l := index(&s.Case).linearizable(linearLimit); len(l.Violations) != test.want {
			t.Errorf("%s: violations = %v, want %d", test.name, l.Violations, test.want)
		}
	}
}

func TestManyUnansweredRepetitionsAreDecided(t *testing.T) {
	s := &draft{}
	s.tell(history.Event{Op: history.Start, Request: "d", Run: "run-d"})
	s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "7"})
	for n := range 120 { // of two kinds, so that their order matters
		e := history.Event{Op: history.Cancel, Run: "run-d"}
		if n%2 == 0 {
			e = history.Event{Op: history.Complete, Run: "run-d", Step: "s0", Token: "7", Value: "v"}
		}
		told := s.tell(e)
		told.Outcome, told.Returned = history.Unknown, 0
	}
	s.tell(history.Event{Op: history.Observe, Run: "run-d", Status: "CANCELLED"})
	if l := index(&s.Case).linearizable(linearLimit); len(l.Violations) > 0 {
		t.Errorf("violations = %.300v, want none", l.Violations)
	}
}

func TestAnUndecidedHistoryDoesNotHold(t *testing.T) {
	s := &draft{}
	s.tell(history.Event{Op: history.Start, Request: "d", Run: "run-d"})
	s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "7"})
	for n := range 40 { // each may have counted or not
		told := s.tell(history.Event{Op: history.Complete, Run: "run-d", Step: fmt.Sprint("s", n), Token: "7",
			Value: "v"})
		told.Outcome, told.Returned = history.Unknown, 0
	}
	s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "8", Steps: map[string]string{"else": "v"}})
	l := index(&s.Case).linearizable(10 * time.Millisecond)
	if len(l.Violations) != 1 || !strings.Contains(l.Violations[0], "undecided") || l.Note != "; 1 runs, 1 undecided" {
		t.Errorf("violations = %.300v, %s; want that it is undecided", l.Violations, l.Note)
	}
}

func TestALineShowsNoControlCharacters(t *testing.T) {
	l := Line{ID: "I1", Of: "things"}
	l.violate("\x1b[2J")
	if strings.Contains(l.String(), "\x1b") {
		t.Errorf("line = %q", l.String())
	}
}

func TestEachLineSaysHowMuchItHeld(t *testing.T) {
	want := map[string]int{"I1": 10, "I2": 3, "I3": 4, "I4": 5, "I5": 5, "I6": 3, "I7": 6, "I8": 6, "I9": 4, "I10": 1,
		"I11": 1, "I12": 4, "I13": 10, "LIN": 22}
	notes := map[string]string{
		"I6":  "; 1 skipped, the latest by 1000 ms, over all faults",
		"I9":  "; 500.0 of 1,000 ran more than once, unrecorded or failed",
		"I10": "; the latest by 1 ms, over all replays", "LIN": "; 3 runs, 0 undecided",
	}
	for _, l := range Invariants(&sound().Case) {
		if l.Note != notes[l.ID] {
			t.Errorf("%s says beside it %q, want %q", l.ID, l.Note, notes[l.ID])
		}
		if l.Checked != want[l.ID] || l.Of == "" {
			t.Errorf("%s is of %d %q, want %d of something", l.ID, l.Checked, l.Of, want[l.ID])
		}
		delete(want, l.ID)
	}
	if len(want) > 0 {
		t.Errorf("there are no lines of %v", want)
	}
}

func TestLossesThatALossyScenarioAllows(t *testing.T) {
	for _, test := range []struct {
		name string
		harm func(s *draft)
		want []string
	}{
		{"a run", func(s *draft) { s.Dump.Runs = s.Dump.Runs[1:]; s.Dump.Steps = nil }, nil},
		{"a result", func(s *draft) { s.Dump.Steps = s.Dump.Steps[1:] }, nil},
		{"an end", func(s *draft) { s.Dump.Runs[1].Status = "COMPLETED" }, nil},
		{"a time", func(s *draft) { s.Dump.Runs[0].EndedAt++ }, nil},
		{"a reason", func(s *draft) { s.Dump.Runs[2].Message = "else" }, nil},
		{"what lists have shown", func(s *draft) {
			s.listed("run-a", history.Event{Status: "FAILED", Code: "TIMEOUT", Message: "else", Ended: 9})
			s.listed("run-a", history.Event{Status: "RUNNING"})
			s.listed("run-gone", history.Event{Status: "FAILED"})
			s.listedSteps("run-a", map[string]string{"s0": "else"})
			s.listedSteps("run-gone", map[string]string{"s0": "v"})
		}, nil},
		{"a failure", func(s *draft) { s.Dump.Runs[0].Attempts = 1 }, nil},
		{"a tick", func(s *draft) { s.Dump.Schedules[0].Skipped = 0 }, nil},
		{"an answer", func(s *draft) { s.Events[3].Run = "run-gone" }, nil},
		{"a run that is another is not", func(s *draft) { s.Dump.Runs[0].Input = "else" }, []string{"I1"}},
		{"two results of a step are not", func(s *draft) { s.Dump.Steps[1].Status = Completed }, []string{"I3"}},
		{"two leases that write are not", func(s *draft) {
			s.tell(history.Event{Op: history.Complete, Run: "run-a", Step: "s1", Token: "1", Value: "v1"})
		}, []string{"I5"}},
		{"two runs of a tick are not", func(s *draft) {
			s.Dump.Runs = append(s.Dump.Runs, Run{ID: "x", Schedule: "s", Status: "COMPLETED", Attempts: 1})
		}, []string{"I6"}},
		{"a run that is stuck is not", func(s *draft) { s.Dump.Runs[5].Status = "SLEEPING" }, []string{"I7"}},
		{"two runs of a request are not", func(s *draft) { s.Dump.Runs[4].Request = "a" }, []string{"I12"}},
		{"a lease that is left over is not", func(s *draft) {
			s.Dump.Leases = []Lease{{Run: "run-a"}}
		}, []string{"I13"}},
	} {
		s := sound()
		s.Lossy = true
		test.harm(s)
		if got := violated(s); !slices.Equal(got, test.want) {
			t.Errorf("%s: violated = %v, want %v", test.name, got, test.want)
		}
	}
}

func TestRunsMayBeOpenIfNotEverythingHadToEnd(t *testing.T) {
	s := sound()
	s.Ended, s.Dump.Runs[5].Status, s.Dump.Runs[4].Status = false, "SLEEPING", "RUNNING"
	s.Dump.Leases = []Lease{{Run: "run-1", Token: "1"}}
	if got := violated(s); len(got) > 0 {
		t.Errorf("violated = %v, want none", got)
	}
}

func TestALineTellsItsVerdictAndItsFirstViolations(t *testing.T) {
	l := Line{ID: "I1", Of: "things", Checked: 9, Note: "; a note"}
	if want := "I1   ok             9 things, 0 violations; a note"; l.String() != want {
		t.Errorf("line = %q, want %q", l.String(), want)
	}
	for n := range shownViolations + 2 {
		l.violate("no. %d", n)
	}
	want := "I1   VIOLATED       9 things, 7 violations; a note"
	for n := range shownViolations {
		want += fmt.Sprintf("\n       \"no. %d\"", n)
	}
	if want += "\n       … and 2 more"; l.String() != want {
		t.Errorf("line = %q, want %q", l.String(), want)
	}
	if n := Violated([]Line{l, {}, l}); n != 14 {
		t.Errorf("violations = %d, want those of all lines", n)
	}
}

func TestTwoLeasesThatWriteOneAfterTheOther(t *testing.T) {
	type write struct {
		token, step    string
		sent, answered int64 // 0: no answer
	}
	for _, test := range []struct {
		name   string
		writes []write
		want   int
	}{
		{"one after the other", []write{{"1", "a", 1, 2}, {"1", "b", 3, 4}, {"2", "c", 5, 6}, {"2", "d", 7, 8}}, 0},
		{"at the same moment, at most", []write{
			{"1", "a", 1, 2}, {"1", "b", 5, 7}, {"2", "c", 4, 5}, {"2", "d", 8, 9}}, 0},
		{"in turns", []write{{"1", "a", 1, 2}, {"2", "c", 3, 4}, {"1", "b", 5, 6}, {"2", "d", 7, 8}}, 1},
		{"one within the other", []write{{"2", "a", 1, 2}, {"1", "c", 3, 4}, {"1", "d", 5, 6}, {"2", "b", 7, 8}}, 1},
		{"a single write at some time", []write{{"1", "a", 1, 2}, {"2", "c", 3, 4}, {"1", "b", 5, 6}}, 0},
		{"one that was sent again, and answered late",
			[]write{{"1", "a", 1, 2}, {"1", "b", 3, 0}, {"2", "c", 4, 5}, {"2", "d", 6, 7}, {"1", "b", 8, 9}}, 0},
		{"one that was answered twice", []write{
			{"1", "a", 1, 2}, {"1", "b", 3, 4}, {"2", "c", 5, 6}, {"2", "d", 7, 8}, {"1", "b", 9, 10},
			{"1", "a", 11, 12}}, 0},
		{"one that nobody answered", []write{{"1", "a", 1, 2}, {"2", "c", 3, 4}, {"2", "d", 5, 6}, {"1", "b", 7, 0}},
			0},
		{"three of them, all at once", []write{{"1", "a", 1, 2}, {"2", "a", 1, 2}, {"3", "a", 1, 2}, {"1", "b", 3, 4},
			{"2", "b", 3, 4}, {"3", "b", 3, 4}}, 3},
	} {
		s := &draft{}
		for _, w := range test.writes {
			e := history.Event{Op: history.Complete, Run: "r", Token: w.token, Step: w.step, Invoked: w.sent,
				Returned: w.answered, Outcome: history.OK}
			if w.answered == 0 {
				e.Outcome = history.Unknown
			}
			s.Events = append(s.Events, e)
		}
		if l := index(&s.Case).tokensNeverOverlap(); len(l.Violations) != test.want {
			t.Errorf("%s: violations = %v, want %d", test.name, l.Violations, test.want)
		}
	}
}
