package coordinator

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestASilentWorkerIsTakenOffAfterLeaseHeartbeatAndASecond(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		begun := time.Now()
		f.register("w1")
		pass(41*time.Second - time.Millisecond)
		if at, ok := f.taken("w1"); ok {
			t.Fatalf("the worker was deregistered after %v, want 41s", at.Sub(begun))
		}
		pass(2 * time.Millisecond)
		if at, ok := f.taken("w1"); !ok || at.Sub(begun).Round(time.Millisecond) != 41*time.Second {
			t.Fatalf("deregistered: %v after %v, want after 41s", ok, at.Sub(begun))
		}
	})
}

func TestAWorkerThatCannotBeDeregisteredDoesNotStopOthers(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.heavy = "a" })
		f.register("a")
		f.register("b")
		pass(42 * time.Second)
		if got := f.offlineIDs(); !slices.Equal(got, []string{"b"}) {
			t.Errorf("deregistered: %q, want b", got)
		}
		if n := f.count("ForceOfflineWorker"); n != 2 {
			t.Errorf("%d tries, want one for each", n)
		}
		pass(time.Minute)
		if n := f.count("ForceOfflineWorker"); n < 4 {
			t.Errorf("a was tried %d times, want more", n-1)
		}
	})
}

func TestManyLostWorkersDoNotDelayOtherDuties(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		const many = 1000
		for i := range many {
			f.register(fmt.Sprintf("w-%03d", i))
		}
		f.beatEvery(t, "alive", 10*time.Second)
		f.register("alive")
		f.set(func() { f.slow = 20 * time.Millisecond })
		id := f.plan("* * * * * *", 100, time.Now().Truncate(time.Second).Add(time.Second))
		pass(90 * time.Second)
		if got := f.offlineIDs(); len(got) != many || slices.Contains(got, "alive") {
			t.Errorf("%d workers were deregistered, want the %d silent ones", len(got), many)
		}
		for _, one := range f.fires(id) {
			if late := one.at.Sub(one.tick); late > 500*time.Millisecond {
				t.Errorf("the tick of %v was %v late, want at most 500ms", one.tick, late)
				break
			}
		}
	})
}

func TestAHeartbeatOfASuspectKeepsTheWorker(t *testing.T) {
	for _, after := range []time.Duration{30*time.Second + time.Millisecond, 35 * time.Second,
		41*time.Second - time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
				f.register("w1")
				pass(after)
				f.beat("w1")
				heard := time.Now()
				pass(40 * time.Second)
				if at, ok := f.taken("w1"); ok {
					t.Fatalf("deregistered %v after its beat, want 41s", at.Sub(heard))
				}
				pass(2 * time.Second)
				if _, ok := f.taken("w1"); !ok {
					t.Fatal("silent for 42s since its last beat and still there")
				}
			})
		})
	}
}

func TestHealthyWorkersAreRarelyChecked(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		for i := range 100 {
			id := fmt.Sprint("w", i)
			f.register(id)
			f.beatEvery(t, id, 10*time.Second)
			pass(73 * time.Millisecond)
		}
		pass(time.Minute)
		before, looks := f.total(), f.count("LiveWorkers")
		pass(time.Hour)
		looks = f.count("LiveWorkers") - looks
		if looks > 180 || looks < 100 {
			t.Errorf("%d looks at the workers in an hour, want one every 20 to 30 s", looks)
		}
		if other := f.total() - before - looks; other != 0 {
			t.Errorf("%d other calls in an hour in which nothing was due, want none: %v", other, f.asked())
		}
		if gone := f.offlineIDs(); len(gone) != 0 {
			t.Errorf("workers that beat were deregistered: %v", gone)
		}
	})
}

func TestAnIdleCoordinatorSendsNoQueries(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
		pass(time.Minute) // the first look for old runs
		before := f.total()
		pass(time.Hour)
		f.notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: "default", Name: "q"})
		f.notify(engine.Notification{Kind: engine.NotifyRun})
		pass(time.Hour)
		if calls := f.total() - before; calls != 0 {
			t.Fatalf("%d calls in two idle hours, want none: %v", calls, f.asked())
		}
		f.register("w1")
		pass(42 * time.Second)
		if _, ok := f.taken("w1"); !ok {
			t.Fatal("a worker that registered after the idle hours and fell silent was not taken off")
		}
		pass(time.Minute)
		before = f.total()
		pass(time.Hour)
		if calls := f.total() - before; calls != 0 {
			t.Fatalf("%d calls in the hour after the last worker went, want none: %v", calls, f.asked())
		}
		f.set(func() { f.offset = -time.Minute })
		f.register("w2")
		if pass(time.Second); log.Len() > 0 && strings.Contains(log.String(), "clock") ||
			strings.Contains(log.String(), "did not run for a while") {
			t.Errorf("the clocks parted while nothing was waited for, and it says:\n%s", log)
		}
	})
}

func TestACheckOfAnotherWorkerDoesNotDelayASuspect(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.register("silent")
		pass(35 * time.Second) // and suspected
		f.register("other")
		f.notify(engine.Notification{Kind: engine.NotifyAll})
		f.beatEvery(t, "other", 10*time.Second)
		pass(6*time.Second + 10*time.Millisecond)
		if _, ok := f.taken("silent"); !ok {
			t.Error("the silent worker is still there after a lease, a heartbeat and a second")
		}
	})
}

func TestOnlyTheServerThatDeregisteredAWorkerReportsIt(t *testing.T) {
	n := &notebook{}
	withCoordinator(t, Options{Observer: n}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
		f.register("theirs")
		f.register("ours")
		f.set(func() {
			f.amid = func(call string) {
				if call == "ForceOfflineWorker" { // another server has looked twice as well
					f.amid = nil
					delete(f.workers, "theirs")
					f.offline["theirs"] = time.Now()
				}
			}
		})
		pass(42 * time.Second)
		if want := []string{"worker lost 1", "leases lost 1"}; !slices.Equal(n.others, want) {
			t.Errorf("heard %q, want %q", n.others, want)
		}
		if lost := strings.Count(log.String(), `msg="worker lost"`); lost != 1 ||
			!strings.Contains(log.String(), "worker=ours") {
			t.Errorf("the log tells of %d lost workers, want ours alone:\n%s", lost, log)
		}
	})
}

func TestAWorkerHeardAtTheLastMomentIsCheckedAgain(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
		f.register("w")
		f.set(func() {
			f.amid = func(call string) {
				if call == "ForceOfflineWorker" {
					f.amid, f.workers["w"] = nil, f.now()
				}
			}
		})
		pass(42 * time.Second)
		if _, ok := f.taken("w"); ok || f.count("ForceOfflineWorker") != 1 {
			t.Fatalf("deregistered: %t, after %d tries, want that it was heard within the first", ok,
				f.count("ForceOfflineWorker"))
		}
		var told string
		f.set(func() { told = log.String() })
		if strings.Contains(told, "worker lost") {
			t.Errorf("the log tells that it was lost:\n%s", told)
		}
		pass(42 * time.Second)
		if _, ok := f.taken("w"); !ok {
			t.Error("it is still there after 42 s of silence")
		}
	})
}

func TestDutiesThatTheClockSkippedRunWithinTheInterval(t *testing.T) {
	withCoordinator(t, Options{Net: time.Minute}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
		f.timeoutAt(time.Now().Add(3 * time.Hour))
		pass(time.Minute)
		f.set(func() { f.offset = 4 * time.Hour })
		pass(5 * time.Second)
		if n := len(f.moments(&f.ended)); n != 1 {
			t.Errorf("%d attempts timed out, want the one whose moment the clock has passed over", n)
		}
		f.set(func() { f.offset = 0 })
		pass(5 * time.Second)
		f.set(func() { f.workers["quiet"] = f.now() })
		pass(time.Minute + 12*time.Second)
		if _, ok := f.taken("quiet"); !ok {
			t.Error("after the clock was set back nothing is looked at but what notifies")
		}
	})
}

func TestTheNetCatchesAWorkerWhoseNotificationWasLost(t *testing.T) {
	withCoordinator(t, Options{Net: 5 * time.Minute}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.workers["quiet"] = f.now() })
		pass(5*time.Minute + 12*time.Second)
		if _, ok := f.taken("quiet"); !ok {
			t.Fatal("a silent worker that nobody notified for is still there after 5 minutes and 12 seconds")
		}
		pass(time.Minute)
		looks := f.count("LiveWorkers")
		pass(time.Hour)
		if looks = f.count("LiveWorkers") - looks; looks != 12 {
			t.Fatalf("%d looks in an idle hour, want 12", looks)
		}
	})
}

func TestAnOutageOfTheStoreDeregistersNobody(t *testing.T) {
	for _, begins := range []time.Duration{5 * time.Second, 29 * time.Second, 31 * time.Second, 40 * time.Second} {
		t.Run(begins.String(), func(t *testing.T) {
			withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
				for i := range 50 {
					id := fmt.Sprint("w", i)
					f.register(id)
					f.beatEvery(t, id, 10*time.Second)
				}
				f.register("dead")
				pass(begins)
				f.set(func() { f.outage = true })
				pass(2 * time.Minute)
				f.set(func() { f.outage = false })
				over := time.Now()
				pass(10 * time.Second)
				if gone := f.offlineIDs(); len(gone) != 0 {
					t.Fatalf("deregistered by an outage: %v", gone)
				}
				pass(10 * time.Second)
				at, ok := f.taken("dead")
				if !ok || at.Sub(over) < 11*time.Second {
					t.Errorf("the dead worker was deregistered: %v, %v after the outage, want 11s or a little more", ok,
						at.Sub(over))
				}
				if gone := f.offlineIDs(); len(gone) != 1 {
					t.Errorf("deregistered: %v, want the dead worker only", gone)
				}
				failed, well := strings.Count(log.String(), "task failed"), strings.Count(log.String(), "works again")
				if failed == 0 || failed > 3 || well != failed {
					t.Errorf("logged %d failures and %d recoveries, want one each for each duty that was due:\n%s",
						failed, well, log)
				}
			})
		})
	}
}

func TestAShortOutageResetsSuspects(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		begun := time.Now()
		f.register("w1")
		pass(33500 * time.Millisecond)
		f.set(func() { f.outage = true })
		pass(2 * time.Second)
		f.set(func() { f.outage = false })
		pass(41*time.Second - time.Since(begun) + time.Millisecond)
		if _, ok := f.taken("w1"); ok {
			t.Fatal("the second check counted although the store was away in between")
		}
		pass(12 * time.Second)
		if _, ok := f.taken("w1"); !ok {
			t.Fatal("the worker is still there although two more looks found it silent")
		}
	})
}

func TestASlowStoreCountsAsAnOutage(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.register("w1")
		pass(30500 * time.Millisecond)
		f.set(func() { f.slow = 6 * time.Second })
		pass(2 * time.Second)
		f.set(func() { f.slow = 0 })
		pass(10 * time.Second)
		if _, ok := f.taken("w1"); ok {
			t.Fatal("the second check counted although the store took 6s to answer in between")
		}
		pass(11 * time.Second)
		if _, ok := f.taken("w1"); !ok {
			t.Fatal("the worker is still there although two more looks found it silent")
		}
	})
}

func TestAProcessThatWasStoppedDiscardsLiveness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		c := New(newFakeStore(), Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		c.checkClock()
		c.clock.sleep(time.Now().Add(time.Second), true)
		c.seen["w1"] = liveness{}
		time.Sleep(5 * time.Second)
		c.checkClock()
		if len(c.seen) != 1 {
			t.Fatal("what was seen was forgotten after waking 4s late, want that from 5s on")
		}
		c.clock.sleep(time.Now().Add(time.Second), true)
		time.Sleep(7 * time.Second)
		c.checkClock()
		if len(c.seen) != 0 || !strings.Contains(log.String(), "did not run for a while") {
			t.Fatalf("what was seen was kept, or nothing said, although the process woke 6s late: %s", log)
		}
	})
}

func TestAClockJumpDeregistersNobody(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 40 * time.Second} {
		t.Run(jump.String(), func(t *testing.T) {
			withCoordinator(t, Options{Retention: time.Hour}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
				f.register("alive")
				f.beatEvery(t, "alive", 10*time.Second)
				f.register("dead")
				pass(35 * time.Second)
				f.set(func() { f.offset = jump })
				jumped := time.Now()
				pass(5 * time.Minute)
				if _, ok := f.taken("alive"); ok {
					t.Error("a worker that beats was deregistered")
				}
				at, ok := f.taken("dead")
				if least := 11 * time.Second; !ok || at.Sub(jumped) < least || at.Sub(jumped) > 47*time.Second {
					t.Errorf("the dead worker was deregistered: %v, %v after the jump, want from 11s to 47s", ok,
						at.Sub(jumped))
				}
				if n := strings.Count(log.String(), "the clock jumped"); n != 1 {
					t.Errorf("the jump was logged %d times, want once:\n%s", n, log)
				}
				if f.count("Prune") != 0 {
					t.Error("old runs were deleted right after the clock had jumped")
				}
			})
		})
	}
}

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

func TestRunsThatOutliveTheirLostWorkerAreFreedAtTheirMoment(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		begun := time.Now()
		f.register("w1")
		f.set(func() { f.runs = append(f.runs, begun.Add(2*time.Minute).UTC()) })
		pass(3 * time.Minute)
		freed := f.moments(&f.freed)
		if len(freed) != 1 || freed[0].Sub(begun) < 2*time.Minute ||
			freed[0].Sub(begun) > 2*time.Minute+time.Millisecond {
			t.Fatalf("freed at %v, want 2m after %v", freed, begun)
		}
	})
}

func TestRunsThatOutliveAWorkerWhichAnotherServerTookOffAreFreedAtTheirMoment(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		begun := time.Now()
		f.register("w1")
		pass(35 * time.Second)
		f.set(func() { // by a server that ends right after, and has told nobody
			delete(f.workers, "w1")
			f.runs = append(f.runs, begun.Add(2*time.Minute).UTC())
		})
		pass(3 * time.Minute)
		freed := f.moments(&f.freed)
		if len(freed) != 1 || freed[0].Sub(begun) < 2*time.Minute ||
			freed[0].Sub(begun) > 2*time.Minute+time.Millisecond {
			t.Fatalf("freed at %v, want 2m after %v", freed, begun)
		}
	})
}

// Neither the answer nor a list tells of the worker: it is OFFLINE, and was live when it was last
// looked at or nobody knows of it.
func TestRunsThatOutliveAWorkerAreFreedThoughNobodyHeardThatItWasTakenOff(t *testing.T) {
	for what, off := range map[string]func(f *fakeStore){
		"the answer was lost": func(f *fakeStore) {
			f.set(func() { f.unanswered = "w1" })
			pass(time.Minute)
			if n := f.count("ForceOfflineWorker"); n != 1 {
				t.Errorf("it was deregistered %d times, want once", n)
			}
		},
		"another server did in an outage": func(f *fakeStore) {
			pass(10 * time.Second)
			f.set(func() { f.outage = true })
			pass(25 * time.Second)
			f.set(func() {
				delete(f.workers, "w1")
				f.outage = false
			})
		},
	} {
		t.Run(what, func(t *testing.T) {
			withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
				begun := time.Now()
				f.register("w1")
				pass(time.Second)
				f.set(func() { f.runs = append(f.runs, begun.Add(2*time.Minute).UTC()) })
				off(f)
				pass(3 * time.Minute)
				freed := f.moments(&f.freed)
				if len(freed) != 1 || freed[0].Sub(begun) < 2*time.Minute ||
					freed[0].Sub(begun) > 2*time.Minute+time.Millisecond {
					t.Fatalf("freed at %v, want 2m after %v", freed, begun)
				}
			})
		})
	}
}

func TestOldRunsAreDeletedHourlyInBatches(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.old = 250 })
		pass(59 * time.Second)
		if n := f.count("ListNamespaces"); n != 0 {
			t.Fatalf("%d sweeps in the first minute, want none", n)
		}
		pass(2 * time.Second)
		if n := f.count("ListNamespaces"); n != 1 || f.oldRuns() != 0 {
			t.Fatalf("%d sweeps and %d old runs left, want one and none", n, f.oldRuns())
		}
		if n := f.count("Prune"); n != len(outcomes)+3 {
			t.Fatalf(
				"%d batches, want one of each outcome and of COMPLETED runs 3 more, the last of which finds nothing", n)
		}
		pass(24 * time.Hour)
		if n := f.count("ListNamespaces"); n != 25 {
			t.Errorf("%d sweeps after a day, want 25", n)
		}
	})
}

func TestOldRunsAreDeletedAlthoughTheClockJumpsEveryHalfAnHour(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		pass(2 * time.Minute)
		f.set(func() { f.old = 1 })
		for range 4 {
			pass(30 * time.Minute)
			f.set(func() { f.offset += time.Minute })
		}
		if n := f.oldRuns(); n != 0 {
			t.Errorf("%d old runs are left after two hours of jumps, want none", n)
		}
	})
}

func TestABatchOfHeavyRunsThatWasCutShortIsNotTheLast(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.old, f.atOnce = 10, 3 })
		pass(61 * time.Second)
		if n := f.oldRuns(); n != 0 {
			t.Errorf("%d old runs are left, want none", n)
		}
	})
}

func TestANamespaceWhoseRunsCannotBeDeletedKeepsNoOther(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.old, f.heavy, f.spaces = 10, "a", slices.Insert(f.spaces, 0, engine.Namespace{Name: "a"}) })
		pass(61 * time.Second)
		if n := f.oldRuns(); n != 0 {
			t.Errorf("%d old runs are left in the other namespace, want none", n)
		}
		if n := f.count("PruneRecords"); n == 0 {
			t.Error("old records were not deleted")
		}
	})
}

func TestAFailingOutcomeDoesNotStopOthers(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
		f.set(func() { f.old, f.heavy = 250, "default CANCELLED" })
		pass(61 * time.Second)
		tried := map[engine.RunStatus]int{}
		f.set(func() {
			for _, p := range f.pruned {
				tried[p.Status]++
			}
		})
		for _, status := range outcomes {
			if status != engine.RunCancelled && tried[status] == 0 {
				t.Errorf("%s runs were not deleted", status)
			}
		}
		pass(time.Minute)
		if n := f.oldRuns(); n != 0 {
			t.Errorf("%d old runs are left, want none", n)
		}
		if !strings.Contains(log.String(), "CANCELLED") {
			t.Errorf("log = %s, want it to name the outcome", log)
		}
	})
}

func TestADutyThatFailsWhileTheStoreIsWellLetsLostWorkersBeFound(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.heavy, f.spaces = "a", slices.Insert(f.spaces, 0, engine.Namespace{Name: "a"}) })
		pass(2 * time.Minute) // from the first of these on, its runs cannot be deleted
		if n := f.count("Prune"); n < 5 {
			t.Fatalf("Prune was called %d times, want one try after another", n)
		}
		f.register("w")
		pass(42 * time.Second)
		if got := f.offlineIDs(); !slices.Equal(got, []string{"w"}) {
			t.Errorf("deregistered after a lease, a heartbeat and a second: %q, want w", got)
		}
	})
}

func TestOldRunsOfManyNamespacesDoNotDelayOtherDuties(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() {
			f.old, f.slow = 1_000_000, 20*time.Millisecond // of which a minute deletes few
			for i := range 200 {
				f.spaces = append(f.spaces, engine.Namespace{Name: fmt.Sprintf("space-%03d", i), Enabled: true})
			}
		})
		pass(61 * time.Second)
		id := f.plan("* * * * * *", 100, time.Now().Truncate(time.Second).Add(time.Second))
		f.register("w")
		pass(43 * time.Second)
		if got := f.offlineIDs(); !slices.Equal(got, []string{"w"}) {
			t.Errorf("deregistered after a lease, a heartbeat and two seconds: %q, want w", got)
		}
		fires := f.fires(id)
		if len(fires) < 42 {
			t.Errorf("%d ticks in 43 s, want one a second", len(fires))
		}
		for _, one := range fires {
			if late := one.at.Sub(one.tick); late > 500*time.Millisecond {
				t.Errorf("the tick of %v was %v late, want at most 500ms", one.tick, late)
				break
			}
		}
		pass(3 * time.Minute)
		seen := map[string]bool{}
		f.set(func() {
			for _, p := range f.pruned {
				seen[p.Namespace] = true
			}
		})
		if len(seen) != 201 {
			t.Errorf("runs of %d namespaces were looked at, want all 201", len(seen))
		}
	})
}

func TestABacklogIsDeletedWithoutReadingOtherNamespaces(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		const many = 200
		f.set(func() {
			f.old, f.changes, f.slow = 20_000, 1000, time.Millisecond
			for i := range many {
				f.spaces = append(f.spaces, engine.Namespace{Name: fmt.Sprintf("space-%03d", i), Enabled: true})
			}
		})
		pass(2 * time.Minute)
		if n := f.oldRuns(); n != 0 {
			t.Errorf("%d old runs are left, want none", n)
		}
		if n, most := f.count("Prune"), (many+1)*len(outcomes)+200; n > most {
			t.Errorf("%d batches, want at most %d", n, most)
		}
	})
}

func TestAnEndlessBacklogDelaysOthersForAMinuteAtMost(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.old, f.slow = 1<<40, time.Second })
		pass(2 * time.Minute)
		f.set(func() { f.spaces = append(f.spaces, engine.Namespace{Name: "later", Enabled: true}) })
		pass(90 * time.Second)
		asked := false
		f.set(func() {
			for _, p := range f.pruned {
				asked = asked || p.Namespace == "later"
			}
		})
		if !asked || f.oldRuns() == 0 {
			t.Errorf("asked %v, and %d old runs left, want the other namespace to be asked in spite of these", asked,
				f.oldRuns())
		}
	})
}

func TestAChangedRetentionAppliesDuringABacklog(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.old, f.slow = 1<<40, 20*time.Millisecond })
		pass(firstPrune + 5*time.Second)
		f.set(func() { f.spaces[0].Retention = 7200 * time.Hour })
		f.notify(engine.Notification{Kind: engine.NotifyAll})
		pass(time.Second)
		f.set(func() { f.pruned = nil })
		pass(time.Second)
		f.set(func() {
			for _, p := range f.pruned {
				if age := f.now().Sub(p.Before); age < 7200*time.Hour {
					t.Fatalf("runs are deleted that ended %v ago, want those of 7200h", age)
				}
			}
			if len(f.pruned) == 0 {
				t.Error("nothing is deleted any more")
			}
		})
	})
}

func TestFailingNamespacesAreLoggedOnce(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
		f.set(func() {
			f.heavy, f.slow = "space-030", 20*time.Millisecond
			for i := range 60 {
				f.spaces = append(f.spaces, engine.Namespace{Name: fmt.Sprintf("space-%03d", i), Enabled: true})
			}
		})
		pass(3 * time.Minute)
		if got := log.String(); strings.Count(got, "upkeep task failed") != 1 ||
			strings.Contains(got, "works again") {
			t.Errorf("log = %s, want one warning", got)
		}
		f.set(func() { f.heavy = "" })
		pass(time.Minute)
		if got := log.String(); strings.Count(got, "works again") != 1 {
			t.Errorf("log = %s, want it to tell once that deleting works again", got)
		}
	})
}

func TestANamespaceAndAnOutcomeHaveARetentionOfTheirOwn(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() {
			f.spaces = append(f.spaces, engine.Namespace{
				Name: "short", Retention: time.Hour, Keep: map[engine.RunStatus]time.Duration{
					engine.RunFailed: 48 * time.Hour}})
		})
		pass(61 * time.Second)
		got := map[string]time.Duration{}
		f.set(func() {
			for _, p := range f.pruned {
				got[p.Namespace+" "+p.Status.String()] = f.now().Add(-time.Second).Sub(p.Before)
			}
		})
		for key, want := range map[string]time.Duration{
			"default COMPLETED": 720 * time.Hour, "default FAILED": 720 * time.Hour,
			"default TIMED_OUT": 720 * time.Hour,
			"short COMPLETED":   time.Hour, "short FAILED": 48 * time.Hour, "short CANCELLED": time.Hour,
			"short TERMINATED": time.Hour,
		} {
			if got[key] != want {
				t.Errorf("%s runs are kept for %v, want %v", key, got[key], want)
			}
		}
	})
}

func TestOneRetentionIsEnoughToDeleteHourly(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		space   engine.Namespace
		late    bool
	}{
		"of the server":  {options: Options{Retention: time.Hour}},
		"of the audit":   {options: Options{AuditRetention: time.Hour}},
		"of a namespace": {space: engine.Namespace{Retention: time.Hour}},
		"of an outcome in a namespace": {space: engine.Namespace{
			Keep: map[engine.RunStatus]time.Duration{engine.RunFailed: time.Hour}}},
		"of a namespace, later on": {space: engine.Namespace{Retention: time.Hour}, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			withCoordinator(t, c.options, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
				c.space.Name = "aaa" // and "default" after it, which has none
				if c.late {
					pass(2 * time.Hour)
				}
				f.set(func() { f.spaces = append([]engine.Namespace{c.space}, f.spaces...) })
				f.notify(engine.Notification{Kind: engine.NotifyAll})
				pass(time.Hour + time.Minute)
				before := f.total()
				pass(time.Hour)
				if f.total() == before {
					t.Error("nothing is deleted in the next hour")
				}
			})
		})
	}
}

func TestDeletingContinuesAfterAnOutage(t *testing.T) {
	for _, call := range []string{"ListNamespaces", "Prune", "PruneRecords"} {
		t.Run(call, func(t *testing.T) {
			withCoordinator(t, Options{Retention: time.Hour, AuditRetention: time.Hour},
				func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
					f.set(func() { f.old, f.changes = 1, 1 })
					f.failing(call)
					pass(time.Minute)
					calls := f.total()
					pass(4 * time.Second)
					if n := f.total() - calls; n > 0 {
						t.Errorf("%d calls within the pause after an error", n)
					}
					pass(2 * time.Second)
					if f.old != 0 || f.changes != 0 || strings.Count(log.String(), "upkeep task failed") != 1 {
						t.Errorf("%d runs and %d audit events are left, and it says:\n%s", f.old, f.changes, log)
					}
				})
		})
	}
}

func TestNamespacesOnLaterPagesAreCleanedToo(t *testing.T) {
	withCoordinator(t, Options{Retention: time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		const many = 2*engine.MaxPage + 5
		f.set(func() {
			f.spaces = nil
			for i := range many {
				f.spaces = append(f.spaces, engine.Namespace{Name: fmt.Sprintf("space-%04d", i)})
			}
		})
		pass(61 * time.Second)
		if n := len(f.pruned); n != many*len(outcomes) {
			t.Errorf("%d outcomes of namespaces were looked at, want each once, %d", n, many*len(outcomes))
		}
	})
}

func TestOldRecordsAreDeletedInBatches(t *testing.T) {
	withCoordinator(t, Options{Retention: 720 * time.Hour, AuditRetention: 9600 * time.Hour},
		func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
			f.set(func() { f.changes = 250 })
			pass(61 * time.Second)
			f.set(func() {
				if len(f.records) != 3 || f.changes != 0 {
					t.Fatalf("%d sweeps and %d audit events left, want 3 and none", len(f.records), f.changes)
				}
				now := f.now().Add(-time.Second)
				p := f.records[0]
				if now.Sub(p.Workers) != 720*time.Hour || now.Sub(p.Fires) != 720*time.Hour ||
					now.Sub(p.Audit) != 9600*time.Hour {
					t.Errorf("sweep = %+v, want workers and ticks of 720h ago and audit events of 9600h ago", p)
				}
			})
		})
	withCoordinator(t, Options{AuditRetention: time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.changes = 1 })
		pass(61 * time.Second)
		f.set(func() {
			if len(f.records) != 1 || !f.records[0].Workers.IsZero() || !f.records[0].Fires.IsZero() ||
				f.changes != 0 || len(f.pruned) != 0 {
				t.Errorf("sweeps = %+v, want one that deletes audit events only", f.records)
			}
		})
	})
}

func TestWithoutRetentionNothingIsDeleted(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.old = 250 })
		pass(24 * time.Hour)
		if n := f.count("Prune"); n != 0 {
			t.Fatalf("%d sweeps, want none", n)
		}
	})
}

func TestWorkersHaveALeaseToComeBackAfterDowntime(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.workers["cut off"] = f.now().Add(-10 * time.Minute) }) // the server was down meanwhile
		f.notify(engine.Notification{Kind: engine.NotifyAll})
		pass(40 * time.Second)
		if _, ok := f.taken("cut off"); ok {
			t.Fatal("the worker was deregistered for a silence in which no server ran")
		}
		pass(2 * time.Second)
		if _, ok := f.taken("cut off"); !ok {
			t.Fatal("42 s after the server's return the silent worker is still there")
		}
	})
}
