package check

import (
	"fmt"
	"testing"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// TestWritesUnderALeaseThatWasSuperseded has histories of a run that two workers got, with writes
// sent and answered at given moments.
func TestWritesUnderALeaseThatWasSuperseded(t *testing.T) {
	claim := func(token string, connected, got int64, steps ...string) history.Event {
		e := history.Event{Op: history.Claim, Run: "r", Token: token, Outcome: history.OK, Invoked: connected,
			Returned: got, Steps: map[string]string{}}
		for _, step := range steps {
			e.Steps[step] = "value of " + step
		}
		return e
	}
	wrote := func(token, step string, sent, answered int64) history.Event {
		return history.Event{Op: history.Complete, Run: "r", Token: token, Step: step, Value: "value of " + step,
			Outcome: history.OK, Invoked: sent, Returned: answered}
	}
	open := func(e history.Event) history.Event { e.Outcome, e.Returned = history.Unknown, 0; return e }
	refused := func(e history.Event) history.Event { e.Outcome, e.Code = history.Refused, "LEASE_LOST"; return e }
	byID := func(e history.Event) history.Event { e.Step = "its id"; return e }
	fault := func(what string, from, to int64) history.Event {
		return history.Event{Op: history.Fault, Step: what, Outcome: history.OK, Invoked: from, Returned: to}
	}
	type events = []history.Event
	// Both workers are connected at 1 unless stated otherwise: it is unknown when a task was in
	// transit.
	old, next := claim("A", 1, 10), claim("B", 1, 20)
	for _, test := range []struct {
		name        string
		events      events
		want, lossy int // violations, and those if acknowledged writes may be lost
	}{
		{"one lease after the other", events{old, wrote("A", "a", 11, 12), next, wrote("B", "b", 21, 22)}, 0, 0},
		{"a task that was on its way for longer than its lease",
			events{next, claim("A", 1, 25), wrote("B", "b", 21, 22)}, 0, 0},
		{"one that arrived when another had written", events{old, next, wrote("A", "a", 21, 22)}, 0, 0},
		{"both wrote, and both were handed out before",
			events{old, next, wrote("A", "a", 21, 22), wrote("B", "b", 23, 24)}, 1, 1},
		{"the later one first", events{old, next, wrote("B", "b", 21, 22), wrote("A", "a", 23, 24)}, 1, 1},
		{"one was sent before the other was handed out",
			events{old, next, wrote("A", "a", 19, 22), wrote("B", "b", 23, 24)}, 0, 0},
		{"one was refused", events{old, next, refused(wrote("A", "a", 21, 22)), wrote("B", "b", 23, 24)}, 0, 0},
		{"one has no answer", events{old, next, open(wrote("A", "a", 21, 0)), wrote("B", "b", 23, 24)}, 0, 0},
		{"one was sent again that had counted in its time",
			events{old, open(wrote("A", "a", 11, 0)), next, wrote("A", "a", 21, 22), wrote("B", "b", 23, 24)}, 0, 0},
		{"one was sent again, and is known by another name",
			events{old, open(byID(wrote("A", "a", 11, 0))), next, wrote("A", "a", 21, 22), wrote("B", "b", 23, 24)}, 0,
			0},
		{"one was refused, sent again and accepted",
			events{old, refused(wrote("A", "a", 11, 12)), next, wrote("A", "a", 21, 22), wrote("B", "b", 23, 24)}, 1,
			1},
		{"a fault between them", events{old, next, wrote("B", "b", 21, 22), fault("kill the primary", 23, 24),
			wrote("A", "a", 25, 26)}, 1, 0},
		{"a fault while one was under way", events{
			old, next, wrote("B", "b", 21, 22), wrote("A", "a", 23, 26), fault("kill the primary", 24, 25)}, 1, 0},
		{"a fault that never ended", events{old, next, fault("kill the primary", 15, 0), wrote("B", "b", 21, 22),
			wrote("A", "a", 23, 24)}, 1, 0},
		{"a fault after them", events{old, next, wrote("B", "b", 21, 22), wrote("A", "a", 23, 24),
			fault("kill the primary", 25, 26)}, 1, 1},
		{"a fault before them", events{old, next, fault("kill the primary", 18, 20), wrote("B", "b", 21, 22),
			wrote("A", "a", 23, 24)}, 1, 1},
		{"a fault of a worker between them", events{
			old, next, wrote("B", "b", 21, 22), fault("worker w", 23, 24), wrote("A", "a", 25, 26)}, 1, 1},
		{"in turns, with a fault between the turns",
			events{wrote("A", "a", 1, 2), wrote("B", "b", 3, 4), fault("kill the primary", 5, 6), wrote("A", "c", 7, 8),
				wrote("B", "d", 9, 10)}, 1, 0},
		{"in turns, after a fault", events{fault("kill the primary", -5, -4), wrote("A", "a", 1, 2),
			wrote("B", "b", 3, 4), wrote("A", "c", 7, 8), wrote("B", "d", 9, 10)}, 1, 1},

		{"a write when the next lease had its result",
			events{old, wrote("A", "a", 11, 12), claim("B", 1, 20, "a"), wrote("A", "c", 21, 22)}, 1, 1},
		{"before the next lease was handed out",
			events{old, wrote("A", "a", 11, 12), claim("B", 1, 20, "a"), wrote("A", "c", 19, 22)}, 0, 0},
		{"when one has the result that was there before both",
			events{claim("A", 1, 10, "x"), claim("B", 1, 20, "x"), wrote("A", "c", 21, 22)}, 0, 0},
		{"when the next lease has a result that both have sent",
			events{old, wrote("A", "a", 11, 12), refused(wrote("B", "a", 13, 14)), claim("B", 1, 20, "a"),
				wrote("A", "c", 21, 22)}, 0, 0},
		{"when the next worker was connected after it was handed out",
			events{old, claim("B", 11, 20), wrote("A", "c", 21, 22)}, 1, 1},
		{"when the next worker was connected after its first write",
			events{wrote("A", "a", 5, 6), claim("B", 7, 20), wrote("A", "c", 21, 22)}, 1, 1},
		{"of the later of the two", events{claim("A", 11, 20), claim("B", 1, 10), wrote("A", "c", 21, 22)}, 0, 0},
		{"when a power cut may have taken the next lease",
			events{old, claim("B", 11, 20), fault("cut the power", 21, 22), wrote("A", "c", 23, 24)}, 0, 0},
		{"when the next lease has outlived the power cut",
			events{old, claim("B", 11, 20), wrote("B", "b", 18, 19), fault("cut the power", 21, 22),
				wrote("A", "c", 23, 24)}, 1, 0},
		{"when it is later than the fault", events{
			old, wrote("A", "a", 14, 16), fault("cut the power", 11, 13), claim("B", 1, 20, "a"),
			wrote("A", "c", 21, 22)}, 1, 1},
		{"sent again that had counted in its time",
			events{old, open(wrote("A", "c", 12, 0)), claim("B", 11, 20), wrote("A", "c", 21, 22)}, 0, 0},
		{"when the same task has come twice", events{
			old, claim("B", 11, 30), claim("B", 11, 20), wrote("A", "c", 21, 22)}, 1, 1},
		{"when the same task came twice, over the earlier connection",
			events{old, claim("B", 11, 30), claim("B", 1, 20), wrote("A", "c", 21, 22)}, 0, 0},
	} {
		for lossy, want := range map[bool]int{false: test.want, true: test.lossy} {
			c := Case{Events: test.events, Lossy: lossy}
			if l := index(&c).tokensNeverOverlap(); len(l.Violations) != want {
				t.Errorf("%s, lossy %t: violations = %s, want %d", test.name, lossy,
					fmt.Sprintf("%q", l.Violations), want)
			}
		}
	}
}
