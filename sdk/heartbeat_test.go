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

func TestHeartbeatsComeTogetherByTheClock(t *testing.T) {
	base := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct {
		now      time.Time
		interval time.Duration
		next     time.Time
	}{
		{at(0), 10 * time.Second, at(10_000)},
		{at(1), 10 * time.Second, at(10_000)},
		{at(249), 10 * time.Second, at(10_000)},
		{at(250), 10 * time.Second, at(10_250)},
		{at(999), 10 * time.Second, at(10_750)},
		{at(7), 4 * time.Second, at(4_000)},
		{at(107), 4 * time.Second, at(4_100)},
		{at(7), 200 * time.Millisecond, at(205)},
		{at(0), 30 * time.Second, at(30_000)},
	} {
		got := untilBeat(c.now, c.interval)
		if next := c.now.Add(got); !next.Equal(c.next) {
			t.Errorf("at %s, each %s: the next is at %s, want %s", c.now, c.interval, next, c.next)
		}
		if got > c.interval || got <= c.interval-c.interval/40 {
			t.Errorf("at %s, each %s: the next comes after %s", c.now, c.interval, got)
		}
	}
}
