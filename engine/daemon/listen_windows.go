package daemon

import "golang.org/x/sys/windows"

// errInUse is why an address cannot be listened on that another program has.
const errInUse = windows.WSAEADDRINUSE
