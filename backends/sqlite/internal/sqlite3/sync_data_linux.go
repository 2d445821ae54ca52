package sqlite3

import (
	"golang.org/x/sys/unix"
	lib "modernc.org/sqlite/lib"
)

// SyncsData reports whether syncData is implemented.
const SyncsData = true

// syncData makes the content and the size of the system's file at an address durable, without other
// metadata.
func syncData(at uintptr) int32 {
	handle := int((*lib.TunixFile)(memory(at)).Fh)
	err := unix.Fdatasync(handle)
	for err == unix.EINTR { // a signal, which the runtime sends often
		err = unix.Fdatasync(handle)
	}
	if err != nil {
		return lib.SQLITE_IOERR_FSYNC // the kernel may have dropped the unwritten data: never retry
	}
	return lib.SQLITE_OK
}
