package model

import (
	"context"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Latest holds the latest run of each schedule on the screen. It loads one at a time, and again
// only if the counts of the schedule changed.
type Latest struct {
	base
	wanted []*kagziv1.WorkflowSchedule
	known  map[string]latestRun
	drop   func() // cancels the load in progress
}

// latestRun is the newest run of a schedule, or nil, when its counts were as given.
type latestRun struct {
	run               *kagziv1.Workflow
	total, ok, failed int64
}

// NewLatest returns an empty model; View says what to load.
func NewLatest(l *Link) *Latest {
	n := &Latest{known: map[string]latestRun{}}
	n.base = join(l, n.heard)
	return n
}

// View sets the schedules that are on the screen.
func (n *Latest) View(schedules []*kagziv1.WorkflowSchedule) {
	n.wanted = schedules
	n.next()
}

// Run returns the latest run of a schedule; nil if there is none or it is not loaded yet.
func (n *Latest) Run(scheduleID string) *kagziv1.Workflow { return n.known[scheduleID].run }

func (n *Latest) heard(c Change) {
	for _, r := range c.Runs { // ending a run by hand changes no count
		if known, ok := n.known[r.GetScheduleId()]; ok && known.run.GetRunId() == r.GetRunId() {
			known.run = r
			n.known[r.GetScheduleId()] = known
		}
	}
	switch {
	case c.Moved:
		if n.drop != nil {
			n.drop()
			n.drop = nil
		}
		n.wanted, n.known = nil, map[string]latestRun{}
	case c.Back, c.Beat:
		n.next()
	}
}

// next loads the first run that is wanted and not known, unless a load is in progress.
func (n *Latest) next() {
	if n.drop != nil || n.link.Frozen() || !n.link.Ready() {
		return
	}
	for _, s := range n.wanted {
		id := s.GetScheduleId()
		now := latestRun{total: s.GetTotalRuns(), ok: s.GetSuccessfulRuns(), failed: s.GetFailedRuns()}
		old, known := n.known[id]
		if s.GetTotalRuns() == 0 || known && old.total == now.total && old.ok == now.ok && old.failed == now.failed {
			continue
		}
		n.read(id, now)
		return
	}
}

// read loads the newest run of a schedule. A failed load is retried after the next message of the
// stream.
func (n *Latest) read(id string, as latestRun) {
	namespace := n.link.Namespace()
	n.drop = ask(n.tasks, func(ctx context.Context) (*kagziv1.ListScheduleRunsResponse, error) {
		return n.link.api.ListScheduleRuns(ctx, &kagziv1.ListScheduleRunsRequest{
			Namespace: namespace, ScheduleId: id, Page: &kagziv1.PageRequest{PageSize: 1}})
	}, func(answer *kagziv1.ListScheduleRunsResponse, err error) {
		n.drop = nil
		if err != nil {
			return
		}
		if runs := answer.GetRuns(); len(runs) > 0 {
			as.run = runs[0]
		}
		n.known[id] = as
		n.change()
		n.next()
	})
}
