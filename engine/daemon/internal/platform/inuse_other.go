//go:build !windows

package platform

import "syscall"

// ErrInUse is the error for an address that another program uses.
const ErrInUse = syscall.EADDRINUSE
