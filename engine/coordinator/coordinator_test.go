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
