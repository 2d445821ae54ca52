//go:build linux || darwin || freebsd

package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// giveTo gives a file that root has made to the owner of the database at path, or where there is none to that of its directory. A server that
// does not run as root could not open it otherwise. Where that is not to be had the file stays root's.
func giveTo(file, path string) {
	if os.Geteuid() != 0 {
		return
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(file, int(owner.Uid), int(owner.Gid))
	}
}
