package sqlite

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

// file is an open database or log. It lies in SQLite's memory, with the system's own right behind it, so it holds no pointer of Go's.
type file struct {
	methods   uintptr // of sqlite3_file
	database  uintptr // of a log: the file it belongs to; of a database 0
	room      uintptr // of a log: memory for one frame; 0: none yet
	roomSize  int64
	framed    int64   // of a log: where the header of a frame was last written, and the number in it
	number    uint32  // likewise
	order     uint32  // of a log: littleWords, bigWords; 0: not known yet
	checked   int32   // of a database: 1: its pages have checksums
	unchecked int32   // of a database: 1: they are not looked at
	broken    uint32  // of a database: the page that did not hold, or strangeLog
	named     int32   // of a log: 1: its name is durable, and syncData does for the rest
	begun     int32   // of a log: 1: its header was written, and no frame may be before that is durable
	later     int32   // of a log: 1: whoever commits sees to the sync
	owed      int32   // of a log: 1: and has to
	gathers   int32   // of a log: 1: what a commit writes is gathered
	held      uintptr // of a log: memory for what was gathered; 0: none yet
	heldAt    int64   // where in the log that belongs
	heldBytes int32   // how much it is
}

const (
	littleWords = 1 + iota
	bigWords
)

// behind is how many bytes after the place of a file the system's own begins.
const behind = unsafe.Sizeof(file{})

func fileAt(at uintptr) *file { return (*file)(memory(at)) }

// main is the database that a file is or belongs to.
func (f *file) main() *file {
	if f.database != 0 {
		return fileAt(f.database)
	}
	return f
}

// strangeLog in the place of a page's number says that the log beside the file is another's.
const strangeLog = 1<<32 - 1

// samplePages is how many pages may tell that a file has checksums although its first page does not say so.
const samplePages = 16

// hasChecksums says that the pages of a file have checksums. What its first page says counts for nothing where others hold: then that is
// damaged, and shall be found to be so.
func hasChecksums(r io.ReaderAt) bool {
	header := make([]byte, headerBytes)
	if n, _ := r.ReadAt(header, 0); n < headerBytes {
		return false
	}
	if isFirst(header) && hasRoom(header) {
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
			if holds(page, number) {
				return true
			}
		}
	}
	return false
}

func readFile(tls *libc.TLS, at, to uintptr, n int32, offset int64) int32 {
	f, under := fileAt(at), underlying{tls, at}
	if code := f.flush(under); code != lib.SQLITE_OK {
		return code
	}
	switch {
	case f.database == 0 && isPageSize(n) && offset%int64(n) == 0:
		return f.readPage(under, to, n, offset)
	case f.database != 0 && isPageSize(n) && isPageInLog(n, offset):
		return f.readFrame(under, to, n, offset-frameHeaderBytes)
	}
	code := under.read(to, n, offset)
	if code == lib.SQLITE_OK && f.database != 0 && n == logHeaderBytes && offset == 0 { // SQLite is about to recover what is in the log
		return f.examineLog(under)
	}
	return code
}

// isPageInLog says that n bytes there are the page of a frame.
func isPageInLog(n int32, offset int64) bool {
	return offset > logHeaderBytes && (offset-logHeaderBytes)%(int64(n)+frameHeaderBytes) == frameHeaderBytes
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
	if f.checked == 0 || f.unchecked != 0 || !short && holds(page, number) {
		return code
	}
	f.broken = number // where it is short the end of the file is missing
	return lib.SQLITE_CORRUPT
}

// learn finds out from the first page whether pages have checksums: it may come from a log, or from another process that has just put them in.
func (f *file) learn(page []byte) {
	if f.checked == 0 && isFirst(page) && hasRoom(page) {
		f.checked = 1
	}
}

// readFrame reads the page of the frame that begins there.
func (f *file) readFrame(under underlying, to uintptr, n int32, offset int64) int32 {
	size := n + frameHeaderBytes
	if f.roomSize < int64(size) {
		libc.Xfree(under.tls, f.room)
		f.room, f.roomSize = libc.Xmalloc(under.tls, uint64(size)), int64(size)
		if f.room == 0 {
			f.roomSize = 0
			return lib.SQLITE_NOMEM
		}
	}
	if code := under.read(f.room, size, offset); code != lib.SQLITE_OK {
		return code
	}
	whole, main := frame(bytesAt(f.room, size)), f.main()
	main.learn(whole.page())
	if main.checked != 0 && main.unchecked == 0 && !holds(whole.page(), whole.number()) {
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
		putChecksum(whole.page(), whole.number(), order) // it is another program's, and whole
	}
	copy(bytesAt(to, n), whole.page())
	return lib.SQLITE_OK
}

// follows says that the frame goes on from the one before it, by SQLite's own checksum.
func (f *file) follows(under underlying, whole frame, order binary.ByteOrder, offset int64) (bool, int32) {
	before := offset - int64(len(whole)) + 16 // where a frame has its checksum
	if offset == logHeaderBytes {
		before = logHeaderBytes - 8
	}
	place := under.tls.Alloc(8)
	defer under.tls.Free(8)
	if code := under.read(place, 8, before); code != lib.SQLITE_OK {
		return false, code
	}
	return whole.sums(order, storedSums(bytesAt(place, 8))) == whole.stored(), lib.SQLITE_OK
}

// wordOrder is that of the log, whose header says it.
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

// examineLog refuses a log that was damaged, of which SQLite would take a part for the whole. One that was not synced, as for measurements, may
// look so. And it refuses one that is another file's.
func (f *file) examineLog(under underlying) int32 {
	if strange, code := f.isStrange(under); strange || code != lib.SQLITE_OK {
		f.main().broken = strangeLog
		return cmp.Or(code, lib.SQLITE_CORRUPT)
	}
	if f.main().unchecked != 0 || os.Getenv(unsafeSynchronous) != "" {
		return lib.SQLITE_OK
	}
	size, code := under.size()
	if code != lib.SQLITE_OK {
		return code
	}
	damaged, err := damagedLog(under, size)
	switch {
	case err != nil:
		return lib.SQLITE_IOERR_READ
	case damaged:
		return lib.SQLITE_CORRUPT
	}
	return lib.SQLITE_OK
}

// isStrange says that a log with a frame lies beside a database that is not kept with a log, as no backup is: it was put in the place of another
// one, by hand, and the pages in the log are of that. SQLite ends a log before it notes that there is none, and begins it after.
func (f *file) isStrange(log underlying) (bool, int32) {
	size, code := log.size()
	if code != lib.SQLITE_OK || size <= logHeaderBytes+frameHeaderBytes {
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
	case n == logHeaderBytes && offset == 0:
		f.setOrder(bytesAt(from, n))
		f.begun = 1
	case n == frameHeaderBytes:
		f.framed, f.number = offset, frame(bytesAt(from, n)).number()
	case isPageSize(n) && isPageInLog(n, offset):
		if code := f.signFrame(under, bytesAt(from, n), offset-frameHeaderBytes); code != lib.SQLITE_OK {
			return code
		}
	}
	if f.gathers != 0 {
		if gathered, code := f.gather(under, from, n, offset); gathered || code != lib.SQLITE_OK {
			return code
		}
	}
	return under.write(from, n, offset)
}

// sign ends a page with its checksum where there is room for it. The page is SQLite's copy, which has that room free.
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

// signFrame signs the page of the frame that begins there. Its header was written before: just now as a rule, or earlier in the transaction.
func (f *file) signFrame(under underlying, page []byte, offset int64) int32 {
	if f.framed != offset {
		if code := f.flush(under); code != lib.SQLITE_OK {
			return code
		}
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
