package sqlite

import (
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// When SQLite balances a tree it exchanges the numbers of pages by way of one that no page has: of the page that its locks lie in, at 1 GiB. Its page
// cache takes that for the highest number that it holds, and when the transaction ends it looks through everything it has for pages behind the
// end of the file: one commit in five of a busy server, 0.3 ms with 3,500 pages and more than a millisecond with 16,000. So the cache is
// told to forget that number again.

// lockByte is PENDING_BYTE of SQLite.
const lockByte = 1 << 30

// rekeySystem is SQLite's own.
var rekeySystem func(tls *libc.TLS, cache, page uintptr, before, after uint32)

// keepCacheShort stands before SQLite's page cache. Where another package of the process was first to use SQLite it is too late, and nothing is changed.
func keepCacheShort(tls *libc.TLS) error {
	place := libc.Xcalloc(tls, 1, uint64(unsafe.Sizeof(lib.Tsqlite3_pcache_methods2{})))
	if place == 0 {
		return &libError{lib.SQLITE_NOMEM, "out of memory"}
	}
	defer libc.Xfree(tls, place)
	list := libc.NewVaList(place)
	defer libc.Xfree(tls, list)
	if lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_GETPCACHE2, list) != lib.SQLITE_OK {
		return nil
	}
	m := (*lib.Tsqlite3_pcache_methods2)(memory(place))
	rekeySystem = function[func(*libc.TLS, uintptr, uintptr, uint32, uint32)](m.FxRekey)
	m.FxRekey = pointer(rekey)
	lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_PCACHE2, list)
	return nil
}

func rekey(tls *libc.TLS, cache, page uintptr, before, after uint32) {
	c := (*lib.TPCache1)(memory(cache))
	highest := c.FiMaxKey
	rekeySystem(tls, cache, page, before, after)
	if after == uint32(lockByte/c.FszPage+1) {
		c.FiMaxKey = highest // the page has another number again before anybody looks
	}
}
