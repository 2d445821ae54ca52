package metrics

import (
	"log/slog"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// mostNamed limits how many runs or steps of one sweep are logged by name; the rest are counted.
const mostNamed = 50

// RunsExpired counts and logs runs that the coordinator or the matcher ended at their deadline or
// at the end of their grace.
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

// tellUnnamed logs how many of n were not named.
func (r *Recorder) tellUnnamed(message string, n int) {
	if n > mostNamed {
		r.log.Warn(message+", and others", "others", n-mostNamed)
	}
}

// StepsTimedOut counts and logs attempts that the coordinator timed out. It names their workers,
// because a worker that does not end its steps in time itself may hang.
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

// CountSideEffects counts the side effects of this process's calls of the store, and logs the runs
// that failed because of lost workers.
func (r *Recorder) CountSideEffects(a *engine.SideEffects) {
	r.CountN(RunStarted, a.Handlers+a.Ticks)
	r.CountN(RunFailed, len(a.Failed))
	r.tellEnded("run failed: its worker was lost too often", a.Failed)
	r.CountN(RunStopped, a.Stopped)
	r.meters.scheduleRuns.Add(int64(a.Ticks))
}

// ScheduleFired counts what the coordinator decided about ticks. missed is the number of missed
// ticks that fired; late is how late the newest other one fired, negative if there was none.
func (o Observer) ScheduleFired(schedule *engine.Schedule, fired engine.Fired, missed int, late time.Duration) {
	o.r.meters.scheduled(fired, missed, late)
	if fired.Runs == 0 {
		return
	}
	o.r.CountN(RunStarted, fired.Runs)
	if late >= 0 {
		o.r.activity.fired(late)
	}
	if missed == 0 && fired.Skipped == 0 { // otherwise the coordinator logs it
		o.r.Events.Note(slog.LevelInfo, "schedule fired", slog.Any("schedule", schedule.ID),
			slog.String("name", schedule.Name),
			slog.String("namespace", schedule.Namespace), slog.String("type", schedule.Type),
			slog.Int("runs", fired.Runs),
			slog.Duration("late", late))
	}
}

// Observer counts what the other parts of the process (coordinator, matcher, backups) do.
type Observer struct{ r *Recorder }

// Claimed counts a claim of the matcher: how long it took and how many runs it returned.
func (o Observer) Claimed(took time.Duration, runs int, err error) {
	o.r.meters.claims.add(took)
	o.r.meters.claimed.Add(int64(runs))
	if err != nil {
		o.r.meters.claimErrors.Add(1)
	}
}

// RunsDeleted counts runs that the coordinator deleted after their retention.
func (o Observer) RunsDeleted(n int) { o.r.meters.runsDeleted.Add(int64(n)) }

// RunsDiverged counts runs that the coordinator paused because each build in service has diverged,
// and records each as an event.
func (o Observer) RunsDiverged(runs []engine.ID) {
	o.r.meters.runsDiverged.Add(int64(len(runs)))
	for _, id := range runs {
		o.r.Events.Note(slog.LevelWarn, "run paused: its code has diverged", slog.Any("run", id))
	}
}

// WorkerLost counts a worker that the coordinator made OFFLINE because it was not heard from.
func (o Observer) WorkerLost() { o.r.meters.workersLost.Add(1) }

// LeasesLost counts runs of lost workers that the coordinator freed.
func (o Observer) LeasesLost(n int) { o.r.meters.leasesLost.Add(int64(n)) }

// BackupMade records a scheduled backup of this process: when it was made, or that it failed.
func (o Observer) BackupMade(at time.Time, err error) {
	if err != nil {
		o.r.meters.backupsFailed.Add(1)
		return
	}
	o.r.meters.lastBackup.Store(at.UnixMicro())
}
