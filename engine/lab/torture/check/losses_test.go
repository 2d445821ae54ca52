package check

import (
	"testing"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

func TestLostWorkersAreCountedAndNothingElse(t *testing.T) {
	claim := func(worker, token string) history.Event {
		return history.Event{Op: history.Claim, Run: "r", Proc: worker, Token: token}
	}
	of := func(op history.Op, token string) history.Event {
		return history.Event{Op: op, Run: "r", Proc: "w", Token: token, Step: "s", Value: "v"}
	}
	fault := func(what string) history.Event { return history.Event{Op: history.Fault, Step: what} }
	missed := func(e history.Event) history.Event { e.Outcome = history.Refused; return e }
	// tell leaves the answer open then
	unknown := func(e history.Event) history.Event { e.Code = "Unavailable"; return e }
	lost := func(e history.Event) history.Event {
		e.Outcome, e.Code, e.Status = history.Refused, "LEASE_LOST", "RUNNING"
		return e
	}
	cancelled, end := history.Event{Op: history.Cancel, Run: "r"}, of(history.End, "2")
	seen := history.Event{Op: history.Observe, Run: "r", Status: "CANCELLED"}
	elsewhere := func(e history.Event) history.Event { e.Run = "other"; return e }
	const free = 9
	for _, test := range []struct {
		name        string
		events      []history.Event
		least, most int // that are accepted
	}{
		{"no worker was lost", []history.Event{claim("w", "1"), end}, 0, 0},
		{"it slept", []history.Event{claim("w", "1"), of(history.Park, "1"), claim("v", "2"), end}, 0, 0},
		{"it was given back", []history.Event{claim("w", "1"), of(history.Release, "1"), claim("v", "2"), end}, 0, 0},
		{"a step of it failed", []history.Event{claim("w", "1"), of(history.Fail, "1"), claim("v", "2"), end}, 0, 0},
		{"it was cancelled", []history.Event{claim("w", "1"), cancelled}, 0, 0},
		{"its end was seen", []history.Event{claim("w", "1"), seen, fault("kill Postgres")}, 0, 0},
		{"workers were stopped gracefully", []history.Event{
			claim("w", "1"), fault("stop worker-1"), of(history.Release, "1"), claim("v", "2"), end}, 0, 0},
		{"a fault came before its end", []history.Event{
			claim("w", "1"), fault("kill Postgres"), claim("v", "2"), end}, 0, free},
		{"a fault came after its end", []history.Event{claim("w", "1"), cancelled, fault("kill Postgres")}, 0, 0},
		{"Postgres was stopped", []history.Event{
			claim("w", "1"), fault("stop Postgres (fast)"), of(history.Release, "1"), claim("v", "2"), end}, 0, free},
		{"a worker was lost, by what is known", []history.Event{claim("w", "1"), claim("v", "2"), end}, 0, free},
		{"another run has lost its worker", []history.Event{
			elsewhere(claim("w", "3")), claim("w", "1"), elsewhere(claim("v", "4")), cancelled}, 0, free},
		{"another run has lost its lease", []history.Event{
			elsewhere(claim("w", "3")), claim("w", "1"), elsewhere(lost(of(history.Complete, "3"))), cancelled}, 0,
			free},
		{"another run has lost its worker later",
			[]history.Event{claim("w", "1"), cancelled, elsewhere(claim("w", "3")), elsewhere(claim("v", "4"))}, 0, 0},
		{"it ended with a result", []history.Event{
			fault("kill Postgres"), claim("w", "1"), claim("v", "2"), of(history.Complete, "2"), end}, 0, 0},
		{"it failed with a result", []history.Event{
			fault("kill Postgres"), claim("w", "1"), claim("v", "2"), of(history.Complete, "2"),
			{Op: history.EndBadly, Run: "r", Token: "2", Status: "FAILED"}}, 0, 0},
		{"it ended with a result of a lease before",
			[]history.Event{fault("kill Postgres"), claim("w", "1"), of(history.Complete, "1"), claim("v", "2"), end},
			0, free},
		{"it ended with a result that nobody knows of",
			[]history.Event{fault("kill Postgres"), claim("v", "2"), unknown(of(history.Complete, "2")), end}, 0, free},
		{"its end was refused", []history.Event{
			fault("kill Postgres"), claim("v", "2"), of(history.Complete, "2"), lost(end)}, 0, free},
		{"its worker was killed", []history.Event{claim("w", "1"), fault("worker w"), claim("v", "2"), end}, 1, free},
		{"both were", []history.Event{claim("w", "1"), fault("worker w"), claim("v", "2"), fault("worker v"),
			claim("u", "3"), of(history.End, "3")}, 2, free},
		{"it was killed after a result", []history.Event{
			claim("w", "1"), of(history.Complete, "1"), fault("worker w"), claim("v", "2"), end}, 1, free},
		{"a second one was killed after a result",
			[]history.Event{claim("w", "1"), fault("worker w"), claim("v", "2"), of(history.Complete, "2"),
				fault("worker v"),
				claim("u", "3"), of(history.End, "3")}, 1, free},
		{"a second one was killed after what may be a result",
			[]history.Event{claim("w", "1"), fault("worker w"), claim("v", "2"), unknown(of(history.Complete, "2")),
				fault("worker v"), claim("u", "3"), of(history.End, "3")}, 1, free},
		{"it was killed, and a result came under the next lease",
			[]history.Event{claim("w", "1"), fault("worker w"), claim("v", "2"), of(history.Complete, "2"), end}, 0, 0},
		{"it was missed", []history.Event{claim("w", "1"), missed(fault("worker w")), claim("v", "2"), end}, 0, free},
		{"another was killed", []history.Event{claim("w", "1"), fault("worker u"), claim("v", "2"), end}, 0, free},
		{"it was killed after the next had it", []history.Event{
			claim("w", "1"), claim("v", "2"), fault("worker w"), end}, 0, free},
		{"it was killed before", []history.Event{fault("worker w"), claim("w", "1"), claim("v", "2"), end}, 0, free},
		{"it was struck before, and again", []history.Event{
			fault("worker w"), claim("w", "1"), fault("worker w"), claim("v", "2"), end}, 0, free},
		{"it was killed as it gave it back", []history.Event{
			claim("w", "1"), unknown(of(history.Release, "1")), fault("worker w"), claim("v", "2"), end}, 0, free},
		{"it was refused before it was killed", []history.Event{
			claim("w", "1"), lost(of(history.Complete, "1")), fault("worker w"), claim("v", "2"), end}, 0, free},
		{"a server was killed as well", []history.Event{
			claim("w", "1"), fault("worker w"), claim("v", "2"), end, fault("kill server-1")}, 0, free},
		{"the same task came twice", []history.Event{
			claim("w", "1"), fault("worker w"), claim("w", "1"), end}, 0, free},
	} {
		for losses := range free + 1 {
			s := &draft{Case: Case{Dump: Dump{Runs: []Run{
				{ID: "r", Status: "COMPLETED", Attempts: 1, LeaseLosses: losses}}}}}
			for _, e := range test.events {
				s.tell(e)
			}
			l := Line{}
			index(&s.Case).lossesCountWorkers(&l)
			held := len(l.Violations) == 0
			if want := losses >= test.least && losses <= test.most; held != want {
				t.Errorf("%s, and %d are counted: held %t, want %t", test.name, losses, held, want)
			}
			s.Lossy = true
			if l := index(&s.Case).attemptsCountFailures(); len(l.Violations) > 0 {
				t.Errorf("%s, and %d are counted where writes may be lost: %q", test.name, losses, l.Violations)
			}
		}
	}
}
