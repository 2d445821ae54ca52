package postgres

import (
	"testing"
	"time"
	"unsafe"
)

func TestListenersRecountedAfterClockSetBack(t *testing.T) {
	var b notifier
	if !b.stale() {
		t.Error("what was never counted is not to be counted")
	}
	counted := time.Now()
	b.counted.Store(&counted)
	if b.stale() {
		t.Error("what was counted just now is to be counted again")
	}
	counted = counted.Add(-recountAfter)
	setForward(&counted, time.Hour) // it showed an hour more then
	if !b.stale() {
		t.Errorf("after %s the listeners are not counted again", recountAfter)
	}
}

// setForward changes the wall clock of a time without its monotonic clock.
func setForward(t *time.Time, by time.Duration) {
	wall := (*uint64)(unsafe.Pointer(t)) // its seconds are above 30 bits of nanoseconds
	before := t.Round(0)
	*wall += uint64(by/time.Second) << 30
	if t.Round(0).Sub(before) != by {
		panic("time.Time is made otherwise")
	}
}
