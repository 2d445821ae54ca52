package output

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	maxQueuedLines = 4096
	maxQueuedBytes = 1 << 20
)

// Queue is a Writer that never blocks: one goroutine writes what it holds. A line that finds the
// queue full is dropped, and so is one that cannot be written. The next line that is written comes
// after one that tells how many were dropped. It is safe for concurrent use. Close it.
type Queue struct {
	notice func(dropped uint64) []byte

	mu      sync.Mutex
	lines   []queued
	bytes   int           // sum of the lines waiting
	pending uint64        // lines dropped since the last line that found room
	dropped uint64        // lines dropped in all
	closed  bool          // no more lines are taken
	wake    chan struct{} // holds an element if the writer has something to do
	ended   chan struct{} // closed when the writer has ended
}

type queued struct {
	text    []byte
	dropped uint64 // lines dropped just before this one
}

// NewQueue returns a queue to w. notice is the line that tells of dropped lines; nil tells nothing.
func NewQueue(w io.Writer, notice func(dropped uint64) []byte) *Queue {
	q := &Queue{notice: notice, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go q.run(w)
	return q
}

// DroppedLines returns a notice in the format of NewLog.
func DroppedLines(format string) func(dropped uint64) []byte {
	return func(dropped uint64) []byte {
		var line bytes.Buffer
		NewLog(&line, slog.LevelWarn, format).Warn("log lines were dropped: stderr was full or closed; "+
			"the server went on without them", "dropped", dropped)
		return line.Bytes()
	}
}

// Write queues one line, or drops it. It never fails.
func (q *Queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.lines) >= maxQueuedLines || (len(q.lines) > 0 && q.bytes+len(line) > maxQueuedBytes) {
		q.pending++
		q.dropped++
		return len(line), nil
	}
	q.lines = append(q.lines, queued{bytes.Clone(line), q.pending})
	q.bytes += len(line)
	q.pending = 0
	q.signal()
	return len(line), nil
}

// Dropped returns how many lines were dropped since the start.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Close waits until what is queued is written, or for limit, and reports whether all of it was. A
// writer that is blocked for longer stays blocked.
func (q *Queue) Close(limit time.Duration) bool {
	q.mu.Lock()
	q.closed = true
	q.signal()
	q.mu.Unlock()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-q.ended:
		return true
	case <-late.C:
		return false
	}
}

// signal wakes the writer. The caller holds mu.
func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next returns the oldest line, or the count of lines dropped after the last one; end reports that
// nothing will follow.
func (q *Queue) next() (line queued, end bool) {
	for {
		q.mu.Lock()
		switch {
		case len(q.lines) > 0:
			line, q.lines[0] = q.lines[0], queued{}
			q.lines = q.lines[1:]
			q.bytes -= len(line.text)
			q.mu.Unlock()
			return line, false
		case q.pending > 0:
			line.dropped, q.pending = q.pending, 0
			q.mu.Unlock()
			return line, false
		case q.closed:
			q.mu.Unlock()
			return queued{}, true
		}
		q.mu.Unlock()
		<-q.wake
	}
}

// run writes the lines. Lines that w refuses are told of before the next one that it takes.
func (q *Queue) run(w io.Writer) {
	defer close(q.ended)
	var untold uint64
	for {
		line, end := q.next()
		if end {
			return
		}
		untold += line.dropped
		if untold > 0 && (q.notice == nil || write(w, q.notice(untold))) {
			untold = 0
		}
		if len(line.text) > 0 && !write(w, line.text) {
			untold++
			q.mu.Lock()
			q.dropped++
			q.mu.Unlock()
		}
	}
}

func write(w io.Writer, text []byte) bool {
	_, err := w.Write(text)
	return err == nil
}
