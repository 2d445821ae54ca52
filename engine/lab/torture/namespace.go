//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// mountsVariable says that this process has its mounts to itself already.
const mountsVariable = "KAGZI_TORTURE_MOUNTS"

// ownMounts has this program run again, as the same process, with mounts that nobody else sees, and that vanish with the last process that has
// them, however it ends: a disk of a torture that is killed does not stay. It returns when that is so, or where it cannot be.
func ownMounts() error {
	if os.Getenv(mountsVariable) != "" || os.Geteuid() != 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // mounts are of a thread at first; the one that executes the program again is all that is left
	defer runtime.UnlockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		return nil // then a disk cannot be mounted either
	} else if err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	return fmt.Errorf("mounts of its own: %w", unix.Exec(self, os.Args, append(os.Environ(), mountsVariable+"=own")))
}
