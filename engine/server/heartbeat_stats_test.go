package server

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// TestOddFiguresOfAWorkerAreBoundedAndItsHeartbeatCounts: it would lose what it holds for them.
func TestOddFiguresOfAWorkerAreBoundedAndItsHeartbeatCounts(t *testing.T) {
	const tenYears = 10 * 365 * 24 * 3600
	most := engine.WorkerStats{
		CPUPercent: 102_400, MemoryBytes: math.MaxInt64, DiskAvailableBytes: math.MaxInt64, UptimeSeconds: tenYears, AverageRunMS: tenYears * 1000,
	}
	for name, c := range map[string]struct {
		said *kagziv1.WorkerStats
		want engine.WorkerStats
	}{
		"ordinary": {
			&kagziv1.WorkerStats{CpuPercent: 150.5, MemoryBytes: 7, DiskAvailableBytes: 8, UptimeSeconds: 9, AverageRunMs: 0.25},
			engine.WorkerStats{CPUPercent: 150.5, MemoryBytes: 7, DiskAvailableBytes: 8, UptimeSeconds: 9, AverageRunMS: 0.25},
		},
		"too much": {
			&kagziv1.WorkerStats{CpuPercent: 1e300, MemoryBytes: math.MaxInt64, DiskAvailableBytes: math.MaxInt64, UptimeSeconds: math.MaxInt64, AverageRunMs: 1e300},
			most,
		},
		"less than nothing": {
			&kagziv1.WorkerStats{CpuPercent: -1, MemoryBytes: -1, DiskAvailableBytes: math.MinInt64, UptimeSeconds: -1, AverageRunMs: -1e300},
			engine.WorkerStats{},
		},
		"endless":    {&kagziv1.WorkerStats{CpuPercent: math.Inf(1), AverageRunMs: math.Inf(-1)}, engine.WorkerStats{}},
		"no numbers": {&kagziv1.WorkerStats{CpuPercent: math.NaN(), AverageRunMs: math.NaN()}, engine.WorkerStats{}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &books{}
			s, _ := serve(t, b)
			if _, err := s.heartbeat(t.Context(), &kagziv1.HeartbeatRequest{WorkerId: "w", Stats: c.said}, nil, 0); err != nil {
				t.Fatalf("the heartbeat is refused: %v", err)
			}
			if diff := cmp.Diff(&c.want, last[engine.HeartbeatParams](b).Stats); diff != "" {
				t.Errorf("what is noted (-want +got):\n%s", diff)
			}
		})
	}
}
