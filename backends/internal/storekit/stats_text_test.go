package storekit

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func FuzzStatsText(f *testing.F) {
	for _, n := range []float64{0, math.Copysign(0, -1), 1, -1, 12.5, 0.1, 1e-7, 1e21, 5e-324, math.MaxFloat64,
		math.NaN(), math.Inf(1), math.Inf(-1)} {
		f.Add(n, 0.0, int64(0), int64(0), int64(0))
		f.Add(0.0, n, int64(math.MinInt64), int64(math.MaxInt64), int64(-1))
		f.Add(n, n, int64(n), int64(1)<<53+1, int64(1))
	}
	f.Fuzz(func(t *testing.T, cpu, average float64, memory, disk, uptime int64) {
		given := engine.WorkerStats{CPUPercent: cpu, MemoryBytes: memory, DiskAvailableBytes: disk,
			UptimeSeconds: uptime, AverageRunMS: average}
		want := given
		for _, n := range []*float64{&want.CPUPercent, &want.AverageRunMS} {
			if math.IsNaN(*n) || math.IsInf(*n, 0) {
				*n = 0
			}
		}
		var got engine.WorkerStats
		text := StatsText(&given)
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v is kept as %s and read as %+v, %v", given, text, got, err)
		}
	})
}

func TestBlockedCodeIsKept(t *testing.T) {
	given := engine.WorkerStats{CPUPercent: 1, Blocked: []engine.BlockedCode{
		{RunID: "r", Branch: "2", Since: time.Unix(5, 0).UTC(), Stack: "main.wait(\x00)\n\t\"x.go\":1"},
		{RunID: "r", Since: time.Unix(6, 0).UTC(), Held: []engine.Call{{Name: "a", Kind: engine.StepChild}},
			Owed: []engine.Call{{Name: "b"}}}}}
	var got engine.WorkerStats
	text := StatsText(&given)
	if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, given) {
		t.Errorf("kept as %s and read as %+v, %v", text, got, err)
	}
}

func TestNoStatsAreNoText(t *testing.T) {
	if text := StatsText(nil); text != "" {
		t.Errorf("none are kept as %q", text)
	}
}
