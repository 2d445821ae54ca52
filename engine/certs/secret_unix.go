//go:build unix

package certs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// checkSecret refuses a private key that everybody on the machine may read. A group may: so do
// service managers and orchestrators hand one to the account of a service.
func checkSecret(info os.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o027 != 0 {
		return fmt.Errorf("others may read or change it (mode %04o); say chmod 600", mode)
	}
	return nil
}

// checkDir refuses a directory for keys in which others could put something in the place of ours.
func checkDir(info os.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others may write to it (mode %04o); say chmod 700", mode)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return errors.New("it belongs to another user")
	}
	return nil
}
