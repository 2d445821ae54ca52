package sqlite3

import (
	"io"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// underlying reads and writes the system's file behind the one at an address.
type underlying struct {
	tls *libc.TLS
	at  uintptr
}

func (u underlying) ReadAt(p []byte, offset int64) (int, error) {
	place := libc.Xmalloc(u.tls, uint64(len(p)))
	if place == 0 {
		return 0, &Error{Code: lib.SQLITE_NOMEM, Text: "out of memory"}
	}
	defer libc.Xfree(u.tls, place)
	switch code := u.read(place, int32(len(p)), offset); code {
	case lib.SQLITE_OK:
		return copy(p, bytesAt(place, int32(len(p)))), nil
	case lib.SQLITE_IOERR_SHORT_READ:
		return 0, io.EOF
	default:
		return 0, &Error{Code: int(code), Text: "read"}
	}
}

func (u underlying) read(to uintptr, n int32, offset int64) int32 {
	return function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](system(u.at).FxRead)(
		u.tls, u.at+behind, to, n, offset)
}

func (u underlying) write(from uintptr, n int32, offset int64) int32 {
	return function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](system(u.at).FxWrite)(
		u.tls, u.at+behind, from, n, offset)
}

func (u underlying) size() (size int64, code int32) {
	place := u.tls.Alloc(8)
	defer u.tls.Free(8)
	code = sizeFile(u.tls, u.at, place)
	return *(*int64)(memory(place)), code
}
