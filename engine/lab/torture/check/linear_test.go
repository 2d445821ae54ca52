package check

import (
	"testing"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// TestOneRun has histories of one run with sequential operations; each possible one has a twin that
// is impossible.
func TestOneRun(t *testing.T) {
	claim := func(token string, steps ...string) history.Event {
		e := history.Event{Op: history.Claim, Token: token, Steps: map[string]string{}}
		for _, s := range steps {
			e.Steps[s] = "v"
		}
		return e
	}
	write := func(op history.Op, token, step, status string) history.Event {
		return history.Event{Op: op, Token: token, Step: step, Value: "v", Status: status}
	}
	done := func(token, step string) history.Event { return write(history.Complete, token, step, "") }
	held := func(e history.Event) history.Event { e.Held = true; return e }
	valued := func(e history.Event, value string) history.Event { e.Value = value; return e }
	refused := func(op history.Op, token, code, status string) history.Event {
		return history.Event{Op: op, Token: token, Step: "late", Outcome: history.Refused, Code: code, Status: status}
	}
	seen := func(status, value, code string) history.Event {
		return history.Event{Op: history.Observe, Status: status, Value: value, Code: code, Outcome: history.OK}
	}
	start, cancel, end := history.Event{Op: history.Start, Request: "r"}, history.Event{Op: history.Cancel},
		write(history.End, "1", "", "")
	type events = []history.Event
	for _, test := range []struct {
		name string
		begin,
		possible,
		impossible events
	}{
		{"a run that nobody started", nil, events{refused(history.Cancel, "", "NOT_FOUND", ""), start},
			events{cancel, start}},
		{"a run that is not found", events{start}, events{cancel},
			events{refused(history.Observe, "", "NOT_FOUND", "")}},
		{"a start answered while its run is running", events{claim("1")}, events{start, end, start},
			events{start, end, refused(history.Observe, "", "NOT_FOUND", "")}},
		{"a write by the lease holder", events{start, claim("1")}, events{done("1", "a")}, events{done("2", "a")}},
		{"a failed attempt", events{start, claim("1"), write(history.Fail, "1", "a", "PENDING")}, events{claim("2")},
			events{done("1", "a")}},
		{"a last failed attempt", events{start, claim("1"), write(history.Fail, "1", "a", "")},
			events{done("1", "b")}, events{done("2", "b")}},
		{"a failed attempt in a branch", events{start, claim("1"), held(write(history.Fail, "1", "a", "PENDING"))},
			events{done("1", "b")}, events{done("2", "b")}},
		{"a step with a result does not fail", events{start, claim("1")},
			events{write(history.Fail, "1", "a", ""), done("1", "a")},
			events{done("1", "a"), write(history.Fail, "1", "a", "")}},
		{"a sleep", events{start, claim("1"), write(history.Park, "1", "nap", "")}, events{claim("2"), done("2", "a")},
			events{done("1", "a")}},
		{"a sleep in a branch", events{start, claim("1"), held(write(history.Park, "1", "nap", ""))},
			events{done("1", "a")}, events{done("2", "a")}},
		{"a run that was handed back", events{start, claim("1"), write(history.Release, "1", "", "")},
			events{claim("2")}, events{done("1", "a")}},
		{"a token that has ended", events{start, claim("1"), write(history.Release, "1", "", "")}, events{claim("2")},
			events{claim("1")}},
		{"a run that will be retried", events{start, claim("1"), write(history.EndBadly, "1", "", "PENDING")},
			events{claim("2")}, events{done("1", "a")}},
		{"a run that has failed", events{start, claim("1"), write(history.EndBadly, "1", "", "FAILED")},
			events{seen("FAILED", "", "")}, events{claim("2")}},
		{"a repeated write", events{start, claim("1"), done("1", "a"), claim("2", "a")}, events{done("1", "a")},
			events{valued(done("1", "a"), "w")}},
		{"a repeated end", events{start, claim("1"), end}, events{end}, events{valued(end, "w")}},
		{"a begun step", events{start, claim("1")}, events{write(history.Begin, "1", "a", "")},
			events{write(history.Begin, "1", "a", "COMPLETED")}},
		{"a begun step with a result", events{start, claim("1"), done("1", "a")},
			events{write(history.Begin, "1", "a", "COMPLETED")}, events{write(history.Begin, "1", "a", "")}},
		{"a begun step with another's result", events{start, claim("1"), done("1", "a")},
			events{write(history.Begin, "1", "a", "COMPLETED")},
			events{valued(write(history.Begin, "1", "a", "COMPLETED"), "w")}},
		{"a claim has the recorded results", events{start, claim("1"), done("1", "a")}, events{claim("2", "a")},
			events{claim("2")}},
		{"a claim has no other results", events{start, claim("1"), done("1", "a")}, events{claim("2", "a")},
			events{claim("2", "a", "b")}},
		{"a completed run", events{start, claim("1"), end}, events{seen("COMPLETED", "v", "")},
			events{seen("COMPLETED", "w", "")}},
		{"a completed run is completed for all", events{start, claim("1"), end},
			events{seen("COMPLETED", "v", ""), seen("COMPLETED", "v", "")}, events{seen("FAILED", "v", "")}},
		{"a completed run does not run", events{start, claim("1"), seen("RUNNING", "", ""), end}, nil,
			events{seen("RUNNING", "", "")}},
		{"a completed run is not cancelled", events{start, claim("1"), end},
			events{refused(history.Cancel, "", "PRECONDITION_FAILED", "COMPLETED")}, events{cancel}},
		{"a completed run keeps its result", events{start, claim("1"), end},
			events{refused(history.Cancel, "", "CONFLICT", "COMPLETED")},
			events{refused(history.Cancel, "", "CONFLICT", "CANCELLED")}},
		{"an open run is reported as ended", events{start}, events{refused(history.Cancel, "", "CONFLICT", "FAILED")},
			events{refused(history.Cancel, "", "CONFLICT", "COMPLETED")}},
		{"a cancelled run", events{start, cancel}, events{cancel, seen("CANCELLED", "", "")},
			events{seen("COMPLETED", "v", "")}},
		{"a cancelled run is not written to", events{start, claim("1"), cancel},
			events{refused(history.Complete, "1", "LEASE_LOST", "CANCELLED")}, events{done("1", "a")}},
		{"a run that lost its workers", events{start, claim("1")}, events{seen("FAILED", "", "CRASHED")},
			events{seen("FAILED", "", "")}},
		{"a run that lost its workers has ended", events{start, claim("1"), seen("FAILED", "", "CRASHED")},
			events{seen("FAILED", "", "CRASHED")},
			events{claim("2")}},
		{"a lost lease", events{start, claim("1")},
			events{refused(history.Complete, "1", "LEASE_LOST", "RUNNING"), claim("2")},
			events{refused(history.Complete, "1", "LEASE_LOST", "RUNNING"), done("1", "a")}},
		{"a lost lease of a failed run", events{start, claim("1")},
			events{refused(history.Complete, "1", "LEASE_LOST", "FAILED")},
			events{refused(history.Complete, "1", "LEASE_LOST", "COMPLETED")}},
		{"a lost lease of a cancelled run", events{start, claim("1"), cancel},
			events{refused(history.Complete, "1", "LEASE_LOST", "CANCELLED")},
			events{refused(history.Complete, "1", "LEASE_LOST", "COMPLETED")}},
		{"a refused write", events{start, claim("1"),
			refused(history.Complete, "1", "RESOURCE_EXHAUSTED", "")}, events{claim("2")}, events{claim("2", "late")}},
	} {
		for _, side := range []struct {
			then events
			want int
		}{{test.possible, 0}, {test.impossible, 1}} {
			s := &draft{}
			for _, e := range test.begin {
				e.Run = "r"
				s.tell(e)
			}
			for _, e := range side.then {
				e.Run = "r"
				s.tell(e)
			}
			if l := index(&s.Case).linearizable(linearLimit); len(l.Violations) != side.want {
				t.Errorf("%s: violations = %v, want %d", test.name, l.Violations, side.want)
			}
		}
	}
}

func TestAnOrderMayBeAnyThatTheAnswersAllow(t *testing.T) {
	s := &draft{}
	s.tell(history.Event{Op: history.Start, Request: "r", Run: "r"})
	s.tell(history.Event{Op: history.Cancel, Run: "r"})
	look := s.tell(history.Event{Op: history.Observe, Run: "r", Status: "RUNNING"})
	if l := index(&s.Case).linearizable(linearLimit); len(l.Violations) != 1 {
		t.Errorf("a run is seen running after its end: violations = %v, want one", l.Violations)
	}
	look.Invoked = s.Events[1].Invoked // asked at the same time as the other, answered later
	if l := index(&s.Case).linearizable(linearLimit); len(l.Violations) > 0 {
		t.Errorf("a run was looked at while it was cancelled: violations = %v, want none", l.Violations)
	}
}
