package check

import (
	"slices"
	"testing"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

const second = 1_000_000 // microseconds

func TestInvariants(t *testing.T) {
	for _, test := range []struct {
		name string
		harm func(s *draft)
		want string // must be violated; others may be too
	}{
		{"a sound draft is sound", func(*draft) {}, ""},
		{"a start without an answer has its run", func(s *draft) {
			s.tell(history.Event{Op: history.Start, Request: "d", Outcome: history.Refused, Code: "TIMEOUT"}).Outcome =
				history.Unknown
			s.Dump.Runs = append(s.Dump.Runs, Run{ID: "run-d", Request: "d", Status: "CANCELLED", Attempts: 1})
		}, ""},
		{"a start without an answer has its run, its repetition was refused", func(s *draft) {
			s.tell(history.Event{Op: history.Start, Request: "d", Code: "TIMEOUT"})
			s.refusedStart("d")
		}, ""},
		{"a start without an answer has its run, and was refused before", func(s *draft) {
			s.refusedStart("d")
			s.tell(history.Event{Op: history.Start, Request: "d", Code: "TIMEOUT"})
		}, ""},
		{"a start was refused and then acknowledged", func(s *draft) {
			s.Expected["d"] = Wanted{}
			s.refusedStart("d")
			s.tell(history.Event{Op: history.Start, Request: "d", Run: "run-d"})
		}, ""},
		{"a start that the SDK had made before was refused", func(s *draft) {
			s.tell(history.Event{Op: history.Tried, Request: "d", Why: "Unavailable"}).Outcome = history.Unknown
			s.refusedStart("d")
		}, ""},
		{"a refused start has no run", func(s *draft) {
			s.refusedStart("d")
			s.Dump.Runs = s.Dump.Runs[:len(s.Dump.Runs)-1]
		}, ""},
		{"a run failed with a long message, which was cut", func(s *draft) {
			s.last(history.EndBadly).Message = history.Digest(make([]byte, 100))
		}, ""},
		{"a failed run is seen as it failed", func(s *draft) {
			s.tell(history.Event{Op: history.Observe, Run: "run-c", Status: "FAILED", Message: "broken", Ended: 13})
		}, ""},
		{"an attempt of a run failed for another reason", func(s *draft) {
			s.last(history.EndBadly).Token = "7"
			s.Events = slices.Insert(s.Events, len(s.Events)-1,
				history.Event{Op: history.EndBadly, Run: "run-c", Token: "6", Status: "PENDING", Message: "else",
					Outcome: history.OK, Proc: "w1", Invoked: s.clock - 2e5, Returned: s.clock - 1e5},
				history.Event{Op: history.Claim, Run: "run-c", Token: "7", Proc: "w1", Outcome: history.OK,
					Invoked: s.clock - 1e5, Returned: s.clock - 5e4})
			s.Dump.Runs[2].Attempts = 2
		}, ""},
		{"an old history without reasons and times of ends", func(s *draft) {
			for n := range s.Events {
				s.Events[n].Message, s.Events[n].Ended = "", 0
			}
		}, ""},
		{"lists show what is so", func(s *draft) {
			s.listed("run-a", history.Event{Status: "COMPLETED", Ended: 12})
			s.listed("run-c", history.Event{Status: "FAILED", Message: "broken", Ended: 13})
			s.listed("run-1", history.Event{Status: "COMPLETED"})
			s.listedSteps("run-a", map[string]string{"s0": "v0", "s1": "v1"})
			s.listedSteps("run-1", nil)
		}, ""},
		{"lists show a part of the steps, and say so", func(s *draft) {
			s.listedSteps("run-a", map[string]string{"s0": "v0"}).Part = true
		}, ""},
		{"lists were asked for before all was over", func(s *draft) {
			s.listed("run-a", history.Event{Status: "SLEEPING"}).Invoked = s.find(history.End).Invoked
			s.listedSteps("run-a", map[string]string{"s0": "v0"}).Invoked = s.last(history.Complete).Invoked - 2e6
		}, ""},
		{"a list has a result that nobody heard was recorded", func(s *draft) {
			s.Dump.Steps = append(s.Dump.Steps, Step{
				Run: "run-b", Name: "s0", Status: Completed, Latest: true, Output: "v"})
			s.listedSteps("run-b", map[string]string{"s0": "v"})
		}, ""},
		{"a refused result is another", func(s *draft) { s.refusedWrite().Step = "s0" }, ""},
		{"a step was begun with its result", func(s *draft) {
			at := s.find(history.End).Invoked
			s.Events = append(s.Events, history.Event{
				Op: history.Begin, Proc: "w3", Run: "run-a", Step: "s0", Token: "4", Status: "COMPLETED", Value: "v0",
				Outcome: history.OK, Invoked: at - 2e4, Returned: at - 1e4})
		}, ""},
		{"a run was seen before its end", func(s *draft) {
			s.Events = slices.Insert(s.Events, 0, history.Event{
				Op: history.Observe, Proc: "someone", Run: "run-a", Status: "RUNNING", Outcome: history.OK, Invoked: 1,
				Returned: 2})
		}, ""},
		{"a schedule has come to its next tick, and not decided about it", func(s *draft) {
			s.Dump.Schedules[0] = Schedule{ID: "s", Every: 5, CreatedAt: 5*second - 1, Fired: 2, Skipped: 1,
				NextFire: 20 * second}
		}, ""},
		{"a tick at the moment of its schedule's creation is not owed", func(s *draft) {
			s.Dump.Schedules[0].CreatedAt, s.Dump.Schedules[0].Skipped, s.Dump.Schedules[0].Fired = 10*second, 0, 1
			s.Dump.Fires, s.Dump.Runs[4].Schedule = s.Dump.Fires[1:], "other"
		}, ""},
		{"a schedule of unknown ticks", func(s *draft) { s.Dump.Schedules[0] = Schedule{ID: "s"} }, ""},
		{"a failure without an answer was counted", func(s *draft) {
			s.unanswered(history.Fail, "s1", "3")
			s.Dump.Runs[0].Attempts = 3
		}, ""},
		{"a failure without an answer was not counted", func(s *draft) { s.unanswered(history.Fail, "s1", "3") }, ""},
		{"a failure was sent again until its answer came", func(s *draft) {
			s.unanswered(history.Fail, "s1", "2")
		}, ""},
		{"a run failed for its lost workers", func(s *draft) {
			s.Dump.Runs[2].Crashed, s.Dump.Runs[2].LeaseLosses = true, 10
		}, ""},
		{"a run has lost some workers", func(s *draft) { s.Dump.Runs[0].LeaseLosses = 9 }, ""},
		{"a sleep ended when it was to", func(s *draft) {
			s.last(history.Claim).Woken, s.last(history.Claim).Early = true, 0
		}, ""},
		{"a failed run that wants no handler", func(s *draft) {
			s.Expected["c"] = Wanted{Type: "t", Queue: "q", Input: "in-c"}
			s.Dump.Runs[2].OnFailure, s.Dump.Runs[3] = "", s.Dump.Runs[0]
			s.Dump.Runs = slices.Delete(s.Dump.Runs, 3, 4)
		}, ""},
		{"a run that ran out of time has its handler", func(s *draft) {
			s.last(history.EndBadly).Outcome = history.Refused
			s.Dump.Runs[2].Status = "TIMED_OUT"
		}, ""},
		{"an acknowledged run is not there", func(s *draft) {
			s.Dump.Runs = s.Dump.Runs[1:]
			s.Dump.Steps = nil
		}, "I1"},
		{"a run has another input", func(s *draft) { s.Dump.Runs[0].Input = "else" }, "I1"},
		{"a run has another type", func(s *draft) { s.Dump.Runs[0].Type = "else" }, "I1"},
		{"a run is in another queue", func(s *draft) { s.Dump.Runs[0].Queue = "else" }, "I1"},
		{"a run has lost its handler", func(s *draft) {
			s.Dump.Runs[2].OnFailure, s.Dump.Runs[3].FailedRun, s.Dump.Runs[3].Schedule = "", "", "other"
		}, "I1"},
		{"an acknowledged run was not asked for", func(s *draft) { delete(s.Expected, "b") }, "I1"},
		{"a run is there that nobody has started", func(s *draft) {
			s.Dump.Runs = append(s.Dump.Runs, Run{ID: "x", Request: "x", Status: "COMPLETED", Attempts: 1})
		}, "I1"},
		{"a run is there whose starts were all refused", func(s *draft) {
			s.refusedStart("d")
			s.refusedStart("d")
		}, "I1"},
		{"an acknowledged result is not there", func(s *draft) { s.Dump.Steps = s.Dump.Steps[1:] }, "I2"},
		{"a result has changed", func(s *draft) { s.Dump.Steps[0].Output = "else" }, "I2"},
		{"an acknowledged result is that of a failure", func(s *draft) { s.Dump.Steps[0].Status = "FAILED" }, "I2"},
		{"an acknowledged result is one of an earlier attempt", func(s *draft) {
			s.Dump.Steps[0].Latest = false
		}, "I2"},
		{"a step that has a result was begun with another", func(s *draft) {
			s.tell(history.Event{Op: history.Begin, Run: "run-a", Step: "s0", Token: "9", Status: "COMPLETED",
				Value: "else"})
		}, "I3"},
		{"a step that was begun with a result has none", func(s *draft) {
			s.tell(history.Event{Op: history.Begin, Run: "run-a", Step: "s9", Token: "9", Status: "COMPLETED",
				Value: "v"})
		}, "I3"},
		{"a replay has seen the result of a failure", func(s *draft) { s.Dump.Steps[0].Status = "FAILED" }, "I3"},
		{"a replay has seen another result", func(s *draft) {
			s.last(history.Claim).Steps = nil
			s.find(history.Claim).Steps = map[string]string{"s0": "else"}
		}, "I3"},
		{"a step is completed twice", func(s *draft) { s.Dump.Steps[1].Status = Completed }, "I3"},
		{"a list has another result", func(s *draft) {
			s.listedSteps("run-a", map[string]string{"s0": "else", "s1": "v1"})
		}, "I3"},
		{"a list has a result that is not there", func(s *draft) {
			s.listedSteps("run-b", map[string]string{"s0": "v"})
		}, "I3"},
		{"a list lacks a result that was acknowledged", func(s *draft) {
			s.listedSteps("run-a", map[string]string{"s0": "v0"})
		}, "I3"},
		{"a list lacks the first of two results", func(s *draft) {
			s.listedSteps("run-a", map[string]string{"s1": "v1"})
		}, "I3"},
		{"a list has an end that is not that of the database", func(s *draft) {
			s.listed("run-a", history.Event{Status: "FAILED", Ended: 12})
		}, "I4"},
		{"a list has the end of a run that is not there", func(s *draft) {
			s.listed("run-x", history.Event{Status: "FAILED", Ended: 12})
		}, "I4"},
		{"a list has another time of an end", func(s *draft) {
			s.listed("run-a", history.Event{Status: "COMPLETED", Ended: 11})
		}, "I4"},
		{"a list has another reason for an end", func(s *draft) {
			s.listed("run-c", history.Event{Status: "FAILED", Message: "else", Ended: 13})
		}, "I4"},
		{"a list has another code of an end", func(s *draft) {
			s.listed("run-a", history.Event{Status: "COMPLETED", Code: "TIMEOUT", Ended: 12})
		}, "I4"},
		{"a list has a run open that had ended", func(s *draft) {
			s.listed("run-a", history.Event{Status: "RUNNING"})
		}, "I4"},
		{"a list has a run open that was cancelled", func(s *draft) {
			s.listed("run-b", history.Event{Status: "PENDING"})
		}, "I4"},
		{"an acknowledged end is not that of the database", func(s *draft) { s.Dump.Runs[0].Output = "else" }, "I4"},
		{"a cancelled run is completed", func(s *draft) { s.Dump.Runs[1].Status = "COMPLETED" }, "I4"},
		{"an acknowledged end was another's", func(s *draft) { s.Dump.Runs[0].Status = "FAILED" }, "I4"},
		{"a run that ended is not there", func(s *draft) { s.Dump.Runs = s.Dump.Runs[1:] }, "I4"},
		{"a run that failed is cancelled", func(s *draft) {
			s.Dump.Runs[2].Status, s.Dump.Runs[2].OnFailure = "CANCELLED", ""
		}, "I4"},
		{"a run was seen to end that has not", func(s *draft) {
			s.tell(history.Event{Op: history.Observe, Run: "run-b", Status: "TERMINATED", Answer: "terminated"})
		}, "I4"},
		{"a run was seen with another result", func(s *draft) { s.last(history.Observe).Value = "else" }, "I4"},
		{"an end was seen in two ways", func(s *draft) { s.last(history.Observe).Answer = "completed at one" }, "I4"},
		{"an end was seen with two codes", func(s *draft) { s.last(history.Observe).Code = "TIMEOUT" }, "I4"},
		{"an end was seen for two reasons", func(s *draft) { s.last(history.Observe).Message = "else" }, "I4"},
		{"an end was seen at two times", func(s *draft) { s.last(history.Observe).Ended++ }, "I4"},
		{"the database has another reason for an end than was seen", func(s *draft) {
			s.Dump.Runs[0].Message = "else"
		}, "I4"},
		{"the database has another time of an end than was seen", func(s *draft) { s.Dump.Runs[0].EndedAt++ }, "I4"},
		{"a run failed for another reason than was acknowledged", func(s *draft) {
			s.Dump.Runs[2].Message = "else"
		}, "I4"},
		{"a run was seen failed for another reason than acknowledged", func(s *draft) {
			s.tell(history.Event{Op: history.Observe, Run: "run-c", Status: "FAILED", Message: "else", Ended: 13})
		}, "I4"},
		{"two leases write at the same time", func(s *draft) {
			s.tell(history.Event{Op: history.Complete, Run: "run-a", Step: "x", Token: "1", Value: "v"})
		}, "I5"},
		{"a lease ends the run while another writes", func(s *draft) {
			s.tell(history.Event{Op: history.Release, Run: "run-a", Token: "1"})
		}, "I5"},
		{"a tick fired twice", func(s *draft) { s.Dump.Fires = append(s.Dump.Fires, s.Dump.Fires[0]) }, "I6"},
		{"a tick was missed and not counted", func(s *draft) { s.Dump.Schedules[0].Skipped = 0 }, "I6"},
		{"a tick fired that is none", func(s *draft) { s.Dump.Fires[0].Tick++ }, "I6"},
		{"the first tick was missed and not counted", func(s *draft) {
			s.Dump.Schedules[0].Fired, s.Dump.Fires, s.Dump.Runs[4].Schedule = 1, s.Dump.Fires[1:], "other"
		}, "I6"},
		{"the last ticks were missed and not counted", func(s *draft) {
			s.Dump.Schedules[0].NextFire += 5 * second
		}, "I6"},
		{"more ticks are counted as skipped than were missed", func(s *draft) { s.Dump.Schedules[0].Skipped++ }, "I6"},
		{"more runs are counted than fired", func(s *draft) { s.Dump.Schedules[0].Fired++ }, "I6"},
		{"a tick fired that is yet to come", func(s *draft) {
			s.Dump.Schedules[0].NextFire, s.Dump.Schedules[0].Skipped = 15*second, 1
		}, "I6"},
		{"a schedule has come to its end", func(s *draft) { s.Dump.Schedules[0].NextFire = 0 }, "I6"},
		{"a schedule has no tick at all", func(s *draft) {
			s.Dump.Schedules = append(s.Dump.Schedules, Schedule{ID: "x", Every: 5})
		}, "I6"},
		{"a tick has no run", func(s *draft) { s.Dump.Fires[0].Run = "x" }, "I6"},
		{"a tick has another schedule's run", func(s *draft) {
			s.Dump.Fires[0].Run = "run-h"
			s.Dump.Runs[3].Schedule = "other"
		}, "I6"},
		{"two ticks have the same run", func(s *draft) { s.Dump.Fires[0].Run = "run-2" }, "I6"},
		{"a tick has two runs", func(s *draft) {
			s.Dump.Runs = append(s.Dump.Runs, Run{ID: "x", Schedule: "s", Status: "COMPLETED", Attempts: 1})
		}, "I6"},
		{"a run is stuck", func(s *draft) { s.Dump.Runs[5].Status = "SLEEPING" }, "I7"},
		{"a lost worker counted as a failure", func(s *draft) { s.Dump.Runs[0].Attempts = 3 }, "I8"},
		{"a failure was not counted", func(s *draft) { s.Dump.Runs[0].Attempts = 1 }, "I8"},
		{"a failure of the run was not counted", func(s *draft) {
			s.tell(history.Event{Op: history.EndBadly, Run: "run-b", Token: "5", Status: "PENDING"})
		}, "I8"},
		{"a run failed for its lost workers too late", func(s *draft) {
			s.Dump.Runs[2].Crashed, s.Dump.Runs[2].LeaseLosses = true, 11
		}, "I8"},
		{"a run failed for its lost workers too soon", func(s *draft) {
			s.Dump.Runs[2].Crashed, s.Dump.Runs[2].LeaseLosses = true, 9
		}, "I8"},
		{"a recorded step ran again", func(s *draft) {
			s.tell(history.Event{Op: history.CodeBegins, Run: "run-a", Step: "s0", Token: "3", Proc: "w2"})
		}, "I9"},
		{"a step ran again under a lease that came after its result", func(s *draft) {
			s.claim("3").Steps = nil
			s.tell(history.Event{Op: history.CodeBegins, Run: "run-a", Step: "s0", Token: "3", Proc: "w2"})
		}, "I9"},
		{"a sleep ended early", func(s *draft) {
			s.last(history.Claim).Woken = true
			s.last(history.Claim).Early = 1
		}, "I10"},
		{"a failed run has no handler", func(s *draft) {
			s.Dump.Runs[3].FailedRun, s.Dump.Runs[3].Schedule = "", "s"
		}, "I11"},
		{"a run that ran out of time has no handler", func(s *draft) {
			s.Dump.Runs[2].Status, s.Dump.Runs[3].FailedRun, s.Dump.Runs[3].Schedule = "TIMED_OUT", "", "other"
		}, "I11"},
		{"a run that did not fail has a handler", func(s *draft) { s.Dump.Runs[4].FailedRun = "run-a" }, "I11"},
		{"a run that has none has a handler", func(s *draft) { s.Dump.Runs[2].OnFailure = "" }, "I11"},
		{"a run that is not there has a handler", func(s *draft) { s.Dump.Runs[4].FailedRun = "x" }, "I11"},
		{"a handler has a handler", func(s *draft) {
			s.Dump.Runs[3].Status, s.Dump.Runs[3].OnFailure, s.Dump.Runs[4].FailedRun = "FAILED", "h", "run-h"
		}, "I11"},
		{"a failed run has two handlers", func(s *draft) { s.Dump.Runs[4].FailedRun = "run-c" }, "I11"},
		{"one request has two answers", func(s *draft) { s.Events[3].Run = "run-b" }, "I12"},
		{"one request has two runs", func(s *draft) { s.Dump.Runs[4].Request = "a" }, "I12"},
		{"a lease is left over", func(s *draft) { s.Dump.Leases = []Lease{{Run: "run-a"}} }, "I13"},
		{"a lease has no run", func(s *draft) { s.Dump.Leases = []Lease{{Run: "x"}} }, "I13"},
		{"a run is running without a lease", func(s *draft) { s.Dump.Runs[5].Status = "RUNNING" }, "I13"},
		{"a run has two leases", func(s *draft) {
			s.Dump.Runs[5].Status = "RUNNING"
			s.Dump.Leases = []Lease{{Run: "run-2", Token: "1"}, {Run: "run-2", Token: "2"}}
		}, "I13"},
		{"a step has no run", func(s *draft) { s.Dump.Steps = append(s.Dump.Steps, Step{Run: "x", Name: "s"}) }, "I13"},
		{"the server's own check finds something", func(s *draft) { s.Dump.Unsound = []string{"x"} }, "I13"},
		{"a claim misses a result that was acknowledged", func(s *draft) {
			s.claim("4").Steps = map[string]string{"s0": "v0"}
		}, "LIN"},
		{"a late write counted", func(s *draft) { e := s.refusedWrite(); e.Outcome, e.Code = history.OK, "" }, "LIN"},
		{"a result was overwritten by the same lease", func(s *draft) {
			e := *s.find(history.Complete)
			e.Value = "else"
			s.Events = slices.Insert(s.Events, slices.Index(ops(s), history.Complete)+1, e)
		}, "LIN"},
		{"a cancelled run went on", func(s *draft) {
			e := s.last(history.End)
			e.Outcome, e.Code = history.OK, ""
		}, "LIN"},
		{"an ended run was handed out", func(s *draft) {
			s.tell(history.Event{Op: history.Claim, Run: "run-c", Token: "9"})
		}, "LIN"},
		{"a token was handed out twice", func(s *draft) { s.claim("2").Token = "1" }, "LIN"},
		{"an acknowledged start could not be found", func(s *draft) {
			s.tell(history.Event{Op: history.Cancel, Run: "run-a", Outcome: history.Refused, Code: "NOT_FOUND"})
		}, "LIN"},
		{"a write counted after its lease was said to be lost", func(s *draft) {
			s.tell(history.Event{Op: history.Claim, Run: "run-d", Token: "7"})
			s.tell(history.Event{Op: history.Complete, Run: "run-d", Step: "x", Token: "7", Value: "v",
				Outcome: history.Refused, Code: "LEASE_LOST"})
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
