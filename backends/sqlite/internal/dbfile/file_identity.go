package dbfile

import (
	"errors"
	"io/fs"
	"os"
)

// Identity identifies the files of a running server. If somebody deleted, renamed or replaced the
// database or its log, the server would acknowledge writes that nobody can read later. If somebody
// deleted the lock's file, another server could start, and neither would see the other's writes in
// its caches.
type Identity struct{ file, log, lock fs.FileInfo }

var errPulledAway = errors.New(
	"the database file, or the log beside it, was deleted, renamed or replaced while the server had it open; " +
		"put the files back, or restore a backup with `kagzi db restore`")

var errUnlocked = errors.New(
	"the lock file beside the database was deleted, renamed or replaced while the server had it open, so that another server " +
		"could write to the database as well; start one server again, and do not touch that file: it does no harm")

// Identify identifies the files that were just opened.
func Identify(path string, l *Lock) (f Identity, err error) {
	if f.file, err = seen(path); err == nil {
		f.log, err = seen(path + "-wal")
	}
	if err == nil {
		f.lock, err = l.file.Stat() // the locked file, even if another has its name now
	}
	return f, err
}

// Lost returns what happened to the files if they are not in their places any more. A file that
// cannot be examined counts as present.
func (f *Identity) Lost(path string) error {
	switch {
	case !isAt(f.file, path), !isAt(f.log, path+"-wal"):
		return errPulledAway
	case !isAt(f.lock, path+".lock"):
		return errUnlocked
	}
	return nil
}

func isAt(file fs.FileInfo, path string) bool {
	now, err := os.Stat(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return os.SameFile(file, now) || !os.SameFile(now, now) // the identity is unknown
}

// seen returns the identity of the file at path. Windows looks it up at the first comparison, so
// seen makes one at once.
func seen(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil {
		os.SameFile(info, info)
	}
	return info, err
}
