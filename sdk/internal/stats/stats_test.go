package stats

import (
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
