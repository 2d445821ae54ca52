package agqload

import (
	"bufio"
	"fmt"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// tale is a history in which every operation takes a tick, and the database at its end.
type tale struct {
	events []history.Event
	jobs   []Job
	clock  int64
}

func (h *tale) add(proc string, e history.Event) string {
	h.clock += 2
	e.Proc, e.Seq, e.Invoked = proc, int64(len(h.events)+1), h.clock
	if e.Outcome != history.Unknown {
		e.Returned = h.clock + 1
	}
	h.events = append(h.events, e)
	return tokenOf(e)
}

func (h *tale) submit(action string, outcome history.Outcome, jobs ...string) {
	words := make([]string, len(jobs))
	for n := range jobs {
		words[n] = fmt.Sprintf("%s/%d", action, n+1)
	}
	e := history.Event{Op: opSubmit, Request: action, Value: strings.Join(words, " "), Outcome: outcome}
	if outcome == history.OK {
		e.Run = strings.Join(jobs, " ")
	}
	h.add("client", e)
	for n, job := range jobs {
		h.jobs = append(h.jobs, Job{ID: job, Status: "COMPLETED",
			Input: []byte(fmt.Sprintf(`{"action_id":%q,"input":{"word":%q}}`, action, words[n]))})
	}
}

func (h *tale) pop(worker, job string) string {
	return h.add(worker, history.Event{Op: opPop, Run: job, Outcome: history.OK})
}

func (h *tale) report(worker, token, job, status, value string, outcome history.Outcome) {
	h.add(worker, history.Event{Op: opReport, Run: job, Token: token, Status: status, Value: value, Outcome: outcome})
}

// result sets what the database has of a job.
func (h *tale) result(job, worker, text string) {
	for n := range h.jobs {
		if h.jobs[n].ID == job {
			h.jobs[n].Output = []byte(fmt.Sprintf(`{"worker_id":%q,"stdout":%q}`, worker, text))
		}
	}
}

// good is a history without a violation: every kind of conduct, and each fault that an answer can meet.
func good() *tale {
	h := &tale{}
	h.submit("a", history.Unknown, "j1", "j2")
	h.add("client", history.Event{Op: opSubmit, Request: "a", Value: "a/1 a/2", Status: alreadyExists, Outcome: history.OK})
	h.submit("b", history.OK, "j3")

	// lost by a second pop, and reported late
	one := h.pop("w1", "j1")
	two := h.pop("w1", "j2")
	h.report("w1", one, "j1", statusCompleted, "late", history.Refused)
	// the answer is lost, then the report is repeated over another connection, and once more with another output
	h.report("w1", two, "j2", statusCompleted, "x", history.Unknown)
	h.report("w1", two, "j2", statusCompleted, "x", history.OK)
	h.report("w1", two, "j2", statusCompleted, "y", history.OK)
	h.result("j2", "w1", "x")
	// a failure counts once
	one = h.pop("w2", "j1")
	h.report("w2", one, "j1", statusFailed, "f", history.OK)
	h.report("w2", one, "j1", statusFailed, "f", history.OK)
	h.report("w2", one, "j1", statusCompleted, "f", history.Refused)
	h.jobs[0].Failures = 1
	// unregistered
	three := h.pop("w3", "j3")
	h.add("w3", history.Event{Op: opLeave, Outcome: history.OK})
	h.report("w3", three, "j3", statusCompleted, "l", history.Refused)
	three = h.pop("w1", "j3")
	h.report("w1", three, "j3", statusCompleted, "z", history.OK)
	h.result("j3", "w1", "z")
	one = h.pop("w3", "j1")
	h.report("w3", one, "j1", statusCompleted, "v", history.OK)
	h.result("j1", "w3", "v")
	return h
}

func TestInvariants(t *testing.T) {
	for name, c := range map[string]struct {
		id     string // that is violated; empty: none
		change func(h *tale)
	}{
		"nothing wrong":                {"", func(*tale) {}},
		"an acknowledged job is gone":  {"Q1", func(h *tale) { h.jobs = h.jobs[:2] }},
		"half of an action is there":   {"Q1", func(h *tale) { h.submit("c", history.Unknown, "j4", "j5"); h.drop("j4") }},
		"a job that nobody submitted":  {"Q1", func(h *tale) { h.jobs = append(h.jobs, Job{ID: "j9", Status: "COMPLETED"}) }},
		"a job is there twice":         {"Q1", func(h *tale) { h.jobs = append(h.jobs, h.jobs[0]) }},
		"the repetition's output won":  {"Q2", func(h *tale) { h.result("j2", "w1", "y") }},
		"another worker's result":      {"Q2", func(h *tale) { h.result("j2", "w2", "x") }},
		"an acknowledged end is lost":  {"Q2", func(h *tale) { h.jobs[1].Status = "PENDING" }},
		"completed under two claims":   {"Q3", func(h *tale) { h.report("w4", h.pop("w4", "j1"), "j1", statusCompleted, "v", history.OK) }},
		"a failure counted twice":      {"Q3", func(h *tale) { h.jobs[0].Failures = 2 }},
		"a failure did not count":      {"Q3", func(h *tale) { h.jobs[0].Failures = 0 }},
		"a repetition is refused":      {"Q3", func(h *tale) { h.report("w1", "w1/5", "j2", statusCompleted, "x", history.Refused) }},
		"late after another's pop":     {"Q4", func(h *tale) { h.report("w1", "w1/4", "j1", statusCompleted, "v", history.OK) }},
		"late after its own pop":       {"Q4", func(h *tale) { h.count("late") }},
		"late after it unregistered":   {"Q4", func(h *tale) { h.count("l") }},
		"completed after it failed":    {"Q4", func(h *tale) { h.countStatus("f", statusCompleted) }},
		"completed without a report":   {"Q5", func(h *tale) { h.submit("c", history.OK, "j4") }},
		"a result that nobody has":     {"Q5", func(h *tale) { h.result("j1", "w3", "other") }},
		"a job has not ended":          {"Q6", func(h *tale) { h.submit("c", history.OK, "j4"); h.jobs[3].Status = "RUNNING" }},
		"a job waited for a lease":     {"Q6", func(h *tale) { h.jobs[2].Losses = 1 }},
		"a refused action is there":    {"Q1", func(h *tale) { h.submit("c", history.OK, "j4"); h.jobs[3].Input = []byte("{}") }},
		"another input than submitted": {"Q1", func(h *tale) { h.jobs[2].Input = []byte(`{"action_id":"b","input":{"word":"x"}}`) }},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			c.change(h)
			lines := Invariants(h.events, h.jobs)
			found := c.id == "" && check.Violated(lines) == 0
			for _, l := range lines {
				found = found || l.ID == c.id && len(l.Violations) > 0
				if c.id == "" && l.Checked == 0 {
					t.Errorf("%s checks nothing", l.ID)
				}
			}
			if !found {
				t.Errorf("%q is not violated: %v", c.id, lines)
			}
		})
	}
}

func (h *tale) drop(job string) {
	for n := range h.jobs {
		if h.jobs[n].ID == job {
			h.jobs = append(h.jobs[:n], h.jobs[n+1:]...)
			return
		}
	}
}

// count makes the refused report of an output count.
func (h *tale) count(value string) { h.countStatus(value, statusCompleted) }

func (h *tale) countStatus(value, status string) {
	for n := range h.events {
		if e := &h.events[n]; e.Op == opReport && e.Value == value && e.Status == status {
			e.Outcome = history.OK
		}
	}
}

func TestWhatALoadMet(t *testing.T) {
	got := MetBy(good().events)
	want := Met{Actions: 2, Exists: 1, Jobs: 6, Unknown: 1, Repeated: 2, RefusedLate: 3, Failed: 1}
	if got != want {
		t.Errorf("the load met %+v, want %+v", got, want)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, text := range []string{"", "x\r\n", "$5\r\nab", "$x\r\n", "$-2\r\n", "*1\r\n", "+OK\n", "$99999999999\r\n"} {
		if a, err := readAnswer(readerOf(text)); err == nil {
			t.Errorf("%q is read as %+v", text, a)
		}
	}
	a, err := readAnswer(readerOf("*2\r\n$2\r\nab\r\n$-1\r\n"))
	if err != nil || len(a.items) != 2 || a.items[0].text != "ab" || !a.items[1].null {
		t.Errorf("an array is read as %+v, %v", a, err)
	}
}

func readerOf(text string) *bufio.Reader { return bufio.NewReader(strings.NewReader(text)) }
