package sqlite3

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// file is an open database or log. It is in SQLite's memory, directly before the file of the
// system's VFS, so it holds no Go pointers.
type file struct {
	methods uintptr // SQLite's table of functions; must be first

	// Of a database.
	checked   int32  // 1: its pages have checksums
	unchecked int32  // 1: checksums are not checked
	broken    uint32 // the last page that failed its check, or foreignLog; 0: none

	// Of a log.
	order          uint32  // littleWords, bigWords; 0: not known yet
	database       uintptr // the database that the log belongs to; 0 for a database
	frameBuf       uintptr // memory for one frame; 0: none yet
	frameBufBytes  int64
	framed         int64  // where the header of a frame was last written
	number         uint32 // the page number in that header
	nameSynced     int32  // 1: the log's name is durable, and syncData is enough from now on
	headerUnsynced int32  // 1: the log's header was written; it must be durable before the first frame is written
	deferSync      int32  // 1: CommitUnsynced leaves the sync at the end of a commit to its caller
	syncOwed       int32  // 1: that sync is still to be done
}

const (
	littleWords = 1 + iota
	bigWords
)

// behind is the offset of the system's file from the address of our file.
const behind = unsafe.Sizeof(file{})

func fileAt(at uintptr) *file { return (*file)(memory(at)) }

// main returns the database that the file is or belongs to.
func (f *file) main() *file {
	if f.database != 0 {
		return fileAt(f.database)
	}
	return f
}

// UnsafeSynchronous names the environment variable that keeps commits from being synced, for
// measurements.
const UnsafeSynchronous = "KAGZI_UNSAFE_SYNCHRONOUS"

// foreignLog in place of a page number says that the log beside the file belongs to another file.
const foreignLog = 1<<32 - 1

// samplePages is the number of pages tried for checksums in a file whose first page does not
// announce them.
const samplePages = 16

// hasChecksums reports whether the pages of a file have checksums. If the first page says no but
// other pages have valid ones, the first page is damaged, and must be reported as such.
func hasChecksums(r io.ReaderAt) bool {
	header := make([]byte, headerBytes)
	if n, _ := r.ReadAt(header, 0); n < headerBytes {
		return false
	}
	if isFirst(header) && reservesChecksum(header) {
		return true
	}
	for _, size := range []int32{4096, int32(binary.BigEndian.Uint16(header[pageSizeAt:]))} {
		if !isPageSize(size) {
			continue
		}
		page := make([]byte, size)
		for number := uint32(1); number <= samplePages; number++ {
			if _, err := r.ReadAt(page, int64(number-1)*int64(size)); err != nil {
				break
			}
			if PageHolds(page, number) {
				return true
			}
		}
	}
	return false
}

func readFile(tls *libc.TLS, at, to uintptr, n int32, offset int64) int32 {
	f, under := fileAt(at), underlying{tls, at}
	switch {
	case f.database == 0 && isPageSize(n) && offset%int64(n) == 0:
		return f.readPage(under, to, n, offset)
	case f.database != 0 && isPageSize(n) && isPageInLog(n, offset):
		return f.readFrame(under, to, n, offset-FrameHeaderBytes)
	}
	code := under.read(to, n, offset)
	if code == lib.SQLITE_OK && f.database != 0 && n == LogHeaderBytes && offset == 0 {
		// SQLite is about to recover the log
		return f.examineLog(under)
	}
	return code
}

// isPageInLog reports whether a read of n bytes at offset is the page of a frame.
func isPageInLog(n int32, offset int64) bool {
	return offset > LogHeaderBytes && (offset-LogHeaderBytes)%(int64(n)+FrameHeaderBytes) == FrameHeaderBytes
}

func (f *file) readPage(under underlying, to uintptr, n int32, offset int64) int32 {
	code := under.read(to, n, offset)
	short := code == lib.SQLITE_IOERR_SHORT_READ
	if code != lib.SQLITE_OK && !short {
		return code
	}
	page := bytesAt(to, n)
	f.learn(page)
	number := uint32(offset/int64(n)) + 1
	if f.checked == 0 || f.unchecked != 0 || !short && PageHolds(page, number) {
		return code
	}
	f.broken = number // if it is short, the end of the file is missing
	return lib.SQLITE_CORRUPT
}

// learn reads from the first page whether pages have checksums: the page may come from a log, or
// from another process that has just added them.
func (f *file) learn(page []byte) {
	if f.checked == 0 && isFirst(page) && reservesChecksum(page) {
		f.checked = 1
	}
}

// readFrame reads the page of the frame that begins there.
func (f *file) readFrame(under underlying, to uintptr, n int32, offset int64) int32 {
	size := n + FrameHeaderBytes
	if f.frameBufBytes < int64(size) {
		libc.Xfree(under.tls, f.frameBuf)
		f.frameBuf, f.frameBufBytes = libc.Xmalloc(under.tls, uint64(size)), int64(size)
		if f.frameBuf == 0 {
			f.frameBufBytes = 0
			return lib.SQLITE_NOMEM
		}
	}
	if code := under.read(f.frameBuf, size, offset); code != lib.SQLITE_OK {
		return code
	}
	whole, main := frame(bytesAt(f.frameBuf, size)), f.main()
	main.learn(whole.page())
	if main.checked != 0 && main.unchecked == 0 && !PageHolds(whole.page(), whole.number()) {
		order, code := f.wordOrder(under)
		if code != lib.SQLITE_OK {
			return code
		}
		follows, code := f.follows(under, whole, order, offset)
		if code != lib.SQLITE_OK {
			return code
		}
		if !follows {
			main.broken = whole.number()
			return lib.SQLITE_CORRUPT
		}
		putChecksum(whole.page(), whole.number(), order) // another program wrote it, and it is undamaged
	}
	copy(bytesAt(to, n), whole.page())
	return lib.SQLITE_OK
}

// follows reports whether the frame continues the one before it, by SQLite's own checksum.
func (f *file) follows(under underlying, whole frame, order binary.ByteOrder, offset int64) (bool, int32) {
	before := offset - int64(len(whole)) + 16 // offset of the checksum of the frame before
	if offset == LogHeaderBytes {
		before = LogHeaderBytes - 8
	}
	place := under.tls.Alloc(8)
	defer under.tls.Free(8)
	if code := under.read(place, 8, before); code != lib.SQLITE_OK {
		return false, code
	}
	return whole.sums(order, storedSums(bytesAt(place, 8))) == whole.stored(), lib.SQLITE_OK
}

// wordOrder returns the byte order of the log, from its header.
func (f *file) wordOrder(under underlying) (binary.ByteOrder, int32) {
	if f.order == 0 {
		place := under.tls.Alloc(8)
		defer under.tls.Free(8)
		if code := under.read(place, 4, 0); code != lib.SQLITE_OK {
			return nil, code
		}
		f.setOrder(bytesAt(place, 4))
	}
	if f.order == bigWords {
		return binary.BigEndian, lib.SQLITE_OK
	}
	return binary.LittleEndian, lib.SQLITE_OK
}

func (f *file) setOrder(header []byte) {
	if f.order = littleWords; wordOrder(header) == binary.BigEndian {
		f.order = bigWords
	}
}

// examineLog refuses a damaged log, whose end SQLite would drop silently, and a log of another
// file. A log that was not synced, as in measurements, may look damaged.
func (f *file) examineLog(under underlying) int32 {
	if strange, code := f.isForeign(under); strange || code != lib.SQLITE_OK {
		f.main().broken = foreignLog
		return cmp.Or(code, lib.SQLITE_CORRUPT)
	}
	if f.main().unchecked != 0 || os.Getenv(UnsafeSynchronous) != "" {
		return lib.SQLITE_OK
	}
	size, code := under.size()
	if code != lib.SQLITE_OK {
		return code
	}
	damaged, err := DamagedLog(under, size)
	switch {
	case err != nil:
		return lib.SQLITE_IOERR_READ
	case damaged:
		return lib.SQLITE_CORRUPT
	}
	return lib.SQLITE_OK
}

// isForeign reports whether a log with a frame is beside a database that is not in WAL mode, such
// as a backup: somebody replaced another database by this file, and the log holds the other's
// pages. SQLite removes a log before it leaves WAL mode, and creates it after it has entered it.
func (f *file) isForeign(log underlying) (bool, int32) {
	size, code := log.size()
	if code != lib.SQLITE_OK || size <= LogHeaderBytes+FrameHeaderBytes {
		return false, code
	}
	header := make([]byte, headerBytes)
	switch _, err := (underlying{log.tls, f.database}).ReadAt(header, 0); {
	case errors.Is(err, io.EOF):
		return false, lib.SQLITE_OK
	case err != nil:
		return false, lib.SQLITE_IOERR_READ
	}
	return isFirst(header) && header[readVersionAt] == withoutLog, lib.SQLITE_OK
}

func writeFile(tls *libc.TLS, at, from uintptr, n int32, offset int64) int32 {
	f, under := fileAt(at), underlying{tls, at}
	switch {
	case f.database == 0 && isPageSize(n) && offset%int64(n) == 0:
		f.sign(bytesAt(from, n), uint32(offset/int64(n))+1, binary.LittleEndian)
	case f.database == 0:
	case n == LogHeaderBytes && offset == 0:
		f.setOrder(bytesAt(from, n))
		f.headerUnsynced = 1
	case n == FrameHeaderBytes:
		f.framed, f.number = offset, frame(bytesAt(from, n)).number()
	case isPageSize(n) && isPageInLog(n, offset):
		if code := f.signFrame(under, bytesAt(from, n), offset-FrameHeaderBytes); code != lib.SQLITE_OK {
			return code
		}
	}
	return under.write(from, n, offset)
}

// sign writes the checksum of a page if the page has room for one. The page is SQLite's copy, whose
// reserved bytes are free.
func (f *file) sign(page []byte, number uint32, order binary.ByteOrder) {
	main := f.main()
	if number == 1 && isFirst(page) {
		main.checked = 0
		main.learn(page)
	}
	if main.checked != 0 {
		putChecksum(page, number, order)
	}
}

// signFrame signs the page of the frame that begins there. Its header was written before: usually
// just now, otherwise earlier in the transaction.
func (f *file) signFrame(under underlying, page []byte, offset int64) int32 {
	if f.framed != offset {
		place := under.tls.Alloc(8)
		defer under.tls.Free(8)
		if code := under.read(place, 4, offset); code != lib.SQLITE_OK {
			return code
		}
		f.framed, f.number = offset, binary.BigEndian.Uint32(bytesAt(place, 4))
	}
	order, code := f.wordOrder(under)
	if code == lib.SQLITE_OK {
		f.sign(page, f.number, order)
	}
	return code
}
