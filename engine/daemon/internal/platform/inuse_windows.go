package platform

import "golang.org/x/sys/windows"

// ErrInUse is why an address cannot be listened on that another program has.
const ErrInUse = windows.WSAEADDRINUSE
