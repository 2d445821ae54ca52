package metrics

import (
	"log/slog"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// mostNamed is how many runs or steps of one sweep the log names: it is not to be drowned when
// thousands are late at once.
const mostNamed = 50

// RunsExpired hears from the coordinator and the matcher of this process that runs have ended by
// their deadline, or by the end of their grace.
func (o Observer) RunsExpired(e engine.Expired) {
	o.r.CountN(RunFailed, len(e.TimedOut))
	o.r.CountN(RunStopped, len(e.Cancelled))
	o.r.tellEnded("run timed out", e.TimedOut)
	o.r.tellEnded("run cancelled at the end of its grace", e.Cancelled)
}

func (r *Recorder) tellEnded(message string, runs []engine.ID) {
	for _, id := range runs[:min(len(runs), mostNamed)] {
		r.log.Warn(message, "run", id)
	}
	r.tellUnnamed(message, len(runs))
}

// tellUnnamed says how many more of n there were than the log names.
func (r *Recorder) tellUnnamed(message string, n int) {
	if n > mostNamed {
		r.log.Warn(message+", and others", "others", n-mostNamed)
	}
}

// StepsTimedOut hears from the coordinator of this process which attempts have run for too long.
// Their workers are named: one that does not keep the time of its steps itself may hang, and is
// worth a look.
func (o Observer) StepsTimedOut(attempts []engine.TimedOutAttempt) {
	o.r.meters.stepTimeouts.Add(int64(len(attempts)))
	for _, a := range attempts[:min(len(attempts), mostNamed)] {
		if a.Verdict.Retry {
			o.r.log.Warn("step timed out and will be retried", "run", a.RunID, "step", a.Step, "worker", a.Worker,
				"failures", a.Verdict.Failures, "at", a.Verdict.RetryAt)
		} else {
			o.r.log.Warn("step timed out for good", "run", a.RunID, "step", a.Step, "worker", a.Worker)
		}
	}
	o.r.tellUnnamed("step timed out", len(attempts))
}

// CountSideEffects counts what calls of the store by this process have begun and ended beside what
// they answered, and logs the runs that nobody asked to fail.
func (r *Recorder) CountSideEffects(a *engine.SideEffects) {
	r.CountN(RunStarted, a.Handlers+a.Ticks)
	r.CountN(RunFailed, len(a.Failed))
	r.tellEnded("run failed: its worker was lost too often", a.Failed)
	r.CountN(RunStopped, a.Stopped)
	r.meters.scheduleRuns.Add(int64(a.Ticks))
}

// ScheduleFired hears from the coordinator of this process what became of ticks. missed is how many
// of those that fired were missed ones, and late how late the newest of the others was, negative
// when there was none.
func (o Observer) ScheduleFired(schedule *engine.Schedule, fired engine.Fired, missed int, late time.Duration) {
	o.r.meters.scheduled(fired, missed, late)
	if fired.Runs == 0 {
		return
	}
	o.r.CountN(RunStarted, fired.Runs)
	if late >= 0 {
		o.r.activity.fired(late)
	}
	if missed == 0 && fired.Skipped == 0 { // otherwise the coordinator's log tells of it
		o.r.Events.Note(slog.LevelInfo, "schedule fired", slog.Any("schedule", schedule.ID),
			slog.String("name", schedule.Name),
			slog.String("namespace", schedule.Namespace), slog.String("type", schedule.Type),
			slog.Int("runs", fired.Runs),
			slog.Duration("late", late))
	}
}

// Observer hears from the other parts of the process what they did.
type Observer struct{ r *Recorder }

// Claimed hears from the matcher how long a claim took and how many runs it brought.
func (o Observer) Claimed(took time.Duration, runs int, err error) {
	o.r.meters.claims.add(took)
	o.r.meters.claimed.Add(int64(runs))
	if err != nil {
		o.r.meters.claimErrors.Add(1)
	}
}

// RunsDeleted hears from the coordinator of this process that runs are gone because they ended long ago.
func (o Observer) RunsDeleted(n int) { o.r.meters.runsDeleted.Add(int64(n)) }

// WorkerLost hears from the coordinator of this process that a worker was taken off because it was not heard from.
func (o Observer) WorkerLost() { o.r.meters.workersLost.Add(1) }

// LeasesLost hears from the coordinator of this process that runs were freed whose workers had been lost.
func (o Observer) LeasesLost(n int) { o.r.meters.leasesLost.Add(int64(n)) }

// BackupMade hears of the scheduled backups of this process: when the last was made, or that one failed.
func (o Observer) BackupMade(at time.Time, err error) {
	if err != nil {
		o.r.meters.backupsFailed.Add(1)
		return
	}
	o.r.meters.lastBackup.Store(at.UnixMicro())
}
