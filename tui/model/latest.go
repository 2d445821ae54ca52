package model

import (
	"context"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Latest is how the latest run of each schedule went, for those that somebody looks at. One is
// asked about at a time, and again only when the counts of its schedule are others.
type Latest struct {
	base
	wanted []*kagziv1.WorkflowSchedule
	known  map[string]latestRun
	drop   func() // of the reading under way
}

// latestRun is the newest run of a schedule, or nil, as of the counts.
type latestRun struct {
	run               *kagziv1.Workflow
	total, ok, failed int64
}

// NewLatest knows nothing until something is looked at.
func NewLatest(l *Link) *Latest {
	n := &Latest{known: map[string]latestRun{}}
	n.base = join(l, n.heard)
	return n
}

// View says which schedules are on the screen.
func (n *Latest) View(schedules []*kagziv1.WorkflowSchedule) {
	n.wanted = schedules
	n.next()
}

// Run is the latest run of a schedule; nil when it has none or it was not read yet.
func (n *Latest) Run(scheduleID string) *kagziv1.Workflow { return n.known[scheduleID].run }

func (n *Latest) heard(c Change) {
	for _, r := range c.Runs { // one that was stopped by hand changes no count
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

// next reads the first that is wanted and not known, if nothing is being read.
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

// read asks for the newest run of a schedule. What could not be read is tried again with the next sign of life.
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
