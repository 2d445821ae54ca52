//go:build unix

package platform

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// CheckPrivate returns an error if other users may write to dir.
func CheckPrivate(dir os.FileInfo) error {
	if mode := dir.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("other users may write to it (mode %04o); run chmod 700", mode)
	}
	if stat, ok := dir.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return errors.New("it belongs to another user")
	}
	return nil
}
