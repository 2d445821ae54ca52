package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// Prepare makes the directory and returns the file's real path, so that a link to it is the same
// database.
func Prepare(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("database %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("directory of the database: %w", err)
	}
	if err := refusePlanted(path); err != nil {
		return "", err
	}
	if path, err = Resolve(path); err != nil {
		return "", fmt.Errorf("database %s: %w", path, err)
	}
	return path, RefuseNetwork(path)
}

// RefuseNetwork returns an error for a file system on which processes cannot share the file safely.
func RefuseNetwork(path string) error {
	if kind := networkFilesystem(filepath.Dir(path)); kind != "" && os.Getenv("KAGZI_ALLOW_NETWORK_FS") != "1" {
		return fmt.Errorf("database %s is on a network filesystem (%s), whose locks SQLite cannot rely on; "+
			"put it on a local disk, or set KAGZI_ALLOW_NETWORK_FS=1 at your own risk", path, kind)
	}
	return nil
}

// Resolve follows symbolic links, also one to a missing file. On Windows it returns the long name
// of an existing file: the short one (8.3) would have another lock and another log.
func Resolve(path string) (string, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return onDriveOf(path, real), nil
	}
	if target, err := os.Readlink(path); err == nil {
		if target = onDriveOf(path, target); !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		if _, err := os.Stat(path); err != nil && !os.IsNotExist(err) {
			return path, err // the links form a circle
		}
		return Resolve(target)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return path, err
	}
	return filepath.Join(onDriveOf(path, dir), filepath.Base(path)), nil
}

// onDriveOf returns the target of a link at path. On Windows it may begin at the root of the link's
// drive.
func onDriveOf(path, there string) string {
	if !filepath.IsAbs(there) && there != "" && os.IsPathSeparator(there[0]) {
		return filepath.VolumeName(path) + there
	}
	return there
}

// CreatePrivately makes a file that only its owner may read. It never opens an existing one,
// because closing that would drop SQLite's locks on it.
func CreatePrivately(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if os.IsExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	return file.Close()
}

// RefuseLoneLog refuses to make a database beside the log of one that is missing or empty. SQLite
// would delete that log, and with it the last commits of a database that may still be recovered.
func RefuseLoneLog(path string) error {
	file, err := StatIfExists(path)
	if err != nil || file != nil && file.Size() > 0 {
		return err
	}
	log, err := StatIfExists(path + "-wal")
	if err != nil || log == nil || log.Size() <= sqlite3.LogHeaderBytes {
		return err
	}
	return &engine.Error{Kind: engine.KindPrecondition,
		Message: fmt.Sprintf("there is no database %s, but the log of one, %s-wal, with its last commits: "+
			"bring the database back beside it, or restore a backup with `kagzi db restore`; to begin with an empty one, move the log away", path, path)}
}

// Locate returns the real path of the database at path.
func Locate(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err == nil {
		absolute, err = Resolve(absolute)
	}
	if err == nil {
		_, err = StatIfExists(absolute)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no database %s", path)
	}
	return absolute, err
}
