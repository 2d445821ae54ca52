package sqlite

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "modernc.org/sqlite"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

// another program that reads and writes the file, without checksums

const pageBytes = 4096

// wholeOnly skips a test with -short.
func wholeOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("all of it is one goroutine's: the race detector, for which the short run is, finds nothing in it")
	}
}

// pagesOf returns the pages of a closed database.
func pagesOf(t *testing.T, path string) [][]byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil || len(content)%pageBytes != 0 {
		t.Fatalf("read %d bytes (%v), want whole pages", len(content), err)
	}
	var pages [][]byte
	for at := 0; at < len(content); at += pageBytes {
		pages = append(pages, content[at:at+pageBytes])
	}
	return pages
}

// closedOne returns a closed database with rows in most tables, and its content.
func closedOne(t *testing.T) (path, rows string) {
	t.Helper()
	s := busy(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.path, rowsAt(t, s.path)
}

// foreign runs a script on a file as another program does.
func foreign(t *testing.T, path, script string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(script); err != nil {
		t.Fatal(err)
	}
}

// isDamage says whether err reports damage.
func isDamage(err error) bool {
	failure := dbfile.AsFatal(err, true)
	return failure != nil && failure.ExitCode() == 71
}

// answer returns the rows of the file as a reader sees them, through tables and indexes, or the
// error.
func answer(t *testing.T, path string) (string, error) {
	t.Helper()
	c, err := dbfile.OpenReader(path)
	if err != nil {
		return "", err
	}
	defer c.Close()
	var tables []string
	list := "select name from sqlite_schema where type = 'table' order by name"
	err = c.Query(t.Context(), &list, func(r *sqlite3.Row) error {
		tables = append(tables, r.Text())
		return nil
	})
	var rows strings.Builder
	for _, table := range tables {
		if err != nil {
			return "", err
		}
		all := "select * from " + table
		err = c.Query(t.Context(), &all, func(r *sqlite3.Row) error {
			rows.WriteString(table)
			for range r.Columns() {
				fmt.Fprintf(&rows, " %v", r.Value())
			}
			rows.WriteString("\n")
			return nil
		})
	}
	return rows.String(), err
}

func rowsAt(t *testing.T, path string) string {
	t.Helper()
	rows, err := answer(t, path)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func write0600(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEveryPageOfANewDatabaseHoldsItsChecksum(t *testing.T) {
	path, _ := closedOne(t)
	for i, page := range pagesOf(t, path) {
		if !sqlite3.PageHolds(page, uint32(i+1)) {
			t.Errorf("page %d does not hold", i+1)
		}
		if sqlite3.PageHolds(page, uint32(i+2)) {
			t.Errorf("page %d holds in the place of page %d", i+1, i+2)
		}
	}
}

// TestDamageInAnyPageIsNoticedOrHarmless damages each page of a database in each way.
func TestDamageInAnyPageIsNoticedOrHarmless(t *testing.T) {
	wholeOnly(t)
	path, rows := closedOne(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pages := len(content) / pageBytes
	page := func(content []byte, i int) []byte { return content[i*pageBytes : (i+1)*pageBytes] }
	random := rand.New(rand.NewPCG(3, 4))
	spoilt := filepath.Join(t.TempDir(), "kagzi.db")
	noticed := map[string]int{}
	for name, spoil := range map[string]func(content []byte, i int) []byte{
		"a bit turned": func(content []byte, i int) []byte {
			page(content, i)[random.IntN(pageBytes)] ^= 1 << random.IntN(8)
			return content
		},
		"a bit of the header turned": func(content []byte, i int) []byte {
			page(content, i)[random.IntN(100)] ^= 1 << random.IntN(8)
			return content
		},
		"said to have no checksums": func(content []byte, i int) []byte {
			content[20] = 0
			page(content, i)[random.IntN(pageBytes)] ^= 1
			return content
		},
		"emptied": func(content []byte, i int) []byte {
			clear(page(content, i))
			return content
		},
		"a sector emptied": func(content []byte, i int) []byte {
			clear(page(content, i)[512*random.IntN(8):][:512])
			return content
		},
		"in another's place": func(content []byte, i int) []byte {
			copy(page(content, i), page(content, (i+1)%pages))
			return content
		},
		"cut off": func(content []byte, i int) []byte { return content[:i*pageBytes+random.IntN(pageBytes)] },
	} {
		for i := range pages {
			before := bytes.Clone(content)
			after := spoil(bytes.Clone(content), i)
			if len(after) == 0 || bytes.Equal(before, after) {
				continue // an empty file is a new database
			}
			write0600(t, spoilt, after)
			got, err := answer(t, spoilt)
			switch {
			case err != nil && !isDamage(err):
				t.Errorf("page %d %s: %v, want damage", i+1, name, err)
			case err != nil:
				noticed[name]++
			case got != rows:
				t.Errorf("page %d %s: a wrong answer without a word", i+1, name)
			}
			if err != nil {
				continue
			}
			findings, err := Check(t.Context(), spoilt)
			if err == nil && len(findings) == 0 && !inBalance(content, after) {
				t.Errorf("page %d %s: the check finds nothing", i+1, name)
			}
		}
		if noticed[name] == 0 {
			t.Errorf("%s: never noticed by who reads all rows", name)
		}
	}
}

func TestDamagedChecksumFlagIsDetected(t *testing.T) {
	path, _ := closedOne(t)
	pages := pagesOf(t, path)
	pages[0][20] = 0
	write0600(t, path, bytes.Join(pages, nil))
	if _, err := answer(t, path); !isDamage(err) ||
		!strings.Contains(err.Error(), "page 1 does not match its checksum") {
		t.Errorf("rows of a file whose first page is damaged: %v, want that page", err)
	}
}

// large returns a closed database of values that fill several pages each.
func large(t *testing.T, sizes ...int) (path, rows string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kagzi.db")
	script := "pragma journal_mode = wal; create table large (n integer primary key, value blob);"
	for _, size := range sizes {
		script += fmt.Sprintf("insert into large (value) values (zeroblob(%d));", size)
	}
	behindItsBack(t, path, script)
	return path, rowsAt(t, path)
}

func TestValuesOfEverySizeAreRead(t *testing.T) {
	wholeOnly(t)
	var sizes []int
	for size := 3000; size < 13000; size += long.Count(20, 4) { // the last page of each is filled differently
		sizes = append(sizes, size)
	}
	_, rows := large(t, sizes...)
	if n := strings.Count(rows, "\n"); n != len(sizes) {
		t.Errorf("rows = %d, want %d", n, len(sizes))
	}
}

func TestDamageInALargeValueIsNoticed(t *testing.T) {
	wholeOnly(t)
	path, _ := large(t, 100_000)
	pages := pagesOf(t, path)
	spoilt := filepath.Join(t.TempDir(), "kagzi.db")
	for i := range pages {
		pages[i][1000] ^= 1
		write0600(t, spoilt, bytes.Join(pages, nil))
		if _, err := answer(t, spoilt); !isDamage(err) {
			t.Errorf("page %d of %d: %v, want damage", i+1, len(pages), err)
		}
		pages[i][1000] ^= 1
	}
}

// inBalance says whether two contents differ only in the balance of a page, which holds no data.
func inBalance(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && i%pageBytes < pageBytes-8 {
			return false
		}
	}
	return true
}

func TestADamagedPageEndsTheServer(t *testing.T) {
	path, _ := closedOne(t)
	pages := pagesOf(t, path)
	for i := 1; i < len(pages); i++ {
		pages[i][pageBytes/2] ^= 1
	}
	write0600(t, path, bytes.Join(pages, nil))
	s, err := Open(t.Context(), path, engine.OpenOptions{})
	if err == nil {
		defer s.Close()
		_, _, err = s.ListRuns(t.Context(), engine.RunFilter{Namespace: "default"}, engine.Page{Limit: 10})
		if err == nil {
			t.Fatal("runs were listed off damaged pages")
		}
		<-s.Fatal()
		err = s.Failure()
	}
	if !isDamage(err) || !strings.Contains(err.Error(), "does not match its checksum") ||
		!strings.Contains(err.Error(), "kagzi db restore") {
		t.Errorf("failure = %v, want the page, exit code 71 and what to do", err)
	}
}

// crashed returns a database whose process died, with its commits in the log.
func crashed(t *testing.T) (path, rows string) {
	t.Helper()
	s := busy(t)
	for range 4 {
		if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
			Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
			t.Fatal(err)
		}
	}
	return copyOf(t, s.path, "", "-wal"), rowsAt(t, s.path)
}

// framesOf returns where each frame of a log begins.
func framesOf(log []byte) (starts []int) {
	for at := sqlite3.LogHeaderBytes; at+sqlite3.FrameHeaderBytes+
		pageBytes <= len(log); at += sqlite3.FrameHeaderBytes + pageBytes {
		starts = append(starts, at)
	}
	return starts
}

func TestDamageInAnyFrameOfTheLogIsNoticed(t *testing.T) {
	wholeOnly(t)
	path, rows := crashed(t)
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := answer(t, copyOf(t, path, "", "-wal")); err != nil || got != rows {
		t.Fatalf("the log as it was left is not recovered: %v", err)
	}
	starts := framesOf(log)
	last := len(starts) - 1 // frames of the last commit, which look like one that was cut short
	for last > 0 && binary.BigEndian.Uint32(log[starts[last-1]+4:]) == 0 {
		last--
	}
	spoilt := func(change func([]byte)) error {
		changed := bytes.Clone(log)
		change(changed)
		file := copyOf(t, path, "")
		write0600(t, file+"-wal", changed)
		got, err := answer(t, file)
		if err == nil && got == rows {
			return errors.New("nothing was noticed, and nothing is wrong")
		}
		return err
	}
	within := []int{2, 9, 17, sqlite3.FrameHeaderBytes + 1000} // the page number, the salt, the checksum, the page
	for i, start := range starts[:last-1] {                    // one more commit is needed after the damage
		at := within[i%len(within)]
		if err := spoilt(func(log []byte) { log[start+at] ^= 4 }); !isDamage(err) {
			t.Errorf("frame %d of %d, byte %d: %v, want damage", i+1, len(starts), at, err)
		}
	}
	for at := range sqlite3.LogHeaderBytes {
		if err := spoilt(func(log []byte) { log[at] ^= 4 }); !isDamage(err) {
			t.Errorf("byte %d of the header: %v, want damage", at, err)
		}
	}
	if err := spoilt(func(log []byte) { clear(log[:pageBytes]) }); !isDamage(err) {
		t.Errorf("an empty beginning: %v, want damage", err)
	}
}

func TestACommitThatACrashCutShortIsNoDamage(t *testing.T) {
	wholeOnly(t)
	path, _ := crashed(t)
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	starts := framesOf(log)
	for name, cut := range map[string][]byte{
		"in its last frame": log[:starts[len(starts)-1]+2000],
		"in its header":     log[:starts[len(starts)-1]+10],
		"to the header":     log[:sqlite3.LogHeaderBytes],
		"a hole in the last": append(bytes.Clone(log[:starts[len(starts)-1]]),
			make([]byte, sqlite3.FrameHeaderBytes+pageBytes)...),
		"what an older log left behind": append(bytes.Clone(log), func() []byte {
			left := bytes.Clone(log[sqlite3.LogHeaderBytes:])
			for _, start := range framesOf(log) {
				left[start-sqlite3.LogHeaderBytes+9] ^= 0xff
			}
			return left
		}()...),
	} {
		file := copyOf(t, path, "")
		write0600(t, file+"-wal", cut)
		if _, err := answer(t, file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFrameThatIsDamagedAtWorkIsNoticed(t *testing.T) {
	s := busy(t)
	log, err := os.OpenFile(s.path+"-wal", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	content, err := os.ReadFile(s.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	for _, start := range framesOf(content) {
		if _, err := log.WriteAt([]byte{content[start+1000] ^ 1}, int64(start+1000)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := answer(t, s.path); !isDamage(err) || !strings.Contains(err.Error(), "does not match its checksum") {
		t.Errorf("rows off damaged frames: %v, want the page that is damaged", err)
	}
}

func TestAFrameOfAnotherPageIsNoticed(t *testing.T) {
	s := busy(t)
	content, err := os.ReadFile(s.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(s.path+"-wal", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	starts := framesOf(content)
	for i, start := range starts {
		other := starts[(i+1)%len(starts)] // usually a page with another number
		if _, err := log.WriteAt(content[other+sqlite3.FrameHeaderBytes:][:pageBytes],
			int64(start+sqlite3.FrameHeaderBytes)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := answer(t, s.path); !isDamage(err) || !strings.Contains(err.Error(), "does not match its checksum") {
		t.Errorf("rows off frames that were mixed up: %v, want the page that is damaged", err)
	}
}
