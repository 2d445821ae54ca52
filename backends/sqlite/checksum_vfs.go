package sqlite

import (
	"encoding/binary"
	"io"
	"os"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// SQLite reaches its files through a table of functions (a VFS). The ones here stand before those of the system: they pass on every call, put
// checksums on pages that are written to a database and its log, and refuse pages that are read and do not hold. Journals and temporary files
// are the system's alone. Pages are never mapped into memory, where nobody would look at them.

const (
	checkedVFS         = "kagzi"          // before the system's
	checkedLocklessVFS = "kagzi-lockless" // before the one without locks
	// uncheckedParam in a URI has pages read as they are. They get their checksum again where they are written.
	uncheckedParam = "unchecked"
	// roomParam in a URI says that all pages of a file that is yet to be made have room for a checksum.
	roomParam = "checksums"
)

// Own operations of sqlite3_file_control, whose argument is where to put an int32.
const (
	controlChecked = 0x4b610001 + iota // 1: the pages of the file have checksums
	controlBroken                      // the number of the last page that did not hold; 0: none
)

// register makes SQLite know the functions, once in a process.
var register = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	if err := improveCache(tls); err != nil { // before SQLite is first used
		return err
	}
	for name, base := range map[string]string{checkedVFS: "", checkedLocklessVFS: lockless} {
		if err := registerBefore(tls, name, base); err != nil {
			return err
		}
	}
	return nil
})

// passing is a VFS of SQLite with the one that it stands before. All but the opening of files is the latter's own.
type passing struct {
	vfs  lib.Tsqlite3_vfs
	base uintptr
}

// registerBefore stands before the VFS base, which is the system's where it is empty.
func registerBefore(tls *libc.TLS, name, base string) error {
	var wanted uintptr
	if base != "" {
		text, err := libc.CString(base)
		if err != nil {
			return err
		}
		defer libc.Xfree(tls, text)
		wanted = text
	}
	called, err := libc.CString(name) // stays with SQLite
	if err != nil {
		return err
	}
	place := libc.Xcalloc(tls, 1, uint64(unsafe.Sizeof(passing{})))
	if place == 0 {
		return &libError{lib.SQLITE_NOMEM, "out of memory"}
	}
	p := (*passing)(memory(place))
	if p.base = lib.Xsqlite3_vfs_find(tls, wanted); p.base == 0 {
		return &libError{lib.SQLITE_ERROR, "no such vfs: " + base}
	}
	p.vfs = *(*lib.Tsqlite3_vfs)(memory(p.base))
	p.vfs.FzName, p.vfs.FpNext = called, 0
	p.vfs.FszOsFile += int32(unsafe.Sizeof(file{}))
	p.vfs.FxOpen = pointer(openFile)
	if code := lib.Xsqlite3_vfs_register(tls, place, 0); code != lib.SQLITE_OK {
		return &libError{int(code), "register a vfs"}
	}
	return nil
}

// pointer is a function of the package as the library keeps it.
func pointer(function any) uintptr {
	type words [2]uintptr
	return (*words)(unsafe.Pointer(&function))[1]
}

// function is what such a pointer points to.
func function[F any](pointer uintptr) F { return *(*F)(unsafe.Pointer(&pointer)) }

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
	broken    uint32  // of a database: the page that did not hold
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

const behind = unsafe.Sizeof(file{})

func fileAt(at uintptr) *file { return (*file)(memory(at)) }

// main is the database that a file is or belongs to.
func (f *file) main() *file {
	if f.database != 0 {
		return fileAt(f.database)
	}
	return f
}

// system is the table of functions of the system's file behind the one at a place.
func system(at uintptr) *lib.Tsqlite3_io_methods {
	return (*lib.Tsqlite3_io_methods)(memory((*lib.Tsqlite3_file)(memory(at + behind)).FpMethods))
}

func bytesAt(at uintptr, n int32) []byte { return unsafe.Slice((*byte)(memory(at)), n) }

// methods are the tables of functions of files: those of a VFS with shared memory for a log's index, and of one without.
var methods = sync.OnceValue(func() (tables [2]uintptr) {
	tls := libc.NewTLS()
	defer tls.Close()
	for i := range tables {
		tables[i] = libc.Xcalloc(tls, 1, uint64(unsafe.Sizeof(lib.Tsqlite3_io_methods{})))
		m := (*lib.Tsqlite3_io_methods)(memory(tables[i]))
		*m = lib.Tsqlite3_io_methods{
			FiVersion: 2, // the third could map pages into memory
			FxClose:   pointer(closeFile), FxRead: pointer(readFile), FxWrite: pointer(writeFile), FxTruncate: pointer(truncateFile),
			FxSync: pointer(syncFile), FxFileSize: pointer(sizeFile), FxLock: pointer(lockFile), FxUnlock: pointer(unlockFile),
			FxCheckReservedLock: pointer(checkReservedLock), FxFileControl: pointer(controlFile), FxSectorSize: pointer(sectorSize),
			FxDeviceCharacteristics: pointer(deviceCharacteristics), FxShmBarrier: pointer(barrierIndex),
		}
		if i == 0 {
			m.FxShmMap, m.FxShmLock, m.FxShmUnmap = pointer(mapIndex), pointer(lockIndex), pointer(unmapIndex)
		}
	}
	return tables
})

func openFile(tls *libc.TLS, vfs, name, at uintptr, flags int32, flagsOut uintptr) int32 {
	base := (*passing)(memory(vfs)).base
	open := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32]((*lib.Tsqlite3_vfs)(memory(base)).FxOpen)
	if name == 0 || flags&(lib.SQLITE_OPEN_MAIN_DB|lib.SQLITE_OPEN_WAL) == 0 {
		return open(tls, base, name, at, flags, flagsOut)
	}
	f := fileAt(at)
	*f = file{}
	(*lib.Tsqlite3_file)(memory(at + behind)).FpMethods = 0
	if code := open(tls, base, name, at+behind, flags, flagsOut); code != lib.SQLITE_OK {
		return code
	}
	if flags&lib.SQLITE_OPEN_WAL != 0 {
		f.database = lib.Xsqlite3_database_file_object(tls, name)
	} else {
		f.unchecked = parameter(tls, name, uncheckedParam)
		f.checked = parameter(tls, name, roomParam)
	}
	tables := methods()
	if f.methods = tables[0]; system(at).FxShmMap == 0 {
		f.methods = tables[1]
	}
	if f.database == 0 && f.checked == 0 && hasChecksums(underlying{tls, at}) {
		f.checked = 1
	}
	return lib.SQLITE_OK
}

// parameter is 1 where the URI that a file was named by says so.
func parameter(tls *libc.TLS, name uintptr, key string) int32 {
	text, err := libc.CString(key)
	if err != nil {
		return 0
	}
	defer libc.Xfree(tls, text)
	return lib.Xsqlite3_uri_boolean(tls, name, text, 0)
}

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
// look so.
func (f *file) examineLog(under underlying) int32 {
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

func closeFile(tls *libc.TLS, at uintptr) int32 {
	libc.Xfree(tls, fileAt(at).room)
	libc.Xfree(tls, fileAt(at).held)
	return function[func(*libc.TLS, uintptr) int32](system(at).FxClose)(tls, at+behind)
}

func controlFile(tls *libc.TLS, at uintptr, operation int32, argument uintptr) int32 {
	switch operation {
	case controlChecked:
		*(*int32)(memory(argument)) = fileAt(at).checked
		return lib.SQLITE_OK
	case controlBroken:
		*(*int32)(memory(argument)) = int32(fileAt(at).broken)
		return lib.SQLITE_OK
	}
	return function[func(*libc.TLS, uintptr, int32, uintptr) int32](system(at).FxFileControl)(tls, at+behind, operation, argument)
}

func truncateFile(tls *libc.TLS, at uintptr, size int64) int32 {
	if code := fileAt(at).flush(underlying{tls, at}); code != lib.SQLITE_OK {
		return code
	}
	return function[func(*libc.TLS, uintptr, int64) int32](system(at).FxTruncate)(tls, at+behind, size)
}

// syncFile has a log's data made durable without what the system keeps of a file besides, as its times, which the library would have it write
// at each commit. The first time is the library's affair, for then the log's name is made durable as well. The sync that ends a commit may be
// left to the writer, which is at work on the next one meanwhile.
func syncFile(tls *libc.TLS, at uintptr, flags int32) int32 {
	f := fileAt(at)
	if code := f.flush(underlying{tls, at}); code != lib.SQLITE_OK {
		return code
	}
	switch {
	case f.named != 0 && f.later != 0 && f.begun == 0:
		f.owed = 1
		return lib.SQLITE_OK
	case f.named != 0:
		f.begun = 0
		return syncData(at + behind)
	}
	code := function[func(*libc.TLS, uintptr, int32) int32](system(at).FxSync)(tls, at+behind, flags)
	if syncsData && f.database != 0 && code == lib.SQLITE_OK {
		f.named, f.begun = 1, 0
	}
	return code
}

func sizeFile(tls *libc.TLS, at, size uintptr) int32 {
	if code := fileAt(at).flush(underlying{tls, at}); code != lib.SQLITE_OK {
		return code
	}
	return function[func(*libc.TLS, uintptr, uintptr) int32](system(at).FxFileSize)(tls, at+behind, size)
}

func lockFile(tls *libc.TLS, at uintptr, level int32) int32 {
	return function[func(*libc.TLS, uintptr, int32) int32](system(at).FxLock)(tls, at+behind, level)
}

func unlockFile(tls *libc.TLS, at uintptr, level int32) int32 {
	return function[func(*libc.TLS, uintptr, int32) int32](system(at).FxUnlock)(tls, at+behind, level)
}

func checkReservedLock(tls *libc.TLS, at, taken uintptr) int32 {
	return function[func(*libc.TLS, uintptr, uintptr) int32](system(at).FxCheckReservedLock)(tls, at+behind, taken)
}

func sectorSize(tls *libc.TLS, at uintptr) int32 {
	return function[func(*libc.TLS, uintptr) int32](system(at).FxSectorSize)(tls, at+behind)
}

// deviceCharacteristics leaves out that parts of pages may be read, as SQLite does of large values past its cache: a checksum is of a whole page.
func deviceCharacteristics(tls *libc.TLS, at uintptr) int32 {
	of := function[func(*libc.TLS, uintptr) int32](system(at).FxDeviceCharacteristics)(tls, at+behind)
	return of &^ lib.SQLITE_IOCAP_SUBPAGE_READ
}

func mapIndex(tls *libc.TLS, at uintptr, region, size, extend int32, to uintptr) int32 {
	return function[func(*libc.TLS, uintptr, int32, int32, int32, uintptr) int32](system(at).FxShmMap)(tls, at+behind, region, size, extend, to)
}

func lockIndex(tls *libc.TLS, at uintptr, offset, n, flags int32) int32 {
	return function[func(*libc.TLS, uintptr, int32, int32, int32) int32](system(at).FxShmLock)(tls, at+behind, offset, n, flags)
}

func barrierIndex(tls *libc.TLS, at uintptr) {
	function[func(*libc.TLS, uintptr)](system(at).FxShmBarrier)(tls, at+behind)
}

func unmapIndex(tls *libc.TLS, at uintptr, remove int32) int32 {
	return function[func(*libc.TLS, uintptr, int32) int32](system(at).FxShmUnmap)(tls, at+behind, remove)
}
