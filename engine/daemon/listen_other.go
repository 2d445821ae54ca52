//go:build !windows

package daemon

import "syscall"

// errInUse is why an address cannot be listened on that another program has.
const errInUse = syscall.EADDRINUSE
