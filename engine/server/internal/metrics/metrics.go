package metrics

import (
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// meters holds the counts that only Metrics returns. Counting costs a few additions.
type meters struct {
	commits lengths // how long a worker waited until its result was durable
	claims  lengths // how long a claim took
	lags    lengths // how late ticks fired, without missed ones

	claimed, claimErrors        atomic.Int64
	stepsRetried, stepsFailed   atomic.Int64
	stepTimeouts                atomic.Int64
	runsDeleted, runsDiverged   atomic.Int64
	workersLost, leasesLost     atomic.Int64
	scheduleRuns                atomic.Int64
	ticksCaughtUp, ticksSkipped atomic.Int64

	backupsFailed atomic.Int64
	lastBackup    atomic.Int64 // when, in microseconds

	notifications [engine.NotifyWait + 1]atomic.Int64
}

// notificationNames holds the names of the kinds of notifications in Metrics.
var notificationNames = [engine.NotifyWait + 1]string{
	engine.NotifyAll: "all", engine.NotifyQueue: "queue", engine.NotifySlot: "slot", engine.NotifyRun: "run",
	engine.NotifyEnd:    "end",
	engine.NotifyWorker: "worker", engine.NotifySchedule: "schedule", engine.NotifyNamespace: "namespace",
	engine.NotifyTimer: "timer",
	engine.NotifyKeys:  "keys", engine.NotifyDiverged: "diverged", engine.NotifyWait: "wait",
}

func (m *meters) stepFailed(retried bool) {
	if retried {
		m.stepsRetried.Add(1)
	} else {
		m.stepsFailed.Add(1)
	}
}

func (m *meters) scheduled(fired engine.Fired, missed int, late time.Duration) {
	m.scheduleRuns.Add(int64(fired.Runs))
	m.ticksCaughtUp.Add(int64(missed))
	m.ticksSkipped.Add(fired.Skipped)
	if late >= 0 {
		m.lags.add(late)
	}
}

// Metrics holds a server's counts since it started, and what is in progress. Several servers on one
// database each count only what they did themselves.
type Metrics struct {
	RunsStarted   int64 // including those of schedules, children and failure handlers
	RunsCompleted int64
	RunsFailed    int64 // including timed out ones
	RunsStopped   int64 // cancelled or terminated
	RunsDeleted   int64 // by retention
	RunsDiverged  int64 // paused because each build in service has diverged

	StepsCompleted int64
	StepsRetried   int64 // failed attempts that are retried
	StepsFailed    int64 // failed for good
	StepTimeouts   int64 // timed out attempts

	Commits     Lengths            // from the arrival of a worker's result at the store until it was durable
	CommitSizes engine.CommitSizes // zero if the store does not implement engine.Commits
	Claims      Lengths
	RunsClaimed int64
	ClaimErrors int64

	WorkersLost int64
	LeasesLost  int64 // runs freed because their worker was lost

	ScheduleLag   Lengths // from a tick to the start of its run, without missed ticks
	ScheduleRuns  int64
	TicksCaughtUp int64 // missed ticks that fired later
	TicksSkipped  int64

	Notifications map[string]int64 // notifications of the store, by kind
	Methods       []MethodMetrics

	Sessions          int // workers connected by a session stream
	Connections       int
	Streams           int
	RunWatchers       int // calls that watch a run
	RunWaiters        int // calls that wait for the end of a run
	NamespaceWatchers int

	LastBackup    time.Time // the last scheduled backup; unset: unknown
	BackupsFailed int64     // scheduled backups that failed

	Disk engine.DiskSpace // of the database, if it is on this machine

	LogLinesDropped uint64 // because stderr was full or closed
}

// MethodMetrics says how a method of the API was used.
type MethodMetrics struct {
	Name     string // "WorkflowService/StartWorkflow"
	Calls    int64  // calls that ended
	Errors   int64  // calls that ended with an error
	InFlight int32
}

// Metrics returns the counts. It does not block.
func (r *Recorder) Metrics() Metrics {
	t := &r.meters
	m := Metrics{
		RunsStarted: r.counters[RunStarted].Load(), RunsCompleted: r.counters[RunCompleted].Load(),
		RunsFailed: r.counters[RunFailed].Load(), RunsStopped: r.counters[RunStopped].Load(),
		RunsDeleted: t.runsDeleted.Load(), RunsDiverged: t.runsDiverged.Load(),
		StepsCompleted: r.counters[StepCompleted].Load(), StepsRetried: t.stepsRetried.Load(),
		StepsFailed:  t.stepsFailed.Load(),
		StepTimeouts: t.stepTimeouts.Load(),
		Commits:      t.commits.read(), Claims: t.claims.read(), RunsClaimed: t.claimed.Load(),
		ClaimErrors: t.claimErrors.Load(),
		WorkersLost: t.workersLost.Load(), LeasesLost: t.leasesLost.Load(),
		ScheduleLag: t.lags.read(), ScheduleRuns: t.scheduleRuns.Load(),
		TicksCaughtUp: t.ticksCaughtUp.Load(), TicksSkipped: t.ticksSkipped.Load(),
		Notifications: make(map[string]int64, len(notificationNames)),
	}
	m.LastBackup, m.BackupsFailed = t.backups()
	for kind, name := range notificationNames {
		m.Notifications[name] = t.notifications[kind].Load()
	}
	return m
}

func (m *meters) backups() (last time.Time, failed int64) {
	if at := m.lastBackup.Load(); at != 0 {
		last = time.UnixMicro(at).UTC()
	}
	return last, m.backupsFailed.Load()
}
