package sqlite

import (
	"golang.org/x/sys/unix"
	lib "modernc.org/sqlite/lib"
)

// syncsData says that there is syncData.
const syncsData = true

// syncData makes durable what was written to the system's file at a place, and how long that is.
func syncData(at uintptr) int32 {
	handle := int((*lib.TunixFile)(memory(at)).Fh)
	err := unix.Fdatasync(handle)
	for err == unix.EINTR { // a signal, of which the runtime sends many, and no failure to write
		err = unix.Fdatasync(handle)
	}
	if err != nil {
		return lib.SQLITE_IOERR_FSYNC // what was not written may be forgotten: nobody tries again
	}
	return lib.SQLITE_OK
}
