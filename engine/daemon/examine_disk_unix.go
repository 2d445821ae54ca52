//go:build unix

package daemon

import "golang.org/x/sys/unix"

// freeBytes is how much the file system of dir can still take from us.
func freeBytes(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil
}
