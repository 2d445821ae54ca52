package sqlite

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// handle is SQLite's own connection, as the library that modernc.org/sqlite is made of gives it. Database/sql and the driver around that
// library copy, box and lock so much that a small statement costs twice as much through them.
//
// It is used by one goroutine at a time, so SQLite's mutex for it is left out; only interrupt may be called besides.
type handle struct {
	tls *libc.TLS
	db  uintptr

	mu     sync.Mutex // of closed, against interrupt
	closed bool
}

// libError is what SQLite says.
type libError struct {
	code int // extended
	text string
}

func (e *libError) Error() string { return fmt.Sprintf("%s (%d)", e.text, e.code) }

// openHandle opens the file that a URI names. It makes a file that is not there, unless the URI says otherwise.
func openHandle(uri string) (*handle, error) {
	if err := register(); err != nil {
		return nil, err
	}
	h := &handle{tls: libc.NewTLS()}
	name, err := libc.CString(uri)
	if err != nil {
		h.tls.Close()
		return nil, err
	}
	defer libc.Xfree(h.tls, name)
	vfs, err := libc.CString(checkedVFS)
	if err != nil {
		h.tls.Close()
		return nil, err
	}
	defer libc.Xfree(h.tls, vfs)
	place := h.tls.Alloc(8)
	flags := int32(lib.SQLITE_OPEN_READWRITE | lib.SQLITE_OPEN_CREATE | lib.SQLITE_OPEN_NOMUTEX | lib.SQLITE_OPEN_URI | lib.SQLITE_OPEN_EXRESCODE)
	code := lib.Xsqlite3_open_v2(h.tls, name, place, flags, vfs)
	h.db = *(*uintptr)(memory(place))
	h.tls.Free(8)
	if err := h.check(code); err != nil {
		h.close() // it may be there nevertheless
		return nil, err
	}
	if err := h.keepPlans(); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// keepPlans has SQLite plan a statement once and for all, and not anew for each value that a partial index might suit.
func (h *handle) keepPlans() error {
	list := h.tls.Alloc(16)
	defer h.tls.Free(16)
	return h.check(lib.Xsqlite3_db_config(h.tls, h.db, lib.SQLITE_DBCONFIG_ENABLE_QPSG, libc.VaList(list, int32(1), uintptr(0))))
}

func (h *handle) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	err := h.check(lib.Xsqlite3_close_v2(h.tls, h.db))
	h.tls.Close()
	return err
}

// memory is what an address of the library points to. Go neither moves nor frees it.
func memory(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// check is the error of a result; nil when it is none.
func (h *handle) check(code int32) error {
	switch code {
	case lib.SQLITE_OK, lib.SQLITE_ROW, lib.SQLITE_DONE:
		return nil
	}
	text := libc.GoString(lib.Xsqlite3_errstr(h.tls, code))
	if h.db != 0 && lib.Xsqlite3_extended_errcode(h.tls, h.db) == code {
		if more := libc.GoString(lib.Xsqlite3_errmsg(h.tls, h.db)); more != text {
			text += ": " + more
		}
		if page, err := h.control(controlBroken, 0); code&0xff == lib.SQLITE_CORRUPT && err == nil && page != 0 {
			text += ": " + brokenText(page)
		}
	}
	return &libError{int(code), text}
}

// brokenText says of a database what did not hold.
func brokenText(page int32) string {
	if uint32(page) == strangeLog {
		return "the log beside it is that of another file, in whose place it was put"
	}
	return fmt.Sprintf("page %d is not what was written there", page)
}

// interrupt ends the statement at work. It may come from any goroutine, and at any time.
func (h *handle) interrupt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		tls := libc.NewTLS() // h.tls belongs to the goroutine that is at work
		lib.Xsqlite3_interrupt(tls, h.db)
		tls.Close()
	}
}

// interruptWhen interrupts as soon as ctx ends, until over is called. That waits for an interrupt that is under way: one that came later would end
// the next statement of the connection, which is somebody else's as a rule.
func (h *handle) interruptWhen(ctx context.Context) (over func()) {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		h.interrupt()
	})
	return func() {
		if !stop() {
			<-interrupted
		}
	}
}

// prepare makes a statement of the first one in a text that ends with a zero byte, and says where the rest of the text begins. Where there
// is none but space and comments, it is 0.
func (h *handle) prepare(text uintptr) (stmt, rest uintptr, err error) {
	places := h.tls.Alloc(16)
	defer h.tls.Free(16)
	code := lib.Xsqlite3_prepare_v3(h.tls, h.db, text, -1, lib.SQLITE_PREPARE_PERSISTENT, places, places+8)
	return *(*uintptr)(memory(places)), *(*uintptr)(memory(places + 8)), h.check(code)
}

// script runs a text of several statements. Rows are passed over.
func (h *handle) script(text string) error {
	next, err := libc.CString(text)
	if err != nil {
		return err
	}
	defer libc.Xfree(h.tls, next)
	for {
		stmt, rest, err := h.prepare(next)
		if err != nil {
			return err
		}
		if stmt == 0 && *(*byte)(memory(rest)) == 0 {
			return nil
		}
		for code := int32(lib.SQLITE_ROW); stmt != 0 && code == lib.SQLITE_ROW; {
			code = lib.Xsqlite3_step(h.tls, stmt)
			err = h.check(code)
		}
		lib.Xsqlite3_finalize(h.tls, stmt)
		if err != nil {
			return err
		}
		next = rest
	}
}

// status is one of SQLite's counters of a connection, which starts anew with reset.
func (h *handle) status(which int32, reset bool) (int, error) {
	places := h.tls.Alloc(8)
	defer h.tls.Free(8)
	code := lib.Xsqlite3_db_status(h.tls, h.db, which, places, places+4, libc.Bool32(reset))
	return int(*(*int32)(memory(places))), h.check(code)
}

// changed is how many rows the connection has changed since it was opened.
func (h *handle) changed() int64 { return lib.Xsqlite3_total_changes64(h.tls, h.db) }

// logPlace is where the write-ahead log's file is, once there is a log.
func (h *handle) logPlace() (uintptr, error) {
	place := h.tls.Alloc(8)
	defer h.tls.Free(8)
	err := h.check(lib.Xsqlite3_file_control(h.tls, h.db, 0, lib.SQLITE_FCNTL_JOURNAL_POINTER, place))
	return *(*uintptr)(memory(place)), err
}

// sync has what was written to the file itself on disk.
func (h *handle) sync() error {
	place := h.tls.Alloc(8)
	defer h.tls.Free(8)
	if err := h.check(lib.Xsqlite3_file_control(h.tls, h.db, 0, lib.SQLITE_FCNTL_FILE_POINTER, place)); err != nil {
		return err
	}
	return h.check(syncFile(h.tls, *(*uintptr)(memory(place)), lib.SQLITE_SYNC_NORMAL))
}

// keepLog has the write-ahead log stay when the last connection is closed.
func (h *handle) keepLog() error {
	_, err := h.control(lib.SQLITE_FCNTL_PERSIST_WAL, 1)
	return err
}

// leaveLog has the write-ahead log neither folded nor deleted when the last connection is closed.
func (h *handle) leaveLog() error {
	list := h.tls.Alloc(16)
	defer h.tls.Free(16)
	return h.check(lib.Xsqlite3_db_config(h.tls, h.db, lib.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, libc.VaList(list, int32(1), uintptr(0))))
}

// keepFree has so many bytes at the end of each page kept free, in a file that is yet to be made and in what vacuum makes of another.
func (h *handle) keepFree(bytes int32) error {
	_, err := h.control(lib.SQLITE_FCNTL_RESERVE_BYTES, bytes)
	return err
}

// checked says that the pages of the file have checksums.
func (h *handle) checked() (bool, error) {
	checked, err := h.control(controlChecked, 0)
	return checked != 0, err
}

// control tells the file something and returns what it says to that.
func (h *handle) control(operation, value int32) (int32, error) {
	main, err := libc.CString("main")
	if err != nil {
		return 0, err
	}
	defer libc.Xfree(h.tls, main)
	place := h.tls.Alloc(4)
	defer h.tls.Free(4)
	*(*int32)(memory(place)) = value
	if code := lib.Xsqlite3_file_control(h.tls, h.db, main, operation, place); code != lib.SQLITE_OK {
		return 0, &libError{int(code), "control of a file"}
	}
	return *(*int32)(memory(place)), nil
}

// copying is a copy of one database into another, at work.
type copying struct {
	from, to *handle
	backup   uintptr
}

// copyInto begins a copy into an empty database.
func (h *handle) copyInto(to *handle) (*copying, error) {
	main, err := libc.CString("main")
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(h.tls, main)
	c := &copying{from: h, to: to, backup: lib.Xsqlite3_backup_init(h.tls, to.db, main, h.db, main)}
	if c.backup == 0 {
		return nil, to.check(lib.Xsqlite3_extended_errcode(to.tls, to.db))
	}
	return c, nil
}

// step copies so many pages. more says that it is not done.
func (c *copying) step(pages int) (more bool, err error) {
	code := lib.Xsqlite3_backup_step(c.from.tls, c.backup, int32(pages))
	return code == lib.SQLITE_OK, c.to.check(code)
}

func (c *copying) finish() error { return c.to.check(lib.Xsqlite3_backup_finish(c.from.tls, c.backup)) }
