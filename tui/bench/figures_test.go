package bench

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		name   string
		sorted []time.Duration
		p      float64
		want   time.Duration
	}{
		{"of no values is zero", nil, 50, 0},
		{"of one value is that value", []time.Duration{7}, 99, 7},
		{"p50 of a hundred is the fiftieth", hundred, 50, 50},
		{"p99 of a hundred is the ninety-ninth", hundred, 99, 99},
		{"p100 is the largest", hundred, 100, 100},
		{"p0 is the smallest", hundred, 0, 1},
		{"p50 of two is the first", []time.Duration{1, 9}, 50, 1},
		{"p99 of ten is the largest", hundred[:10], 99, 10},
		{"a rank between two goes up", hundred[:7], 50, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := percentile(c.sorted, c.p); got != c.want {
				t.Errorf("percentile %v = %d, want %d", c.p, got, c.want)
			}
		})
	}
}

func TestPercentilesSortACopyOfTheTimes(t *testing.T) {
	times := []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond}
	got := percentiles("late", times)
	want := []figure{{"late p50", "ms", 2}, {"late p99", "ms", 3}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("percentiles = %v, want %v", got, want)
	}
	if times[0] != 3*time.Millisecond {
		t.Errorf("the caller's times were sorted: %v", times)
	}
}

func TestSpreadsTellMedianAndExtremes(t *testing.T) {
	got := spreads([][]figure{
		{{"throughput", "runs/s", 30}, {"p50", "ms", 1}},
		{{"throughput", "runs/s", 10}, {"p50", "ms", 4}},
		{{"throughput", "runs/s", 20}, {"p50", "ms", 2}},
		{{"throughput", "runs/s", 60}, {"p50", "ms", 3}},
	})
	want := []spread{{Name: "throughput", Unit: "runs/s", Median: 25, Min: 10, Max: 60},
		{Name: "p50", Unit: "ms", Median: 2.5, Min: 1, Max: 4}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("spreads = %v, want %v", got, want)
	}
	if odd := spreads([][]figure{{{"a", "b", 5}}, {{"a", "b", 1}}, {{"a", "b", 9}}}); odd[0].Median != 5 {
		t.Errorf("median of 5, 1, 9 = %v, want 5", odd[0].Median)
	}
	some := spreads([][]figure{{{"cpu", "µs", 1}, {"memory", "MiB", 2}}, {{"memory", "MiB", 4}}})
	if len(some) != 2 || some[0] != (spread{"cpu", "µs", 1, 1, 1, nil}) || some[1] != (spread{"memory", "MiB", 3, 2, 4, nil}) {
		t.Errorf("spreads of what was not measured each time = %v", some)
	}
	if none := spreads(nil); none != nil {
		t.Errorf("spreads of nothing = %v", none)
	}
}

func TestARateOverNoTimeIsZeroAndNotInfinite(t *testing.T) {
	if got := rate(100, 0); got != 0 {
		t.Errorf("rate over no time = %v, want 0", got)
	}
	if got := rate(100, 500*time.Millisecond); got != 200 {
		t.Errorf("rate = %v, want 200", got)
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{12345.6: "12346", 99.94: "99.9", 1.234: "1.23", 0.4321: "0.432",
		0: "0.000"} {
		if got := digits(v); got != want {
			t.Errorf("digits(%v) = %s, want %s", v, got, want)
		}
	}
}
