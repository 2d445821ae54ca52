//go:build unix

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// directory returns a new directory with a mode.
func directory(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestServerDirectoryOfAKubernetesVolume(t *testing.T) {
	for _, flag := range []string{"--data-dir", "--db", "--backup-dir"} {
		for name, try := range map[string]struct {
			mode os.FileMode
			own  bool   // Kagzi uses a folder of its own
			says string // in the warning; empty: none
		}{
			"private":              {0o700, false, ""},
			"fsGroup":              {os.ModeSetgid | 0o770, false, "its group"},
			"fsGroup and readable": {os.ModeSetgid | 0o775, false, "its group"},
			"emptyDir":             {0o777, true, "anybody may write"},
			"sticky":               {os.ModeSticky | 0o777, true, "anybody may write"},
		} {
			t.Run(strings.TrimLeft(flag, "-")+" "+name, func(t *testing.T) {
				volume := directory(t, try.mode)
				used := volume
				if try.own {
					used = filepath.Join(volume, "kagzi")
				}
				c := Defaults()
				c.DataDir = filepath.Join(t.TempDir(), "data")
				want := filepath.Join(used, "kagzi.db")
				switch flag {
				case "--data-dir":
					c.DataDir = volume
				case "--db":
					c.DB = "sqlite:" + filepath.Join(volume, "kagzi.db")
				case "--backup-dir":
					c.BackupDir = volume
					dir, err := c.backupsDir()
					if err != nil || dir != used {
						t.Fatalf("backups in %q, %v, want %q", dir, err, used)
					}
					if err := makePrivate(dir); err != nil {
						t.Fatal(err)
					}
					want = filepath.Join(c.DataDir, "kagzi.db")
				}
				url, err := c.privateDatabase()
				if err != nil || url != "sqlite:"+want {
					t.Fatalf("database %q, %v, want %q", url, err, want)
				}
				if info, err := os.Stat(used); err != nil || try.own && info.Mode().Perm() != 0o700 {
					t.Errorf("%s: %v, %v, want it with mode 0700", used, info, err)
				}
				said := strings.Join(c.placeWarnings(), "\n")
				if try.says == "" && said != "" || try.says == "its group" &&
					!strings.Contains(said, "the group of "+volume) ||
					try.own && (!strings.Contains(said, try.says) || !strings.Contains(said, used)) ||
					said != "" && !strings.Contains(said, flag) {
					t.Errorf("warnings %q", said)
				}
			})
		}
	}
}

func TestDatabaseIsFoundAgainInAnOpenDirectory(t *testing.T) {
	volume := directory(t, 0o777)
	there := filepath.Join(volume, "kagzi.db")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := safeURL("sqlite:" + there); got != "sqlite:"+there {
		t.Errorf("the database of an older version: %q, want it where it is", got)
	}
	own := filepath.Join(volume, "kagzi", "kagzi.db")
	if err := os.Mkdir(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := safeURL("sqlite:" + there); got != "sqlite:"+own {
		t.Errorf("with one in the own folder: %q, want that one", got)
	}
}

func TestALinkInPlaceOfTheOwnFolderIsRefused(t *testing.T) {
	volume := directory(t, 0o777)
	if err := os.Symlink(t.TempDir(), filepath.Join(volume, "kagzi")); err != nil {
		t.Fatal(err)
	}
	c := Defaults()
	c.DataDir = volume
	if _, err := c.privateDatabase(); err == nil || codeOf(err) != 78 || !mentions(err, "is a link") {
		t.Errorf("error %v with code %d, want that it is a link, with 78", err, codeOf(err))
	}
}
