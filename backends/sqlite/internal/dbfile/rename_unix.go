//go:build linux || darwin || freebsd

package dbfile

import (
	"errors"
	"io/fs"
	"os"
)

// SyncDirectory makes the names in a directory durable.
func SyncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

// Rename gives a file another name, whatever had that before.
func Rename(from, to string) error { return os.Rename(from, to) }

// RenameNew gives a file a name that nothing has, or else it is fs.ErrExist. It may keep its old
// one too.
func RenameNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// a file system without links: take the place, or find it taken
	taken, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(taken.Close(), os.Rename(from, to))
}

// InUse reports whether something could not be done to a file because somebody may have it open,
// which is no obstacle here.
func InUse(error) bool { return false }

// OpenElsewhere reports whether another program has the files of a database open in a way that
// keeps them from being moved or replaced.
func OpenElsewhere(string) (bool, error) { return false, nil }
