package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/engine/daemon/internal/platform"
)

// defaultDataDir returns kagzi's directory in an operating system's place for user data.
func defaultDataDir(system string) (string, error) {
	switch system {
	case "windows":
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "kagzi"), nil
		}
		return "",
			usagef("%%LocalAppData%% is not set: use --data-dir DIR or --db URL")
	case "darwin":
		return inHome("Library", "Application Support", "kagzi")
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "kagzi"), nil
	}
	return inHome(".local", "share", "kagzi")
}

func inHome(parts ...string) (string, error) {
	home := os.Getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", usagef("HOME is not set: use --data-dir DIR or --db URL")
	}
	return filepath.Join(append([]string{home}, parts...)...), nil
}

// makePrivate creates a directory, for its owner only. It refuses one that other users can write to,
// because they could replace the database. Write access of the group is only a warning: a Kubernetes
// volume with fsGroup has it.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return usagef("data directory: %w", err)
	}
	info, err := os.Lstat(dir)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink != 0 && anybodyWrites(filepath.Dir(dir)):
		err = errors.New("is a link, in a directory that anybody may write to; remove it")
	case err == nil:
		info, err = os.Stat(dir)
	}
	if err == nil && !info.IsDir() {
		err = errors.New("is not a directory")
	}
	if err == nil {
		_, err = platform.CheckPrivate(info)
	}
	if err != nil {
		return &exitError{code: exitConfig, err: &os.PathError{Op: "data directory", Path: dir, Err: err}}
	}
	return nil
}

// ownFolder is the folder, with mode 0700, that Kagzi uses in a directory that anybody may write
// to, such as an emptyDir volume of Kubernetes.
const ownFolder = "kagzi"

// anybodyWrites reports whether every user may write to a directory; false if it does not exist.
func anybodyWrites(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && platform.AnybodyWrites(info)
}

// safeDirectory returns the directory to use in place of dir: dir, or the own folder in it if
// anybody may write to dir.
func safeDirectory(dir string) string {
	if anybodyWrites(dir) {
		return filepath.Join(dir, ownFolder)
	}
	return dir
}

// safeFile does the same for a database file. A file of this user that is there already is used
// where it is, unless there is one in the own folder.
func safeFile(path string) string {
	dir, name := filepath.Split(path)
	if dir = filepath.Clean(dir); !anybodyWrites(dir) {
		return path
	}
	own := filepath.Join(dir, ownFolder, name)
	if isThere(own) {
		return own
	}
	if info, err := os.Lstat(path); err == nil && platform.Ours(info) {
		return path
	}
	return own
}

// safeURL applies safeFile to the URL of an SQLite database, and returns others as they are.
func safeURL(url string) string {
	path, is := sqliteFile(url)
	if !is {
		return url
	}
	if safe := safeFile(path); safe != path {
		return "sqlite:" + safe
	}
	return url
}

// sqliteFile returns the file of an SQLite database's URL.
func sqliteFile(url string) (path string, is bool) {
	path, is = strings.CutPrefix(url, "sqlite:")
	path = strings.TrimPrefix(path, "//")
	return path, is && path != ""
}

// makeOwnFolder creates the own folder if the database at url is in it.
func makeOwnFolder(url string) error {
	path, is := sqliteFile(url)
	if dir := filepath.Dir(path); is && filepath.Base(dir) == ownFolder && anybodyWrites(filepath.Dir(dir)) {
		return makePrivate(dir)
	}
	return nil
}

// placeWarnings tells which directories of these settings other users may write to, and what Kagzi
// does about it.
func (c *Config) placeWarnings() (warnings []string) {
	asked, err := c.databaseAsAsked()
	if err != nil {
		return nil
	}
	tell := func(flag, asked, used string) {
		if asked != used {
			warnings = append(warnings, fmt.Sprintf(
				"%s: anybody may write to %s; using %s, which is for this user only",
				flag, output.Plain(asked), output.Plain(used)))
			asked = used
		}
		info, err := os.Stat(asked)
		if err != nil {
			return
		}
		if shared, err := platform.CheckPrivate(info); err == nil && shared {
			warnings = append(warnings, fmt.Sprintf(
				"%s: the group of %s may write to it (mode %04o) and could replace files in it; run chmod 700, "+
					"unless it is a volume with fsGroup", flag, output.Plain(asked), info.Mode().Perm()))
		}
	}
	if path, is := sqliteFile(asked); is {
		flag := "--db"
		if c.DB == "" {
			flag = "--data-dir"
		}
		tell(flag, filepath.Dir(path), filepath.Dir(safeFile(path)))
	}
	if c.BackupDir != "" {
		tell("--backup-dir", c.BackupDir, safeDirectory(c.BackupDir))
	}
	return warnings
}
