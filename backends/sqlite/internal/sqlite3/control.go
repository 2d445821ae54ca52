package sqlite3

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// SyncFile makes writes to the database file itself durable.
func (c *Conn) SyncFile() error {
	place := c.tls.Alloc(8)
	defer c.tls.Free(8)
	if err := c.check(lib.Xsqlite3_file_control(c.tls, c.db, 0, lib.SQLITE_FCNTL_FILE_POINTER, place)); err != nil {
		return err
	}
	return c.check(syncFile(c.tls, *(*uintptr)(memory(place)), lib.SQLITE_SYNC_NORMAL))
}

// KeepLog keeps the write-ahead log when the last connection is closed.
func (c *Conn) KeepLog() error {
	_, err := c.control(lib.SQLITE_FCNTL_PERSIST_WAL, 1)
	return err
}

// LeaveLog keeps the write-ahead log from being checkpointed and deleted when the last connection
// is closed.
func (c *Conn) LeaveLog() error { return c.enable(lib.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE) }

// HasChecksums reports whether the pages of the file have checksums.
func (c *Conn) HasChecksums() (bool, error) {
	checked, err := c.control(controlChecked, 0)
	return checked != 0, err
}

// enable switches on a setting of the connection.
func (c *Conn) enable(setting int32) error {
	list := c.tls.Alloc(16)
	defer c.tls.Free(16)
	return c.check(lib.Xsqlite3_db_config(c.tls, c.db, setting, libc.VaList(list, int32(1), uintptr(0))))
}

// control passes a value to the file and returns the answer.
func (c *Conn) control(operation, value int32) (int32, error) {
	main, err := libc.CString("main")
	if err != nil {
		return 0, err
	}
	defer libc.Xfree(c.tls, main)
	place := c.tls.Alloc(4)
	defer c.tls.Free(4)
	*(*int32)(memory(place)) = value
	if code := lib.Xsqlite3_file_control(c.tls, c.db, main, operation, place); code != lib.SQLITE_OK {
		return 0, &Error{Code: int(code), Text: "control of a file"}
	}
	return *(*int32)(memory(place)), nil
}

// copying is a copy of one database into another in progress.
type copying struct {
	from, to *Conn
	backup   uintptr
}

// CopyInto begins to copy the database into an empty one.
func (c *Conn) CopyInto(to *Conn) (*copying, error) {
	main, err := libc.CString("main")
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, main)
	p := &copying{from: c, to: to, backup: lib.Xsqlite3_backup_init(c.tls, to.db, main, c.db, main)}
	if p.backup == 0 {
		return nil, to.check(lib.Xsqlite3_extended_errcode(to.tls, to.db))
	}
	return p, nil
}

// Step copies up to that many pages. more is false once all are copied.
func (p *copying) Step(pages int) (more bool, err error) {
	code := lib.Xsqlite3_backup_step(p.from.tls, p.backup, int32(pages))
	return code == lib.SQLITE_OK, p.to.check(code)
}

// Finish ends the copy, complete or not.
func (p *copying) Finish() error { return p.to.check(lib.Xsqlite3_backup_finish(p.from.tls, p.backup)) }
