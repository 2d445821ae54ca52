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

// noFollow makes opening a link fail, which another user may have put under a name of ours.
const noFollow = unix.O_NOFOLLOW

// What others than owner and group may do with a file or directory.
const (
	othersWrite = 0o002
	othersRead  = 0o004
)

// refusePlanted refuses a link in the place of the database that another user has put there, where
// anybody may: it leads to a file of their choice.
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
		"the database %s is a link that another user has made, in a directory to which anybody may write; name the file that it leads to, or one in a directory of yours", path)}
}

// RefuseWritableByOthers refuses a database that anybody may write to, and warns of one that
// anybody may read or put another in the place of.
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
				"anybody may write to the database %s (mode %04o); say chmod 600, and look at what is in it",
				path, mode)}
	case mode&othersRead != 0 && dir.Mode().Perm()&0o001 != 0:
		log.Warn("anybody on this machine may read the database; say chmod 600", "file", path, "mode",
			fmt.Sprintf("%04o", mode))
	}
	if mode := dir.Mode(); mode.Perm()&othersWrite != 0 && mode&os.ModeSticky == 0 {
		log.Warn(
			"anybody on this machine may put another database in the place of this one; say chmod 700 of its directory, or take another",
			"directory", filepath.Dir(path), "mode", fmt.Sprintf("%04o", mode.Perm()))
	}
	return nil
}

func ownedByUs(file os.FileInfo) bool {
	stat, ok := file.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
