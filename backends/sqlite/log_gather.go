package sqlite

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// SQLite writes each frame of a commit to the log in two calls of the system, its header and its page. Here they are gathered, for frames of a commit
// stand one behind the other, and written in one call for many, before SQLite has them synced: so before it tells anybody that they are there.

// maxGathered is 31 frames of 4096 bytes: of one call the library writes less than 128 KiB.
const maxGathered = 31 * (4096 + frameHeaderBytes)

// gather keeps what is to be written to the log. gathered says that it does; where it is not the next in a row, that is for the caller.
func (f *file) gather(under underlying, from uintptr, n int32, offset int64) (gathered bool, code int32) {
	if f.held == 0 {
		if f.held = libc.Xmalloc(under.tls, maxGathered); f.held == 0 {
			return false, lib.SQLITE_OK
		}
	}
	if offset != f.heldAt+int64(f.heldBytes) || f.heldBytes+n > maxGathered {
		if code := f.flush(under); code != lib.SQLITE_OK || n > maxGathered {
			return false, code
		}
		f.heldAt = offset
	}
	copy(bytesAt(f.held+uintptr(f.heldBytes), n), bytesAt(from, n))
	f.heldBytes += n
	return true, lib.SQLITE_OK
}

// flush writes what was gathered. Whatever comes of it, nothing is gathered then: SQLite undoes a commit of which something cannot be written.
func (f *file) flush(under underlying) int32 {
	n := f.heldBytes
	if n == 0 {
		return lib.SQLITE_OK
	}
	f.heldBytes = 0
	return under.write(f.held, n, f.heldAt)
}
