package simulate

import (
	"slices"
	"testing"
)

func TestShrinkLeavesWhatIsNeededAndNothingElse(t *testing.T) {
	plan := NewPlan(7)
	for seed := uint64(8); len(plan.Starts) < 6 || len(plan.Faults) < 20; seed++ {
		plan = NewPlan(seed)
	}
	run, fault := plan.Starts[3], plan.Faults[len(plan.Faults)/2]
	small, tried := Shrink(plan, 1000, func(p Plan) bool {
		return slices.Contains(p.Faults, fault) &&
			slices.ContainsFunc(p.Starts, func(s Start) bool { return s.Name == run.Name })
	})
	if len(small.Starts) != 1 || len(small.Starts[0].Program.Acts) != 0 || len(small.Faults) != 1 ||
		len(small.Events)+len(small.Orders)+len(small.Schedules) != 0 {
		t.Errorf(
			"after %d plans there are %d runs of %d acts, %d faults, %d events, %d orders; want the run and the fault that it takes",
			tried, len(small.Starts), len(small.Starts[0].Program.Acts), len(small.Faults), len(small.Events),
			len(small.Orders))
	}
	if len(plan.Starts) < 6 || len(plan.Faults) < 20 {
		t.Error("the plan itself was changed")
	}
}

func TestShrinkStopsAtItsLimit(t *testing.T) {
	tried := 0
	if _, n := Shrink(NewPlan(1), 10, func(Plan) bool { tried++; return false }); n != 10 || tried != 10 {
		t.Errorf("%d plans were tried, %d are said to be, want 10", tried, n)
	}
}

func TestAPlanFollowsFromItsSeed(t *testing.T) {
	a, b := NewPlan(4711), NewPlan(4711)
	if a.Chaos != b.Chaos || !slices.Equal(a.Faults, b.Faults) || !slices.Equal(a.Events, b.Events) ||
		!slices.Equal(a.Orders, b.Orders) {
		t.Error("one seed gave two plans")
	}
}
