package dbfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes the lock unless another open file has it. It locks one byte far behind the text, so
// that others can read the text.
func tryLock(file *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(file.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{OffsetHigh: 1})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// FreeBytes returns how many bytes this process can still write to the disk of dir. The name of a
// share needs a separator at its end.
func FreeBytes(dir string) (uint64, error) {
	path, err := windows.UTF16PtrFromString(dir + `\`)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err
}

// linkCount returns how many names the file has; 0 if it does not exist.
func linkCount(path string) (int, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var info windows.ByHandleFileInformation
	err = windows.GetFileInformationByHandle(windows.Handle(file.Fd()), &info)
	return int(info.NumberOfLinks), err
}
