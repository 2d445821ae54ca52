package runs

import (
	"fmt"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// selectedSteps lists a run with attempts of every status, some of them tried again.
func selectedSteps(s *fixture.F) {
	l := s.Held()
	s.Begin(l, "lost") // FAILED when the run is released
	s.Complete(l, "done", "1")
	s.Release(l, false)
	l = s.Claim("w1").Lease
	s.Complete(l, "lost", "2")
	s.Begin(l, "broken")
	s.Fail(l, "broken", "no", fixture.ForGood, fixture.Holding)
	s.Begin(l, "again")
	s.Begin(l, "runs")
	s.Fail(l, "again", "not yet", fixture.Holding)
	failed, open := engine.StepFailed, []engine.StepStatus{engine.StepPending, engine.StepRunning}
	for _, each := range []struct {
		filter engine.StepFilter
		want   string
	}{
		{engine.StepFilter{}, "lost1 lost2 done1 broken1 again1 runs1 "},
		{engine.StepFilter{Latest: true}, "lost2 done1 broken1 again1 runs1 "},
		{engine.StepFilter{Statuses: []engine.StepStatus{failed}}, "lost1 broken1 "},
		{engine.StepFilter{Statuses: []engine.StepStatus{failed}, Latest: true}, "broken1 "},
		{engine.StepFilter{Statuses: append(open, failed), Latest: true},
			"broken1 again1 runs1 "},
		{engine.StepFilter{Statuses: []engine.StepStatus{engine.StepCompleted}, Name: "lost"}, "lost2 "},
		{engine.StepFilter{Statuses: open, Name: "lost"}, ""},
	} {
		list := func(p engine.Page) ([]engine.Step, engine.PageInfo, error) {
			return s.Store.ListSteps(s.Ctx, fixture.Space, l.RunID, each.filter, p)
		}
		for _, limit := range []int{1, 2, 9} {
			got := ""
			for _, step := range fixture.Walk(s, limit, list, func(t engine.Step) engine.Cursor {
				return engine.Cursor{Number: t.Sequence, Minor: t.Attempt}
			}) {
				got += fmt.Sprintf("%s%d ", step.Name, step.Attempt)
			}
			fixture.Equal(s, fmt.Sprintf("attempts of %+v by %d", each.filter, limit), got, each.want)
		}
		whole, _, err := list(engine.Page{Limit: 9})
		s.Must(err, "ListSteps")
		_, info, err := list(engine.Page{Limit: 1, Count: true})
		s.Must(err, "ListSteps")
		fixture.Equal(s, fmt.Sprintf("total of %+v", each.filter), info.Total, int64(len(whole)))
	}
}
