package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/engine/server"
)

// metric is one that is told to collectors, with how its values are found.
type metric struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	values func(*scrape, put) // nil: it is a histogram
	spread func(*server.Metrics) spread
	held   bool // of what the database holds, and left out where that could not be read
}

// spread is what a histogram tells.
type spread struct {
	count   uint64
	sum     float64
	buckets map[float64]uint64 // cumulative, by their upper bounds
}

// put tells one value, with those of the metric's labels.
type put func(value float64, labels ...string)

func counter(name, help string, of func(*scrape, put), labels ...string) metric {
	return metric{desc: describe(name, help, labels), kind: prometheus.CounterValue, values: of}
}

func gauge(name, help string, of func(*scrape, put), labels ...string) metric {
	return metric{desc: describe(name, help, labels), kind: prometheus.GaugeValue, values: of}
}

func held(name, help string, of func(*scrape, put), labels ...string) metric {
	return metric{desc: describe(name, help, labels), kind: prometheus.GaugeValue, values: of, held: true}
}

func seconds(name, help string, of func(*server.Metrics) server.Lengths) metric {
	return histogram(name, help, func(m *server.Metrics) spread {
		l := of(m)
		return spread{l.Count, l.Sum.Seconds(), l.Buckets}
	})
}

func histogram(name, help string, of func(*server.Metrics) spread) metric {
	return metric{desc: describe(name, help, nil), spread: of}
}

func describe(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc("kagzi_"+name, help, labels, nil)
}

// count is a metric of one number.
func count(of func(*server.Metrics) int64) func(*scrape, put) {
	return func(s *scrape, put put) { put(float64(of(&s.counted))) }
}

// counted is what a server counts. Of several on one database each tells its own part.
var counted = []metric{
	counter("runs_started_total",
		"Runs that this server started: for whoever asked, for schedules, for parents, and as handlers of failures.",
		count(func(m *server.Metrics) int64 { return m.RunsStarted })),
	counter("runs_ended_total",
		"Runs that this server ended, by outcome: completed, failed (or timed out), stopped (cancelled, terminated, or ended with their parent).",
		func(s *scrape, put put) {
			put(float64(s.counted.RunsCompleted), "completed")
			put(float64(s.counted.RunsFailed), "failed")
			put(float64(s.counted.RunsStopped), "stopped")
		}, "outcome"),
	counter("runs_deleted_total", "Ended runs that this server deleted for their age.",
		count(func(m *server.Metrics) int64 { return m.RunsDeleted })),
	counter("steps_total",
		"Attempts of steps whose end workers reported to this server, by outcome: completed, retried (failed, to be tried again), failed (for good).",
		func(s *scrape, put put) {
			put(float64(s.counted.StepsCompleted), "completed")
			put(float64(s.counted.StepsRetried), "retried")
			put(float64(s.counted.StepsFailed), "failed")
		}, "outcome"),
	counter("step_timeouts_total",
		"Attempts of steps that ran for too long: that this server ended, or whose worker reported a failure of that kind to it.",
		count(func(m *server.Metrics) int64 { return m.StepTimeouts })),
	seconds("commit_duration_seconds", "Time from the arrival of a worker's result at the store until it was durable.",
		func(m *server.Metrics) server.Lengths { return m.Commits }),
	histogram("commit_writes", "Writes that shared a commit.",
		func(m *server.Metrics) spread {
			return spread{m.CommitSizes.Commits, float64(m.CommitSizes.Writes), m.CommitSizes.AtMost}
		}),
	seconds("claim_duration_seconds", "Time that the store took to hand due runs to workers.",
		func(m *server.Metrics) server.Lengths { return m.Claims }),
	counter("runs_claimed_total", "Runs that this server handed to workers.",
		count(func(m *server.Metrics) int64 { return m.RunsClaimed })),
	counter("claim_errors_total", "Claims that failed, to be tried again.",
		count(func(m *server.Metrics) int64 { return m.ClaimErrors })),
	counter("workers_lost_total", "Workers that this server took offline because they were not heard from.",
		count(func(m *server.Metrics) int64 { return m.WorkersLost })),
	counter("lease_losses_total", "Runs that this server freed because their worker was lost.",
		count(func(m *server.Metrics) int64 { return m.LeasesLost })),
	seconds("schedule_lag_seconds", "Time from a tick of a schedule until its run was started, missed ticks left out.",
		func(m *server.Metrics) server.Lengths { return m.ScheduleLag }),
	counter("schedule_runs_total", "Runs that this server started for ticks of schedules.",
		count(func(m *server.Metrics) int64 { return m.ScheduleRuns })),
	counter("schedule_ticks_caught_up_total", "Missed ticks of schedules that this server fired later.",
		count(func(m *server.Metrics) int64 { return m.TicksCaughtUp })),
	counter("schedule_ticks_skipped_total", "Ticks of schedules that this server skipped.",
		count(func(m *server.Metrics) int64 { return m.TicksSkipped })),
	counter("notifications_total", "Hints that something may have changed which reached this server, by kind.",
		func(s *scrape, put put) {
			for kind, n := range s.counted.Notifications {
				put(float64(n), kind)
			}
		}, "kind"),
	counter("api_calls_total", "Calls of the API that have ended, by method.",
		func(s *scrape, put put) {
			for _, m := range s.counted.Methods {
				put(float64(m.Calls), m.Name)
			}
		}, "method"),
	counter("api_errors_total", "Calls of the API that ended with an error, by method.",
		func(s *scrape, put put) {
			for _, m := range s.counted.Methods {
				put(float64(m.Errors), m.Name)
			}
		}, "method"),
	gauge("api_calls_in_flight", "Calls of the API that are under way, by method.",
		func(s *scrape, put put) {
			for _, m := range s.counted.Methods {
				put(float64(m.InFlight), m.Name)
			}
		}, "method"),
	gauge("worker_sessions", "Workers that are connected to this server by a stream.",
		func(s *scrape, put put) { put(float64(s.counted.Sessions)) }),
	gauge("connections", "Connections to the API that are open.",
		func(s *scrape, put put) { put(float64(s.counted.Connections)) }),
	gauge("streams", "Streams of the API that are open.",
		func(s *scrape, put put) { put(float64(s.counted.Streams)) }),
	gauge("watchers", "Calls that wait for news, by what they wait for: run (any change), run_end, namespace.",
		func(s *scrape, put put) {
			put(float64(s.counted.RunWatchers), "run")
			put(float64(s.counted.RunWaiters), "run_end")
			put(float64(s.counted.NamespaceWatchers), "namespace")
		}, "of"),
	gauge("backup_last_success_timestamp_seconds",
		"When the last scheduled backup was made, in seconds since 1970; 0 while none is known.",
		func(s *scrape, put put) {
			if s.counted.LastBackup.IsZero() {
				put(0)
				return
			}
			put(float64(s.counted.LastBackup.Unix()))
		}),
	counter("backups_failed_total", "Scheduled backups of this server that failed.",
		count(func(m *server.Metrics) int64 { return m.BackupsFailed })),
	gauge("healthy", "1 while the database can make writes durable, otherwise 0.",
		func(s *scrape, put put) { put(oneIf(s.healthy)) }),
	gauge("database_read",
		"1 if what the database holds could be read for this answer, otherwise 0; then its metrics are missing.",
		func(s *scrape, put put) { put(oneIf(s.read)) }),
}

// stored is what the database holds, which every server on it tells alike.
var stored = []metric{
	held("info", "1, with what this server runs on.",
		func(s *scrape, put put) {
			d := &s.reading.Description
			put(1, output.Plain(s.version), output.Plain(d.Backend), output.Plain(d.Version),
				output.Plain(d.Notifications))
		}, "version", "backend", "backend_version", "notifications"),
	held("runs", "Runs in the database, by status.",
		func(s *scrape, put put) {
			for _, status := range statuses {
				put(float64(s.reading.Stats.ByStatus[status]), status.String())
			}
		}, "status"),
	held("oldest_due_run_age_seconds",
		"How long the run that has waited longest for a worker has been due; 0 if none waits.",
		func(s *scrape, put put) { put(s.age(s.reading.Stats.OldestDue)) }),
	held("workers_online", "Workers that are online.",
		func(s *scrape, put put) { put(float64(s.reading.Stats.OnlineWorkers)) }),
	held("schedules_enabled", "Schedules that are enabled.",
		func(s *scrape, put put) { put(float64(s.reading.Stats.EnabledSchedules)) }),
	held("database_size_bytes", "Size of the database.",
		func(s *scrape, put put) { put(float64(s.reading.Description.Bytes)) }),
	held("queue_runs", "Open runs of a queue, by status.",
		func(s *scrape, put put) {
			for _, q := range s.queues {
				put(float64(q.Pending), q.Namespace, q.Queue, engine.RunPending.String())
				put(float64(q.Running), q.Namespace, q.Queue, engine.RunRunning.String())
				put(float64(q.Sleeping), q.Namespace, q.Queue, engine.RunSleeping.String())
			}
		}, "namespace", "queue", "status"),
	held("queue_oldest_due_run_age_seconds",
		"How long the run that has waited longest in a queue has been due; 0 if none waits.",
		func(s *scrape, put put) {
			for _, q := range s.queues {
				put(s.age(q.OldestDue), q.Namespace, q.Queue)
			}
		}, "namespace", "queue"),
	held("queue_workers_online", "Workers of a queue that are online.",
		func(s *scrape, put put) {
			for _, q := range s.queues {
				put(float64(q.OnlineWorkers), q.Namespace, q.Queue)
			}
		}, "namespace", "queue"),
	held("queue_unserved_runs", "Due runs of a queue that no online worker of it serves.",
		func(s *scrape, put put) {
			for _, q := range s.queues {
				n := int64(0)
				for _, runs := range q.Unserved {
					n += runs
				}
				put(float64(n), q.Namespace, q.Queue)
			}
		}, "namespace", "queue"),
}

var statuses = []engine.RunStatus{
	engine.RunPending, engine.RunRunning, engine.RunSleeping, engine.RunCompleted, engine.RunFailed,
	engine.RunCancelled, engine.RunTimedOut,
	engine.RunTerminated,
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
