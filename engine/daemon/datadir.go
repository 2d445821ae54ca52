package daemon

import (
	"errors"
	"os"
	"path/filepath"

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

// makePrivate creates the data directory, for its owner only. It refuses one that others can write
// to: they could replace the database.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return usagef("data directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("is not a directory")
	}
	if err == nil {
		err = platform.CheckPrivate(info)
	}
	if err != nil {
		return &exitError{code: exitConfig, err: &os.PathError{Op: "data directory", Path: dir, Err: err}}
	}
	return nil
}
