//go:build unix

package platform

import "golang.org/x/sys/unix"

// FreeBytes returns how many bytes this user can still write on dir's file system.
func FreeBytes(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil
}
