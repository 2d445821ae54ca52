// Package metrics counts what a server does, and keeps the latest events.
//
//   - recorder.go: Recorder, what the server itself counts; observer.go: what the other parts of the process tell it.
//   - metrics.go, lengths.go, methods.go: counters since the start; past.go: how another server
//     goes on with them. activity.go, histogram.go: what was done lately.
//   - stats.go, readings.go: what the store holds, counted at most every so often.
//   - events.go, events_log.go, events_watch.go: the latest events.
package metrics

import (
	"log/slog"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Recorder counts what a server does and keeps the latest facts about it.
type Recorder struct {
	Events   *Events
	log      *slog.Logger
	now      func() time.Time
	counters counters
	origin   Totals // when the counters stood at zero
	activity activity
	meters   meters
}

// NewRecorder returns a recorder whose first second begins now, by the clock.
func NewRecorder(events *Events, log *slog.Logger, clock func() time.Time) *Recorder {
	r := &Recorder{Events: events, log: log, now: clock}
	r.activity.clock = clock
	r.activity.begin(clock())
	r.origin = r.counters.read(clock())
	return r
}

// StepFailed counts a failed attempt that is retried, or is not.
func (r *Recorder) StepFailed(retried bool) { r.meters.stepFailed(retried) }

// StepTimedOut counts an attempt that ran for too long.
func (r *Recorder) StepTimedOut() { r.meters.stepTimeouts.Add(1) }

// Notified counts a notification of the store.
func (r *Recorder) Notified(kind engine.NotificationKind) { r.meters.notifications[kind].Add(1) }

// Observer returns what the other parts of the process tell.
func (r *Recorder) Observer() Observer { return Observer{r} }

// NoteWorker notes what became of a worker, and by whose call.
func (r *Recorder) NoteWorker(by engine.Actor, message, worker string, more ...slog.Attr) {
	attributes := []slog.Attr{slog.String("worker", worker), slog.String("by", by.Name), slog.String("peer", by.Peer)}
	r.Events.Note(slog.LevelInfo, message, append(attributes, more...)...)
}
