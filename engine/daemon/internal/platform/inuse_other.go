//go:build !windows

package platform

import "syscall"

// ErrInUse is why an address cannot be listened on that another program has.
const ErrInUse = syscall.EADDRINUSE
