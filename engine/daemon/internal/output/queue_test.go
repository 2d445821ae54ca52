package output

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// stuck is a writer that blocks until it is opened, and fails while broken.
type stuck struct {
	open chan struct{}

	mu     sync.Mutex
	broken bool
	text   strings.Builder
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.open
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return 0, errors.New("broken pipe")
	}
	return s.text.Write(p)
}

func notice(n uint64) []byte { return fmt.Appendf(nil, "dropped %d\n", n) }

func TestQueueTellsDroppedLinesOnceThereIsRoom(t *testing.T) {
	w := &stuck{open: make(chan struct{})}
	q := NewQueue(w, notice)
	const extra = 100
	for range maxQueuedLines + extra {
		fmt.Fprintln(q, "line")
	}
	dropped := q.Dropped()
	if dropped < extra-1 || dropped > extra {
		t.Errorf("%d lines dropped, want about %d", dropped, extra)
	}
	close(w.open)
	if !q.Close(10 * time.Second) {
		t.Fatal("the queue is not written")
	}
	text := w.text.String()
	if n := strings.Count(text, "line\n"); n+int(dropped) != maxQueuedLines+extra {
		t.Errorf("%d lines written and %d dropped of %d", n, dropped, maxQueuedLines+extra)
	}
	if !strings.HasSuffix(text, string(notice(dropped))) {
		t.Errorf("the end is %q, want a notice of %d lines", text[len(text)-40:], dropped)
	}
}

func TestQueueLimitsBytes(t *testing.T) {
	w := &stuck{open: make(chan struct{})}
	q := NewQueue(w, nil)
	line := strings.Repeat("x", maxQueuedBytes/4)
	for range 10 {
		fmt.Fprint(q, line)
	}
	if n := q.Dropped(); n < 5 || n > 6 { // one line may be with the writer
		t.Errorf("%d of 10 lines dropped, want 5 or 6", n)
	}
	close(w.open)
	q.Close(10 * time.Second)
}

func TestQueueCloseDoesNotWaitForABlockedWriter(t *testing.T) {
	w := &stuck{open: make(chan struct{})}
	q := NewQueue(w, notice)
	fmt.Fprintln(q, "line")
	if q.Close(10 * time.Millisecond) {
		t.Error("Close says that the line was written")
	}
	close(w.open)
}

func TestQueueCountsLinesThatCannotBeWritten(t *testing.T) {
	w := &stuck{open: make(chan struct{}), broken: true}
	close(w.open)
	q := NewQueue(w, notice)
	fmt.Fprintln(q, "one")
	for q.Dropped() == 0 {
		time.Sleep(time.Millisecond)
	}
	w.mu.Lock()
	w.broken = false
	w.mu.Unlock()
	fmt.Fprintln(q, "two")
	q.Close(10 * time.Second)
	if got, want := w.text.String(), "dropped 1\ntwo\n"; got != want {
		t.Errorf("written %q, want %q", got, want)
	}
}
