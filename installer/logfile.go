package installer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
)

const (
	logName      = "kagzi.log"
	startLogName = "kagzi.start.log" // output from before the log is open
	crashLogName = "kagzi.crash.log" // output of the runtime after a panic
	logSize      = 10 << 20          // bytes of one file
	logsKept     = 5                 // older files; kagzi.log.1 is the newest of them
)

// logFile is a rotated log of limited size. It is safe for concurrent use.
type logFile struct {
	path string
	size int64 // limit of one file, in bytes

	mu      sync.Mutex
	file    *os.File
	written int64 // bytes in this file
	limit   int64 // size at which the next file begins
}

// openLog opens the log in an existing directory, and sends crashes of this process there too.
func openLog(dir string) (*logFile, error) {
	l := &logFile{path: filepath.Join(dir, logName), size: logSize}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	crash, err := os.OpenFile(filepath.Join(dir, crashLogName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err == nil {
		// SetCrashOutput duplicates the file
		err = errors.Join(debug.SetCrashOutput(crash, debug.CrashOptions{}), crash.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the log of crashes: %w", err), l.Close())
	}
	return l, nil
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.written, l.limit = f, info.Size(), l.size
	return nil
}

// Write rotates the log before a write that would exceed the limit. If it cannot rotate, for
// example on Windows while another program has the file open, it continues with the same file.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written > 0 && l.written+int64(len(p)) > l.limit {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.written += int64(n)
	return n, err
}

// rotate renames each file to the next number and drops the oldest.
func (l *logFile) rotate() error {
	if err := l.file.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		// closed, because it could not be opened last time
		return err
	}
	moved := true
	for i := logsKept - 1; i >= 0 && moved; i-- {
		moved = ignoreMissing(os.Rename(l.numbered(i), l.numbered(i+1))) == nil
	}
	if err := l.open(); err != nil {
		return err
	}
	if !moved { // try again after as much
		l.limit = l.written + l.size
	}
	return nil
}

// numbered returns the path of the i-th file; 0 is the one being written.
func (l *logFile) numbered(i int) string {
	if i == 0 {
		return l.path
	}
	return fmt.Sprintf("%s.%d", l.path, i)
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
