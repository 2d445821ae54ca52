//go:build unix

package certs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// checkSecret returns an error if all users may read a private key. A group may read it, because
// service managers and orchestrators pass keys to a service's account that way.
func checkSecret(info os.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o027 != 0 {
		return fmt.Errorf("other users may read or change it (mode %04o); run chmod 600", mode)
	}
	return nil
}

// checkDir returns an error if other users could replace files in a directory for keys.
func checkDir(info os.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("other users may write to it (mode %04o); run chmod 700", mode)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return errors.New("it belongs to another user")
	}
	return nil
}
