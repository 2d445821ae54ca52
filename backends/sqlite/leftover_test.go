package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/backup"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/engine"
)

// killedHalfway makes a database beside which processes were killed during each operation that
// makes files there. others are the other files.
func killedHalfway(t *testing.T) (path string, others []string) {
	t.Helper()
	s := busy(t)
	s.Close()
	dir := filepath.Dir(s.path)
	if _, err := os.MkdirTemp(dir, filepath.Base(s.path)+dbfile.HalfRestore); err != nil {
		t.Fatal(err)
	}
	half, killed := "", errors.New("killed")
	_, err := backup.PlaceAs(t.Context(), s.path+".before-0009-20260101T000000Z.db",
		filepath.Base(s.path)+dbfile.HalfBackup, func(part string) (time.Time, error) {
			half = part
			return time.Time{}, killed
		})
	if !errors.Is(err, killed) {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm", ".lock"} {
		write0600(t, half+suffix, nil)
	}
	write0600(t, half, nil)
	write0600(t, s.path+dbfile.Renewing, nil)
	write0600(t, s.path+dbfile.Renewing+"-journal", nil)
	others = []string{"kagzi.db.before-0002-20260101T000000Z.db", "kagzi.db.before-mine.part",
		"kagzi.db.restoring-1.tmp.txt", "other.db.before-77.part", "other.db.renewed"}
	for _, name := range others {
		write0600(t, filepath.Join(dir, name), nil)
	}
	if n := len(names(t, dir)); n != len(others)+9 {
		// the database, its lock, a directory, four files of a backup and two of a renewal
		t.Fatalf("there are %d files: %v", n, names(t, dir))
	}
	return s.path, others
}

func TestLeftoversAreDeletedByNextServer(t *testing.T) {
	for name, take := range map[string]func(path string) error{
		"a server": func(path string) error {
			s, err := Open(t.Context(), path, engine.OpenOptions{})
			if err != nil {
				return err
			}
			return s.Close()
		},
		"a restore": func(path string) error {
			_, err := Restore(t.Context(), path, engine.RestoreParams{
				File: backupOfStore(t, busy(t)).File, Now: time.Now()})
			if errors.Is(err, engine.ErrPrecondition) { // it has rows
				return nil
			}
			return errors.Join(err, errors.New("it was restored"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, want := killedHalfway(t)
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			want = append(want, "kagzi.db", "kagzi.db.lock")
			slices.Sort(want)
			if got := names(t, filepath.Dir(path)); !slices.Equal(got, want) {
				t.Errorf("files = %v, want %v", got, want)
			}
		})
	}
}

func TestNothingOfADatabaseIsDeletedByWhoOnlyLooks(t *testing.T) {
	path, _ := killedHalfway(t)
	before := names(t, filepath.Dir(path))
	s, err := Open(t.Context(), path, engine.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := Status(t.Context(), path); err != nil {
		t.Error(err)
	}
	if after := names(t, filepath.Dir(path)); !slices.Equal(before, after) {
		t.Errorf("files = %v, want %v as before", after, before)
	}
}
