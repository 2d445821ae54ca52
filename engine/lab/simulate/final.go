package simulate

import (
	"strings"
	"time"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
)

// final compares the final state of everything with what clients and workers were told.
func (w *simulation) final() {
	runs := w.db.Runs()
	w.acks.mu.Lock()
	defer w.acks.mu.Unlock()
	byID := map[string]*memory.Run{}
	for _, r := range runs {
		byID[r.ID.String()] = r
	}
	for _, r := range runs {
		w.report.note("runs " + r.Status.String())
		w.report.check(7, r.Status.Ended(),
			"run %s is %s %s after everything has healed, due at %s, waiting for %q, paused %t, gated %t", r.ID,
			r.Status, healing,
			r.AvailableAt, r.WaitingFor, r.Paused, r.Gated)
		if end, told := w.acks.ends[r.ID.String()]; told {
			output := strings.Trim(string(r.Output.Data), `"`)
			if r.Status != engine.RunCompleted {
				output = ""
			}
			is := endText(r.Status.String(), output, r.FinishedAt)
			w.report.told(4, is == end, "run %s was said to be %s, and is %s", r.ID, end, is)
		}
		w.asked(r)
	}
	w.finalStarts(byID)
	w.finalOrders(byID)
	w.finalHandlers(runs)
	w.finalSchedules(runs)
}

// asked requires that a client asked for the run.
func (w *simulation) asked(r *memory.Run) {
	why := r.RequestID != "" || !r.ParentRunID.IsZero() || r.ScheduleID != "" || !r.FailedRunID.IsZero() ||
		!r.RetriedFrom.IsZero() || !r.ContinuedFrom.IsZero()
	w.report.check(1, why, "nobody asked for run %s", r.ID)
}

func (w *simulation) finalStarts(byID map[string]*memory.Run) {
	requests := map[string]string{}
	for id, r := range byID {
		if r.RequestID != "" {
			other, twice := requests[r.RequestID]
			w.report.check(12, !twice, "request %s made run %s and run %s", r.RequestID, id, other)
			requests[r.RequestID] = id
		}
	}
	for request, id := range w.acks.starts {
		r := byID[id]
		w.report.told(1, r != nil, "request %s was answered with run %s, which is not there", request, id)
	}
	for i := range w.plan.Starts {
		s := &w.plan.Starts[i]
		if r := byID[w.acks.starts[s.Name]]; r != nil && r.RequestID == s.Name {
			w.report.told(1, r.Type == programType && r.Queue == "default" && r.ExternalID == s.External &&
				r.ConcurrencyKey == s.Key && (r.ConcurrencyScope == engine.ScopeOpen) == s.Open,
				"run %s is not what request %s asked for", r.ID, s.Name)
		}
	}
}

func (w *simulation) finalOrders(byID map[string]*memory.Run) {
	want := map[string]engine.RunStatus{"cancel": engine.RunCancelled, "terminate": engine.RunTerminated}
	for _, o := range w.acks.orders {
		r := byID[o.run]
		if status, ends := want[o.do]; ends && r != nil {
			w.report.told(4, r.Status == status, "%s of run %s was acknowledged, and it is %s", o.do, r.ID, r.Status)
		}
	}
	for id, run := range w.acks.signals {
		times := 0
		for r := byID[run]; r != nil && times == 0; r = byID[r.ContinuedAs.String()] {
			// a signal follows a run that continued as new
			for _, s := range r.Signals {
				if s.SignalID == id {
					times++
				}
			}
		}
		w.report.told(2, byID[run] == nil || times == 1, "signal %s to run %s was acknowledged, and is there %d times",
			id, run, times)
	}
}

func (w *simulation) finalHandlers(runs []*memory.Run) {
	handlers := map[engine.ID]int{}
	for _, r := range runs {
		if !r.FailedRunID.IsZero() {
			handlers[r.FailedRunID]++
			w.report.check(11, r.OnFailureWorkflow == "", "handler %s has a handler", r.ID)
		}
	}
	for _, r := range runs {
		want := 0
		if r.OnFailureWorkflow != "" && (r.Status == engine.RunFailed || r.Status == engine.RunTimedOut) {
			want = 1
		}
		w.report.check(11, handlers[r.ID] == want, "run %s is %s and has %d handlers, want %d", r.ID, r.Status,
			handlers[r.ID], want)
	}
}

// finalSchedules counts the ticks of each schedule independently.
func (w *simulation) finalSchedules(runs []*memory.Run) {
	fires := w.db.Fires()
	byTick := map[memory.Fire]int{}
	for _, r := range runs {
		if id, err := engine.ParseID(r.ScheduleID); err == nil {
			f := memory.Fire{Schedule: id, Tick: r.ScheduledAt}
			byTick[f]++
			w.report.check(6, fires[f] == r.ID, "run %s says that it was fired by tick %s, whose record says otherwise",
				r.ID, r.ScheduledAt)
		}
	}
	for _, s := range w.db.Schedules() {
		plan := w.acks.schedules[s.ID.String()]
		if plan == nil {
			continue
		}
		every := time.Duration(plan.Every) * time.Second
		var want int64
		for tick := s.CreatedAt.Truncate(every).Add(every); tick.Before(s.NextFireAt); tick = tick.Add(every) {
			want++
		}
		var fired int64
		for f := range fires {
			if f.Schedule != s.ID {
				continue
			}
			fired++
			w.report.check(6, f.Tick.Truncate(every).Equal(f.Tick),
				"schedule %s fired at %s, which is none of its ticks", s.ID, f.Tick)
			w.report.check(6, byTick[f] == 1, "tick %s of schedule %s has %d runs", f.Tick, s.ID, byTick[f])
		}
		var waiting int64
		if !s.Buffered.IsZero() {
			waiting = 1
		}
		w.report.check(6, fired+s.Skipped+waiting == want,
			"schedule %s had %d ticks until %s: %d fired, %d were skipped, %d waits", s.ID, want, s.NextFireAt, fired,
			s.Skipped, waiting)
		w.report.check(6, s.Overlap != engine.OverlapAllow ||
			s.Skipped == 0, "schedule %s skipped %d ticks, although it may not", s.ID, s.Skipped)
		w.report.check(6, s.Fired == fired, "schedule %s counts %d runs and has %d", s.ID, s.Fired, fired)
	}
}
