package long

import (
	"slices"
	"testing"
)

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestShareTakesOneOfEachGroupOfNeighbours(t *testing.T) {
	t.Setenv(Variable, "")
	for _, size := range []int{0, 1, 9, 10, 11, 100} {
		chosen := Share(t, numbers(size), 10)
		if len(chosen) != (size+9)/10 {
			t.Errorf("%d of %d were chosen, want one of ten", len(chosen), size)
		}
		for group, n := range chosen {
			if n/10 != group {
				t.Errorf("%d was chosen for the group from %d", n, 10*group)
			}
		}
	}
}

func TestShareIsReplayedByItsSeed(t *testing.T) {
	t.Setenv(Variable, "")
	t.Setenv(SeedVariable, "7")
	if first, second := Share(t, numbers(1000), 10), Share(t, numbers(1000), 10); !slices.Equal(first, second) {
		t.Errorf("%v, then %v", first, second)
	}
	t.Setenv(SeedVariable, "8")
	other := Share(t, numbers(1000), 10)
	t.Setenv(SeedVariable, "7")
	if slices.Equal(other, Share(t, numbers(1000), 10)) {
		t.Error("two seeds chose the same")
	}
}

func TestTheVariableAsksForEverything(t *testing.T) {
	t.Setenv(Variable, "1")
	if got := Share(t, numbers(100), 10); len(got) != 100 {
		t.Errorf("%d of 100 were chosen, want all", len(got))
	}
	if !Enabled() || Count(1, 20) != 20 {
		t.Errorf("enabled %t, count %d; want true and 20", Enabled(), Count(1, 20))
	}
	t.Setenv(Variable, "")
	if Enabled() || Count(1, 20) != 1 {
		t.Errorf("enabled %t, count %d; want false and 1", Enabled(), Count(1, 20))
	}
}
