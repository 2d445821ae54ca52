package backup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/migrations"
)

// KeptBeforeMigrations is the number of backups from before migrations to keep beside a database.
const KeptBeforeMigrations = 3

// BeforeMigration copies a database that holds rows before its schema changes, and deletes the
// oldest of these copies. If it fails, nothing is migrated.
func BeforeMigration(ctx context.Context, c *sqlite3.Conn, path string, pending []migrations.Migration) error {
	used, err := holdsRows(ctx, c, pending[0].Number-1)
	if err != nil || !used {
		return err
	}
	number, _, _ := strings.Cut(pending[0].Name, "_")
	file := path + ".before-" + number + "-" + Stamp(time.Now()) + ".db"
	_, err = PlaceAs(ctx, file, filepath.Base(path)+dbfile.HalfBackup, func(part string) (time.Time, error) {
		return engine.Micros(time.Now()), CopyTo(ctx, c, part)
	})
	if err != nil {
		return fmt.Errorf("the backup before migration %s failed, so nothing was migrated: %w", pending[0].Name,
			TranslateError(err))
	}
	return dropOldest(path, filepath.Base(file))
}

// dropOldest deletes all backups from before migrations except the newest. The one just made always
// stays, even if clocks were wrong when the others were made. Other files stay, whatever their
// name.
func dropOldest(path, made string) error {
	ours := regexp.MustCompile(`^` + regexp.QuoteMeta(filepath.Base(path)) +
		`\.before-[0-9]{4}-([0-9]{8}T[0-9]{6}(?:\.[0-9]{6})?Z)\.db$`)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	type copied struct{ name, at string }
	var all []copied
	for _, e := range entries {
		if m := ours.FindStringSubmatch(e.Name()); m != nil && e.Type().IsRegular() && e.Name() != made {
			all = append(all, copied{e.Name(), m[1]})
		}
	}
	slices.SortFunc(all, func(a, b copied) int { return strings.Compare(b.at, a.at) })
	for _, old := range all[min(len(all), KeptBeforeMigrations-1):] {
		if err := os.Remove(filepath.Join(filepath.Dir(path), old.name)); err != nil {
			return err
		}
	}
	return nil
}
