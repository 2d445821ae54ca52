package sqlite3

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// SQLite writes each frame of a commit to the log in two system calls, its header and its page. The
// frames of a commit are contiguous, so here they are gathered and written many at a time, before
// SQLite syncs them: so before any other connection is told that they are there.

// maxGathered is 31 frames of 4096 bytes: the library writes less than 128 KiB in one call.
const maxGathered = 31 * (4096 + FrameHeaderBytes)

// gather keeps what is to be written to the log. If gathered is false, the caller is to write it.
func (f *file) gather(under underlying, from uintptr, n int32, offset int64) (gathered bool, code int32) {
	if f.pending == 0 {
		if f.pending = libc.Xmalloc(under.tls, maxGathered); f.pending == 0 {
			return false, lib.SQLITE_OK
		}
	}
	if offset != f.pendingAt+int64(f.pendingBytes) || f.pendingBytes+n > maxGathered {
		if code := f.flush(under); code != lib.SQLITE_OK || n > maxGathered {
			return false, code
		}
		f.pendingAt = offset
	}
	copy(bytesAt(f.pending+uintptr(f.pendingBytes), n), bytesAt(from, n))
	f.pendingBytes += n
	return true, lib.SQLITE_OK
}

// flush writes what was gathered. Afterwards nothing is, even if that failed: SQLite undoes a
// commit that cannot be written completely.
func (f *file) flush(under underlying) int32 {
	n := f.pendingBytes
	if n == 0 {
		return lib.SQLITE_OK
	}
	f.pendingBytes = 0
	return under.write(f.pending, n, f.pendingAt)
}
