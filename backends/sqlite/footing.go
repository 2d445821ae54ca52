package sqlite

import (
	"errors"
	"io/fs"
	"os"
)

// footing is the files that a server has its database in. Somebody who deletes, renames or replaces them under it would have it acknowledge
// writes that nobody can read later. Who does so to the lock, as though it were left over, lets another server in, and neither looks again at what
// it remembers of the rows.
type footing struct{ file, log, lock fs.FileInfo }

var errPulledAway = errors.New("the database file, or the log beside it, was deleted, renamed or replaced while the server had it open; " +
	"bring back what was taken away, or restore a backup with `kagzi db restore`")

var errUnlocked = errors.New("the lock file beside the database was deleted, renamed or replaced while the server had it open, so that another server " +
	"could write to the database as well; start one server again, and leave that file alone: it does no harm")

// stand looks at the files that were just opened.
func stand(path string, l *lock) (f footing, err error) {
	if f.file, err = seen(path); err == nil {
		f.log, err = seen(path + "-wal")
	}
	if err == nil {
		f.lock, err = l.file.Stat() // the one that is locked, whichever bears its name by now
	}
	return f, err
}

// lost is what has become of the files when they are not in their places any more. What cannot be seen is not taken for gone.
func (f *footing) lost(path string) error {
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
	return os.SameFile(file, now) || !os.SameFile(now, now) // which cannot be told from others
}

// seen is the file at path, to be told from others later. Windows is asked which one it is when it is first compared, so that is done at once.
func seen(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil {
		os.SameFile(info, info)
	}
	return info, err
}

// pulledAway is the failure of a server whose files are not in their places; nil where they are.
func (s *Store) pulledAway() *FatalError {
	if err := s.footing.lost(s.path); err != nil {
		return &FatalError{cause: err}
	}
	return nil
}
