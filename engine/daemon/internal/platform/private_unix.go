//go:build unix

package platform

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

const (
	groupWrites  = 0o020
	othersWrite  = 0o002
	rootsAccount = 0
)

// CheckPrivate returns an error if users other than the owner and the group may write to dir, or if
// another user owns it. shared reports that its group may write to it, as to a Kubernetes volume
// with fsGroup, which belongs to root.
func CheckPrivate(dir os.FileInfo) (shared bool, err error) {
	mode := dir.Mode().Perm()
	if mode&othersWrite != 0 {
		return false, fmt.Errorf("other users may write to it (mode %04o); run chmod 700", mode)
	}
	shared = mode&groupWrites != 0
	owner, known := ownerOf(dir)
	if known && owner != os.Geteuid() && (owner != rootsAccount || !shared) {
		return shared, errors.New("it belongs to another user")
	}
	return shared, nil
}

// AnybodyWrites reports whether every user may write to dir.
func AnybodyWrites(dir os.FileInfo) bool { return dir.Mode().Perm()&othersWrite != 0 }

// Ours reports whether a file belongs to this user; to root all do.
func Ours(file os.FileInfo) bool {
	owner, known := ownerOf(file)
	return known && (owner == os.Geteuid() || os.Geteuid() == rootsAccount)
}

func ownerOf(file os.FileInfo) (uid int, known bool) {
	stat, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
