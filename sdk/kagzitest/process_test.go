package kagzitest_test

import (
	"database/sql"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"modernc.org/libc"
	_ "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// Users' tests may use SQLite as well, through the same library. Kagzi's server replaces the page
// cache of the whole process; in tests it must stay SQLite's own. It can only be read while SQLite
// is not in use, so this runs in its own process.
func TestSQLiteOfTheUsersTestsIsNotConfigured(t *testing.T) {
	const own = "KAGZITEST_PROCESS"
	if os.Getenv(own) == "" {
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		child := exec.Command(program, "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), own+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	before := pageCache(t)
	t.Run("a workflow is tested", func(t *testing.T) {
		kagzitest.Run(t, func(*testing.T, *kagzitest.Env) {})
	})
	t.Run("the user's own database is used", func(t *testing.T) {
		db, err := sql.Open("sqlite", ":memory:")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("create table any (n)"); err != nil {
			t.Fatal(err)
		}
	})
	tls := libc.NewTLS()
	defer tls.Close()
	if code := lib.Xsqlite3_shutdown(tls); code != lib.SQLITE_OK {
		t.Fatalf("shutdown of SQLite = %d", code)
	}
	if after := pageCache(t); after != before {
		t.Errorf("the functions of SQLite's page cache are %+v and were %+v", after, before)
	}
}

// pageCache returns the functions of the page cache of every connection in the process.
func pageCache(t *testing.T) (methods lib.Tsqlite3_pcache_methods2) {
	t.Helper()
	tls := libc.NewTLS()
	defer tls.Close()
	place := libc.Xcalloc(tls, 1, 1024)
	defer libc.Xfree(tls, place)
	list := libc.NewVaList(place)
	defer libc.Xfree(tls, list)
	if code := lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_GETPCACHE2, list); code != lib.SQLITE_OK {
		t.Fatalf("configuration of SQLite = %d", code)
	}
	return *(*lib.Tsqlite3_pcache_methods2)(*(*unsafe.Pointer)(unsafe.Pointer(&place)))
}
