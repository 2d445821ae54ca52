package agqload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// Job is a job as the database has it at the end.
type Job struct {
	ID       string
	Status   string // of its run
	Input    []byte
	Output   []byte
	Losses   int // of its lease
	Failures int // of its step
}

// Invariants compares what the workers and clients saw with the jobs that the database holds at the end.
func Invariants(events []history.Event, jobs []Job) []check.Line {
	c := &checked{events: events, jobs: map[string]*Job{}, actions: map[string][]*Job{}, claims: map[string]*claimed{},
		pops: map[string][]history.Event{}, leaves: map[string][]history.Event{}}
	for n := range jobs {
		c.jobs[jobs[n].ID] = &jobs[n]
		in := inputOf(&jobs[n])
		c.actions[in.Action] = append(c.actions[in.Action], &jobs[n])
	}
	for _, e := range events {
		switch {
		case e.Op == opPop && e.Outcome == history.OK:
			c.claims[tokenOf(e)] = &claimed{worker: e.Proc, pop: e}
			c.pops[e.Proc] = append(c.pops[e.Proc], e)
		case e.Op == opLeave && e.Outcome == history.OK:
			c.leaves[e.Proc] = append(c.leaves[e.Proc], e)
		}
	}
	for _, e := range events {
		if e.Op == opReport && c.claims[e.Token] != nil {
			c.claims[e.Token].reports = append(c.claims[e.Token].reports, e)
		}
	}
	for _, one := range c.claims {
		slices.SortFunc(one.reports, func(a, b history.Event) int { return cmp.Compare(a.Invoked, b.Invoked) })
	}
	return []check.Line{c.submissions(), c.results(), c.countOnce(), c.lateReports(), c.reported(), c.ends()}
}

// checked is the history with its indexes.
type checked struct {
	events  []history.Event
	jobs    map[string]*Job
	actions map[string][]*Job
	claims  map[string]*claimed
	pops    map[string][]history.Event // by worker: those that got a job
	leaves  map[string][]history.Event // by worker
}

// claimed is a claim with its reports.
type claimed struct {
	worker  string
	pop     history.Event
	reports []history.Event
}

// counted returns the first report of a status that was acknowledged; nil: none was.
func (c *claimed) counted(status string) *history.Event {
	for n := range c.reports {
		if r := &c.reports[n]; r.Outcome == history.OK && r.Status == status {
			return r
		}
	}
	return nil
}

// may says whether a report of a status may have counted.
func (c *claimed) may(status string) bool {
	return slices.ContainsFunc(c.reports, func(r history.Event) bool {
		return r.Status == status && r.Outcome != history.Refused
	})
}

type jobInput struct {
	Action string `json:"action_id"`
	Input  struct {
		Word string `json:"word"`
	} `json:"input"`
}

func inputOf(j *Job) (in jobInput) {
	_ = json.Unmarshal(j.Input, &in) // what cannot be read belongs to no action, and is missed there
	return in
}

// outputOf returns the worker and the text of a job's result.
func outputOf(j *Job) (worker, text string) {
	var out struct {
		Worker string `json:"worker_id"`
		Stdout string `json:"stdout"`
		Tasks  []struct {
			Stdout string `json:"stdout"`
		} `json:"task_results"`
	}
	_ = json.Unmarshal(j.Output, &out) // what cannot be read is nobody's
	if text = out.Stdout; len(out.Tasks) > 0 {
		text = out.Tasks[0].Stdout
	}
	return out.Worker, text
}

func violate(l *check.Line, format string, args ...any) {
	l.Violations = append(l.Violations, fmt.Sprintf(format, args...))
}

// submissions is Q1: an acknowledged submission is there with all its jobs, each once; one that was not
// acknowledged is there with all of them, or not at all; and nothing else is there.
func (c *checked) submissions() check.Line {
	l := check.Line{ID: "Q1", Of: "submitted actions"}
	wanted := map[string]string{}
	for _, e := range c.events {
		if e.Op != opSubmit {
			continue
		}
		wanted[e.Request] = e.Value
		if e.Outcome != history.OK {
			continue
		}
		if len(c.actions[e.Request]) == 0 {
			violate(&l, "action %s was acknowledged and is not there", e.Request)
		}
		for job := range strings.FieldsSeq(e.Run) {
			if c.jobs[job] == nil {
				violate(&l, "job %s of action %s was acknowledged and is not there", job, e.Request)
			}
		}
	}
	l.Checked = len(wanted)
	for action, jobs := range c.actions {
		words := make([]string, len(jobs))
		for n, j := range jobs {
			words[n] = inputOf(j).Input.Word
		}
		slices.Sort(words)
		want, known := wanted[action]
		if got := strings.Join(words, " "); !known || got != want {
			violate(&l, "action %q has the inputs %q, want %q", action, got, want)
		}
	}
	return l
}

// results is Q2: a job's result is the one that was acknowledged.
func (c *checked) results() check.Line {
	l := check.Line{ID: "Q2", Of: "acknowledged results"}
	for _, one := range c.claims {
		r := one.counted(statusCompleted)
		if r == nil {
			continue
		}
		l.Checked++
		j := c.jobs[r.Run]
		if j == nil || j.Status != "COMPLETED" {
			violate(&l, "job %s was completed by %s, and is %+v", r.Run, one.worker, j)
			continue
		}
		// a report that may have counted before is repeated with the same output
		if worker, text := outputOf(j); worker != one.worker || text != r.Value {
			violate(&l, "job %s has the result %q of %s, but %q of %s was acknowledged", r.Run, text, worker, r.Value,
				one.worker)
		}
	}
	return l
}

// countOnce is Q3: at most one report completes a job, each failure counts once, and the repetition of a report
// that completed a job is acknowledged.
func (c *checked) countOnce() check.Line {
	l := check.Line{ID: "Q3", Of: "jobs with a report"}
	type counts struct {
		completed      []string
		failed, tried  int
		repeatsRefused int
	}
	by := map[string]*counts{}
	for token, one := range c.claims {
		n := by[one.pop.Run]
		if n == nil {
			n = &counts{}
			by[one.pop.Run] = n
		}
		if first := one.counted(statusCompleted); first != nil {
			n.completed = append(n.completed, token)
			for _, r := range one.reports {
				if r.Status == statusCompleted && r.Outcome == history.Refused && r.Invoked > first.Returned {
					n.repeatsRefused++
				}
			}
		}
		if one.counted(statusFailed) != nil {
			n.failed++
		}
		if one.may(statusFailed) {
			n.tried++
		}
	}
	for id, n := range by {
		l.Checked++
		if len(n.completed) > 1 {
			violate(&l, "job %s was completed under %d claims: %v", id, len(n.completed), n.completed)
		}
		if n.repeatsRefused > 0 {
			violate(&l, "job %s: %d repetitions of the report that completed it were refused", id, n.repeatsRefused)
		}
		if j := c.jobs[id]; j != nil && (j.Failures < n.failed || j.Failures > n.tried) {
			violate(&l, "job %s has %d failures, want %d to %d by its reports", id, j.Failures, n.failed, n.tried)
		}
	}
	return l
}

// lateReports is Q4: a report counts only while its worker holds the job.
func (c *checked) lateReports() check.Line {
	l := check.Line{ID: "Q4", Of: "reports under a claim that has ended"}
	for token, one := range c.claims {
		for n, r := range one.reports {
			why := c.endedBefore(one, one.reports[:n], &r)
			if why == "" {
				continue
			}
			l.Checked++
			if r.Outcome == history.OK {
				violate(&l, "job %s: %s of %s counted as %s although %s", r.Run, token, one.worker, r.Status, why)
			}
		}
	}
	return l
}

// endedBefore returns why a claim had ended before a report; empty: it may have been there. Repetitions of what
// may have counted are no late reports, until somebody else has got the job.
func (c *checked) endedBefore(one *claimed, earlier []history.Event, r *history.Event) string {
	within := func(e history.Event) bool { return e.Invoked > one.pop.Returned && e.Returned < r.Invoked }
	for worker, pops := range c.pops {
		for _, p := range pops {
			if worker != one.worker && p.Run == r.Run && within(p) {
				return worker + " has got it"
			}
		}
	}
	for _, e := range earlier {
		if e.Status == r.Status && e.Outcome != history.Refused {
			return ""
		}
	}
	for _, e := range earlier {
		if e.Status != r.Status && e.Outcome == history.OK {
			return "it had been reported as " + e.Status
		}
	}
	why := ""
	for _, p := range c.pops[one.worker] {
		switch {
		case !within(p):
		case p.Run == r.Run:
			return "" // it has it again
		default:
			why = "its worker, which may have one job, has popped again"
		}
	}
	if slices.ContainsFunc(c.leaves[one.worker], within) {
		why = "its worker had unregistered"
	}
	return why
}

// reported is Q5: no job is complete without a report, and its result is what that report said.
func (c *checked) reported() check.Line {
	l := check.Line{ID: "Q5", Of: "completed jobs"}
	type result struct{ job, worker, text string }
	said := map[result]bool{}
	for _, one := range c.claims {
		for _, r := range one.reports {
			if r.Status == statusCompleted && r.Outcome != history.Refused {
				said[result{r.Run, one.worker, r.Value}] = true
			}
		}
	}
	for id, j := range c.jobs {
		if j.Status != "COMPLETED" {
			continue
		}
		l.Checked++
		if worker, text := outputOf(j); !said[result{id, worker, text}] {
			violate(&l, "job %s is completed with %q of %q, which nobody reported", id, text, worker)
		}
	}
	return l
}

// ends is Q6: at the end every job has ended, and none had to wait for the end of a lease, because every worker
// came back.
func (c *checked) ends() check.Line {
	l := check.Line{ID: "Q6", Of: "jobs"}
	for id, j := range c.jobs {
		l.Checked++
		if j.Status != "COMPLETED" {
			violate(&l, "job %s of action %s is %s at the end", id, inputOf(j).Action, j.Status)
		}
		if j.Losses > 0 {
			violate(&l, "job %s waited for the end of %d leases", id, j.Losses)
		}
	}
	return l
}

// Met counts what a load met.
type Met struct {
	Actions, Exists  int // acknowledged submissions, and those that were found to be there when repeated
	Jobs             int // claims
	Unknown          int // reports without an answer
	Repeated         int // acknowledged reports after an acknowledged one of the same claim
	RefusedLate      int
	Failed, Unpopped int // acknowledged failures; pops without an answer
}

// MetBy counts what a history shows.
func MetBy(events []history.Event) (m Met) {
	counted := map[string]bool{}
	for _, e := range events {
		switch {
		case e.Op == opSubmit && e.Outcome == history.OK:
			m.Actions++
			if e.Status == alreadyExists {
				m.Exists++
			}
		case e.Op == opPop && e.Outcome == history.OK:
			m.Jobs++
		case e.Op == opPop && e.Outcome == history.Unknown:
			m.Unpopped++
		case e.Op != opReport:
		case e.Outcome == history.Unknown:
			m.Unknown++
		case e.Outcome == history.Refused:
			m.RefusedLate++
		case counted[e.Token+e.Status]:
			m.Repeated++
		default:
			counted[e.Token+e.Status] = true
			if e.Status == statusFailed {
				m.Failed++
			}
		}
	}
	return m
}

// String formats the counts for a table.
func (m Met) String() string {
	return fmt.Sprintf("%d actions (%d found when repeated), %d claims, %d pops and %d reports without an answer, "+
		"%d reports repeated, %d refused, %d failures", m.Actions, m.Exists, m.Jobs, m.Unpopped, m.Unknown, m.Repeated,
		m.RefusedLate, m.Failed)
}
