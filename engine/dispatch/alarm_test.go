package dispatch

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// fakeClock notes what it is set to.
type fakeClock struct{ waits []time.Duration }

func (c *fakeClock) set(wait time.Duration) { c.waits = append(c.waits, wait.Round(time.Minute)) }
func (c *fakeClock) ring() error            { return errors.New("never") }
func (c *fakeClock) close()                 {}

func TestTheAlarmWakesWhoseTimeHasComeAndIsSetToTheNext(t *testing.T) {
	c := &fakeClock{}
	a := &alarm{clock: c}
	tables := make([]*table, 4)
	for i := range tables {
		tables[i] = &table{bell: make(chan struct{}, 1)}
	}
	began := time.Now()
	a.set(tables[0], 2*time.Hour)
	a.set(tables[1], time.Hour)   // comes before
	a.set(tables[2], 3*time.Hour) // does not
	a.set(tables[3], 2*time.Hour)
	a.drop(tables[3])
	a.set(tables[0], 4*time.Hour) // instead
	if want := []time.Duration{2 * time.Hour, time.Hour}; !slices.Equal(c.waits, want) {
		t.Fatalf("the clock was set to %v, want %v", c.waits, want)
	}
	for _, step := range []struct {
		at    time.Duration
		woken []int
		next  []time.Duration
	}{
		{at: 30 * time.Minute, next: []time.Duration{30 * time.Minute}},
		{at: time.Hour + time.Second, woken: []int{1}, next: []time.Duration{2 * time.Hour}},
		{at: 5 * time.Hour, woken: []int{0, 2}},
	} {
		c.waits = nil
		a.wake(began.Add(step.at))
		var woken []int
		for i, table := range tables {
			select {
			case <-table.bell:
				woken = append(woken, i)
			default:
			}
		}
		if !slices.Equal(woken, step.woken) || !slices.Equal(c.waits, step.next) {
			t.Errorf("after %s: woken %v and set to %v, want %v and %v", step.at, woken, c.waits, step.woken, step.next)
		}
	}
}

func TestTheClockRingsUntilItIsClosed(t *testing.T) {
	c, err := newClock()
	if err != nil {
		t.Fatal(err)
	}
	if c == nil {
		t.Skip("timers of Go's are as good as any here")
	}
	for range 3 {
		c.set(0)
		if err := c.ring(); err != nil {
			t.Fatal(err)
		}
	}
	over := make(chan error)
	go func() { over <- c.ring() }()
	c.close()
	if err := <-over; err == nil {
		t.Error("a clock that was closed rang")
	}
}

func TestADispatcherThatKeepsTimeHasItsTablesWoken(t *testing.T) {
	d := New(newFakeStore(), nil)
	d.KeepTime()
	d.alarm.start()
	defer d.alarm.stop()
	if d.alarm.clock == nil {
		t.Skip("timers of Go's are as good as any here")
	}
	one := &table{bell: make(chan struct{}, 1)}
	d.alarm.set(one, time.Microsecond)
	select {
	case <-one.bell:
	case <-t.Context().Done():
		t.Error("nobody woke the table")
	}
}
