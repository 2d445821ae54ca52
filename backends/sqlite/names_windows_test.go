package sqlite

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/kagzi/kagzi/engine"
)

func TestADatabaseIsTheSameByItsShortName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a database.sqlite")
	s := openAt(t, path)
	long, err := windows.UTF16PtrFromString(path)
	if err != nil {
		t.Fatal(err)
	}
	buffer := make([]uint16, windows.MAX_LONG_PATH)
	if _, err := windows.GetShortPathName(long, &buffer[0], uint32(len(buffer))); err != nil {
		t.Fatal(err)
	}
	short := windows.UTF16ToString(buffer)
	if filepath.Base(short) == filepath.Base(path) {
		t.Skip("the disk makes no short names")
	}
	if other, err := Open(t.Context(), short, engine.OpenOptions{}); err == nil {
		other.Close()
		t.Errorf("a second server opened %s by the name of %s", s.path, short)
	}
}
