package view

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestAFileThatCannotBeWrittenWholeDoesNotStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.csv")
	if err := os.WriteFile(path, []byte("the first"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path) // for reading: what is written fails, as on a full disk
	if err != nil {
		t.Fatal(err)
	}
	if err := fillNew(f, []byte("the first and the rest")); err == nil {
		t.Error("the file is said to be written")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a file is left (%v)", err)
	}
}
