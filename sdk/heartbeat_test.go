package kagzi

import (
	"testing"
	"time"
)

func TestAReportCountsNothingThatAnEarlierOneDoes(t *testing.T) {
	var c counters
	for _, completed := range []bool{true, true, false} {
		c.finished(completed, time.Millisecond)
	}
	want := func(what string, completed, failed int32) {
		t.Helper()
		if gotCompleted, gotFailed, _ := c.report(); gotCompleted != completed || gotFailed != failed {
			t.Errorf("%s counts %d completed and %d failed, want %d and %d", what, gotCompleted, gotFailed, completed, failed)
		}
	}
	want("the first report", 2, 1)
	want("one that goes out before the first is answered", 0, 0)
	c.finished(true, time.Millisecond)
	c.unreported(2, 1) // the first was lost
	want("the next", 3, 1)
}
