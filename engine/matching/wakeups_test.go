package matching

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// fakeClock notes what it is set to.
type fakeClock struct {
	waits  []time.Duration
	closed int
}

func (c *fakeClock) Set(wait time.Duration) { c.waits = append(c.waits, wait.Round(time.Minute)) }
func (c *fakeClock) Wait() error            { return errors.New("never") }
func (c *fakeClock) Close() error           { c.closed++; return nil }

func TestWakeupsWakeDueGroupsAndSetTheClockToTheNext(t *testing.T) {
	c := &fakeClock{}
	a := &wakeups{clock: c}
	groups := make([]*group, 4)
	for i := range groups {
		groups[i] = &group{notified: make(chan struct{}, 1)}
	}
	began := time.Now()
	a.set(groups[0], 2*time.Hour)
	a.set(groups[1], time.Hour)   // comes before
	a.set(groups[2], 3*time.Hour) // does not
	a.set(groups[3], 2*time.Hour)
	a.drop(groups[3])
	a.set(groups[0], 4*time.Hour) // instead
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
		for i, group := range groups {
			select {
			case <-group.notified:
				woken = append(woken, i)
			default:
			}
		}
		if !slices.Equal(woken, step.woken) || !slices.Equal(c.waits, step.next) {
			t.Errorf("after %s: woken %v and set to %v, want %v and %v", step.at, woken, c.waits, step.woken, step.next)
		}
	}
	a.set(groups[0], time.Hour)
	a.stop()
	c.waits = nil
	a.wake(began) // by a notification that came just before
	a.set(groups[1], time.Minute)
	if len(c.waits) > 0 || c.closed != 1 {
		t.Errorf("set to %v after the end, and closed %d times, want nothing and once", c.waits, c.closed)
	}
}

func TestAGroupSetsItsWakeupAndDropsItAtItsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		c := &fakeClock{}
		r.KeepTime(c)
		r.store.add("q", 1, time.Hour)
		d := r.join("w", []string{"q"})
		d.AddCredit(1)
		synctest.Wait()
		if !slices.Equal(c.waits, []time.Duration{time.Hour}) {
			t.Errorf("the clock was set to %v, want an hour", c.waits)
		}
		d.Leave()
		synctest.Wait()
		if n := len(r.wakeups.at); n != 0 {
			t.Errorf("the wakeups remembers %d groups that are gone", n)
		}
	})
}

// promptClock notifies whenever it was set.
type promptClock struct{ notified chan struct{} }

func (c promptClock) Set(time.Duration) { c.notified <- struct{}{} }

func (c promptClock) Wait() error {
	if _, open := <-c.notified; !open {
		return errors.New("closed")
	}
	return nil
}

func (c promptClock) Close() error {
	close(c.notified)
	return nil
}

func TestAMatcherWithAClockWakesItsGroups(t *testing.T) {
	d := New(newFakeStore(), nil)
	clock := promptClock{make(chan struct{}, 10)}
	d.KeepTime(clock)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- d.Run(ctx) }()
	one := &group{notified: make(chan struct{}, 1)}
	d.wakeups.set(one, 0)
	select {
	case <-one.notified:
	case <-t.Context().Done():
		t.Error("nobody woke the group")
	}
	stop()
	<-over
	select {
	case <-clock.notified:
	default:
		t.Error("the clock is not closed in the end")
	}
}
