// Package sqlite3 is the SQLite driver of the backend: connections, their statements and values
// (conn.go, query.go, statement.go, value.go, transaction.go), checksums on pages and on the log
// (checksum.go, log_checksum.go, vfs.go, checksum_file.go), and what makes commits cheap: a sync
// that the caller does and a log that is lengthened ahead (log.go, sync_data_*.go), and the page
// cache (page_cache.go). It calls SQLite's C API, as modernc.org/sqlite/lib translates it to Go,
// without database/sql in between. It knows nothing of what is stored. All function-pointer casts
// and all knowledge of SQLite's internals are in this package.
//
// # What it relies on
//
// The public C API (lib.Xsqlite3_…) and its codes are as stable as SQLite's. The rest is not
// promised by anybody:
//
//  1. Function pointers. The library keeps a C function pointer as a uintptr, which is the second
//     word of an interface that holds the Go function, and calls it by casting the address of that
//     word back (__ccgo_fp and its callers in lib). pointer and function in vfs.go do the same.
//     Only top-level functions may be passed: a closure would be freed while SQLite holds it.
//     Signatures must match exactly, since the cast checks nothing: (*libc.TLS, …) with int32 for
//     int, int64 for sqlite3_int64, uintptr for pointers. Every function of vfs.go is called by any
//     test that opens a file in WAL mode, but for the ones of a VFS without shared memory, which
//     the tests of read-only access use.
//  2. Memory. libc.Xmalloc, Xcalloc, TLS.Alloc and SQLite itself return addresses outside of Go's
//     heap; Go neither moves nor frees what is there, and nothing there may point to Go's heap.
//     libc.TLS belongs to one goroutine at a time. libc.VaList takes int32 and uintptr as they are.
//     The version of modernc.org/libc must be the one in the go.mod of modernc.org/sqlite.
//  3. sqlite3_vfs and sqlite3_io_methods (lib.Tsqlite3_vfs, lib.Tsqlite3_io_methods,
//     lib.Tsqlite3_file), which SQLite documents. Also assumed: FszOsFile bytes of each file are
//     ours, with the system's file behind them; a file's first word is its table of functions;
//     io_methods of version 2 keep pages from being mapped; the log of a database is opened with
//     SQLITE_OPEN_WAL, and sqlite3_database_file_object finds its database. Checked by the tests of
//     checksums in package sqlite: each page and each frame is damaged.
//  4. Formats of files: the database header (bytes 16 to 20), reserved bytes at the end of pages,
//     header and frames of a log and their checksums. SQLite promises these. The pager writes each
//     page whole and in a buffer that may be changed at the end of it; the log sums a page before
//     it writes it, and writes the header of a frame before its page.
//     TestAChecksumLeavesTheSumOfTheLogAsItIs checks the arithmetic, and a test in package sqlite
//     has another program read the log.
//  5. The order of a commit (pager.c, wal.c): with synchronous=full, one xSync of the log ends a
//     commit that has written frames, and no frame becomes visible in the index of the log before
//     it. A new log's header is synced by itself. syncFile answers "done" to the xSync of a commit
//     and leaves the sync to the caller of CommitUnsynced, who must not acknowledge anything
//     before. Checked by TestASyncIsLeftToTheWriterButForThatOfALogsHeader, the syncer's tests, and
//     engine/lab/torture with a disk that loses what is not synced.
//  6. The system's file on Linux: lib.TunixFile.Fh is the descriptor (sync_data_linux.go).
//     Elsewhere the library's xSync is used. Checked by
//     TestALogIsSyncedByItsDataOnceItsNameIsDurable.
//  7. The page cache (pcache1.c): lib.TPCache1 (FpGroup, FpnPurgeable, FnMin, FiMaxKey, FszPage,
//     FbPurgeable) and lib.TPGroup (Fmutex, FnMaxPage, FnMinPage, FmxPinned, FnPurgeable, Flru).
//     Assumed: xCreate puts a new cache into the shared group and changes only FnMinPage and
//     FmxPinned of it; a group without a mutex is not locked; xDestroy frees nothing of the group;
//     the arithmetic of FmxPinned is 10 + nMaxPage - nMinPage; rekey raises FiMaxKey and nothing
//     reads it before the next rekey of a balance. SQLITE_CONFIG_PCACHE2 must come before
//     sqlite3_initialize. Checked by the two tests of page_cache_test.go, and by an integrity check
//     after trees were balanced.
//
// # Upgrading modernc.org/sqlite
//
// TestTheLibraryIsOfTheVersionThatWasVerified fails for a version that nobody has gone through
// these steps with:
//
//  1. go get modernc.org/sqlite@NEW, and modernc.org/libc at the version in its go.mod. Build for
//     linux, darwin, windows: a field that is gone or renamed does not compile.
//  2. Read the release notes of SQLite from the old to the new version
//     (https://www.sqlite.org/changes.html) for: WAL, VFS, pager, page cache, checkpoints, and
//     corruption. Read the CHANGELOG of modernc.org/sqlite.
//  3. Compare both versions of lib: __ccgo_fp and one of its callers (1); the structs
//     Tsqlite3_io_methods, Tsqlite3_vfs, TPCache1, TPGroup, TunixFile; the functions
//     _pcache1Create, _pcache1Destroy, _pcache1Rekey, _pcache1EnforceMaxPage,
//     _pcache1TruncateUnsafe (7); _walFrames, _walWriteToLog, _walWriteOneFrame, _walRestartLog,
//     _walCheckpoint (5); _pagerWalFrames (4); and the -D options in the first line of the sources,
//     SQLITE_ENABLE_MEMORY_MANAGEMENT and SQLITE_THREADSAFE above all.
//  4. If a cached statement text or a plan may have changed: go test ./backends/sqlite -run
//     Statement.
//  5. go test ./backends/sqlite/... without -short, once more with -race
//     -gcflags=modernc.org/sqlite/lib=-race=false, and on Windows and macOS if you have them; go
//     test ./sdk/kagzitest -run SQLite; engine/lab/torture with its disk and power-cut scenarios.
//  6. kagzi bench --workload W1,W2,W5 --repeat 5 with the old and the new binary, taking turns: no
//     loss beyond noise.
//  7. Open a file of the old version with the new one and the other way round, with a log left by
//     kill -9, and run `kagzi db check`.
//  8. Set verifiedSQLite and verifiedLibc in version.go. In the commit message: what steps 2 and 3
//     found.
package sqlite3
