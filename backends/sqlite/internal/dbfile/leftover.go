package dbfile

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
)

// The names of files that are made beside a database while its lock is held. They begin with the name
// of the database, so the next process that has the lock knows that they are left over: the process
// that made them was killed.
const (
	HalfBackup  = ".before-*.part"   // a backup from before a migration, while it is made
	HalfRestore = ".restoring-*.tmp" // the directory of a restore
	Renewing    = ".renewed"         // the file that takes its place with checksums
)

// RemoveLeftovers deletes what was left half-made beside a database that is locked: each may be as
// large as the database.
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
