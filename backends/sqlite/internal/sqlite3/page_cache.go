package sqlite3

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// SQLite's page cache, as the library builds it, has two properties that slow a busy server.
//
// All connections of a process share one group: one mutex, and one list of pages that may be
// evicted. A connection that reads much takes the writer's pages out of that list. The writer then
// has fewer pages than its limit, so it allocates memory instead of reusing the oldest page, and
// the group exceeds its limit. From then on each page, even a tree's root, is evicted as soon as it
// is unused, and the writer reads ten pages from the file for each run. So each cache gets its own
// group, as in a SQLite built without SQLITE_ENABLE_MEMORY_MANAGEMENT.
//
// When SQLite balances a tree, it swaps page numbers by way of an unused number: that of the page
// with the lock bytes, at 1 GiB. The cache takes it for its highest page number, and at the end of
// the transaction walks all its pages to look for some behind the end of the file. In one of five
// commits of a busy server this takes 0.3 ms with 3,500 pages, and more than a millisecond with
// 16,000. So the cache is made to forget that number.

// lockByte is PENDING_BYTE of SQLite.
const lockByte = 1 << 30

// SQLite's own functions.
var (
	createSystem  func(tls *libc.TLS, pageBytes, extraBytes, purgeable int32) (cache uintptr)
	destroySystem func(tls *libc.TLS, cache uintptr)
	rekeySystem   func(tls *libc.TLS, cache, page uintptr, before, after uint32)
)

// sharedGroup is the group of all caches without their own group.
var sharedGroup atomic.Uintptr

// OwnPageCaches replaces three functions of SQLite's page cache for the whole process, including
// other users of modernc.org/sqlite. So only a program that controls what it links should call it,
// not a library or a test helper. It must be called before SQLite is first used; later calls change
// nothing and return what the first did. Without it everything works, only slower.
func OwnPageCaches() error { return ownPageCaches() }

var ownPageCaches = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	return replacePageCache(tls)
})

func replacePageCache(tls *libc.TLS) error {
	place := libc.Xcalloc(tls, 1, uint64(unsafe.Sizeof(lib.Tsqlite3_pcache_methods2{})))
	if place == 0 {
		return &Error{Code: lib.SQLITE_NOMEM, Text: "out of memory"}
	}
	defer libc.Xfree(tls, place)
	list := libc.NewVaList(place)
	defer libc.Xfree(tls, list)
	if lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_GETPCACHE2, list) != lib.SQLITE_OK {
		return nil
	}
	m := (*lib.Tsqlite3_pcache_methods2)(memory(place))
	createSystem = function[func(*libc.TLS, int32, int32, int32) uintptr](m.FxCreate)
	destroySystem = function[func(*libc.TLS, uintptr)](m.FxDestroy)
	rekeySystem = function[func(*libc.TLS, uintptr, uintptr, uint32, uint32)](m.FxRekey)
	m.FxCreate, m.FxDestroy, m.FxRekey = pointer(createCache), pointer(destroyCache), pointer(rekey)
	lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_PCACHE2, list)
	return nil
}

// createCache makes a cache and, while it is empty, gives it its own group, without a mutex,
// because one goroutine at a time uses a connection. The library checks a mutex for null before it
// enters it.
func createCache(tls *libc.TLS, pageBytes, extraBytes, purgeable int32) uintptr {
	cache := createSystem(tls, pageBytes, extraBytes, purgeable)
	if cache == 0 {
		return 0
	}
	own := libc.Xcalloc(tls, 1, uint64(unsafe.Sizeof(lib.TPGroup{})))
	if own == 0 {
		return cache
	}
	c, group := (*lib.TPCache1)(memory(cache)), (*lib.TPGroup)(memory(own))
	list := own + unsafe.Offsetof(group.Flru)
	group.Flru.FisAnchor, group.Flru.FpLruNext, group.Flru.FpLruPrev = 1, list, list
	leave(tls, c)
	sharedGroup.Store(c.FpGroup)
	c.FpGroup = own
	group.FnMinPage = c.FnMin
	group.FmxPinned = 10 - min(c.FnMin, 10)
	if c.FbPurgeable != 0 {
		c.FpnPurgeable = own + unsafe.Offsetof(group.FnPurgeable)
	}
	return cache
}

// leave removes an empty cache from the shared group.
func leave(tls *libc.TLS, c *lib.TPCache1) {
	shared := (*lib.TPGroup)(memory(c.FpGroup))
	lib.Xsqlite3_mutex_enter(tls, shared.Fmutex)
	defer lib.Xsqlite3_mutex_leave(tls, shared.Fmutex)
	shared.FnMinPage -= c.FnMin
	shared.FmxPinned = shared.FnMaxPage + 10 - shared.FnMinPage
}

func destroyCache(tls *libc.TLS, cache uintptr) {
	group := (*lib.TPCache1)(memory(cache)).FpGroup
	destroySystem(tls, cache)
	if group != sharedGroup.Load() {
		libc.Xfree(tls, group)
	}
}

func rekey(tls *libc.TLS, cache, page uintptr, before, after uint32) {
	c := (*lib.TPCache1)(memory(cache))
	highest := c.FiMaxKey
	rekeySystem(tls, cache, page, before, after)
	if after == uint32(lockByte/c.FszPage+1) {
		c.FiMaxKey = highest // the page gets another number before the cache checks
	}
}
