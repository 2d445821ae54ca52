package timescale

import (
	"testing"
	"time"
)

func TestLongGapsAreFoldedAndShortOnesKept(t *testing.T) {
	busy := []Stretch{{0, time.Second}, {time.Hour, time.Hour + time.Second},
		{time.Hour + 1100*time.Millisecond, time.Hour + 2*time.Second}}
	total := busy[2].To
	gaps := Fold(Quiet(busy), total, 120)
	if len(gaps) != 1 || gaps[0].From != time.Second || gaps[0].To != time.Hour {
		t.Fatalf("gaps = %v, want the hour", gaps)
	}
	s := Scale{PerCell: Fit(total, gaps, 120), Total: total, Gaps: gaps}
	if width := s.Cell(time.Hour) - s.Cell(time.Second); width != BreakCells {
		t.Errorf("the gap takes %v cells, want %d", width, BreakCells)
	}
	if cells := s.Cells(); cells < 119 || cells > 120.1 {
		t.Errorf("the axis has %v cells, want 120", cells)
	}
	for _, at := range []time.Duration{0, 500 * time.Millisecond, time.Hour + time.Second, total} {
		if back := s.At(s.Cell(at)); back < at-time.Millisecond || back > at+time.Millisecond {
			t.Errorf("the place of %v is that of %v", at, back)
		}
	}
}

func TestTicksFallOnRoundTimes(t *testing.T) {
	for least, want := range map[time.Duration]time.Duration{
		3 * time.Millisecond: 5 * time.Millisecond, 700 * time.Millisecond: time.Second,
		11 * time.Second: 20 * time.Second,
		40 * time.Minute: time.Hour, 13 * time.Hour: 24 * time.Hour, 30 * time.Hour: 48 * time.Hour,
	} {
		if got := TickStep(least); got != want {
			t.Errorf("TickStep(%v) = %v, want %v", least, got, want)
		}
	}
	for at, want := range map[time.Duration]string{0: "0s", 1500 * time.Millisecond: "1.5s", 150 * time.Second: "2m30s",
		84 * time.Hour: "3d12h", 20 * time.Microsecond: "20us"} {
		if got := TickLabel(at); got != want {
			t.Errorf("TickLabel(%v) = %q, want %q", at, got, want)
		}
	}
}
