package coordinator

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestStepsTimeOutAtTheirMoment(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		begun := time.Now()
		pass(time.Minute)
		want := []time.Duration{time.Minute + 1500*time.Millisecond, 2 * time.Minute, 90 * time.Minute}
		for _, d := range want {
			f.timeoutAt(begun.Add(d))
			pass(time.Millisecond)
		}
		before := f.count("TimeoutSteps")
		pass(2 * time.Hour)
		ended := f.moments(&f.ended)
		if len(ended) != len(want) {
			t.Fatalf("%d attempts timed out, want %d", len(ended), len(want))
		}
		for i, at := range ended {
			if late := at.Sub(begun) - want[i]; late < 0 || late > time.Millisecond {
				t.Errorf("attempt %d timed out %v after its moment, want at most 1ms", i, late)
			}
		}
		if sweeps := f.count("TimeoutSteps") - before; sweeps > len(want)+1 {
			t.Errorf("%d sweeps for %d timeouts", sweeps, len(want))
		}
	})
}

func TestManyTimeoutsAreSweptInBatches(t *testing.T) {
	withCoordinator(t, Options{BatchSize: 10}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		at := time.Now().Add(time.Minute)
		f.set(func() {
			for range 95 {
				f.steps = append(f.steps, at.UTC())
			}
		})
		f.timeoutAt(at)
		pass(time.Second)
		before := f.count("TimeoutSteps")
		pass(time.Minute)
		if ended := f.moments(&f.ended); len(ended) != 96 {
			t.Fatalf("%d attempts timed out, want 96", len(ended))
		}
		if sweeps := f.count("TimeoutSteps") - before; sweeps != 10 {
			t.Errorf("%d sweeps for 96 attempts in batches of 10, want 10", sweeps)
		}
	})
}

func TestAFailingTimeoutDoesNotStopOthers(t *testing.T) {
	for name, list := range map[string]func(*fakeStore) (due, over *[]time.Time){
		"steps": func(f *fakeStore) (due, over *[]time.Time) { return &f.steps, &f.ended },
		"runs":  func(f *fakeStore) (due, over *[]time.Time) { return &f.expire, &f.expired },
	} {
		t.Run(name, func(t *testing.T) {
			withCoordinator(t, Options{BatchSize: 4}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
				due, over := list(f)
				f.set(func() {
					for i := range 9 {
						*due = append(*due, f.now().Add(time.Duration(i)*time.Millisecond))
					}
					f.bad = []time.Time{(*due)[0], (*due)[2]}
				})
				f.notify(engine.Notification{Kind: engine.NotifyTimer})
				pass(30 * time.Second)
				if got := len(f.moments(over)); got != 7 {
					t.Errorf("%d of 7 have ended that the store copes with", got)
				}
				f.set(func() { f.bad = nil })
				pass(6 * time.Second)
				if got := len(f.moments(over)); got != 9 {
					t.Errorf("%d of 9 have ended once the store copes with all", got)
				}
				if n := strings.Count(log.String(), "upkeep task failed"); n != 1 {
					t.Errorf("the log complains %d times, want once", n)
				}
			})
		})
	}
}

func TestAStepThatAnotherServerTimesOutIsRetriedWithAPause(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.locked = true })
		f.timeoutAt(time.Now().Add(time.Second))
		pass(time.Second)
		before := f.count("TimeoutSteps")
		pass(time.Second)
		if sweeps := f.count("TimeoutSteps") - before; sweeps != 10 {
			t.Errorf("%d sweeps in the second in which the step was locked, want 10", sweeps)
		}
		f.set(func() { f.locked = false })
		pass(100 * time.Millisecond)
		if len(f.moments(&f.ended)) != 1 {
			t.Error("the step was not timed out after the other server had let go of it")
		}
	})
}

func TestAStormOfNotificationsIsFewSweeps(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		before := f.count("TimeoutSteps")
		far := time.Now().Add(time.Hour)
		for range 1000 {
			f.timeoutAt(far)
			pass(10 * time.Millisecond)
		}
		if sweeps := f.count("TimeoutSteps") - before; sweeps > 41 {
			t.Errorf("%d sweeps in 10s of notifications, want at most 4 a second", sweeps)
		}
		looks := f.total()
		for range 1000 {
			f.notify(engine.Notification{Kind: engine.NotifyAll})
			pass(10 * time.Millisecond)
		}
		if looks = f.total() - looks; looks > 3*5+1 {
			t.Errorf(
				"%d calls in 10s of notifications about anything, want each of five at most every 5s, and one look for old runs", looks)
		}
	})
}
