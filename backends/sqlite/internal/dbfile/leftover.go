package dbfile

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
)

// Files that are made beside a database while its lock is held. Their names begin with the
// database's, so the next process that has the lock knows that a killed process left them.
const (
	HalfBackup  = ".before-*.part"   // a backup before a migration, not finished
	HalfRestore = ".restoring-*.tmp" // the directory of a restore
	Renewing    = ".renewed"         // the rewritten file with checksums
)

// RemoveLeftovers deletes unfinished files beside a locked database, because each may be as large
// as the database.
func RemoveLeftovers(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	base := regexp.QuoteMeta(filepath.Base(path))
	files := regexp.MustCompile(`^` + base + `(\.before-[0-9]+\.part|\.renewed)(-journal|-wal|-shm|\.lock)?$`)
	directories := regexp.MustCompile(`^` + base + `\.restoring-[0-9]+\.tmp$`)
	for _, e := range entries {
		if e.Type().IsRegular() && files.MatchString(e.Name()) || e.IsDir() && directories.MatchString(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(filepath.Dir(path), e.Name())))
		}
	}
	return err
}
