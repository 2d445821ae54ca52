package metrics

import (
	"log/slog"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine/server/internal/async"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	keptEvents = 2000
	// eventsPerSecond is how many events with the same message are kept per second; the rest are
	// counted.
	eventsPerSecond = 50
)

// Events holds a server's latest events in memory. The zero value is ready for use, from any
// goroutine.
type Events struct {
	// Clock dates events; nil: time.Now. Set it before use.
	Clock func() time.Time

	mu        sync.Mutex
	last      int64                  // sequence of the newest
	kept      []*kagziv1.ServerEvent // indexed by sequence modulo keptEvents; immutable
	followers map[chan struct{}]struct{}

	second time.Time         // when the counts began, by the monotonic clock
	counts map[string]*count // by message; messages are the program's, so they are few
	more   bool              // events were left out and will be counted in one more event
}

// count says how often a message occurred within a second.
type count struct {
	level slog.Level
	kept  int
	more  int // left out
}

func (e *Events) now() time.Time {
	if e.Clock != nil {
		return e.Clock()
	}
	return time.Now()
}

// admit says whether an event of this message is kept, or only counted.
func (e *Events) admit(level slog.Level, message string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if e.counts == nil {
		e.counts = map[string]*count{}
	}
	if now.Sub(e.second) >= time.Second && !e.more {
		e.second = now
		clear(e.counts)
	}
	t := e.counts[message]
	if t == nil {
		t = &count{level: level}
		e.counts[message] = t
	}
	if t.kept < eventsPerSecond {
		t.kept++
		return true
	}
	t.more++
	t.level = max(t.level, level)
	if !e.more {
		e.more = true
		time.AfterFunc(max(0, time.Second-now.Sub(e.second)), e.tellMore)
	}
	return false
}

// tellMore adds the counts of left out events at the end of a second.
func (e *Events) tellMore() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for message, t := range e.counts {
		if t.more > 0 {
			more := strconv.Itoa(t.more)
			e.append(e.now(), t.level, message+" … and "+more+" more",
				[]*kagziv1.EventAttribute{{Key: "more", Value: more}})
		}
	}
	e.more = false
	e.second = e.now()
	clear(e.counts)
}

// keep adds an event that was admitted.
func (e *Events) keep(at time.Time, level slog.Level, message string, attributes []*kagziv1.EventAttribute) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.append(at, level, message, attributes)
}

// append adds an event. The lock is held.
func (e *Events) append(at time.Time, level slog.Level, message string, attributes []*kagziv1.EventAttribute) {
	e.last++
	event := &kagziv1.ServerEvent{
		Sequence: e.last, At: timestamppb.New(at), Level: levelName(level), Message: fitValue(message),
		Attributes: attributes,
	}
	if len(e.kept) < keptEvents {
		e.kept = append(e.kept, event)
	} else {
		e.kept[(e.last-1)%keptEvents] = event
	}
	for wake := range e.followers {
		async.Notify(wake)
	}
}

func levelName(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "ERROR"
	case level >= slog.LevelWarn:
		return "WARN"
	}
	return "INFO"
}

// Note adds an event that is not written to the log. Empty attributes are left out.
func (e *Events) Note(level slog.Level, message string, attributes ...slog.Attr) {
	e.NoteOf(level, message, func() []slog.Attr { return attributes })
}

// NoteOf is Note for attributes that are costly to make: it calls the function only if the event is
// kept.
func (e *Events) NoteOf(level slog.Level, message string, attributes func() []slog.Attr) {
	if !e.admit(level, message) {
		return
	}
	var kept []*kagziv1.EventAttribute
	for _, a := range attributes() {
		if value := valueOf(a.Value); value != "" {
			kept = append(kept, &kagziv1.EventAttribute{Key: a.Key, Value: value})
		}
	}
	e.keep(e.now(), level, message, kept)
}

// Past returns at most the newest most events after a sequence, oldest first.
func (e *Events) Past(after int64, most int) []*kagziv1.ServerEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := max(after, e.last-int64(min(most, len(e.kept)))) + 1
	var events []*kagziv1.ServerEvent
	for sequence := first; sequence <= e.last; sequence++ {
		events = append(events, e.kept[(sequence-1)%keptEvents])
	}
	return events
}

// newest returns the sequence of the newest event.
func (e *Events) newest() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last
}

// mayBe says whether the event with this sequence has this time. It returns true for an event that
// is no longer kept.
func (e *Events) mayBe(sequence int64, at *timestamppb.Timestamp) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case sequence > e.last:
		return false
	case sequence <= e.last-int64(len(e.kept)):
		return true
	}
	return proto.Equal(e.kept[(sequence-1)%keptEvents].At, at)
}

// follow returns a channel of capacity one that is notified of new events; call leave when done.
func (e *Events) follow() (wake chan struct{}, leave func()) {
	wake = make(chan struct{}, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.followers == nil {
		e.followers = map[chan struct{}]struct{}{}
	}
	e.followers[wake] = struct{}{}
	return wake, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.followers, wake)
	}
}
