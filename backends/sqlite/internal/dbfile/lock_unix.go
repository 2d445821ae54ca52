//go:build linux || darwin || freebsd

package dbfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock unless another open file has it.
func tryLock(file *os.File) (bool, error) {
	for {
		switch err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

// FreeBytes returns how many bytes this process can still write to the file system of dir.
func FreeBytes(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil
}

// linkCount returns how many names the file has; 0 if it does not exist.
func linkCount(path string) (int, error) {
	var file unix.Stat_t
	switch err := unix.Stat(path, &file); {
	case errors.Is(err, unix.ENOENT):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return int(file.Nlink), nil
}
