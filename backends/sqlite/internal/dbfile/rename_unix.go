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

// Rename renames a file and replaces a file with the new name.
func Rename(from, to string) error { return os.Rename(from, to) }

// RenameNew renames a file. If the new name is taken, it returns fs.ErrExist. The old name may
// remain too.
func RenameNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// a file system without links: create the name exclusively
	taken, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(taken.Close(), os.Rename(from, to))
}

// InUse reports whether an operation on a file failed because somebody may have it open; never on
// this system.
func InUse(error) bool { return false }

// OpenElsewhere reports whether another program has files of the database open that therefore
// cannot be moved or replaced; never on this system.
func OpenElsewhere(string) (bool, error) { return false, nil }
