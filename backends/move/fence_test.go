package move_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

// during copies, and calls do once, when the first rows have arrived.
func during(t *testing.T, p engine.CopyParams, do func()) (engine.CopyReport, error) {
	t.Helper()
	called := false
	p.Now = someDay
	p.Progress = func(engine.CopyProgress) {
		if !called {
			called = true
			do()
		}
	}
	report, err := backends.Copy(t.Context(), p)
	if !called {
		t.Fatalf("nothing was copied: %v", err)
	}
	return report, err
}

// start starts a run.
func start(t testing.TB, store engine.Store) error {
	t.Helper()
	now := store.Now()
	answers, err := store.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{{Run: engine.Run{
		ID: engine.NewID(now), Namespace: "default", Queue: "q", Type: "t", CreatedAt: now, AvailableAt: now,
	}}}})
	if err != nil {
		return err
	}
	return answers[0].Err
}

func TestNobodyWritesToASourceWhoseServersAreAtWork(t *testing.T) {
	t.Parallel()
	from, to := freshURL(t, "postgres"), freshURL(t, "sqlite")
	populate(t, from, rand.New(rand.NewPCG(long.Seed(t), 5)), 10)
	store := openStore(t, from)
	if err := start(t, store); err != nil {
		t.Fatal(err)
	}
	want := dump(t, from)
	_, err := during(t, engine.CopyParams{From: from, To: to}, func() {
		err := start(t, store)
		if !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "moved") {
			t.Errorf("start: %v, want unavailable because it was moved", err)
		}
		if err := store.Health(t.Context()); !errors.Is(err, engine.ErrUnavailable) ||
			!strings.Contains(err.Error(), "moved") {
			t.Errorf("health: %v, want unavailable because it was moved", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	sameRows(t, dump(t, to), want)
	if err := start(t, store); !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("start after the copy: %v, want unavailable", err)
	}
	refuses(t, from, "it was moved")
	if err := backends.Release(t.Context(), from, false); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("release: %v, want a refusal that says why and how", err)
	}
	if err := backends.Release(t.Context(), from, true); err != nil {
		t.Fatal(err)
	}
	if err := start(t, store); err != nil {
		t.Errorf("start after the release: %v", err)
	}
}

func TestTheStatusOfBothEndsTellsOfTheCopy(t *testing.T) {
	t.Parallel()
	for _, ends := range [][2]string{{"sqlite", "postgres"}, {"postgres", "sqlite"}} {
		from, to := freshURL(t, ends[0]), freshURL(t, ends[1])
		populate(t, from, rand.New(rand.NewPCG(long.Seed(t), 7)), 3)
		stands := func(when, url, standing, refusal string) {
			status, err := backends.Status(t.Context(), url)
			if err != nil || status.Standing != standing || !strings.Contains(status.Refusal, refusal) ||
				(status.Refusal == "") != (refusal == "") {
				t.Errorf("%s: %+v, %v, want %q because of %q", when, status, err, standing, refusal)
			}
		}
		if _, err := during(t, engine.CopyParams{From: from, To: to}, func() {
			stands("source while it is copied", from, engine.StandingMoved, "is being moved to")
			stands("target while it is filled", to, engine.StandingFilling, "has not ended")
		}); err != nil {
			t.Fatal(err)
		}
		stands("source after the copy", from, engine.StandingMoved, "was moved to")
		stands("target after the copy", to, "", "")
	}
}

func TestAFileThatIsMovedTakesNoRowsFromAnyProgram(t *testing.T) {
	t.Parallel()
	from, to := freshURL(t, "sqlite"), freshURL(t, "postgres")
	populate(t, from, rand.New(rand.NewPCG(long.Seed(t), 6)), 10)
	want := dump(t, from)
	_, err := during(t, engine.CopyParams{From: from, To: to}, func() {
		db := openSQL(t, from)
		for _, table := range tablesOf(t) {
			for _, statement := range []string{"delete from " + table.Name,
				"update " + table.Name + " set " + table.Key[0] + " = " + table.Key[0]} {
				if _, err := db.ExecContext(t.Context(), statement); err == nil ||
					!strings.Contains(err.Error(), "moved") {
					t.Errorf("%s: %v, want a refusal", statement, err)
				}
			}
		}
		if _, err := backends.Open(t.Context(), from, engine.OpenOptions{}); err == nil {
			t.Error("a server could start beside the copy")
		}
		target := openPostgres(t, to)
		if _, err := target.Exec(t.Context(), "delete from workers"); err == nil ||
			!strings.Contains(err.Error(), "has not ended") {
			t.Errorf("write to the target: %v, want a refusal", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	sameRows(t, dump(t, to), want)
	look, err := backends.Open(t.Context(), from, engine.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatalf("look at what was moved: %v", err)
	}
	look.Close()
}

func TestACopyOfAFileThatAServerHasIsRefusedNamingIt(t *testing.T) {
	t.Parallel()
	from, to := freshURL(t, "sqlite"), freshURL(t, "sqlite")
	store := openStore(t, from)
	if err := store.(interface{ SetHolder(string) error }).SetHolder("serving on 127.0.0.1:4711"); err != nil {
		t.Fatal(err)
	}
	_, err := backends.Copy(t.Context(), engine.CopyParams{From: from, To: to, Now: someDay})
	if err == nil || !strings.Contains(err.Error(), "serving on 127.0.0.1:4711") ||
		!strings.Contains(err.Error(), "stop it") {
		t.Errorf("copy: %v, want a refusal that names the server", err)
	}
	if err := start(t, store); err != nil {
		t.Errorf("the server after that: %v", err)
	}
}

func TestRowsThatDifferAreFound(t *testing.T) {
	for name, spoil := range map[string]string{
		"a row that changed":    "update workers set pid = case pid when 1 then 2 else 1 end where worker_id = (select min(worker_id) from workers)",
		"a row that is missing": "delete from audit where event_id = (select event_id from audit order by event_id limit 1)",
		"a row too many":        "insert into fires (schedule_id, tick, run_id, fired_at) select run_id, 1, run_id, 1 from runs limit 1",
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, from, to string) {
				populate(t, from, rand.New(rand.NewPCG(long.Seed(t), 7)), 10)
				want := dump(t, from)
				spoiled := false
				p := engine.CopyParams{From: from, To: to, Now: someDay, Progress: func(p engine.CopyProgress) {
					if p.Table == "workers" && !spoiled { // the last table except itself
						spoiled = true
						change(t, to, spoil)
					}
				}}
				_, err := backends.Copy(t.Context(), p)
				if !spoiled || err == nil || !strings.Contains(err.Error(), "differs") {
					t.Fatalf("copy: %v, want that the tables differ", err)
				}
				refuses(t, to, "it is not what it should be")
				if err := backends.Release(t.Context(), from, false); err != nil {
					t.Fatalf("release: %v", err)
				}
				openStore(t, from).Close()
				sameRows(t, dump(t, from), want)
			})
		})
	}
}

// change changes the database past every fence, as an administrator's mistake may.
func change(t testing.TB, url, statement string) {
	t.Helper()
	if strings.HasPrefix(url, "sqlite:") {
		result, err := openSQL(t, url).ExecContext(t.Context(), statement)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := result.RowsAffected(); n == 0 || err != nil {
			t.Fatalf("rows changed = %d (%v)", n, err)
		}
		return
	}
	conn := openPostgres(t, url)
	if _, err := conn.Exec(t.Context(), "set session_replication_role = replica"); err != nil {
		t.Fatal(err)
	}
	tag, err := conn.Exec(t.Context(), statement)
	if err != nil || tag.RowsAffected() == 0 {
		t.Fatalf("rows changed = %s (%v)", tag, err)
	}
}

func TestCopyNamesTextWithNUL(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]string{"NUL": "a\x00b", "UTF-8": "a\xffb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := freshURL(t, "sqlite"), freshURL(t, "postgres")
			populate(t, from, rand.New(rand.NewPCG(long.Seed(t), 8)), 10)
			db := openSQL(t, from)
			if _, err := db.ExecContext(t.Context(),
				"update runs set note = cast(? as text) where run_id = (select max(run_id) from runs)",
				[]byte(bad)); err != nil {
				t.Fatal(err)
			}
			var id []byte
			if err := db.QueryRowContext(t.Context(), "select max(run_id) from runs").Scan(&id); err != nil {
				t.Fatal(err)
			}
			_, err := backends.Copy(t.Context(), engine.CopyParams{From: from, To: to, Now: someDay})
			if err == nil || !strings.Contains(err.Error(), engine.ID(id).String()) ||
				!strings.Contains(err.Error(), "column note") || !strings.Contains(err.Error(), name) {
				t.Fatalf("copy: %v, want the row, the column and why", err)
			}
			openStore(t, from)
			openStore(t, to)
		})
	}
}

func TestATargetOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(long.Seed(t), 9))
			from, to, half := freshURL(t, "sqlite"), freshURL(t, kind), freshURL(t, kind)
			populate(t, from, rnd, 5)
			populate(t, to, rnd, 5)
			want := dump(t, to)
			_, err := backends.Copy(t.Context(), engine.CopyParams{From: from, To: to, Now: someDay})
			if !errors.Is(err, engine.ErrCopyNotEmpty) {
				t.Errorf("copy into rows: %v, want a refusal", err)
			}
			openStore(t, from).Close() // it was not fenced
			sameRows(t, dump(t, to), want)

			ctx, cancel := context.WithCancel(t.Context())
			p := engine.CopyParams{From: from, To: half, Now: someDay, Progress: func(engine.CopyProgress) { cancel() }}
			if _, err := backends.Copy(ctx, p); err == nil || !strings.Contains(err.Error(), "--release") {
				t.Fatalf("copy that is interrupted: %v, want how to go on", err)
			}
			for what, other := range map[string]engine.CopyParams{
				"another target":        {From: from, To: freshURL(t, kind), Now: someDay},
				"another source":        {From: freshCopy(t, to), To: half, Now: someDay},
				"the half-filled one":   {From: half, To: freshURL(t, "sqlite"), Now: someDay},
				"a snapshot on its top": {From: from, To: half, Now: someDay, Snapshot: true},
			} {
				if _, err := backends.Copy(t.Context(), other); err == nil {
					t.Errorf("a copy with %s worked", what)
				}
			}
			copied(t, from, half)
			sameRows(t, dump(t, half), dump(t, from))
		})
	}
}

// freshCopy returns another database with the same rows.
func freshCopy(t testing.TB, url string) string {
	t.Helper()
	other := freshURL(t, "sqlite")
	if _, err := backends.Copy(t.Context(), engine.CopyParams{
		From: url, To: other, Snapshot: true, Now: someDay}); err != nil {
		t.Fatal(err)
	}
	return other
}

func TestTwoCopiesAtOnceMakeOne(t *testing.T) {
	t.Parallel()
	from, to := freshURL(t, "postgres"), freshURL(t, "postgres")
	populate(t, from, rand.New(rand.NewPCG(long.Seed(t), 10)), 10)
	want := dump(t, from)
	_, err := during(t, engine.CopyParams{From: from, To: to}, func() { copied(t, from, to) })
	if !errors.Is(err, engine.ErrCopyRival) {
		t.Errorf("the first copy: %v, want that another was at work", err)
	}
	sameRows(t, dump(t, to), want)
	openStore(t, to)
}

func TestSnapshotIsConsistentWhileSourceRuns(t *testing.T) {
	t.Parallel()
	from, file := freshURL(t, "postgres"), filepath.Join(t.TempDir(), "snapshot.db")
	populate(t, from, rand.New(rand.NewPCG(long.Seed(t), 11)), 10)
	store := openStore(t, from)
	want := dump(t, from)
	_, err := during(t, engine.CopyParams{From: from, To: "sqlite:" + file, Snapshot: true}, func() {
		if err := start(t, store); err != nil {
			t.Errorf("start beside a snapshot: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backends.Snapshot(t.Context(), from, file, someDay, nil); !errors.Is(err, engine.ErrCopyNotEmpty) {
		t.Errorf("a snapshot into the same file: %v, want a refusal", err)
	}

	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	to := freshURL(t, "postgres")
	if _, err := backends.Copy(t.Context(), engine.CopyParams{
		From: "sqlite:" + file, To: to, Snapshot: true, Now: someDay}); err != nil {
		t.Fatalf("back from the file: %v", err)
	}
	sameRows(t, dump(t, to), want)
	openStore(t, to)
	for _, beside := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(file + beside); !os.IsNotExist(err) {
			t.Errorf("%s lies beside a file that was only read (%v)", beside, err)
		}
	}
	sameRows(t, dump(t, "sqlite:"+file), want)
}

func TestADatabaseIsNotCopiedIntoItself(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		url := freshURL(t, kind)
		if err := backends.Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		if _, err := backends.Copy(t.Context(), engine.CopyParams{From: url, To: url, Now: someDay}); err == nil ||
			!strings.Contains(err.Error(), "same database") {
			t.Errorf("%s: %v, want a refusal", kind, err)
		}
		openStore(t, url)
	}
}

func TestABackupIsNotRestoredOverAFileThatWasMoved(t *testing.T) {
	t.Parallel()
	from, to := freshURL(t, "sqlite"), freshURL(t, "sqlite")
	store, err := backends.Open(t.Context(), from, engine.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(start(t, store), store.Close()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup.db")
	if _, err := backends.Backup(t.Context(), from, file); err != nil {
		t.Fatal(err)
	}
	if _, err := backends.Copy(t.Context(), engine.CopyParams{From: from, To: to, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	restore := engine.RestoreParams{File: file, URL: from, Force: true, Now: time.Now()}
	if _, err := backends.Restore(t.Context(), restore); !errors.Is(err, engine.ErrPrecondition) ||
		!strings.Contains(err.Error(), "was moved to") {
		t.Errorf("restore: %v, want a refusal that names where the rows are", err)
	}
	refuses(t, from, "it was moved")
	if err := backends.Release(t.Context(), from, true); err != nil {
		t.Fatal(err)
	}
	if _, err := backends.Restore(t.Context(), restore); err != nil {
		t.Errorf("restore after the release: %v", err)
	}
}
