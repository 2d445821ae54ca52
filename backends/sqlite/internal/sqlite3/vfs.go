package sqlite3

import (
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// SQLite reaches its files through a table of functions (a VFS). The VFS here wraps the system's
// and passes on every call. It adds checksums to pages that are written to a database and its log,
// and rejects pages with a wrong checksum when they are read. Journals and temporary files are
// passed through. Pages are never mapped into memory, where nothing would check them.

const (
	checkedVFS  = "kagzi"          // wraps the system's VFS
	LocklessVFS = "kagzi-lockless" // wraps the VFS without locks; for a file that nobody else opens
	// UncheckedParam in a URI turns the check of pages off. Pages that are written get a checksum
	// again.
	UncheckedParam = "unchecked"
	// ChecksumsParam in a URI says that all pages of a file to be created have room for a checksum.
	ChecksumsParam = "checksums"
)

// Operations of sqlite3_file_control that this VFS adds. The argument is the address of an int32
// for the answer.
const (
	controlChecked = 0x4b610001 + iota // 1: the pages of the file have checksums
	controlBroken                      // the number of the last page that failed its check; 0: none
)

// register registers the VFS with SQLite, once in a process. It is not the default VFS, so other
// users of the library are not affected.
var register = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	for name, base := range map[string]string{checkedVFS: "", LocklessVFS: lockless} {
		if err := registerBefore(tls, name, base); err != nil {
			return err
		}
	}
	return nil
})

// passing is a VFS that wraps another. Everything except opening files is done by the wrapped one.
type passing struct {
	vfs  lib.Tsqlite3_vfs
	base uintptr
}

// registerBefore registers a VFS that wraps base; empty: the system's default.
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
	called, err := libc.CString(name) // SQLite keeps it
	if err != nil {
		return err
	}
	place := libc.Xcalloc(tls, 1, uint64(unsafe.Sizeof(passing{})))
	if place == 0 {
		return &Error{Code: lib.SQLITE_NOMEM, Text: "out of memory"}
	}
	p := (*passing)(memory(place))
	if p.base = lib.Xsqlite3_vfs_find(tls, wanted); p.base == 0 {
		return &Error{Code: lib.SQLITE_ERROR, Text: "no such vfs: " + base}
	}
	p.vfs = *(*lib.Tsqlite3_vfs)(memory(p.base))
	p.vfs.FzName, p.vfs.FpNext = called, 0
	p.vfs.FszOsFile += int32(unsafe.Sizeof(file{}))
	p.vfs.FxOpen = pointer(openFile)
	if code := lib.Xsqlite3_vfs_register(tls, place, 0); code != lib.SQLITE_OK {
		return &Error{Code: int(code), Text: "register a vfs"}
	}
	return nil
}

// pointer returns a Go function of the package as the library keeps a C function pointer (see
// doc.go).
func pointer(function any) uintptr {
	type words [2]uintptr
	return (*words)(unsafe.Pointer(&function))[1]
}

// function returns the Go function of such a pointer.
func function[F any](pointer uintptr) F { return *(*F)(unsafe.Pointer(&pointer)) }

// system returns the table of functions of the system's file behind the one at an address.
func system(at uintptr) *lib.Tsqlite3_io_methods {
	return (*lib.Tsqlite3_io_methods)(memory((*lib.Tsqlite3_file)(memory(at + behind)).FpMethods))
}

func bytesAt(at uintptr, n int32) []byte { return unsafe.Slice((*byte)(memory(at)), n) }

// methods returns the two tables of functions of files: for a VFS with shared memory for a log's
// index, and for one without.
var methods = sync.OnceValue(func() (tables [2]uintptr) {
	tls := libc.NewTLS()
	defer tls.Close()
	for i := range tables {
		tables[i] = libc.Xcalloc(tls, 1, uint64(unsafe.Sizeof(lib.Tsqlite3_io_methods{})))
		m := (*lib.Tsqlite3_io_methods)(memory(tables[i]))
		*m = lib.Tsqlite3_io_methods{
			FiVersion: 2, // version 3 could map pages into memory
			FxClose:   pointer(closeFile), FxRead: pointer(readFile), FxWrite: pointer(writeFile),
			FxTruncate: pointer(truncateFile),
			FxSync:     pointer(syncFile), FxFileSize: pointer(sizeFile), FxLock: pointer(lockFile),
			FxUnlock:            pointer(unlockFile),
			FxCheckReservedLock: pointer(checkReservedLock), FxFileControl: pointer(controlFile),
			FxSectorSize:            pointer(sectorSize),
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
	open := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](
		(*lib.Tsqlite3_vfs)(memory(base)).FxOpen)
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
		f.unchecked = parameter(tls, name, UncheckedParam)
		f.checked = parameter(tls, name, ChecksumsParam)
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

// parameter returns 1 if the URI of a file sets key.
func parameter(tls *libc.TLS, name uintptr, key string) int32 {
	text, err := libc.CString(key)
	if err != nil {
		return 0
	}
	defer libc.Xfree(tls, text)
	return lib.Xsqlite3_uri_boolean(tls, name, text, 0)
}

func closeFile(tls *libc.TLS, at uintptr) int32 {
	libc.Xfree(tls, fileAt(at).frameBuf)
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
	return function[func(*libc.TLS, uintptr, int32, uintptr) int32](system(at).FxFileControl)(
		tls, at+behind, operation, argument)
}

func truncateFile(tls *libc.TLS, at uintptr, size int64) int32 {
	return function[func(*libc.TLS, uintptr, int64) int32](system(at).FxTruncate)(tls, at+behind, size)
}

// syncFile syncs a log's data without the file's metadata, such as its times, which the library
// would write at each commit. The first sync of a log is the library's, because that also makes the
// log's name durable. The sync that ends a commit may be left to the caller of CommitUnsynced, so
// that the next commit is prepared meanwhile.
func syncFile(tls *libc.TLS, at uintptr, flags int32) int32 {
	f := fileAt(at)
	switch {
	case f.nameSynced != 0 && f.deferSync != 0 && f.headerUnsynced == 0:
		f.syncOwed = 1
		return lib.SQLITE_OK
	case f.nameSynced != 0:
		f.headerUnsynced = 0
		return syncData(at + behind)
	}
	code := function[func(*libc.TLS, uintptr, int32) int32](system(at).FxSync)(tls, at+behind, flags)
	if SyncsData && f.database != 0 && code == lib.SQLITE_OK {
		f.nameSynced, f.headerUnsynced = 1, 0
	}
	return code
}

func sizeFile(tls *libc.TLS, at, size uintptr) int32 {
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

// deviceCharacteristics hides that parts of pages may be read. SQLite would do that for large
// values, without its cache, but a checksum covers a whole page.
func deviceCharacteristics(tls *libc.TLS, at uintptr) int32 {
	of := function[func(*libc.TLS, uintptr) int32](system(at).FxDeviceCharacteristics)(tls, at+behind)
	return of &^ lib.SQLITE_IOCAP_SUBPAGE_READ
}

func mapIndex(tls *libc.TLS, at uintptr, region, size, extend int32, to uintptr) int32 {
	return function[func(*libc.TLS, uintptr, int32, int32, int32, uintptr) int32](system(at).FxShmMap)(
		tls, at+behind, region, size, extend, to)
}

func lockIndex(tls *libc.TLS, at uintptr, offset, n, flags int32) int32 {
	return function[func(*libc.TLS, uintptr, int32, int32, int32) int32](system(at).FxShmLock)(
		tls, at+behind, offset, n, flags)
}

func barrierIndex(tls *libc.TLS, at uintptr) {
	function[func(*libc.TLS, uintptr)](system(at).FxShmBarrier)(tls, at+behind)
}

func unmapIndex(tls *libc.TLS, at uintptr, remove int32) int32 {
	return function[func(*libc.TLS, uintptr, int32) int32](system(at).FxShmUnmap)(tls, at+behind, remove)
}
