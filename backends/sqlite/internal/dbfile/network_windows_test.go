package dbfile

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestAShareIsKnownByItsName(t *testing.T) {
	for dir, want := range map[string]string{
		`\\server\share`:           "a network share",
		`\\server\share\data`:      "a network share",
		`\\?\UNC\server\share\dir`: "a network share",
		t.TempDir():                "",
		`\\?\` + t.TempDir():       "",
	} {
		if got := networkFilesystem(dir); got != want {
			t.Errorf("network file system of %s = %q, want %q", dir, got, want)
		}
	}
}

func TestADatabaseOnAShareIsRefused(t *testing.T) {
	if err := RefuseNetwork(`\\server\share\kagzi.db`); err == nil ||
		!strings.Contains(err.Error(), "KAGZI_ALLOW_NETWORK_FS") {
		t.Errorf("a database on a share is refused with %v, want what to do about it", err)
	}
	if err := RefuseNetwork(filepath.Join(t.TempDir(), "kagzi.db")); err != nil {
		t.Errorf("a database on a disk of this machine is refused: %v", err)
	}
}
