package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/backup"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/migrations"
)

func migrationsOf(t *testing.T) []migrations.Migration {
	t.Helper()
	list, err := migrations.List("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// hourly makes a schedule whose next tick was so long ago.
func hourly(t *testing.T, s *Store, ago time.Duration) engine.Schedule {
	t.Helper()
	return hourlyIn(t, s, "default", ago)
}

func hourlyIn(t *testing.T, s *Store, namespace string, ago time.Duration) engine.Schedule {
	t.Helper()
	now := s.Now()
	made, err := s.CreateSchedule(t.Context(), engine.ScheduleParams{
		Schedule: engine.Schedule{ID: engine.NewID(now), Namespace: namespace, CronExpr: "0 * * * *", Enabled: true,
			Queue: "q", Type: "t", MaxCatchup: 100,
			CreatedAt: now, UpdatedAt: now, NextFireAt: engine.Micros(now.Add(-ago)), Revision: 1},
		Method: "CreateWorkflowSchedule", AuditID: engine.NewID(now), Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// every returns ticks each hour from the schedule's NextFireAt on.
func every(s *engine.Schedule, now time.Time) (time.Time, int64, error) {
	n := int64(now.Sub(s.NextFireAt)/time.Hour) + 1
	return s.NextFireAt.Add(time.Duration(n) * time.Hour), n, nil
}

func restoreInto(t *testing.T, target string, p engine.RestoreParams) engine.Restoration {
	t.Helper()
	if p.Now.IsZero() {
		p.Now = engine.Micros(time.Now())
	}
	done, err := Restore(t.Context(), target, p)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// withoutLock removes the lock's line, which names its last holder.
func withoutLock(contents string) string {
	lines := slices.DeleteFunc(strings.Split(contents, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "kagzi.db.lock ")
	})
	return strings.Join(lines, "\n")
}

func TestRestore(t *testing.T) {
	t.Run("what workers held is handed out again, without a loss, and their tokens are dead", func(t *testing.T) {
		s := busy(t)
		held, err := s.HeldBy(t.Context(), "w1")
		if err != nil || len(held) == 0 {
			t.Fatalf("held = %v (%v)", held, err)
		}
		b := backupOfStore(t, s)
		done := restoreInto(t, filepath.Join(t.TempDir(), "kagzi.db"), engine.RestoreParams{File: b.File})
		if done.Changed.Leases != len(held) || done.Changed.Workers != 1 {
			t.Errorf("changed = %+v, want %d leases and a worker", done.Changed, len(held))
		}
		r := openAt(t, done.Database)
		if findings, err := Check(t.Context(), r.path); err != nil || len(findings) > 0 {
			t.Errorf("findings = %v (%v), want none", findings, err)
		}
		for _, h := range held {
			run, err := r.GetRun(t.Context(), "default", h.Lease.RunID)
			if err != nil || run.Status != engine.RunPending || run.AvailableAt.IsZero() || run.LeaseLosses != 0 {
				t.Errorf("run = %+v (%v), want it due, with no loss", run, err)
			}
			if _, err := r.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: h.Lease, Now: r.Now()}); !errors.Is(
				err, engine.ErrLeaseLost) {
				t.Errorf("the old token: %v, want its lease lost", err)
			}
			steps, _, err := r.ListSteps(t.Context(), "default", h.Lease.RunID, engine.StepFilter{}, engine.Page{Limit: 10})
			for _, step := range steps {
				if err != nil || step.Open() {
					t.Errorf("step = %+v (%v), want no attempt under way", step, err)
				}
			}
		}
		if w, err := r.GetWorker(t.Context(), "w1"); err != nil || w.Status != engine.WorkerOffline || w.Active != 0 {
			t.Errorf("worker = %+v (%v), want it offline", w, err)
		}
		if fact := factsOf(t, r)["restored"]; !strings.Contains(fact, "SHA-256") {
			t.Errorf("fact = %q, want that it was restored, and from what", fact)
		}
		if _, ok := factsOf(t, r)["backup"]; ok {
			t.Error("it calls itself a backup still")
		}
	})
	t.Run("ticks since the backup are skipped and counted, unless they are to fire", func(t *testing.T) {
		s := fresh(t)
		schedule := hourly(t, s, 150*time.Minute)
		b := backupOfStore(t, s)
		for _, refire := range []bool{false, true} {
			done := restoreInto(t, filepath.Join(t.TempDir(), "kagzi.db"),
				engine.RestoreParams{File: b.File, Next: every, Refire: refire})
			got, err := openAt(t, done.Database).GetSchedule(t.Context(), "default", schedule.ID.String())
			if err != nil {
				t.Fatal(err)
			}
			next, skipped := schedule.NextFireAt.Add(3*time.Hour), int64(3)
			if refire {
				next, skipped = schedule.NextFireAt, 0
			}
			if !got.NextFireAt.Equal(next) || got.Skipped != skipped || done.Changed.Ticks != skipped {
				t.Errorf("refire %v: next = %s with %d skipped (%d told), want %s and %d", refire, got.NextFireAt,
					got.Skipped, done.Changed.Ticks, next, skipped)
			}
		}
	})
	t.Run(
		"ticks of what was paused when the backup was taken are skipped and counted, for it may have been resumed since", func(t *testing.T) {
			s := fresh(t)
			paused, closed := hourly(t, s, 150*time.Minute), hourlyIn(t, s, "closed", 90*time.Minute)
			now := s.Now()
			p := engine.ScheduleParams{Schedule: paused, Method: "PauseWorkflowSchedule",
				AuditID: engine.NewID(now), Now: now}
			p.Schedule.Enabled = false
			if _, err := s.UpdateSchedule(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if _, err := s.UpdateNamespace(t.Context(), engine.NamespaceParams{
				Namespace: engine.Namespace{Name: "closed"}, Method: "DisableNamespace",
				AuditID: engine.NewID(now), Now: now,
			}); err != nil {
				t.Fatal(err)
			}
			b := backupOfStore(t, s)
			for _, refire := range []bool{false, true} {
				done := restoreInto(t, filepath.Join(t.TempDir(), "kagzi.db"),
					engine.RestoreParams{File: b.File, Next: every, Refire: refire})
				r := openAt(t, done.Database)
				for _, c := range []struct {
					before engine.Schedule
					ticks  int64
				}{{paused, 3}, {closed, 2}} {
					if refire {
						c.ticks = 0
					}
					got, err := r.GetSchedule(t.Context(), c.before.Namespace, c.before.ID.String())
					if err != nil {
						t.Fatal(err)
					}
					next := c.before.NextFireAt.Add(time.Duration(c.ticks) * time.Hour)
					if !got.NextFireAt.Equal(next) || got.Skipped != c.ticks ||
						got.Enabled != (c.before.Namespace == "closed") {
						t.Errorf("refire %v, in %s: next = %s with %d skipped, enabled %v, want %s and %d", refire,
							c.before.Namespace, got.NextFireAt,
							got.Skipped, got.Enabled, next, c.ticks)
					}
				}
				if told := done.Changed.Ticks; told != 5 && !refire {
					t.Errorf("%d ticks are told to be skipped, want 5", told)
				}
			}
		})
	t.Run("a database that a server has is left alone", func(t *testing.T) {
		b := backupOfStore(t, busy(t))
		path := filepath.Join(t.TempDir(), "kagzi.db")
		otherServer(t, path)
		_, err := Restore(t.Context(), path, engine.RestoreParams{File: b.File, Force: true, Now: time.Now()})
		if err == nil || !strings.Contains(err.Error(), "is in use by process") {
			t.Fatalf("error = %v, want it to name the server", err)
		}
	})
	t.Run("a database with rows is left alone, and kept when it is replaced", func(t *testing.T) {
		b := backupOfStore(t, busy(t))
		old := busy(t)
		old.Close()
		before := withoutLock(contents(t, filepath.Dir(old.path)))
		for _, p := range []engine.RestoreParams{{File: b.File}, {File: b.File, DryRun: true}} {
			p.Now = time.Now()
			done, err := Restore(t.Context(), old.path, p)
			if p.DryRun != (err == nil) || !p.DryRun && !errors.Is(err, engine.ErrPrecondition) {
				t.Errorf("restore %+v = %v", p, err)
			}
			if p.DryRun && len(done.Progress.Only) != 6 {
				t.Errorf("runs that would be lost = %d, want all 6 of the old database", len(done.Progress.Only))
			}
			if after := withoutLock(contents(t, filepath.Dir(old.path))); after != before {
				t.Errorf("it changed the directory:\n%s\nwas\n%s", after, before)
			}
		}
		now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
		done := restoreInto(t, old.path, engine.RestoreParams{File: b.File, Force: true, Now: now})
		if want := old.path + ".before-restore-20261122T100000.000000Z"; done.Kept != want {
			t.Fatalf("kept as %s, want %s", done.Kept, want)
		}
		if findings, err := Check(t.Context(), done.Kept); err != nil || len(findings) > 0 {
			t.Errorf("what is kept: %v (%v), want it sound", findings, err)
		}
		want := []string{"kagzi.db", "kagzi.db.before-restore-20261122T100000.000000Z", "kagzi.db.lock"}
		if got := names(t, filepath.Dir(old.path)); !slices.Equal(got, want) {
			t.Errorf("files = %v, want %v", got, want)
		}
	})
	t.Run("it names the runs that had gone on since, and those that came later", func(t *testing.T) {
		s := fresh(t)
		leases := holding(t, s, 3)
		b := backupOfStore(t, s)
		now := s.Now()
		step := engine.CompleteStepParams{Lease: leases[0], Step: engine.StepRef{Name: "pay"},
			ID: engine.NewID(now), Now: now}
		if _, err := s.CompleteStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: leases[1], Now: now}); err != nil {
			t.Fatal(err)
		}
		later := startOf("t", s)
		if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{later}}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		done := restoreInto(t, s.path, engine.RestoreParams{File: b.File, Force: true})
		beyond := map[engine.ID]engine.RunBeyond{}
		for _, r := range done.Progress.Beyond {
			beyond[r.ID] = r
		}
		if len(beyond) != 2 || beyond[leases[0].RunID].Steps != 1 ||
			beyond[leases[1].RunID].Status != engine.RunCompleted {
			t.Errorf("beyond = %+v, want the run with a step and the one that ended", done.Progress.Beyond)
		}
		if only := done.Progress.Only; len(only) != 1 || only[0].ID != later.ID {
			t.Errorf("only there = %+v, want run %s", only, later.ID)
		}
	})
	t.Run("a damaged database can be replaced, and is kept with its log", func(t *testing.T) {
		path := damaged(t)
		b := backupOfStore(t, busy(t))
		if _, err := Restore(t.Context(), path, engine.RestoreParams{File: b.File, Now: time.Now()}); !errors.Is(
			err, engine.ErrPrecondition) {
			t.Errorf("without force: %v, want it refused", err)
		}
		done := restoreInto(t, path, engine.RestoreParams{File: b.File, Force: true})
		if done.Progress.Unknown == "" {
			t.Error("it does not say that the two were not compared")
		}
		if n, err := runsIn(t.Context(), openAt(t, path)); err != nil || n != 6 {
			t.Errorf("runs = %d (%v), want those of the backup", n, err)
		}
	})
	t.Run("whatever is in its way, no database is left to be served without its log", func(t *testing.T) {
		path, _ := crashed(t)
		log, err := os.ReadFile(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		log[sqlite3.LogHeaderBytes+sqlite3.FrameHeaderBytes] ^= 4
		write0600(t, path+"-wal", log)
		b := backupOfStore(t, busy(t))
		refused := func(when string) {
			t.Helper()
			s, err := Open(t.Context(), path, engine.OpenOptions{})
			if err == nil {
				s.Close()
			}
			if !isDamage(err) {
				t.Fatalf("%s it leaves what is served: %v, want it damaged as before", when, err)
			}
		}
		now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
		for _, name := range []string{"", "-wal"} { // a file, and a directory that no file can replace
			obstacle := path + ".before-restore-" + backup.Stamp(now) + name
			if name == "" {
				write0600(t, obstacle, []byte("mine"))
			} else if err := os.MkdirAll(filepath.Join(obstacle, "mine"), 0o700); err != nil {
				t.Fatal(err)
			}
			if done, err := Restore(t.Context(), path,
				engine.RestoreParams{File: b.File, Force: true, Now: now}); err == nil {
				t.Fatalf("it was restored over what is in the way: %+v", done)
			}
			if err := os.RemoveAll(obstacle); err != nil {
				t.Fatal(err)
			}
			refused(fmt.Sprintf("with %q in the way", name))
		}
		if err := backup.Replace(path+".gone", path, path+".kept"); err == nil { // no part of it takes effect
			t.Fatal("a file that is not there took the place")
		}
		refused("where the new file did not take the place")
		done := restoreInto(t, path, engine.RestoreParams{File: b.File, Force: true})
		if kept, err := os.ReadFile(done.Kept + "-wal"); err != nil || !bytes.Equal(kept, log) {
			t.Errorf("the damaged log is kept as %d bytes (%v), want the %d that it had", len(kept), err, len(log))
		}
		if n, err := runsIn(t.Context(), openAt(t, path)); err != nil || n != 6 {
			t.Errorf("runs = %d (%v), want those of the backup", n, err)
		}
	})
	t.Run("a log that has lost its database is kept, and does not get into the one that is restored",
		func(t *testing.T) {
			path, _ := crashed(t)
			log, err := os.ReadFile(path + "-wal")
			if err == nil {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			s := fresh(t)
			starts := []engine.StartRun{startOf("t", s), startOf("t", s)}
			if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
				t.Fatal(err)
			}
			now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
			done := restoreInto(t, path, engine.RestoreParams{File: backupOfStore(t, s).File, Now: now})
			if n, err := runsIn(t.Context(), openAt(t, path)); err != nil || n != int64(len(starts)) ||
				done.Kept != "" {
				t.Errorf("runs = %d (%v), kept as %q, want the %d of the backup and nothing kept", n, err, done.Kept,
					len(starts))
			}
			if findings, err := Check(t.Context(), path); err != nil || len(findings) > 0 {
				t.Errorf("findings = %v (%v), want none", findings, err)
			}
			if kept, err := os.ReadFile(path + ".before-restore-" + backup.Stamp(now) + "-wal"); err != nil ||
				!bytes.Equal(kept, log) {
				t.Errorf("the log is kept as %d bytes (%v), want the %d that it had", len(kept), err, len(log))
			}
		})
	t.Run("a backup that was put by hand in the place of a database is not served with the log of that",
		func(t *testing.T) {
			path, _ := crashed(t)
			log, err := os.ReadFile(path + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			s := fresh(t)
			starts := []engine.StartRun{startOf("t", s), startOf("t", s)}
			if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
				t.Fatal(err)
			}
			b := backupOfStore(t, s)
			copied, err := os.ReadFile(b.File)
			if err != nil {
				t.Fatal(err)
			}
			write0600(t, path, copied)
			for doing, use := range map[string]func() error{
				"open": func() error {
					s, err := Open(t.Context(), path, engine.OpenOptions{})
					if err == nil {
						s.Close()
					}
					return err
				},
				"check": func() error { _, err := Check(t.Context(), path); return err },
				"back up": func() error {
					_, err := Backup(t.Context(), path, filepath.Join(t.TempDir(), "copy.db"))
					return err
				},
			} {
				if err := use(); !isDamage(err) || !strings.Contains(
					err.Error(), "the log beside it belongs to another file") {
					t.Errorf("%s: %v, want the log refused", doing, err)
				}
			}
			done := restoreInto(t, path, engine.RestoreParams{File: b.File, Force: true})
			if kept, err := os.ReadFile(done.Kept + "-wal"); err != nil || !bytes.Equal(kept, log) {
				t.Errorf("the log is kept as %d bytes (%v), want the %d that it had", len(kept), err, len(log))
			}
			if n, err := runsIn(t.Context(), openAt(t, path)); err != nil || n != int64(len(starts)) {
				t.Errorf("runs = %d (%v), want the %d of the backup", n, err, len(starts))
			}
		})
	t.Run("a damaged backup changes nothing", func(t *testing.T) {
		b := backupOfStore(t, busy(t))
		spoil(t, b.File)
		dir := t.TempDir()
		if _, err := Restore(t.Context(), filepath.Join(dir, "kagzi.db"),
			engine.RestoreParams{File: b.File, Force: true, Now: time.Now()}); err == nil {
			t.Error("it was restored")
		}
		if got := names(t, dir); len(got) > 0 {
			t.Errorf("left over: %v", got)
		}
	})
	t.Run("a backup that contradicts itself is told, and restored when forced", func(t *testing.T) {
		s := busy(t)
		behindItsBack(t, s.path, "update runs set steps = 7 where status = 4")
		b := backupOfStore(t, s)
		target := filepath.Join(t.TempDir(), "kagzi.db")
		done, err := Restore(t.Context(), target, engine.RestoreParams{File: b.File, Now: time.Now()})
		if err == nil || len(done.Findings) != 1 {
			t.Fatalf("restore = %v with %v, want it refused with a finding", err, done.Findings)
		}
		restoreInto(t, target, engine.RestoreParams{File: b.File, Force: true})
	})
	t.Run("keys that were revoked since are named", func(t *testing.T) {
		s := fresh(t)
		behindItsBack(t, s.path,
			"insert into api_keys (key_id, name, role, hash, created_at) values (x'01', 'ops', 1, x'02', 1)")
		b := backupOfStore(t, s)
		behindItsBack(t, s.path, "update api_keys set revoked_at = 5")
		s.Close()
		done := restoreInto(t, s.path, engine.RestoreParams{File: b.File, Force: true})
		if !slices.Equal(done.Progress.KeysBack, []string{"ops"}) {
			t.Errorf("keys = %v, want the one", done.Progress.KeysBack)
		}
	})
	t.Run("a database is not restored from itself", func(t *testing.T) {
		s := busy(t)
		s.Close()
		if _, err := Restore(t.Context(), s.path,
			engine.RestoreParams{File: s.path, Force: true, Now: time.Now()}); err == nil {
			t.Fatal("it was")
		}
		if _, err := os.Stat(s.path); err != nil {
			t.Fatal(err)
		}
	})
}
