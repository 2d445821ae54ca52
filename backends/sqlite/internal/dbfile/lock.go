package dbfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/kagzi/kagzi/engine"
)

// Lock keeps other processes out of the database. It is a lock of the operating system on a file
// beside the database, which is never deleted, so it ends with the process in any case. The file's
// text is for people.
type Lock struct {
	file  *os.File
	since time.Time
}

const (
	lockTimeout       = 500 * time.Millisecond // for a process that is just exiting
	lockRetryInterval = 20 * time.Millisecond
	maxHolder         = 1 << 10
)

// Acquire locks the database. If another process has it, Acquire fails within a second and names
// that process.
func Acquire(path string) (*Lock, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open the database %s: %w", path, ErrNoFile)
	}
	_, before := os.Lstat(path + ".lock")
	file, err := openLock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("lock the database: %w", err)
	}
	if errors.Is(before, fs.ErrNotExist) {
		GiveToOwnerOf(path+".lock", path)
	}
	for deadline := time.Now().Add(lockTimeout); ; time.Sleep(lockRetryInterval) {
		taken, err := tryLock(file)
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("lock the database %s: %w", path, err)
		}
		if taken {
			break
		}
		if time.Now().After(deadline) {
			by := readHolder(file)
			file.Close()
			return nil, &engine.Error{Kind: engine.KindPrecondition,
				Message: fmt.Sprintf("the database %s is in use by %s; one server at a time can have it", path, by)}
		}
	}
	l := &Lock{file: file, since: time.Now()}
	err = soleName(path)
	if err == nil {
		err = l.Describe("")
	}
	if err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// openLock makes the lock's file unless it exists. Anything else at that path belongs to somebody
// else and is left alone.
func openLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if info, found := os.Lstat(path); found == nil && !info.Mode().IsRegular() {
		if err == nil {
			file.Close()
		}
		return nil, fmt.Errorf("%s is not a file (%s); remove it", path, info.Mode().Type())
	}
	return file, err
}

// soleName refuses a database with a second name (a hard link). The lock and SQLite's log are
// beside each name, so another server could open it by the other name, and both would write.
func soleName(path string) error {
	n, err := linkCount(path)
	if err != nil {
		return fmt.Errorf("lock the database: %w", err)
	}
	if n > 1 {
		return &engine.Error{Kind: engine.KindPrecondition,
			Message: fmt.Sprintf(
				"the database %s has %d names (hard links), by which several servers could write it at once; remove the others, or copy the file", path, n)}
	}
	return nil
}

// Describe writes who holds the lock, with a line of text from the holder.
func (l *Lock) Describe(text string) error {
	line := "process " + strconv.Itoa(os.Getpid()) + ", started " + l.since.UTC().Format(time.RFC3339)
	if text != "" {
		line += ", " + text
	}
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("lock the database: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(line+"\n"), 0); err != nil {
		return fmt.Errorf("lock the database: %w", err)
	}
	return nil
}

// readHolder returns what the holder wrote, made printable.
func readHolder(file *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, maxHolder))
	if err != nil {
		text = nil
	}
	line := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSpace(string(text)), ""))
	return cmp.Or(line, "another process")
}

func (l *Lock) Release() { l.file.Close() }

// Holder returns the description of the process that has locked the database; empty if none has.
func Holder(path string) (string, error) {
	path, err := Locate(path)
	if err != nil {
		return "", nil // a missing database has no holder
	}
	file, err := os.OpenFile(path+".lock", os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the lock of the database: %w", err)
	}
	defer file.Close()
	free, err := tryLock(file) // for a moment; a server that starts retries for longer
	if err != nil || free {
		return "", err
	}
	return readHolder(file), nil
}
