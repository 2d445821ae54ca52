package session

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestFiguresOfAWorkerAreWithinWhatCanBeShown(t *testing.T) {
	const tenYears = 10 * 365 * 24 * 3600
	for name, c := range map[string]struct {
		told  *kagziv1.WorkerStats
		field string // that is refused; "": none
	}{
		"ordinary": {&kagziv1.WorkerStats{CpuPercent: 150.5, MemoryBytes: 7, DiskAvailableBytes: 8, UptimeSeconds: 9,
			AverageRunMs: 0.25}, ""},
		"the most": {&kagziv1.WorkerStats{
			CpuPercent: 102_400, MemoryBytes: math.MaxInt64, DiskAvailableBytes: math.MaxInt64, UptimeSeconds: tenYears,
			AverageRunMs: tenYears * 1000,
		}, ""},
		"too busy":           {&kagziv1.WorkerStats{CpuPercent: 102_401}, "stats.cpu_percent"},
		"too old":            {&kagziv1.WorkerStats{UptimeSeconds: tenYears + 1}, "stats.uptime_seconds"},
		"older than a clock": {&kagziv1.WorkerStats{UptimeSeconds: math.MaxInt64}, "stats.uptime_seconds"},
		"too slow":           {&kagziv1.WorkerStats{AverageRunMs: 1e300}, "stats.average_run_ms"},
		"less than nothing":  {&kagziv1.WorkerStats{MemoryBytes: -1}, "stats.memory_bytes"},
		"endless":            {&kagziv1.WorkerStats{CpuPercent: math.Inf(1)}, "stats.cpu_percent"},
		"no number":          {&kagziv1.WorkerStats{AverageRunMs: math.NaN()}, "stats.average_run_ms"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &servertest.Books{}
			s := newTestService(b)
			_, err := s.heartbeat(t.Context(), &kagziv1.HeartbeatRequest{WorkerId: "w", Stats: c.told}, nil, 0)
			if c.field != "" {
				if engine.KindOf(err) != engine.KindInvalid ||
					!strings.Contains(err.Error(), c.field+": must be a number from 0 to ") {
					t.Errorf("answered %v, want a refusal that names %s and its limits", err, c.field)
				}
				return
			}
			if err != nil {
				t.Fatalf("the heartbeat is refused: %v", err)
			}
			want := engine.WorkerStats{
				CPUPercent: c.told.CpuPercent, MemoryBytes: c.told.MemoryBytes,
				DiskAvailableBytes: c.told.DiskAvailableBytes,
				UptimeSeconds:      c.told.UptimeSeconds, AverageRunMS: c.told.AverageRunMs,
			}
			if diff := cmp.Diff(&want, servertest.Last[engine.HeartbeatParams](b).Stats); diff != "" {
				t.Errorf("what is noted (-want +got):\n%s", diff)
			}
		})
	}
}
