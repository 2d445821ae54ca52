package daemon

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/kagzi/kagzi/engine/daemon/internal/platform"
)

// defaultDataDir is the place for a user's data on an operating system, and kagzi in it.
func defaultDataDir(system string) (string, error) {
	switch system {
	case "windows":
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "kagzi"), nil
		}
		return "",
			usagef("%%LocalAppData%% is not set, so there is no place for the database; say --data-dir DIR or --db URL")
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
		return "", usagef("HOME is not set, so there is no place for the database; say --data-dir DIR or --db URL")
	}
	return filepath.Join(append([]string{home}, parts...)...), nil
}

// makePrivate makes the data directory, for its owner only, and refuses one that others may write
// to: they could put another database in the place of ours.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return usagef("data directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("is no directory")
	}
	if err == nil {
		err = platform.CheckPrivate(info)
	}
	if err != nil {
		return &exitError{code: exitConfig, err: &os.PathError{Op: "data directory", Path: dir, Err: err}}
	}
	return nil
}
