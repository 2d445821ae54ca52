package stats

import (
	"runtime"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestReportsDoNotOverlap(t *testing.T) {
	var c Counters
	const done, failed = kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED
	for _, status := range []kagziv1.WorkflowStatus{done, done, failed,
		// retried, and cancelled
		kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING, kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED} {
		c.Finished(status, time.Millisecond)
	}
	want := func(what string, completed, failed int32) {
		t.Helper()
		if gotCompleted, gotFailed, _ := c.Report(); gotCompleted != completed || gotFailed != failed {
			t.Errorf("%s counts %d completed and %d failed, want %d and %d", what, gotCompleted, gotFailed,
				completed, failed)
		}
	}
	want("the first report", 2, 1)
	want("one that goes out before the first is answered", 0, 0)
	c.Finished(done, time.Millisecond)
	c.Unreported(2, 1) // the first report was lost
	want("the next", 3, 1)
}

func TestAReportSaysWhatTheProcessUses(t *testing.T) {
	switch runtime.GOOS {
	case "linux", "darwin", "windows":
	default:
		t.Skip("only Linux, macOS and Windows tell what a process uses")
	}
	var c Counters
	_, _, first := c.Report()
	if first.MemoryBytes < 1<<20 || first.MemoryBytes > 1<<40 || first.DiskAvailableBytes <= 0 {
		t.Errorf("%d bytes of memory and %d of disk are no such process", first.MemoryBytes, first.DiskAvailableBytes)
	}
	before := cpuTime()
	for n := 0; cpuTime()-before < 50*time.Millisecond; n++ {
		if n > 1<<28 {
			t.Fatal("the CPU time does not grow")
		}
	}
	if _, _, next := c.Report(); next.CpuPercent <= 0 || next.CpuPercent > 100*float64(runtime.NumCPU()+1) {
		t.Errorf("%v %% of a core is no such process", next.CpuPercent)
	}
}
