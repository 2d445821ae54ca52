package check

import (
	"slices"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// draft is a history under construction; each event is a millisecond later.
type draft struct {
	Case
	clock int64
}

// tell adds an operation that is answered at once.
func (s *draft) tell(e history.Event) *history.Event {
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

// find returns the first event of an operation.
func (s *draft) find(op history.Op) *history.Event {
	return &s.Events[slices.IndexFunc(s.Events, func(e history.Event) bool { return e.Op == op })]
}

// last returns the last event of an operation.
func (s *draft) last(op history.Op) *history.Event {
	for i := range slices.Backward(s.Events) {
		if s.Events[i].Op == op {
			return &s.Events[i]
		}
	}
	return nil
}

// sound returns a history without violations: a run whose first worker is lost after a step, and
// which later sleeps and fails an attempt; a cancelled run; a failed run with a handler; and a
// schedule.
func sound() *draft {
	s := &draft{Case: Case{Ended: true, Expected: map[string]Wanted{}}}
	for _, request := range []string{"a", "b", "c"} {
		s.Expected[request] = Wanted{Type: "t", Queue: "q", Input: "in-" + request}
		s.tell(history.Event{Op: history.Start, Request: request, Run: "run-" + request})
	}
	s.Expected["c"] = Wanted{"t", "q", "in-c", "h"}
	s.tell(history.Event{Op: history.Start, Request: "a", Run: "run-a"})

	s.tell(history.Event{Op: history.Claim, Run: "run-a", Token: "1", Proc: "w1"})
	s.tell(history.Event{Op: history.CodeBegins, Run: "run-a", Step: "s0", Token: "1", Proc: "w1"})
	s.tell(history.Event{Op: history.Complete, Run: "run-a", Step: "s0", Token: "1", Value: "v0", Proc: "w1"})
	s.tell(history.Event{Op: history.CodeBegins, Run: "run-a", Step: "s1", Token: "1", Proc: "w1"})
	s.tell(history.Event{Op: history.Claim, Run: "run-a", Token: "2", Proc: "w2", Steps: map[string]string{"s0": "v0"}})
	s.tell(history.Event{Op: history.Complete, Run: "run-a", Step: "s1", Token: "1", Value: "late", Proc: "w1",
		Outcome: history.Refused, Code: "LEASE_LOST"})
	s.tell(history.Event{Op: history.CodeBegins, Run: "run-a", Step: "s1", Token: "2", Proc: "w2"})
	s.tell(history.Event{Op: history.Fail, Run: "run-a", Step: "s1", Token: "2", Status: "PENDING", Proc: "w2"})
	s.tell(history.Event{Op: history.Claim, Run: "run-a", Token: "3", Proc: "w2", Steps: map[string]string{"s0": "v0"}})
	s.tell(history.Event{Op: history.CodeBegins, Run: "run-a", Step: "s1", Token: "3", Proc: "w2"})
	s.tell(history.Event{Op: history.Complete, Run: "run-a", Step: "s1", Token: "3", Value: "v1", Proc: "w2"})
	// sent again
	s.tell(history.Event{Op: history.Complete, Run: "run-a", Step: "s1", Token: "3", Value: "v1", Proc: "w2"})
	s.tell(history.Event{Op: history.Park, Run: "run-a", Step: "nap", Token: "3", Proc: "w2"})
	s.tell(history.Event{Op: history.Claim, Run: "run-a", Token: "4", Proc: "w2",
		Steps: map[string]string{"s0": "v0", "s1": "v1"}, Woken: true, Early: -1e6})
	s.tell(history.Event{Op: history.End, Run: "run-a", Token: "4", Value: "out", Proc: "w2"})
	for range 2 {
		s.tell(history.Event{Op: history.Observe, Run: "run-a", Status: "COMPLETED", Value: "out",
			Answer: "completed at noon", Ended: 12})
	}

	s.tell(history.Event{Op: history.Claim, Run: "run-b", Token: "5", Proc: "w1"})
	s.tell(history.Event{Op: history.Cancel, Run: "run-b"})
	s.tell(history.Event{Op: history.End, Run: "run-b", Token: "5", Value: "too late", Outcome: history.Refused,
		Code: "LEASE_LOST", Status: "CANCELLED"})

	s.tell(history.Event{Op: history.Claim, Run: "run-c", Token: "6", Proc: "w1"})
	s.tell(history.Event{Op: history.EndBadly, Run: "run-c", Token: "6", Status: "FAILED", Message: "broken"})

	s.Dump = Dump{
		Rows: 10,
		Runs: []Run{
			{ID: "run-a", Request: "a", Type: "t", Queue: "q", Input: "in-a", Status: "COMPLETED", Output: "out",
				Attempts: 2, EndedAt: 12},
			{ID: "run-b", Request: "b", Type: "t", Queue: "q", Input: "in-b", Status: "CANCELLED", Attempts: 1},
			{ID: "run-c", Request: "c", Type: "t", Queue: "q", Input: "in-c", Status: "FAILED", Attempts: 1,
				OnFailure: "h", Message: "broken", EndedAt: 13},
			{ID: "run-h", Status: "COMPLETED", FailedRun: "run-c", Attempts: 1},
			{ID: "run-1", Status: "COMPLETED", Schedule: "s", Attempts: 1},
			{ID: "run-2", Status: "COMPLETED", Schedule: "s", Attempts: 1},
		},
		Steps: []Step{
			{Run: "run-a", Name: "s0", Status: Completed, Latest: true, Output: "v0"},
			{Run: "run-a", Name: "s1", Status: "FAILED"},
			{Run: "run-a", Name: "s1", Status: Completed, Latest: true, Output: "v1"},
		},
		Schedules: []Schedule{{ID: "s", Every: 5, CreatedAt: 3 * second, Fired: 2, Skipped: 1, NextFire: 20 * second}},
		Fires: []Fire{
			{Schedule: "s", Run: "run-1", Tick: 5 * second, FiredAt: 5 * second},
			{Schedule: "s", Run: "run-2", Tick: 15 * second, FiredAt: 16 * second},
		},
	}
	return s
}

func violated(s *draft) []string {
	var ids []string
	for _, l := range Invariants(&s.Case) {
		if len(l.Violations) > 0 {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

// refusedStart adds a refused start, and a run of its request.
func (s *draft) refusedStart(request string) {
	s.tell(history.Event{Op: history.Start, Request: request, Outcome: history.Refused, Code: "RESOURCE_EXHAUSTED"})
	if run := (Run{ID: "run-" + request, Request: request, Status: "CANCELLED", Attempts: 1}); !slices.Contains(
		s.Dump.Runs, run) {
		s.Dump.Runs = append(s.Dump.Runs, run)
	}
}

// listed adds that a list showed a run as an event describes it.
func (s *draft) listed(run string, e history.Event) *history.Event {
	e.Op, e.Run, e.Proc, e.Outcome = history.Listed, run, "onlooker", history.OK
	return s.tell(e)
}

// listedSteps adds that a list showed a run's steps.
func (s *draft) listedSteps(run string, steps map[string]string) *history.Event {
	return s.tell(history.Event{Op: history.ListedSteps, Run: run, Proc: "onlooker", Steps: steps})
}

// unanswered adds an operation of run-a without an answer at the end of its lease.
func (s *draft) unanswered(op history.Op, step, token string) {
	at := s.last(history.Park).Invoked - 1e4
	s.Events = append(s.Events, history.Event{Op: op, Proc: "w2", Run: "run-a", Step: step, Token: token, Invoked: at})
}

func (s *draft) claim(token string) *history.Event {
	return &s.Events[slices.IndexFunc(s.Events, func(e history.Event) bool {
		return e.Op == history.Claim && e.Token == token
	})]
}

func (s *draft) refusedWrite() *history.Event {
	return &s.Events[slices.IndexFunc(s.Events, func(e history.Event) bool {
		return e.Op == history.Complete && e.Outcome == history.Refused
	})]
}

func ops(s *draft) []history.Op {
	var list []history.Op
	for _, e := range s.Events {
		list = append(list, e.Op)
	}
	return list
}
