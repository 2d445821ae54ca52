package sqlite

import (
	"errors"
	"io/fs"
	"os"
)

// footing is the files that a server has its database in. Somebody who deletes, renames or replaces them under it would have it acknowledge
// writes that nobody can read later.
type footing struct{ file, log fs.FileInfo }

var errPulledAway = errors.New("the database file, or the log beside it, was deleted, renamed or replaced while the server had it open; " +
	"bring back what was taken away, or restore a backup with `kagzi db restore`")

// stand looks at the files that were just opened.
func stand(path string) (f footing, err error) {
	if f.file, err = os.Stat(path); err == nil {
		f.log, err = os.Stat(path + "-wal")
	}
	return f, err
}

// holds says that the files are in their places still. What cannot be seen is not taken for gone.
func (f *footing) holds(path string) bool {
	return isAt(f.file, path) && isAt(f.log, path+"-wal")
}

func isAt(file fs.FileInfo, path string) bool {
	now, err := os.Stat(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return os.SameFile(file, now)
}

// pulledAway is the failure of a server whose files are not in their places; nil where they are.
func (s *Store) pulledAway() *FatalError {
	if s.footing.holds(s.path) {
		return nil
	}
	return &FatalError{cause: errPulledAway}
}
