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

// Virus scanners and the indexer may open a file for a moment that was just written; until then it
// can be neither moved nor replaced. SQLite waits for them too.
const (
	moveTimeout       = 2 * time.Second
	moveRetryInterval = 20 * time.Millisecond
)

// Rename renames a file and replaces a file with the new name.
func Rename(from, to string) error {
	return moveAs("rename", from, to, windows.MOVEFILE_REPLACE_EXISTING)
}

// RenameNew renames a file. If the new name is taken, it returns fs.ErrExist.
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

// retrying retries while others may have a file open.
func retrying(do func() error) error {
	for deadline := time.Now().Add(moveTimeout); ; time.Sleep(moveRetryInterval) {
		if err := do(); !InUse(err) || time.Now().After(deadline) {
			return err
		}
	}
}

// InUse reports whether an operation on a file failed because somebody may have it open. Windows
// reports replacing such a file as a missing permission.
func InUse(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

// OpenElsewhere reports whether another program has a file of the database open, which then can be
// neither moved nor replaced.
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
