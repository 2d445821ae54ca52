package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Log is one process's part of the history. Its methods may be called from any goroutine.
type Log struct {
	proc string

	mu     sync.Mutex
	seq    int64
	file   *os.File // nil: kept in memory
	kept   []Event
	failed error
}

// NewLog returns a log in memory, for a process that is not killed.
func NewLog(proc string) *Log { return &Log{proc: proc} }

// OpenLog returns a log in a file, which keeps each written line whatever happens to the process.
func OpenLog(proc, path string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Log{proc: proc, file: f}, nil
}

// Begin records the begin of an operation. Finish records its answer.
func (l *Log) Begin(e Event) Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	e.Proc, e.Seq, e.Invoked = l.proc, l.seq, Now()
	l.write(e)
	return e
}

// Finish records the outcome of an operation that Begin recorded.
func (l *Log) Finish(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Returned = Now()
	l.write(e)
}

// Note records a completed operation, and the earliest time at which it can have begun.
func (l *Log) Note(e Event, since int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	e.Proc, e.Seq, e.Invoked, e.Returned, e.Outcome = l.proc, l.seq, since, Now(), OK
	l.write(e)
}

// NoteUnknown is Note for an operation that was seen in part: its outcome is unknown.
func (l *Log) NoteUnknown(e Event, since int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	e.Proc, e.Seq, e.Invoked, e.Returned, e.Outcome = l.proc, l.seq, since, 0, Unknown
	l.write(e)
}

// Failure returns why an event could not be written; the history is worthless then.
func (l *Log) Failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Events returns the events of a log in memory.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return merge(l.kept)
}

func (l *Log) write(e Event) {
	if l.file == nil {
		l.kept = append(l.kept, e)
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(line, '\n')) // one write, which survives a kill
	}
	l.failed = errors.Join(l.failed, err)
}

// Read returns the events of a log's file. The last line may be cut short.
func Read(path string) ([]Event, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the process died before it did anything
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var events []Event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var broken error
	for n := 1; lines.Scan(); n++ {
		if broken != nil {
			return nil, broken
		}
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			broken = fmt.Errorf("%s: line %d, which is not the last, cannot be read: %w", path, n, err)
			continue
		}
		events = append(events, e)
	}
	return merge(events), lines.Err()
}

// Write puts events into a file that Read reads.
func Write(path string, events []Event) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	lines := json.NewEncoder(w)
	for _, e := range events {
		err = errors.Join(err, lines.Encode(e))
	}
	return errors.Join(err, w.Flush(), f.Close())
}

// merge replaces earlier lines by later ones with the same number of the same process.
func merge(events []Event) []Event {
	type key struct {
		proc string
		seq  int64
	}
	at := map[key]int{}
	merged := make([]Event, 0, len(events))
	for _, e := range events {
		k := key{e.Proc, e.Seq}
		if i, ok := at[k]; ok {
			merged[i] = e
			continue
		}
		at[k] = len(merged)
		merged = append(merged, e)
	}
	return merged
}
