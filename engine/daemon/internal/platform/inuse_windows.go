package platform

import "golang.org/x/sys/windows"

// ErrInUse is the error for an address that another program uses.
const ErrInUse = windows.WSAEADDRINUSE
