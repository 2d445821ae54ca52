//go:build unix

package platform

import "golang.org/x/sys/unix"

// FreeBytes is how much the file system of dir can still take from us.
func FreeBytes(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil
}
