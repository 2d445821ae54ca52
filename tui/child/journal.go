package child

import (
	"bytes"
	"io"
	"sync"
)

const (
	keptLines  = 200
	longLine   = 8 << 10 // bytes; the rest of a longer line is dropped
	cutLineEnd = " … [cut]"
)

// journal holds the last lines printed by a process. All output is also copied to a log.
type journal struct {
	wake chan struct{} // capacity 1: signals more lines

	mu      sync.Mutex
	log     io.Writer // may be nil
	partial []byte
	lines   []string
	dropped int // lines dropped before the first kept one
}

func newJournal(log io.Writer) *journal {
	return &journal{wake: make(chan struct{}, 1), log: log}
}

// Write never fails: a full disk under the log must not stop the process.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.log != nil {
		_, _ = j.log.Write(p)
	}
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		if room := longLine - len(j.partial); room > 0 {
			j.partial = append(j.partial, line[:min(len(line), room)]...)
		}
		if ended {
			j.add()
		}
		rest = after
	}
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (j *journal) add() {
	line := string(bytes.TrimRight(j.partial, "\r"))
	if len(j.partial) == longLine {
		line += cutLineEnd
	}
	j.partial = j.partial[:0]
	j.lines = append(j.lines, line)
	if over := len(j.lines) - keptLines; over > 0 {
		j.lines = append([]string(nil), j.lines[over:]...)
		j.dropped += over
	}
}

// since returns the kept lines from the n-th on, and the number for the next call.
func (j *journal) since(n int) ([]string, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	from := min(max(n-j.dropped, 0), len(j.lines))
	return append([]string(nil), j.lines[from:]...), j.dropped + len(j.lines)
}

// tail returns the last n lines.
func (j *journal) tail(n int) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.lines[max(0, len(j.lines)-n):]...)
}
