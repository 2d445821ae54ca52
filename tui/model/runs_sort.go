package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// sortMost limits how many of the newest runs are loaded to sort by anything but age.
const sortMost = 2000

// runOrders maps the columns that can be sorted to their comparison.
var runOrders = map[string]func(a, b *kagziv1.Workflow) int{
	"status":   by(func(r *kagziv1.Workflow) string { return render.RunStatus(r.GetStatus()) }),
	"type":     by((*kagziv1.Workflow).GetWorkflowType),
	"queue":    by((*kagziv1.Workflow).GetTaskQueue),
	"worker":   by((*kagziv1.Workflow).GetWorkerId),
	"external": by((*kagziv1.Workflow).GetExternalId),
	"id":       by(shownID),
	"run":      by((*kagziv1.Workflow).GetRunId),
	"version":  by((*kagziv1.Workflow).GetVersion),
	"parent":   by((*kagziv1.Workflow).GetParentRunId),
	"schedule": by((*kagziv1.Workflow).GetScheduleId),
	"note":     by((*kagziv1.Workflow).GetNote),
	"step":     by((*kagziv1.Workflow).GetStepCount),
	"attempts": by((*kagziv1.Workflow).GetAttempts),
	"priority": by((*kagziv1.Workflow).GetPriority),
	"age":      by(func(r *kagziv1.Workflow) int64 { return -micros(r.GetCreatedAt()) }),
	"created":  by(func(r *kagziv1.Workflow) int64 { return micros(r.GetCreatedAt()) }),
	"started":  by(func(r *kagziv1.Workflow) int64 { return micros(r.GetStartedAt()) }),
	"finished": by(func(r *kagziv1.Workflow) int64 { return micros(r.GetFinishedAt()) }),
	"wake":     by(func(r *kagziv1.Workflow) int64 { return micros(r.GetWakeUpAt()) }),
	"duration": by(took),
}

func by[T cmp.Ordered](value func(*kagziv1.Workflow) T) func(a, b *kagziv1.Workflow) int {
	return func(a, b *kagziv1.Workflow) int { return cmp.Compare(value(a), value(b)) }
}

// shownID returns the id that people know a run by.
func shownID(r *kagziv1.Workflow) string {
	if r.GetExternalId() != "" {
		return r.GetExternalId()
	}
	return r.GetRunId()
}

// micros returns a time as a number; an unset one sorts first.
func micros(t *timestamppb.Timestamp) int64 {
	if t == nil {
		return 0
	}
	return t.AsTime().UnixMicro()
}

// took returns how long a run took; open runs sort last, the oldest at the end.
func took(r *kagziv1.Workflow) time.Duration {
	switch {
	case r.GetStartedAt() == nil:
		return -1
	case r.GetFinishedAt() == nil:
		return 1<<62 - time.Duration(micros(r.GetStartedAt()))
	}
	return r.GetFinishedAt().AsTime().Sub(r.GetStartedAt().AsTime())
}

// SortColumns lists the columns that runs can be sorted by.
func (r *Runs) SortColumns() []string {
	var columns []string
	for column := range runOrders {
		columns = append(columns, column)
	}
	slices.Sort(columns)
	return columns
}

// SortBy sorts the rows. "" and descending "created" (or ascending "age") are the server's own
// order, newest first. Any other order covers only the newest 2,000 runs, which are loaded for it.
// Errors name the valid columns.
func (r *Runs) SortBy(column string, descending bool) error {
	less := runOrders[column]
	switch {
	case column == "", column == "created" && descending, column == "age" && !descending:
		less = nil
	case less == nil:
		return fmt.Errorf("runs cannot be sorted by %q; columns are %s", column, strings.Join(r.SortColumns(), ", "))
	}
	r.sorted = sorted{column: column, descending: descending, less: less, dirty: true}
	if less != nil && r.loaded {
		if !r.window.top() {
			r.goTo(toHead)
		}
		r.window.pages = r.window.pages[:min(len(r.window.pages), sortMost/pageSize)]
	}
	r.change()
	r.pump()
	return nil
}

// Sort returns the sort column; empty for the server's order.
func (r *Runs) Sort() (column string, descending bool) { return r.sorted.column, r.sorted.descending }

// Sorted returns "among the newest 2,000" if the order does not cover all runs; otherwise it is
// empty.
func (r *Runs) Sorted() string {
	if !r.sorted.on() || r.window.top() && r.window.end() {
		return ""
	}
	return "among the newest " + thousands(sortMost)
}

// thousands writes a number with a comma every three digits.
func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return thousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// sorted holds the rows in another order than the server's. They are sorted on first use.
type sorted struct {
	column     string
	descending bool
	less       func(a, b *kagziv1.Workflow) int // nil: the server's order
	dirty      bool
	list       []*kagziv1.Workflow
	index      map[string]int
}

func (s *sorted) on() bool { return s.less != nil }

func (s *sorted) runs(w *window) []*kagziv1.Workflow {
	if !s.dirty {
		return s.list
	}
	s.dirty, s.list, s.index = false, s.list[:0], map[string]int{}
	for _, p := range w.pages {
		s.list = append(s.list, p.runs...)
	}
	slices.SortStableFunc(s.list, func(a, b *kagziv1.Workflow) int {
		if s.descending {
			a, b = b, a
		}
		return s.less(a, b)
	})
	for i, r := range s.list {
		s.index[r.GetRunId()] = i
	}
	return s.list
}

func (s *sorted) find(w *window, id string) (int, bool) {
	s.runs(w)
	i, ok := s.index[id]
	return i, ok
}
