package dbfile

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// SyncDirectory does nothing: Rename and RenameNew return when the disk has the new name.
func SyncDirectory(string) error { return nil }

// Others may have a file open for a moment that was just written, as scanners for viruses and the
// indexer do, and then it can be neither moved nor replaced. SQLite waits for them too.
const (
	moveTimeout       = 2 * time.Second
	moveRetryInterval = 20 * time.Millisecond
)

// Rename gives a file another name, whatever had that before.
func Rename(from, to string) error {
	return moveAs("rename", from, to, windows.MOVEFILE_REPLACE_EXISTING)
}

// RenameNew gives a file a name that nothing has, or else it is fs.ErrExist.
func RenameNew(from, to string) error { return moveAs("place", from, to, 0) }

func moveAs(verb, from, to string, how uint32) error {
	old, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return &os.LinkError{Op: verb, Old: from, New: to, Err: err}
	}
	name, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return &os.LinkError{Op: verb, Old: from, New: to, Err: err}
	}
	err = retrying(func() error { return windows.MoveFileEx(old, name, how|windows.MOVEFILE_WRITE_THROUGH) })
	if err != nil {
		return &os.LinkError{Op: verb, Old: from, New: to, Err: err}
	}
	return nil
}

// retrying tries again while others may have a file open.
func retrying(do func() error) error {
	for deadline := time.Now().Add(moveTimeout); ; time.Sleep(moveRetryInterval) {
		if err := do(); !InUse(err) || time.Now().After(deadline) {
			return err
		}
	}
}

// InUse reports whether something could not be done to a file because somebody may have it open. To
// replace such a file is denied like what one may not do.
func InUse(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

// OpenElsewhere reports whether another program has one of the files of a database open, which can
// be neither moved nor replaced then.
func OpenElsewhere(path string) (bool, error) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		name, err := windows.UTF16PtrFromString(path + suffix)
		if err != nil {
			return false, err
		}
		err = retrying(func() error {
			file, err := windows.CreateFile(name, windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING,
				windows.FILE_ATTRIBUTE_NORMAL, 0)
			if err == nil {
				err = windows.CloseHandle(file)
			}
			return err
		})
		switch {
		case errors.Is(err, windows.ERROR_SHARING_VIOLATION):
			return true, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false, &os.PathError{Op: "open", Path: path + suffix, Err: err}
		}
	}
	return false, nil
}
