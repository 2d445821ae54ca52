package installer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// tailInterval is how often a log file is checked for new lines; not all systems can notify.
const tailInterval = 500 * time.Millisecond

// tail writes the last lines of a log. With follow it also writes new lines, across rotations,
// until ctx ends.
func tail(ctx context.Context, w io.Writer, path string, lines int, follow bool) error {
	f, err := openFollowed(path)
	if errors.Is(err, fs.ErrNotExist) && !follow {
		return nil // no output yet
	}
	if err != nil {
		return err
	}
	t := &tailer{path: path, file: f, w: w}
	defer func() { _ = t.file.Close() }()
	if err := t.last(lines); err != nil || !follow {
		return err
	}
	ticker := time.NewTicker(tailInterval)
	defer ticker.Stop()
	for {
		if err := t.more(); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// tailer is a log file being read.
type tailer struct {
	path string
	file *os.File
	part []byte // an incomplete line
	w    io.Writer
}

// last writes the last lines.
func (t *tailer) last(lines int) error {
	var kept []string
	for s := bufio.NewReader(t.file); ; {
		line, err := s.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			t.part = line
			break
		}
		if err != nil {
			return err
		}
		if kept = append(kept, string(line)); len(kept) > lines {
			kept = kept[1:]
		}
	}
	for _, line := range kept {
		if err := t.print([]byte(line)); err != nil {
			return err
		}
	}
	return nil
}

// more writes the new lines of this file, then those of the file that replaced it.
func (t *tailer) more() error {
	if err := t.drain(); err != nil {
		return err
	}
	now, err := os.Stat(t.path)
	if err != nil {
		return ignoreMissing(err) // between two files
	}
	if mine, err := t.file.Stat(); err != nil || os.SameFile(mine, now) {
		return err
	}
	if err := t.drain(); err != nil { // written before it was renamed
		return err
	}
	next, err := openFollowed(t.path)
	if err != nil {
		return ignoreMissing(err)
	}
	_ = t.file.Close()
	t.file, t.part = next, nil
	return t.drain()
}

func (t *tailer) drain() error {
	text, err := io.ReadAll(t.file)
	if err != nil {
		return err
	}
	text = append(t.part, text...)
	end := bytes.LastIndexByte(text, '\n') + 1
	t.part = bytes.Clone(text[end:])
	for line := range bytes.Lines(text[:end]) {
		if err := t.print(line); err != nil {
			return err
		}
	}
	return nil
}

func (t *tailer) print(line []byte) error {
	_, err := fmt.Fprintln(t.w, plainLines(string(bytes.TrimRight(line, "\r\n"))))
	return err
}
