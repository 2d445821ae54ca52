package bench

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// figure is one measured value.
type figure struct {
	name  string // "throughput", "p50"
	unit  string // "runs/s", "ms"
	value float64
}

// spread is a figure over several repetitions.
type spread struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Against is set with --compare, if the earlier report has the figure.
	Against *against `json:"against,omitempty"`
}

// spreads groups the same figures of all repetitions, in the order of the first. A figure that was
// not always measured counts the times that it was.
func spreads(repetitions [][]figure) []spread {
	if len(repetitions) == 0 {
		return nil
	}
	all := make([]spread, len(repetitions[0]))
	for i, f := range repetitions[0] {
		var values []float64
		for _, r := range repetitions {
			for _, other := range r {
				if other.name == f.name && other.unit == f.unit {
					values = append(values, other.value)
				}
			}
		}
		slices.Sort(values)
		all[i] = spread{Name: f.name, Unit: f.unit, Median: median(values), Min: values[0], Max: values[len(values)-1]}
	}
	return all
}

// median returns the median of sorted values, at least one.
func median(sorted []float64) float64 {
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// percentile returns the smallest value that at least p percent of the sorted values do not exceed
// (nearest rank); 0 if there are none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// percentiles returns the p50 and p99 of some times in milliseconds. They need not be sorted.
func percentiles(what string, times []time.Duration) []figure {
	sorted := slices.Clone(times)
	slices.Sort(sorted)
	return []figure{
		{what + " p50", "ms", milliseconds(percentile(sorted, 50))},
		{what + " p99", "ms", milliseconds(percentile(sorted, 99))},
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rate returns n per second over d; 0 if d is too short.
func rate(n float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return n / d.Seconds()
}

// ratio returns a divided by b; 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// digits formats a value with three significant digits, and all digits before the point.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
