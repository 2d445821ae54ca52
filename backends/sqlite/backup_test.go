package sqlite

import (
	"context"
	"errors"

	"github.com/kagzi/kagzi/backends/sqlite/internal/backup"

	goflag "flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var backupRounds = goflag.Int("backup.rounds", 3, "how many backups are taken under load, restored and checked")

func backupOfStore(t *testing.T, s *Store) engine.Backup {
	t.Helper()
	b, err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.db"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// names lists the files in a directory.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestBackup(t *testing.T) {
	t.Run("it holds what was acknowledged, is its owner's alone and says what it is", func(t *testing.T) {
		s := busy(t)
		before := s.Now()
		b := backupOfStore(t, s)
		if info, err := os.Stat(b.File); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" ||
			info.Size() != b.Bytes {
			// Windows has no file modes
			t.Fatalf("file = %v (%v), want mode 0600 and %d bytes", info, err, b.Bytes)
		}
		if b.TakenAt.Before(before) || b.TakenAt.After(s.Now()) || b.Schema != s.schema {
			t.Errorf("backup = %+v, want it taken now, of schema %d", b, s.schema)
		}
		if want := (engine.BackupRows{Runs: 6, OpenRuns: 4, Steps: 9}); b.Rows != want {
			t.Errorf("rows = %+v, want %+v", b.Rows, want)
		}
		again, findings, err := VerifyBackup(t.Context(), b.File)
		if err != nil || len(findings) > 0 || again != b {
			t.Errorf("verified = %+v %v (%v), want %+v", again, findings, err, b)
		}
		if got := names(t, filepath.Dir(b.File)); !slices.Equal(got, []string{"copy.db"}) {
			t.Errorf("beside the backup lies %v, want nothing", got)
		}
	})
	t.Run("a file in its place stays as it is", func(t *testing.T) {
		s := busy(t)
		file := filepath.Join(t.TempDir(), "copy.db")
		if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Backup(t.Context(), file); !errors.Is(err, engine.ErrExists) {
			t.Errorf("error = %v, want it to exist", err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
			t.Errorf("the file holds %q (%v)", text, err)
		}
	})
	t.Run("one that is given up leaves nothing", func(t *testing.T) {
		s := busy(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		dir := t.TempDir()
		if _, err := s.Backup(ctx, filepath.Join(dir, "copy.db")); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want it cancelled", err)
		}
		if got := names(t, dir); len(got) > 0 {
			t.Errorf("left over: %v", got)
		}
	})
	t.Run("it can be taken beside a server of another process, and without one, and leaves nothing there",
		func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kagzi.db")
			other := otherServer(t, path)
			other.tell(t, "start")
			for i, without := range []bool{false, true} {
				if without {
					other.kill() // its log remains
				}
				before := names(t, filepath.Dir(path))
				b, err := Backup(t.Context(), path, filepath.Join(t.TempDir(), "copy.db"))
				if err != nil || b.Rows.Runs != 1 {
					t.Fatalf("backup %d = %+v (%v), want one run", i, b, err)
				}
				if after := names(t, filepath.Dir(path)); !slices.Equal(before, after) {
					t.Errorf("beside the database lies %v, and %v before", after, before)
				}
			}
		})
	t.Run("a damaged database gives none", func(t *testing.T) {
		path := damaged(t)
		_, err := Backup(t.Context(), path, filepath.Join(t.TempDir(), "copy.db"))
		if failure, ok := errors.AsType[*FatalError](err); !ok || !failure.Corrupt {
			t.Fatalf("error = %v, want it damaged", err)
		}
	})
	t.Run("one that is damaged afterwards is told", func(t *testing.T) {
		b := backupOfStore(t, busy(t))
		spoil(t, b.File)
		if _, _, err := VerifyBackup(t.Context(), b.File); err == nil {
			t.Fatal("the damaged backup was found sound")
		}
	})
}

// spoil overwrites all pages of a file except the first two.
func spoil(t *testing.T, path string) {
	t.Helper()
	size := fileSize(t, path)
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	junk := []byte(strings.Repeat("\xff", 4096))
	for page := int64(2); page < size/4096; page++ {
		if _, err := file.WriteAt(junk, page*4096); err != nil {
			t.Fatal(err)
		}
	}
}

// damaged returns the path of a damaged database that no server uses.
func damaged(t *testing.T) string {
	t.Helper()
	s := fresh(t)
	holding(t, s, 100)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, s.path)
	return s.path
}

// TestBackupsUnderLoadHoldAllThatWasAcknowledged is F-51; -backup.rounds sets the number of rounds.
func TestBackupsUnderLoadHoldAllThatWasAcknowledged(t *testing.T) {
	s := fresh(t)
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	more := sync.NewCond(&mu) // were acknowledged, or the load has failed
	var acknowledged []engine.ID
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				start := startOf("t", s)
				start.Input.Data = make([]byte, rand.IntN(4096))
				if _, err := s.StartRuns(context.Background(),
					engine.StartRunsParams{Runs: []engine.StartRun{start}}); err != nil {
					mu.Lock()
					t.Error(err)
					mu.Unlock()
					more.Broadcast()
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, start.ID)
				mu.Unlock()
				more.Broadcast()
			}
		})
	}
	defer load.Wait()
	defer stop()
	for round := range *backupRounds {
		mu.Lock()
		for len(acknowledged) <= 50*round && !t.Failed() {
			more.Wait()
		}
		known := slices.Clone(acknowledged)
		mu.Unlock()
		b := backupOfStore(t, s)
		target := filepath.Join(t.TempDir(), "kagzi.db")
		if _, err := Restore(t.Context(), target, engine.RestoreParams{File: b.File, Now: s.Now()}); err != nil {
			t.Fatalf("backup %d: %v", round, err)
		}
		if findings, err := Check(t.Context(), target); err != nil || len(findings) > 0 {
			t.Fatalf("backup %d: %v (%v)", round, findings, err)
		}
		restored := openAt(t, target)
		for _, id := range known {
			if _, err := restored.GetRun(t.Context(), "default", id); err != nil {
				t.Fatalf("backup %d lacks run %s, which was acknowledged before it: %v", round, id, err)
			}
		}
		restored.Close()
	}
}

// oldDatabase makes a database of the first schema with a run.
func oldDatabase(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kagzi.db")
	list := migrationsOf(t)
	behindItsBack(t, path, "begin;"+list[0].SQL+`;
		pragma application_id = 0x4b61677a;
		pragma user_version = 1;
		insert into namespaces (namespace, id, created_at, updated_at) values ('default', x'01', 1, 1);
		insert into lanes values (1, 'default', 'q', 't', '', 0);
		insert into runs (run_id, namespace, lane_id, task_queue, workflow_type, status, created_at, available_at)
		values (x'01900000000070008000000000000002', 'default', 1, 'q', 't', 1, 1, 2);
		insert into payloads (run_id) select run_id from runs;
		commit`)
	return path
}

func TestABackupIsMadeBeforeAMigration(t *testing.T) {
	path := oldDatabase(t)
	others := []string{"kagzi.db.before-0001.db", "kagzi.db.before-0001-20200101T000000Z.db.mine",
		"other.db.before-0001-20200101T000000Z.db"}
	for i := range 4 {
		others = append(others, fmt.Sprintf("kagzi.db.before-0001-2020010%dT000000Z.db", i+1))
	}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openAt(t, path).Close()
	var kept, made []string
	for _, name := range names(t, filepath.Dir(path)) {
		if strings.HasPrefix(name, "kagzi.db.before-0002-") {
			made = append(made, name)
		} else if name != "kagzi.db" && name != "kagzi.db.lock" {
			kept = append(kept, name)
		}
	}
	want := []string{"kagzi.db.before-0001-20200101T000000Z.db.mine", "kagzi.db.before-0001-20200103T000000Z.db",
		"kagzi.db.before-0001-20200104T000000Z.db", "kagzi.db.before-0001.db",
		"other.db.before-0001-20200101T000000Z.db"}
	if !slices.Equal(kept, want) {
		t.Errorf("of the files that were there %v are left, want %v", kept, want)
	}
	if len(made) != 1 {
		t.Fatalf("backups made = %v, want one", made)
	}
	b, _, err := VerifyBackup(t.Context(), filepath.Join(filepath.Dir(path), made[0]))
	if err != nil || b.Schema != 1 || b.Rows.Runs != 1 {
		t.Fatalf("backup = %+v (%v), want schema 1 with the run", b, err)
	}
	openAt(t, path).Close()
	if n := len(names(t, filepath.Dir(path))); n != len(want)+3 {
		t.Errorf("files after it was opened once more = %d, want no further backup", n)
	}
}

func TestMigrationBackupKeptDespiteWrongClock(t *testing.T) {
	path := oldDatabase(t)
	for day := range backup.KeptBeforeMigrations {
		write0600(t, fmt.Sprintf("%s.before-0001-2099010%dT000000Z.db", path, day+1), nil)
	}
	openAt(t, path).Close()
	made, err := filepath.Glob(path + ".before-0002-*.db")
	if err != nil || len(made) != 1 {
		t.Fatalf("backups of what was migrated = %v (%v), want the one", made, err)
	}
	if b, _, err := VerifyBackup(t.Context(), made[0]); err != nil || b.Rows.Runs != 1 {
		t.Errorf("backup = %+v (%v), want the run in it", b, err)
	}
	if others, err := filepath.Glob(path + ".before-0001-*.db"); err != nil ||
		len(others) != backup.KeptBeforeMigrations-1 {
		t.Errorf("beside it %v (%v), want %d in all", others, err, backup.KeptBeforeMigrations)
	}
}

func TestAnOldBackupIsRestoredAndMigrated(t *testing.T) {
	target := filepath.Join(t.TempDir(), "kagzi.db")
	file := filepath.Join(t.TempDir(), "old.db")
	if _, err := Backup(t.Context(), oldDatabase(t), file); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), target, engine.RestoreParams{File: file, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if n, err := runsIn(t.Context(), openAt(t, target)); err != nil || n != 1 {
		t.Fatalf("runs = %d (%v), want 1", n, err)
	}
}

func TestAMigrationThatFailsLeavesTheDatabaseAsItWas(t *testing.T) {
	path := oldDatabase(t)
	behindItsBack(t, path, "create table api_keys (in_the_way)") // of the last migration, after others succeeded
	_, err := Open(t.Context(), path, engine.OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), "0003") {
		t.Fatalf("error = %v, want it to name the migration", err)
	}
	if status, err := Status(t.Context(), path); err != nil || status.Applied != 1 {
		t.Fatalf("status = %+v (%v), want the schema that it had", status, err)
	}
}

func TestWithoutABackupNothingIsMigrated(t *testing.T) {
	old := oldDatabase(t)
	// File names have at most 255 bytes: those beside the database fit, the longer one of the backup does not.
	path := filepath.Join(filepath.Dir(old), strings.Repeat("k", 240))
	if err := os.Rename(old, path); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path, engine.OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), "nothing was migrated") {
		t.Fatalf("error = %v, want one that says what failed", err)
	}
	if status, err := Status(t.Context(), path); err != nil || status.Applied != 1 {
		t.Fatalf("status = %+v (%v), want the schema that it had", status, err)
	}
}
