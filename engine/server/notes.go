package server

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// What is worth an event and is not in the log.

// noteFailed notes that a run failed for good. A lease does not say what the run is, so it is looked up, if the event is kept.
func (s *Server) noteFailed(ctx context.Context, l engine.Lease, f engine.Failure) {
	s.events.noteOf(slog.LevelWarn, "run failed", func() []slog.Attr {
		attributes := []slog.Attr{slog.Any("run", l.RunID), slog.String("namespace", l.Namespace)}
		if runs, err := s.store.GetRuns(ctx, l.Namespace, []engine.ID{l.RunID}); err == nil && len(runs) == 1 {
			attributes = append(attributes, slog.String("type", runs[0].Type), slog.String("queue", runs[0].Queue))
		}
		line, _, _ := strings.Cut(strings.TrimSpace(f.Message), "\n")
		return append(attributes, slog.String("error", line))
	})
}

// noteWorker notes what became of a worker, and by whose call.
func (s *Server) noteWorker(ctx context.Context, message, worker string, more ...slog.Attr) {
	by := actorOf(ctx)
	attributes := []slog.Attr{slog.String("worker", worker), slog.String("by", by.Name), slog.String("peer", by.Peer)}
	s.events.note(slog.LevelInfo, message, append(attributes, more...)...)
}

// mostNamed is how many runs or steps of one sweep the log names: it is not to be drowned when thousands are late at once.
const mostNamed = 50

// RunsExpired hears from the coordinator and the dispatcher of this process that runs have ended by their deadline, or by the end of their grace.
func (s *Server) RunsExpired(e engine.Expired) {
	s.countN(runFailed, len(e.TimedOut))
	s.countN(runStopped, len(e.Cancelled))
	s.tellEnded("run timed out", e.TimedOut)
	s.tellEnded("run cancelled at the end of its grace", e.Cancelled)
}

func (s *Server) tellEnded(message string, runs []engine.ID) {
	for _, id := range runs[:min(len(runs), mostNamed)] {
		s.log.Warn(message, "run", id)
	}
	s.tellUnnamed(message, len(runs))
}

// tellUnnamed says how many more of n there were than the log names.
func (s *Server) tellUnnamed(message string, n int) {
	if n > mostNamed {
		s.log.Warn(message+", and others", "others", n-mostNamed)
	}
}

// StepsTimedOut hears from the coordinator of this process which attempts have run for too long. Their workers are named: one that does not
// keep the time of its steps itself may hang, and is worth a look.
func (s *Server) StepsTimedOut(attempts []engine.TimedOutAttempt) {
	s.meters.stepTimeouts.Add(int64(len(attempts)))
	for _, a := range attempts[:min(len(attempts), mostNamed)] {
		if a.Verdict.Retry {
			s.log.Warn("step timed out and will be retried", "run", a.RunID, "step", a.Step, "worker", a.Worker, "failures", a.Verdict.Failures, "at", a.Verdict.RetryAt)
		} else {
			s.log.Warn("step timed out for good", "run", a.RunID, "step", a.Step, "worker", a.Worker)
		}
	}
	s.tellUnnamed("step timed out", len(attempts))
}

// countAside counts what calls of the store by this process have begun and ended besides what they answered, and tells of the runs that
// nobody asked to fail.
func (s *Server) countAside(a *engine.SideEffects) {
	s.countN(runStarted, a.Handlers+a.Ticks)
	s.countN(runFailed, len(a.Failed))
	s.tellEnded("run failed: its worker was lost too often", a.Failed)
	s.countN(runStopped, a.Stopped)
	s.meters.scheduleRuns.Add(int64(a.Ticks))
}

// ScheduleFired hears from the coordinator of this process what became of ticks. missed is how many of those that fired were missed
// ones, and late how late the newest of the others was, negative when there was none.
func (s *Server) ScheduleFired(schedule *engine.Schedule, fired engine.Fired, missed int, late time.Duration) {
	s.meters.scheduled(fired, missed, late)
	if fired.Runs == 0 {
		return
	}
	s.countN(runStarted, fired.Runs)
	if late >= 0 {
		s.activity.fired(late)
	}
	if missed == 0 && fired.Skipped == 0 { // otherwise the coordinator's log tells of it
		s.events.note(slog.LevelInfo, "schedule fired", slog.Any("schedule", schedule.ID), slog.String("name", schedule.Name),
			slog.String("namespace", schedule.Namespace), slog.String("type", schedule.Type), slog.Int("runs", fired.Runs),
			slog.Duration("late", late))
	}
}
