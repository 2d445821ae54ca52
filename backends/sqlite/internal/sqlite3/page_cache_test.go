package sqlite3

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

func TestPageCacheForgetsLockBytePage(t *testing.T) {
	if err := OwnPageCaches(); err != nil {
		t.Fatal(err)
	}
	if rekeySystem == nil {
		t.Fatal("SQLite was used before its page cache could be stood before")
	}
	system := rekeySystem
	t.Cleanup(func() { rekeySystem = system })
	exchanged := map[uintptr]uint32{} // the highest page number of each cache
	rekeySystem = func(tls *libc.TLS, cache, page uintptr, before, after uint32) {
		exchanged[cache] = max(exchanged[cache], after)
		system(tls, cache, page, before, after)
	}
	c, err := Open(DSN(filepath.Join(t.TempDir(), "any.db"), "journal_mode(wal)", "cache_size(-65536)"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Script(t.Context(), "create table any (key integer primary key, text text); begin"); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 3000 { // in random order, so that pages in the middle are split
		if err := c.Script(t.Context(), fmt.Sprintf(
			"insert or ignore into any values (%d, '%0200d')", random.IntN(1e6), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(exchanged) != 1 {
		t.Fatalf("pages of %d caches were exchanged, want those of one", len(exchanged))
	}
	for cache, highest := range exchanged {
		if highest != lockByte/4096+1 {
			t.Errorf("no page had the number of the locks' page, %d, the highest was %d", lockByte/4096+1, highest)
		}
		if pages := (*lib.TPCache1)(memory(cache)).FiMaxKey; pages > 3000 {
			t.Errorf("the cache takes %d for the highest number that it holds", pages)
		}
	}
	if err := c.Script(t.Context(), "commit; pragma integrity_check"); err != nil {
		t.Fatal(err)
	}
}

func TestAConnectionThatReadsMuchTakesNoPagesFromAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "any.db")
	open := func(settings ...string) *Conn {
		c, err := Open(DSN(path, settings...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	do := func(c *Conn, script string) {
		if err := c.Script(t.Context(), script); err != nil {
			t.Fatal(err)
		}
	}
	const pages = 200
	writer := open("journal_mode(wal)", fmt.Sprintf("cache_size(%d)", pages))
	do(writer, "create table small (key integer primary key, text text); insert into small values (1, 'one')")
	do(writer, "create table large (key integer primary key, text text)")
	do(writer,
		"with recursive n(i) as (select 1 union all select i + 1 from n where i < 4000) insert into large select i, printf('%0500d', i) from n")
	reader := open(fmt.Sprintf("cache_size(%d)", pages/10))
	for range 3 {
		do(writer, "select sum(length(text)) from large")
		do(reader, "select sum(length(text)) from large")
	}
	do(writer, "select text from small where key = 1")
	if _, err := writer.status(lib.SQLITE_DBSTATUS_CACHE_MISS, true); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		do(writer, "select text from small where key = 1")
	}
	missed, err := writer.status(lib.SQLITE_DBSTATUS_CACHE_MISS, true)
	if err != nil || missed > 0 {
		t.Errorf("of the same three pages %d were read from the file again, by ten queries (%v)", missed, err)
	}
	for name, c := range map[string]*Conn{"writer": writer, "reader": reader} {
		used, err := c.status(lib.SQLITE_DBSTATUS_CACHE_USED, false)
		if most := pages * 5000; err != nil || used > most {
			t.Errorf("the cache of the %s has %d bytes (%v), want %d at most", name, used, err, most)
		}
	}
}
