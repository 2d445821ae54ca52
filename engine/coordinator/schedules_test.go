package coordinator

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestATickFiresAtItsSecond(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		first := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
		id := f.plan("* * * * *", 100, first)
		pass(10 * time.Minute)
		fires := f.fires(id)
		if len(fires) != 10 {
			t.Fatalf("%d fires in ten minutes, want 10", len(fires))
		}
		for i, one := range fires {
			want := first.Add(time.Duration(i) * time.Minute)
			if !one.tick.Equal(want) || one.at.Sub(want) > time.Millisecond {
				t.Errorf("fire %d: tick %v at %v, want both at %v", i, one.tick, one.at, want)
			}
		}
	})
}

func TestMissedTicksAreReplayedTheMostRecentOnesInOrderAndTheRestCounted(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
		now := time.Now().UTC()
		id := f.plan("* * * * *", 3, now.Truncate(time.Minute).Add(-20*time.Minute))
		pass(time.Second)
		fires := f.fires(id)
		if n := len(fires); n != 3 && n != 4 { // the tick of this very minute is on time
			t.Fatalf("%d fires, want the 3 most recent of those missed", n)
		}
		for i := 1; i < len(fires); i++ {
			if fires[i].tick.Sub(fires[i-1].tick) != time.Minute {
				t.Errorf("tick %v follows %v, want one a minute in time order", fires[i].tick, fires[i-1].tick)
			}
		}
		if newest := fires[len(fires)-1].tick; now.Sub(newest) >= time.Minute {
			t.Errorf("the newest tick fired is %v, more than a minute before %v", newest, now)
		}
		if got := f.planned(id).Skipped; got+int64(len(fires)) != 21 {
			t.Errorf("%d skipped and %d fired, want 21 together", got, len(fires))
		}
		if !strings.Contains(log.String(), "schedule caught up") {
			t.Errorf("nothing says that the schedule caught up:\n%s", log)
		}
	})
}

func TestTicksThatTheOverlapPolicySkipsAreNotLoggedAsCaughtUp(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
		f.set(func() { f.overlaps = true })
		id := f.plan("* * * * * *", 100, time.Now().UTC().Add(time.Second).Truncate(time.Second))
		pass(5 * time.Second)
		if len(f.fires(id)) < 4 || log.Len() > 0 {
			t.Errorf("%d ticks on time were skipped, and the log says:\n%s", len(f.fires(id)), log)
		}
	})
}

func TestCatchup(t *testing.T) {
	for _, c := range []struct {
		name            string
		catchup, missed int // seconds since the first due tick
		late            time.Duration
		fire, skip      int
	}{
		{"without catch-up fires the newest tick", 0, 25, 50 * time.Millisecond, 1, 25},
		{"without catch-up fires a tick that is a little late", 0, 0, 50 * time.Millisecond, 1, 0},
		{"counts ticks younger than 10 s as missed", 5, 25, 50 * time.Millisecond, 6, 20},
		{"replays all when that is allowed", 25, 25, 50 * time.Millisecond, 26, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
				base := time.Now().UTC().Truncate(time.Second).Add(time.Second)
				pass(time.Until(base.Add(c.late)))
				id := f.plan("* * * * * *", c.catchup, base.Add(-time.Duration(c.missed)*time.Second))
				pass(500 * time.Millisecond)
				if n, skipped := len(f.fires(id)), f.planned(id).Skipped; n != c.fire || skipped != int64(c.skip) {
					t.Errorf("%d fired and %d skipped, want %d and %d", n, skipped, c.fire, c.skip)
				}
			})
		})
	}
	for name, c := range map[string]struct {
		old   time.Duration
		fires int
	}{
		"fires the newest tick up to 10 s after it":    {10 * time.Second, 1},
		"skips the newest tick when it is older still": {10*time.Second + time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
				minute := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
				pass(time.Until(minute.Add(c.old)))
				id := f.plan("* * * * *", 0, minute.Add(-time.Minute))
				pass(time.Second)
				if n, skipped := len(f.fires(id)), f.planned(id).Skipped; n != c.fires || skipped != int64(2-c.fires) {
					t.Errorf("%d fired and %d skipped, want %d of 2", n, skipped, c.fires)
				}
			})
		})
	}
}

func TestTheCatchupRateDelaysTicksAndSkipsNone(t *testing.T) {
	withCoordinator(t, Options{CatchupRate: 10}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		begun := time.Now()
		base := begun.UTC().Truncate(time.Second)
		slow := f.plan("* * * * * *", 100, base.Add(-200*time.Second))
		punctual := f.plan("* * * * * *", 100, base.Add(time.Second))
		pass(5 * time.Second)
		if n := len(f.fires(slow)); n < 50 || n > 65 {
			t.Errorf("%d missed ticks fired in 5 s at 10 a second, want about 60", n)
		}
		if n := len(f.fires(punctual)); n != 5 {
			t.Errorf("a schedule that missed nothing fired %d times in 5 s, want 5", n)
		}
		pass(55 * time.Second)
		skipped := f.planned(slow).Skipped
		fires := f.fires(slow)
		if want := 200 + 60 + 1 - int(skipped); len(fires) != want || skipped > 100 {
			t.Errorf("%d fired and %d skipped of 261 ticks, want 100 or less skipped and all others fired",
				len(fires), skipped)
		}
		for i := 1; i < len(fires); i++ {
			if fires[i].tick.Sub(fires[i-1].tick) != time.Second {
				t.Fatalf("tick %v follows %v: one is missing, or twice, or out of order", fires[i].tick,
					fires[i-1].tick)
			}
		}
	})
}

func TestTicksMissedAfterCatchingUpAreReplayedUpToMaxCatchup(t *testing.T) {
	for name, during := range map[string]func(f *fakeStore, id engine.ID){
		"while its namespace is disabled": func(f *fakeStore, id engine.ID) {
			f.set(func() { f.plans[id].Enabled = false }) // and not found, but without a new revision
			f.notify(engine.Notification{Kind: engine.NotifyTimer})
			pass(time.Hour)
			f.set(func() { f.plans[id].Enabled = true })
			f.notify(engine.Notification{Kind: engine.NotifyTimer})
		},
		"in an outage of the store": func(f *fakeStore, _ engine.ID) {
			f.set(func() { f.outage = true })
			pass(time.Hour)
			f.set(func() { f.outage = false })
		},
	} {
		t.Run(name, func(t *testing.T) {
			withCoordinator(t, Options{CatchupRate: 1}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
				base := time.Now().UTC().Truncate(time.Second)
				f.set(func() { f.stale = true })
				id := f.plan("* * * * * *", 3, base.Add(-15*time.Second))
				pass(time.Second)
				// another server was faster
				f.set(func() { f.stale, f.plans[id].NextFireAt = false, base.Add(2*time.Second) })
				during(f, id)
				pass(10 * time.Second)
				fires, skipped := len(f.fires(id)), f.planned(id).Skipped
				if fires > 3+10+20 || skipped < 3500 {
					t.Errorf(
						"%d ticks fired and %d were skipped after an hour with one a second, want 3 of those missed, and the others that are on time", fires, skipped)
				}
			})
		})
	}
}

func TestABrokenScheduleStopsNoOther(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
		next := time.Now().UTC().Truncate(time.Second).Add(time.Second)
		broken := f.plan("not a cron expression", 100, next)
		good := f.plan("* * * * * *", 100, next)
		pass(10 * time.Second)
		if n := len(f.fires(good)); n != 10 {
			t.Errorf("the good schedule fired %d times, want 10", n)
		}
		if len(f.fires(broken)) != 0 || f.planned(broken).Broken == "" {
			t.Errorf("the broken schedule fired %d times and says %q", len(f.fires(broken)), f.planned(broken).Broken)
		}
		if got := f.planned(broken).NextFireAt; !got.Equal(next) {
			t.Errorf("the broken schedule's next tick is %v, want %v as before", got, next)
		}
		if n := strings.Count(log.String(), "schedule is broken"); n != 1 {
			t.Errorf("said %d times that it is broken, want once", n)
		}
	})
}

func TestManyDueSchedulesDoNotDelayOtherDuties(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		const many = 200 * firesTogether
		next := time.Now().UTC().Truncate(time.Second).Add(time.Second)
		ids := make([]engine.ID, many)
		for i := range ids {
			ids[i] = f.plan(next.Format("5 4 15 2 1 ?"), 100, next)
		}
		at := next.Add(2 * time.Second)
		f.set(func() { f.slow, f.expire = 25*time.Millisecond, append(f.expire, at) })
		f.notify(engine.Notification{Kind: engine.NotifyTimer})
		pass(time.Minute)
		var last time.Time
		times := map[engine.ID]int{} // not f.fires, which goes through all
		f.set(func() {
			for _, one := range f.fired {
				times[one.schedule]++
				last = one.at
			}
		})
		for _, id := range ids {
			if n := times[id]; n != 1 {
				t.Fatalf("a schedule fired %d times, want once", n)
			}
		}
		got := f.moments(&f.expired)
		if !last.After(at.Add(time.Second)) {
			t.Fatalf("the last schedule fired at %v, want it to be after %v for this to show anything", last, at)
		}
		if len(got) != 1 || got[0].Sub(at) > 200*time.Millisecond {
			t.Errorf("a run expired at %v, want within 200 ms of %v", got, at)
		}
		if n := f.count("DueSchedules"); n > 10 {
			t.Errorf("%d looks for due schedules, want one for all of them", n)
		}
	})
}

func TestAScheduleMadeWhileManyFireTicksRightAfterThem(t *testing.T) {
	for _, kind := range []engine.NotificationKind{engine.NotifyTimer, engine.NotifyAll} {
		// of which the second tells of notifications that were lost
		withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
			const many = 100 * firesTogether
			next := time.Now().UTC().Truncate(time.Second).Add(time.Second)
			for range many {
				f.plan(next.Format("5 4 15 2 1 ?"), 100, next)
			}
			f.set(func() { f.slow = 50 * time.Millisecond })
			f.notify(engine.Notification{Kind: engine.NotifyTimer})
			pass(2 * time.Second)
			late := next.Add(2 * time.Second)
			notify := f.notify
			f.notify = func(engine.Notification) { notify(engine.Notification{Kind: kind}) }
			made := f.plan(late.Format("5 4 15 2 1 ?"), 100, late)
			pass(8 * time.Second)
			if n := len(f.fires(made)); n != 1 {
				t.Errorf("after a notification of kind %d it fired %d times, want once", kind, n)
			}
		})
	}
}

func TestAFailingScheduleDoesNotStopOthers(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		next := time.Now().UTC().Truncate(time.Second).Add(time.Second)
		heavy := f.plan("* * * * * *", 100, next)
		f.set(func() { f.heavy = heavy.String() })
		good := f.plan("* * * * * *", 100, next.Add(time.Second))
		pass(11 * time.Second)
		if n := len(f.fires(good)); n != 10 {
			t.Errorf("the other schedule fired %d times, want 10", n)
		}
		if n := f.count("FireSchedule"); n > 14 {
			t.Errorf("%d tries, want 10 of one schedule and a few of that which cannot fire", n)
		}
		f.set(func() { f.heavy = "" })
		pass(5 * time.Second)
		if n := len(f.fires(heavy)); n < 15 {
			t.Errorf("after the interval %d of its ticks have fired, want all", n)
		}
	})
}

func TestAScheduleDoesNotFireBeforeItWasRead(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		var looked time.Time // it could have been resumed just before
		f.set(func() {
			f.slow = 100 * time.Millisecond
			f.amid = func(call string) {
				if call == "DueSchedules" {
					looked = f.now()
				}
			}
		})
		id := f.plan("* * * * * *", 100, time.Now().UTC().Truncate(time.Second).Add(2*time.Second))
		pass(2500 * time.Millisecond)
		f.set(func() {
			if len(f.fired) != 1 || f.fired[0].schedule != id || f.fired[0].at.Before(looked) {
				t.Errorf("fired %v, want it once, and not before %s", f.fired, looked)
			}
		})
	})
}

func TestATickFiresThoughNothingElseIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		missed  int
		tell    func(f *fakeStore, id engine.ID)
		within  time.Duration
	}{
		"when the rate leaves nothing for a while": {
			Options{CatchupRate: 3}, 3, func(*fakeStore, engine.ID) {}, time.Second},
		"when the store could not cope with it for a while": {Options{}, 1, func(f *fakeStore, id engine.ID) {
			f.set(func() { f.heavy = id.String() })
			pass(time.Second)
			f.set(func() { f.heavy = "" })
		}, 5 * time.Second},
		"when the store went down as it was looked for": {Options{}, 1, func(f *fakeStore, _ engine.ID) {
			f.failing("DueSchedules")
		}, 6 * time.Second},
		"when the store went down as it was to fire": {Options{}, 1, func(f *fakeStore, _ engine.ID) {
			f.failing("FireSchedule")
		}, 6 * time.Second},
		"when more is due than one transaction starts": {
			Options{CatchupRate: 1000}, 950, func(*fakeStore, engine.ID) {}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			withCoordinator(t, c.options, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
				now := time.Now().UTC().Truncate(time.Hour)
				f.set(func() { f.outage = true }) // until all is planned
				var ids []engine.ID
				for range 3 {
					ids = append(ids, f.plan("0 0 * * * *", 1000, now.Add(-time.Duration(c.missed-1)*time.Hour)))
				}
				f.set(func() { f.outage = false })
				c.tell(f, ids[0])
				pass(c.within * 3)
				for i, id := range ids {
					if n := len(f.fires(id)); n != c.missed || f.planned(id).Skipped != 0 {
						t.Errorf("of %d ticks of schedule %d %d have fired, and %d are skipped", c.missed, i, n,
							f.planned(id).Skipped)
					}
				}
			})
		})
	}
}

func TestSchedulesBeyondTheLimitOfOneReadFireAtOnceToo(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		next := time.Now().UTC().Truncate(time.Hour).Add(time.Hour)
		const many = dueSchedules + 5
		notify := f.notify
		f.notify = func(engine.Notification) {}
		for range many {
			f.plan("0 0 * * * *", 100, next)
		}
		notify(engine.Notification{Kind: engine.NotifyTimer})
		pass(time.Until(next) + time.Second)
		if n := f.count("FireSchedule"); n != many {
			t.Errorf("%d of %d schedules have fired a second after their tick", n, many)
		}
	})
}

func TestANewRevisionDecidesAgainAboutMissedTicks(t *testing.T) {
	withCoordinator(t, Options{CatchupRate: 1}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		now := time.Now().UTC().Truncate(time.Hour)
		id := f.plan("0 0 * * * *", 100, now.Add(-50*time.Hour))
		pass(5 * time.Second)
		f.set(func() { f.plans[id].Revision, f.plans[id].MaxCatchup = 2, 0 })
		f.notify(engine.Notification{Kind: engine.NotifyTimer})
		pass(time.Second)
		if fires, skipped := len(f.fires(id)), int(f.planned(id).Skipped); fires > 10 || fires+skipped != 51 {
			t.Errorf(
				"%d ticks fired and %d were skipped, want few fired after the update which says that none is replayed, of 51", fires, skipped)
		}
	})
}

func TestTicksDelayedByTheRateDoNotCountAsMissedAgain(t *testing.T) {
	withCoordinator(t, Options{CatchupRate: 1}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		base := time.Now().UTC().Truncate(time.Second)
		ids := []engine.ID{f.plan("* * * * * *", 5, base.Add(-time.Minute)),
			f.plan("* * * * * *", 5, base.Add(-time.Minute))}
		skipped := func() (n int64) {
			f.set(func() { n = f.plans[ids[0]].Skipped + f.plans[ids[1]].Skipped })
			return n
		}
		pass(2 * time.Second) // both have been looked at
		before := skipped()
		pass(8 * time.Second) // in which more becomes due than the rate lets through
		if now := skipped(); before == 0 || now != before {
			t.Errorf("%d ticks are skipped at first and %d later, want those beyond the limit of each and no others",
				before, now)
		}
	})
}

func TestTheCatchupRateDoesNotAccumulate(t *testing.T) {
	withCoordinator(t, Options{CatchupRate: 10}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		for range 2 {
			id := f.plan("0 * * * * *", 100, time.Now().UTC().Truncate(time.Minute).Add(-60*time.Minute))
			pass(time.Second)
			if n := len(f.fires(id)); n > 21 {
				t.Errorf(
					"%d missed ticks fired within a second, want at most the rate of a second at once and that of a second more", n)
			}
			pass(time.Hour)
		}
	})
}

func TestAnEndedScheduleIsNotReadAgain(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		next := time.Now().UTC().Truncate(time.Second).Add(time.Second)
		id := f.plan(next.Format("5 4 15 2 1 ? 2006"), 100, next)
		pass(2 * time.Second)
		if len(f.fires(id)) != 1 || !f.planned(id).NextFireAt.IsZero() {
			t.Fatalf("fired %d times, next at %v, want once and never again", len(f.fires(id)), f.planned(id).NextFireAt)
		}
		looks := f.count("DueSchedules")
		pass(time.Hour)
		if n := f.count("DueSchedules") - looks; n != 0 {
			t.Errorf("%d looks at schedules in an hour without any, want none", n)
		}
	})
}

func TestARunExpiresAtItsMoment(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		at := time.Now().Add(1234 * time.Millisecond)
		f.set(func() { f.expire = append(f.expire, at.UTC()) })
		f.notify(engine.Notification{Kind: engine.NotifyTimer})
		pass(2 * time.Second)
		got := f.moments(&f.expired)
		if len(got) != 1 || got[0].Sub(at).Abs() > time.Millisecond {
			t.Fatalf("expired at %v, want at %v", got, at)
		}
	})
}

func TestAScheduleReadBetweenItsTicksFiresNone(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		hour := f.Now().Truncate(time.Hour).Add(time.Hour)
		id := f.plan("0 * * * *", 100, f.Now().Add(time.Second+time.Microsecond))
		pass(time.Minute)
		if n, fires := f.count("FireSchedule"), f.fires(id); n != 1 || len(fires) != 0 {
			t.Fatalf("looked at %d times with %d ticks, want once with none", n, len(fires))
		}
		pass(hour.Sub(f.Now()) + time.Second)
		if fires := f.fires(id); len(fires) != 1 || !fires[0].tick.Equal(hour) {
			t.Errorf("fired %v, want the tick of %s alone", fires, hour)
		}
	})
}
