package dbfile

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestDiskSpaceTellsEachChangeOnce(t *testing.T) {
	now, left := time.Unix(0, 0), uint64(1<<30)
	var told []string
	d := DiskSpace{
		Free:    func(string) (uint64, error) { return left, nil },
		Changed: func(left uint64, low bool) { told = append(told, fmt.Sprint(left>>20, low)) },
		now:     func() time.Time { return now },
	}
	for i, step := range []struct {
		left uint64
		low  bool
	}{{1 << 30, false}, {100 << 20, true}, {99 << 20, true}, {LowWater, false}, {LowWater - 1, true}} {
		left, now = step.left, now.Add(time.Second)
		if got, low, known := d.Left(); got != step.left || low != step.low || !known {
			t.Errorf("step %d: %d, %t, %t; want %d, %t", i, got, low, known, step.left, step.low)
		}
		left = 0 // within the second the disk is not asked again
		if got, _, _ := d.Left(); got != step.left {
			t.Errorf("step %d: asked again within the second, got %d", i, got)
		}
	}
	if want := []string{"100 true", "256 false", "255 true"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
