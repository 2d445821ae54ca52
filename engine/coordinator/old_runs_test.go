package coordinator

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

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
					f.set(func() {
						if f.old != 0 || f.changes != 0 || strings.Count(log.String(), "upkeep task failed") != 1 {
							t.Errorf("%d runs and %d audit events are left, and it says:\n%s", f.old, f.changes, log)
						}
					})
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
		f.set(func() {
			if n := len(f.pruned); n != many*len(outcomes) {
				t.Errorf("%d outcomes of namespaces were looked at, want each once, %d", n, many*len(outcomes))
			}
		})
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
