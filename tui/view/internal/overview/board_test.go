package overview

import (
	"slices"
	"testing"
)

func TestARateIsNeverMoreThanTheMost(t *testing.T) {
	values, rate := make([]float64, 300), chart{rate: true}
	for i := 290; i < 300; i++ {
		values[i] = 2.5
	}
	if got, want := rate.summary(values, Buckets(values, 299, 10, true)), "2.5/s, peak 2.5/s"; got != want {
		t.Errorf("after a busy moment %q, want %q", got, want)
	}
}

func TestBlocksOfTheOverviewNeverOverlapNorLeaveThePage(t *testing.T) {
	for w := 56; w < 240; w++ {
		for h := 10; h < 90; h++ {
			for _, n := range []int{0, 1, 5, 40} {
				list := arrange(w, h, func(string) int { return n })
				for i, a := range list {
					if a.x < 0 || a.y < 0 || a.w < 1 || a.h < 1 || a.x+a.w > w || a.y+a.h > h {
						t.Fatalf("%d x %d cells, %d items: %s leaves the page: %+v", w, h, n, a.id, a)
					}
					for _, b := range list[:i] {
						if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
							t.Fatalf("%d x %d cells, %d items: %+v lies over %+v", w, h, n, a, b)
						}
					}
				}
			}
		}
	}
}

func TestColumnsOfAChartMoveOnAsAWhole(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for _, c := range []struct {
		last int64
		n    int
		mean bool
		want []float64
	}{
		{7, 8, false, []float64{1, 2, 3, 4, 5, 6, 7, 8}},
		{7, 4, false, []float64{2, 4, 6, 8}}, // two in a column, all full
		{8, 4, false, []float64{3, 5, 7, 8}}, // the last has begun; the first value has left
		{7, 4, true, []float64{1.5, 3.5, 5.5, 7.5}},
		{7, 16, false, []float64{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8}},
		{7, 0, false, nil},
	} {
		if got := Buckets(values, c.last, c.n, c.mean); !slices.Equal(got, c.want) {
			t.Errorf("buckets up to %d in %d columns, mean %t: %v, want %v", c.last, c.n, c.mean, got, c.want)
		}
	}
}
