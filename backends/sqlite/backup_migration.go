package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/migrations"
)

// keptBeforeMigrations is how many backups from before migrations stay beside a database.
const keptBeforeMigrations = 3

// backupBefore copies a database that holds rows before its schema changes, and deletes the oldest of such copies. Without one nothing is
// migrated.
func backupBefore(ctx context.Context, c *conn, path string, pending []migrations.Migration) error {
	used, err := c.holdsRows(ctx, pending[0].Number-1)
	if err != nil || !used {
		return err
	}
	number, _, _ := strings.Cut(pending[0].Name, "_")
	file := path + ".before-" + number + "-" + stamp(time.Now()) + ".db"
	_, err = placeBackup(ctx, file, filepath.Base(path)+halfBackup, func(part string) (time.Time, error) {
		return engine.Micros(time.Now()), c.copyTo(ctx, part)
	})
	if err != nil {
		return fmt.Errorf("the backup before migration %s, without which nothing is migrated: %w", pending[0].Name, translateBackup(err))
	}
	return dropOldest(path, filepath.Base(file))
}

// dropOldest deletes all but the newest backups from before migrations. The one just made is of those whatever the clock said when the others were
// made: the migration relies on it. Other files stay, whatever they are called.
func dropOldest(path, made string) error {
	ours := regexp.MustCompile(`^` + regexp.QuoteMeta(filepath.Base(path)) + `\.before-[0-9]{4}-([0-9]{8}T[0-9]{6}(?:\.[0-9]{6})?Z)\.db$`)
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
	for _, old := range all[min(len(all), keptBeforeMigrations-1):] {
		if err := os.Remove(filepath.Join(filepath.Dir(path), old.name)); err != nil {
			return err
		}
	}
	return nil
}
