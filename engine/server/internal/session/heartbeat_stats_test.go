package session

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

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

func TestBlockedCodeIsKeptWithinItsLimits(t *testing.T) {
	const run = "0199a000-0000-7000-8000-00000000000f"
	calls := func(n int) []*kagziv1.Call {
		return slices.Repeat([]*kagziv1.Call{{Name: "a", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION}}, n)
	}
	good := func() *kagziv1.BlockedCode {
		return &kagziv1.BlockedCode{RunId: run, Branch: "2", Since: timestamppb.New(time.Unix(5, 0)),
			Stack: strings.Repeat("x", 4096), Held: calls(10), Owed: calls(10)}
	}
	for name, c := range map[string]struct {
		change func(b *kagziv1.BlockedCode)
		n      int
		field  string // that is refused; "": none
	}{
		"the most":         {func(*kagziv1.BlockedCode) {}, 16, ""},
		"too many":         {func(*kagziv1.BlockedCode) {}, 17, "blocked"},
		"no run":           {func(b *kagziv1.BlockedCode) { b.RunId = "x" }, 1, "blocked.run_id"},
		"a long stack":     {func(b *kagziv1.BlockedCode) { b.Stack += "x" }, 1, "blocked.stack"},
		"a stack with NUL": {func(b *kagziv1.BlockedCode) { b.Stack = "\x00" }, 1, "blocked.stack"},
		"a long branch":    {func(b *kagziv1.BlockedCode) { b.Branch = strings.Repeat("1", 256) }, 1, "blocked.branch"},
		"many held calls":  {func(b *kagziv1.BlockedCode) { b.Held = calls(11) }, 1, "blocked"},
		"an owed call: ?":  {func(b *kagziv1.BlockedCode) { b.Owed[0].Name = "?" }, 1, "blocked.owed.name"},
		"a time before 1970": {func(b *kagziv1.BlockedCode) { b.Since = &timestamppb.Timestamp{Seconds: -1} }, 1,
			"blocked.since"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &servertest.Books{}
			report := good()
			c.change(report)
			_, err := newTestService(b).heartbeat(t.Context(), &kagziv1.HeartbeatRequest{WorkerId: "w",
				Blocked: slices.Repeat([]*kagziv1.BlockedCode{report}, c.n)}, nil, 0)
			if c.field != "" {
				if engine.KindOf(err) != engine.KindInvalid || !strings.HasPrefix(err.Error(), c.field+":") {
					t.Errorf("answered %v, want a refusal that names %s", err, c.field)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			kept := servertest.Last[engine.HeartbeatParams](b).Stats.Blocked
			if len(kept) != c.n || kept[0].RunID != run || kept[0].Branch != "2" || !kept[0].Since.Equal(time.Unix(5, 0)) ||
				len(kept[0].Stack) != 4096 || len(kept[0].Held) != 10 || kept[0].Owed[0].Name != "a" {
				t.Errorf("kept %+v", kept)
			}
		})
	}
}
