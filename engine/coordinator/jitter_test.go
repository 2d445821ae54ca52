package coordinator

import (
	"bytes"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/cron"
)

// jittered adds a schedule of every minute with jitter, as a server that does not know the delay of
// its first tick leaves it, and returns the delays by tick.
func jittered(t *testing.T, f *fakeStore, catchup int, jitter time.Duration, first time.Time) (engine.ID,
	func(time.Time) time.Duration) {
	t.Helper()
	ticks, err := cron.Parse("* * * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	id := f.plan("* * * * *", catchup, first)
	f.set(func() { f.plans[id].Jitter = jitter })
	return id, func(tick time.Time) time.Duration { return ticks.Delay(id, tick, jitter) }
}

func TestJitterDelaysEachTickOnceByItsOwnTime(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		first := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
		id, delay := jittered(t, f, 0, 50*time.Second, first)
		pass(11 * time.Minute)
		fires := f.fires(id)
		if len(fires) < 10 {
			t.Fatalf("%d fires in eleven minutes, want at least 10", len(fires))
		}
		late := 0
		for i, one := range fires {
			want := first.Add(time.Duration(i) * time.Minute)
			at := want.Add(delay(want))
			if !one.tick.Equal(want) || one.at.Before(at) || one.at.Sub(at) > time.Millisecond {
				t.Errorf("fire %d: tick %v at %v, want %v at %v", i, one.tick, one.at, want, at)
			}
			if at.Sub(want) > engine.OnTime {
				late++
			}
		}
		if late < 3 {
			t.Errorf("%d of the ticks are delayed by more than 10 s: this shows nothing", late)
		}
		if skipped := f.planned(id).Skipped; skipped != 0 {
			t.Errorf("%d ticks count as missed because of their jitter", skipped)
		}
	})
}

func TestMissedTicksWithJitterAreThoseWhoseTimeHasPassed(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		now := time.Now().UTC()
		minute := now.Truncate(time.Minute)
		id, delay := jittered(t, f, 3, time.Minute, minute.Add(-20*time.Minute))
		// until the newest is delayed still, and the one before counts as missed
		before := minute.Add(-time.Minute)
		for minute.Add(delay(minute)).Before(now.Add(time.Second)) ||
			before.Add(delay(before)).After(now.Add(-engine.OnTime)) {
			f.set(func() { delete(f.plans, id) })
			id, delay = jittered(t, f, 3, time.Minute, minute.Add(-20*time.Minute))
		}
		pass(time.Second)
		fires := f.fires(id)
		if len(fires) != 3 || !fires[2].tick.Equal(minute.Add(-time.Minute)) {
			t.Fatalf("fired %v, want the 3 ticks before %v", fires, minute)
		}
		plan := f.planned(id)
		if plan.Skipped != 17 || !plan.NextFireAt.Equal(minute) || plan.Delay != delay(minute) {
			t.Errorf("skipped %d, next %v after %v; want 17, %v after %v", plan.Skipped, plan.NextFireAt, plan.Delay,
				minute, delay(minute))
		}
		pass(time.Minute)
		if fires := f.fires(id); len(fires) < 4 || !fires[3].tick.Equal(minute) {
			t.Errorf("then fired %v, want %v next", fires, minute)
		}
	})
}
