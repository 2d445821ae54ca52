//go:build linux || darwin || freebsd

package dbfile

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/kagzi/kagzi/engine"
)

// noFollow makes opening a symbolic link fail; another user may have put one under our file's name.
const noFollow = unix.O_NOFOLLOW

// What users other than owner and group may do with a file or directory.
const (
	othersWrite = 0o002
	othersRead  = 0o004
)

// refusePlanted refuses a symbolic link in place of the database that another user made in a
// directory where anybody may: it could lead to any file.
func refusePlanted(path string) error {
	link, err := os.Lstat(path)
	if err != nil || link.Mode()&os.ModeSymlink == 0 {
		return nil
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil || dir.Mode().Perm()&othersWrite == 0 || ownedByUs(link) {
		return nil
	}
	return &engine.Error{Kind: engine.KindPrecondition, Message: fmt.Sprintf(
		"the database %s is a link that another user has made, in a directory to which anybody may write; name the file that it points to, or a file in your own directory", path)}
}

// RefuseWritableByOthers refuses a database that anybody may write to. It warns if anybody may read
// it or replace it.
func RefuseWritableByOthers(path string, log *slog.Logger) error {
	file, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("directory of the database: %w", err)
	}
	switch mode := file.Mode().Perm(); {
	case mode&othersWrite != 0:
		return &engine.Error{Kind: engine.KindPrecondition,
			Message: fmt.Sprintf(
				"anybody may write to the database %s (mode %04o); run chmod 600 on it and check its content",
				path, mode)}
	case mode&othersRead != 0 && dir.Mode().Perm()&0o001 != 0:
		log.Warn("anybody on this machine may read the database; run chmod 600 on it", "file", path, "mode",
			fmt.Sprintf("%04o", mode))
	}
	if mode := dir.Mode(); mode.Perm()&othersWrite != 0 && mode&os.ModeSticky == 0 {
		log.Warn(
			"anybody on this machine may replace the database; run chmod 700 on its directory, or use another directory",
			"directory", filepath.Dir(path), "mode", fmt.Sprintf("%04o", mode.Perm()))
	}
	return nil
}

func ownedByUs(file os.FileInfo) bool {
	stat, ok := file.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
