package bench

import "golang.org/x/sys/unix"

// inMemory reports whether a directory's files are kept in memory only.
func inMemory(dir string) bool {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false
	}
	return int64(s.Type) == unix.TMPFS_MAGIC || int64(s.Type) == unix.RAMFS_MAGIC
}
