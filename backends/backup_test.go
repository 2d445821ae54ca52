package backends

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

// heldRun opens the database, lets a worker claim a run of it, and closes it.
func heldRun(t *testing.T, url string) engine.Lease {
	t.Helper()
	s, err := Open(t.Context(), url, engine.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := s.Now()
	w := engine.Worker{ID: "w1", Namespace: "default", InstanceID: "one", Queues: []string{"q"}, Types: []string{"t"},
		MaxConcurrent: 1}
	if _, err := s.RegisterWorker(t.Context(), engine.RegisterWorkerParams{Worker: w, Now: now}); err != nil {
		t.Fatal(err)
	}
	run := engine.Run{ID: engine.NewID(now), Namespace: "default", Queue: "q", Type: "t", Status: engine.RunPending,
		Attempts: 1, CreatedAt: now, AvailableAt: now}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{{Run: run}}}); err != nil {
		t.Fatal(err)
	}
	claimed, err := s.Claim(t.Context(), engine.ClaimParams{
		Namespace: "default", Queue: "q", Types: w.Types,
		Slots: []engine.ClaimSlot{{WorkerID: "w1", Token: engine.NewToken()}}, Now: now,
	})
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs, %v", len(claimed.Tasks), err)
	}
	return claimed.Tasks[0].Lease
}

func TestRestoreOntoPostgresTellsWhatIsThere(t *testing.T) {
	source := "sqlite:" + filepath.Join(t.TempDir(), "kagzi.db")
	heldRun(t, source)
	file := filepath.Join(t.TempDir(), "copy.db")
	if _, err := Backup(t.Context(), source, file); err != nil {
		t.Fatal(err)
	}
	restore := func(url string, dry bool) (engine.Restoration, error) {
		return Restore(t.Context(), engine.RestoreParams{
			File: file, URL: url, Force: true, DryRun: dry, Now: time.Now()})
	}
	full, empty := pgtest.URL(t), pgtest.URL(t)
	lease := heldRun(t, full)
	if err := Migrate(t.Context(), empty); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		_, err := restore(full, dry)
		if engine.KindOf(err) != engine.KindPrecondition || !strings.Contains(err.Error(), "holds 1 runs") ||
			!strings.Contains(err.Error(), "?schema=") {
			t.Errorf("dry run %t onto a database with a run: %v, want it refused with the count and ?schema=", dry, err)
		}
		nobody := "postgres://kagzi@localhost/kagzi?host=" + t.TempDir()
		if _, err := restore(nobody, dry); engine.KindOf(err) != engine.KindUnavailable {
			t.Errorf("dry run %t of one that does not answer: %v, want KindUnavailable", dry, err)
		}
		done, err := restore(empty, dry)
		if err != nil || !done.Empty || !strings.HasPrefix(done.Database, "postgres://") || done.Backup.Rows.Runs != 1 {
			t.Errorf("dry run %t onto an empty database: %+v, %v", dry, done, err)
		}
	}
	s, err := Open(t.Context(), full, engine.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.GetRun(t.Context(), "default", lease.RunID); err != nil {
		t.Errorf("the run of the database that was refused: %v", err)
	}
}

func TestABackupOfEitherKindIsRestoredOnEither(t *testing.T) {
	for _, from := range []string{"sqlite", "postgres"} {
		for _, to := range []string{"sqlite", "postgres"} {
			t.Run(from+" to "+to, func(t *testing.T) {
				url := func(kind string) string {
					if kind == "postgres" {
						return pgtest.URL(t)
					}
					return "sqlite:" + filepath.Join(t.TempDir(), "kagzi.db")
				}
				source, target := url(from), url(to)
				lease := heldRun(t, source)
				file := filepath.Join(t.TempDir(), "copy.db")
				made, err := Backup(t.Context(), source, file)
				if err != nil || made.Rows.OpenRuns != 1 || made.TakenAt.IsZero() {
					t.Fatalf("backup = %+v (%v), want one open run", made, err)
				}
				if again, findings, err := Verify(t.Context(), file); err != nil || len(findings) > 0 || again != made {
					t.Fatalf("verified = %+v %v (%v), want %+v", again, findings, err, made)
				}
				done, err := Restore(t.Context(), engine.RestoreParams{File: file, URL: target, Now: time.Now()})
				if err != nil || done.Changed.Leases != 1 {
					t.Fatalf("restored = %+v (%v), want a lease ended", done, err)
				}
				if findings, err := Check(t.Context(), target); err != nil || len(findings) > 0 {
					t.Errorf("findings = %v (%v), want none", findings, err)
				}
				s, err := Open(t.Context(), target, engine.OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				run, err := s.GetRun(t.Context(), "default", lease.RunID)
				if err != nil || run.Status != engine.RunPending || run.LeaseLosses != 0 {
					t.Errorf("run = %+v (%v), want it PENDING with no loss", run, err)
				}
				d, err := s.Describe(t.Context())
				said := false
				for _, f := range d.Facts {
					said = said || f.Name == "restored" && strings.Contains(f.Value, "SHA-256")
				}
				if err != nil || !said {
					t.Errorf("facts = %v (%v), want that it was restored", d.Facts, err)
				}
				if _, err := Restore(t.Context(), engine.RestoreParams{
					File: file, URL: target, Now: time.Now()}); err == nil {
					t.Error("a database with rows was restored over")
				}
			})
		}
	}
}

// Each restore is onto the other kind of database, so both make backups and both are filled.
func TestARestoreKeepsThePlacesOfKeys(t *testing.T) {
	for _, first := range []string{"sqlite", "postgres"} {
		t.Run("from "+first, func(t *testing.T) {
			fresh := map[string]func() string{
				"sqlite":   func() string { return "sqlite:" + filepath.Join(t.TempDir(), "kagzi.db") },
				"postgres": func() string { return pgtest.URL(t) },
			}
			other := map[string]string{"sqlite": "postgres", "postgres": "sqlite"}
			kind := first
			url := fresh[kind]()
			if err := Migrate(t.Context(), url); err != nil {
				t.Fatal(err)
			}
			storetest.PlacesMoved(t, open(t, url), func(s engine.Store, now time.Time) engine.Store {
				file := filepath.Join(t.TempDir(), "copy.db")
				if _, err := Backup(t.Context(), url, file); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				kind = other[kind]
				url = fresh[kind]()
				if _, err := Restore(t.Context(), engine.RestoreParams{File: file, URL: url, Now: now}); err != nil {
					t.Fatal(err)
				}
				return open(t, url)
			}, func() {
				t.Helper()
				if findings, err := Check(t.Context(), url); err != nil || len(findings) > 0 {
					t.Fatalf("findings = %v (%v), want none", findings, err)
				}
			})
		})
	}
}
