// Package metrics counts what a server does, and keeps the latest events.
//
//   - recorder.go: Recorder counts for the server; observer.go: Observer counts for other parts of
//     the process.
//   - metrics.go, lengths.go, methods.go: counters since the start. past.go passes them on to
//     another server. activity.go, histogram.go: counts of recent seconds and minutes.
//   - stats.go, readings.go: counts of what the store holds, cached for a short time.
//   - events.go, events_log.go, events_watch.go: the latest events.
package metrics

import (
	"log/slog"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Recorder counts what a server does and keeps its latest events.
type Recorder struct {
	Events   *Events
	log      *slog.Logger
	now      func() time.Time
	counters counters
	origin   Totals // the counters at the start
	activity activity
	meters   meters
}

// NewRecorder returns a recorder whose first second begins now, by clock.
func NewRecorder(events *Events, log *slog.Logger, clock func() time.Time) *Recorder {
	r := &Recorder{Events: events, log: log, now: clock}
	r.activity.clock = clock
	r.activity.begin(clock())
	r.origin = r.counters.read(clock())
	return r
}

// StepFailed counts a failed attempt.
func (r *Recorder) StepFailed(retried bool) { r.meters.stepFailed(retried) }

// StepTimedOut counts a timed out attempt.
func (r *Recorder) StepTimedOut() { r.meters.stepTimeouts.Add(1) }

// Notified counts a notification of the store.
func (r *Recorder) Notified(kind engine.NotificationKind) { r.meters.notifications[kind].Add(1) }

// Observer returns the observer for the other parts of the process.
func (r *Recorder) Observer() Observer { return Observer{r} }

// NoteWorker adds an event about a worker, with the caller.
func (r *Recorder) NoteWorker(by engine.Actor, message, worker string, more ...slog.Attr) {
	attributes := []slog.Attr{slog.String("worker", worker), slog.String("by", by.Name), slog.String("peer", by.Peer)}
	r.Events.Note(slog.LevelInfo, message, append(attributes, more...)...)
}
