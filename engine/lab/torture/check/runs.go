package check

import (
	"fmt"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// attemptsCountFailures is I8.
func (i *indexed) attemptsCountFailures() Line {
	l := Line{ID: "I8", Of: "runs' attempts"}
	for _, r := range i.Dump.Runs {
		type failure struct {
			token, step string
			op          history.Op
		}
		sure, open := map[failure]bool{}, map[failure]bool{}
		for _, e := range i.byRun[r.ID] {
			f := failure{e.Token, e.Step, e.Op}
			switch {
			case e.Op != history.Fail && e.Op != history.EndBadly:
			case e.Outcome == history.OK && e.Status == "PENDING":
				sure[f] = true
			case e.Outcome == history.Unknown:
				open[f] = true
			}
		}
		for f := range sure {
			delete(open, f)
		}
		l.Checked++
		if least, most := 1+len(sure), 1+len(sure)+len(open); !i.Lossy && (r.Attempts < least || r.Attempts > most) {
			l.violate("run %s has %d attempts, want %d to %d", r.ID, r.Attempts, least, most)
		}
	}
	i.lossesCountWorkers(&l)
	return l
}

// recordedStepsRunNoMore is I9.
func (i *indexed) recordedStepsRunNoMore() Line {
	l := Line{ID: "I9", Of: "executions of steps"}
	again := 0
	for run, events := range i.byRun {
		claims := map[string]history.Event{}
		recorded := map[string]int64{} // step → when it was first acknowledged
		begun := map[string]bool{}
		for _, e := range events {
			if e.Op == history.Claim {
				claims[e.Token] = e
			}
			if at, ok := recorded[e.Step]; e.Op == history.Complete && e.Outcome == history.OK &&
				(!ok || e.Returned < at) {
				recorded[e.Step] = e.Returned
			}
		}
		for _, e := range events {
			if e.Op != history.CodeBegins {
				continue
			}
			l.Checked++
			if begun[e.Step] {
				again++
			}
			begun[e.Step] = true
			claim := claims[e.Token]
			_, known := claim.Steps[e.Step]
			at, acknowledged := recorded[e.Step]
			if known || acknowledged && at < claim.Invoked {
				l.violate("step %s of run %s ran again (%s) after its result was recorded", e.Step, run, e.Proc)
			}
		}
	}
	if l.Checked > 0 {
		l.Note = fmt.Sprintf("; %.1f of 1,000 ran more than once, unrecorded or failed",
			1000*float64(again)/float64(l.Checked))
	}
	return l
}

// sleepsEndInTime is I10.
func (i *indexed) sleepsEndInTime() Line {
	l := Line{ID: "I10", Of: "sleeps"}
	var latest int64
	i.acknowledged(history.Claim, func(e history.Event) {
		if !e.Woken {
			return
		}
		l.Checked++
		if e.Early > 0 {
			l.violate("run %s was handed out %d µs before its sleep ended", e.Run, e.Early/1000)
		}
		latest = max(latest, -e.Early)
	})
	if l.Checked > 0 {
		l.Note = fmt.Sprintf("; the latest by %d ms, over all replays", latest/1e6)
	}
	return l
}

// failuresHaveOneHandler is I11.
func (i *indexed) failuresHaveOneHandler() Line {
	l := Line{ID: "I11", Of: "failed runs with a handler"}
	handlers := map[string]int{}
	for _, r := range i.Dump.Runs {
		if r.FailedRun == "" {
			continue
		}
		handlers[r.FailedRun]++
		if failed := i.runs[r.FailedRun]; failed == nil || failed.FailedRun != "" {
			l.violate("run %s handles %s, which is no run that has one", r.ID, r.FailedRun)
		}
	}
	for _, r := range i.Dump.Runs {
		want := 0
		if r.OnFailure != "" && (r.Status == "FAILED" || r.Status == "TIMED_OUT") {
			l.Checked++
			want = 1
		}
		if handlers[r.ID] != want {
			l.violate("run %s (%s) has %d handlers, want %d", r.ID, r.Status, handlers[r.ID], want)
		}
	}
	return l
}

// requestsHaveOneRun is I12.
func (i *indexed) requestsHaveOneRun() Line {
	l := Line{ID: "I12", Of: "answers to starts"}
	answers, rows := map[string]string{}, map[string]int{}
	i.acknowledged(history.Start, func(e history.Event) {
		l.Checked++
		if was, ok := answers[e.Request]; ok && was != e.Run && !i.Lossy {
			l.violate("request %s was answered with %s and with %s", e.Request, was, e.Run)
		}
		answers[e.Request] = e.Run
	})
	for _, r := range i.Dump.Runs {
		if r.Request != "" {
			rows[r.Request]++
		}
	}
	for request, n := range rows {
		if n > 1 {
			l.violate("request %s has %d runs", request, n)
		}
	}
	return l
}

// rowsBelongTogether is I13.
func (i *indexed) rowsBelongTogether() Line {
	l := Line{ID: "I13", Of: "rows", Checked: i.Dump.Rows}
	l.Violations = append(l.Violations, i.Dump.Unsound...)
	held := map[string]int{}
	for _, lease := range i.Dump.Leases {
		held[lease.Run]++
		if r := i.runs[lease.Run]; r == nil || r.Status != "RUNNING" {
			l.violate("run %s has a lease and is not running", lease.Run)
		}
	}
	for _, r := range i.Dump.Runs {
		if r.Status == "RUNNING" && held[r.ID] != 1 {
			l.violate("run %s is running with %d leases", r.ID, held[r.ID])
		}
	}
	for _, s := range i.Dump.Steps {
		if i.runs[s.Run] == nil {
			l.violate("step %s belongs to run %s, which is not there", s.Name, s.Run)
		}
	}
	return l
}
