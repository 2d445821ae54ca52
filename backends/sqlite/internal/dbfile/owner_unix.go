//go:build linux || darwin || freebsd

package dbfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// GiveToOwnerOf gives a file that root has made to the owner of the database at path or, if there
// is none, to the owner of its directory. Otherwise a server that does not run as root could not
// open it. If that fails, the file stays root's.
func GiveToOwnerOf(file, path string) {
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
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	// The directory's owner may replace the file meanwhile, so a file with another name too keeps
	// its owner.
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	if made, ok := info.Sys().(*syscall.Stat_t); ok && made.Nlink == 1 {
		_ = f.Chown(int(owner.Uid), int(owner.Gid))
	}
}
