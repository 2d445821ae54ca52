package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine"

	_ "modernc.org/sqlite"

	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
)

// TestCopiesByOtherPrograms checks that a file written by SQLite's own tools is told from a damaged
// one, wherever it is opened.
func TestCopiesByOtherPrograms(t *testing.T) {
	const accept = "kagzi db check --accept --db sqlite:"
	for name, try := range map[string]struct {
		change func(t *testing.T, path string) string // returns the file to look at
		says   []string
		not    string
	}{
		"VACUUM INTO": {func(t *testing.T, path string) string {
			copied := filepath.Join(t.TempDir(), "copy.db")
			foreign(t, path, "vacuum into '"+copied+"'")
			return copied
		}, []string{"another program wrote the file", accept}, "damaged"},
		".backup": {func(t *testing.T, path string) string {
			// what sqlite3_backup changes in a new file
			pages := pagesOf(t, path)
			page := pages[0]
			page[27], page[95] = 1, 1
			page[40], page[41], page[42], page[43] = 0, 0, 0, 1
			page[98], page[99] = 0x63, 0x11
			return rewritten(t, pages)
		}, []string{"another program wrote the file: 1 of", accept}, "damaged"},
		"rot in the first page": {func(t *testing.T, path string) string {
			pages := pagesOf(t, path)
			pages[0][70] ^= 1
			return rewritten(t, pages)
		}, []string{"1 of", "the first is page 1", "kagzi db restore"}, "another program wrote the file"},
		"a table that another program made": {func(t *testing.T, path string) string {
			copied := rewritten(t, pagesOf(t, path))
			foreign(t, copied, "pragma journal_mode=delete; create table other (a); insert into other values (1)")
			return copied
		}, []string{"do not match their checksum", "another program changed them", accept, "kagzi db restore"}, ""},
		"Litestream": {func(t *testing.T, path string) string {
			copied := filepath.Join(t.TempDir(), "copy.db")
			foreign(t, path, "vacuum into '"+copied+"'")
			foreign(t, copied, "create table _litestream_seq (id integer primary key, seq integer)")
			return copied
		}, []string{"tables of Litestream", accept}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := closedOne(t)
			copied := try.change(t, path)
			if err := os.Chmod(copied, 0o600); err != nil {
				t.Fatal(err)
			}
			said := map[string]string{}
			findings, err := Check(t.Context(), copied)
			if err != nil || len(findings) < 2 {
				t.Fatalf("db check: %v, %v, want findings", findings, err)
			}
			said["db check"] = findings[len(findings)-1].Text
			if _, err := Status(t.Context(), copied); err != nil {
				said["db status"] = err.Error()
			}
			if _, _, err := VerifyBackup(t.Context(), copied); err == nil {
				t.Error("--verify takes it for a sound backup")
			} else {
				said["db backup --verify"] = err.Error()
			}
			s, err := Open(t.Context(), copied, engine.OpenOptions{Serving: true})
			if err == nil {
				_ = s.Close() // a test that fails already
				if len(said) < 2 {
					t.Error("a server opens it")
				}
			} else if said["server"] = err.Error(); !isDamage(err) {
				t.Errorf("server: %v, want exit code 71", err)
			}
			for where, text := range said {
				for _, want := range try.says {
					if !strings.Contains(text, want) {
						t.Errorf("%s: %q does not say %q", where, text, want)
					}
				}
				if try.not != "" && strings.Contains(text, try.not) {
					t.Errorf("%s: %q says %q", where, text, try.not)
				}
			}
			if name == "rot in the first page" {
				return
			}
			if kept, findings, err := Accept(t.Context(), copied); err != nil || len(findings) > 0 || kept == "" {
				t.Errorf("--accept: %v, %v", findings, err)
			}
			if findings, err := Check(t.Context(), copied); err != nil || len(findings) > 0 {
				t.Errorf("after --accept: %v, %v", findings, err)
			}
		})
	}
}

func rewritten(t *testing.T, pages [][]byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "copy.db")
	var content []byte
	for _, page := range pages {
		content = append(content, page...)
	}
	write0600(t, path, content)
	return path
}

func TestIsCopiedFirstIsNotFooled(t *testing.T) {
	path, _ := closedOne(t)
	page := pagesOf(t, path)[0]
	if !sqlite3.IsCopiedFirst(page) {
		t.Error("a page as it was written is not recognised")
	}
	page[2000] ^= 4
	if sqlite3.IsCopiedFirst(page) {
		t.Error("a page with a flipped bit is taken for a copy")
	}
}
