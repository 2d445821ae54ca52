package dbfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func fill(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsKnownByMoreThanItsNameSizeAndTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	fill(t, path, "one")
	fill(t, path+".next", "two")
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for _, name := range []string{path, path + ".next"} {
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	before, err := layoutOf(path)
	if err == nil {
		if !before.stillAt(path) {
			t.Error("the file counts as another while it is the same")
		}
		before, err = layoutOf(path)
	}
	identity := Identity{file: before.file}
	if err == nil {
		err = os.Rename(path, path+".before")
	}
	if err == nil {
		err = os.Rename(path+".next", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if before.stillAt(path) {
		t.Error("another file in its place is not seen by who looks")
	}
	if isAt(identity.file, path) {
		t.Error("another file in its place is not seen by a server")
	}
}
