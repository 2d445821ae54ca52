package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/engine/server"
)

// metric is an exported metric and how to get its values.
type metric struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	values func(*scrape, put) // nil: a histogram
	spread func(*server.Metrics) spread
	held   bool // read from the database; left out if that fails
}

// spread is the data of a histogram.
type spread struct {
	count   uint64
	sum     float64
	buckets map[float64]uint64 // cumulative, by upper bound
}

// put emits a value with the values of the metric's labels.
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

// count returns the values of a metric with one number.
func count(of func(*server.Metrics) int64) func(*scrape, put) {
	return func(s *scrape, put put) { put(float64(of(&s.counted))) }
}

// counted are the metrics that each server counts. Servers on one database each count their own
// part.
var counted = []metric{
	counter("runs_started_total",
		"Runs that this server started: by clients, by schedules, as children and as failure handlers.",
		count(func(m *server.Metrics) int64 { return m.RunsStarted })),
	counter("runs_ended_total",
		"Runs that this server ended, by outcome: completed, failed (or timed out), stopped (cancelled, terminated, or ended with their parent).",
		func(s *scrape, put put) {
			put(float64(s.counted.RunsCompleted), "completed")
			put(float64(s.counted.RunsFailed), "failed")
			put(float64(s.counted.RunsStopped), "stopped")
		}, "outcome"),
	counter("runs_deleted_total", "Ended runs that this server deleted when their retention expired.",
		count(func(m *server.Metrics) int64 { return m.RunsDeleted })),
	counter("runs_diverged_total", "Runs that this server paused because the code of each build in service has diverged.",
		count(func(m *server.Metrics) int64 { return m.RunsDiverged })),
	counter("steps_total",
		"Step attempts reported to this server, by outcome: completed, retried (failed, will be retried), failed (for good).",
		func(s *scrape, put put) {
			put(float64(s.counted.StepsCompleted), "completed")
			put(float64(s.counted.StepsRetried), "retried")
			put(float64(s.counted.StepsFailed), "failed")
		}, "outcome"),
	counter("step_timeouts_total",
		"Step attempts that timed out: ended by this server, or reported as timed out by a worker.",
		count(func(m *server.Metrics) int64 { return m.StepTimeouts })),
	seconds("commit_duration_seconds", "Time from the arrival of a worker's result at the store until it was durable.",
		func(m *server.Metrics) server.Lengths { return m.Commits }),
	histogram("commit_writes", "Writes that shared a commit.",
		func(m *server.Metrics) spread {
			return spread{m.CommitSizes.Commits, float64(m.CommitSizes.Writes), m.CommitSizes.AtMost}
		}),
	seconds("claim_duration_seconds", "Time that the store took to claim due runs for workers.",
		func(m *server.Metrics) server.Lengths { return m.Claims }),
	counter("runs_claimed_total", "Runs that this server assigned to workers.",
		count(func(m *server.Metrics) int64 { return m.RunsClaimed })),
	counter("claim_errors_total", "Claims that failed and will be retried.",
		count(func(m *server.Metrics) int64 { return m.ClaimErrors })),
	counter("workers_lost_total", "Workers that this server set offline because their lease expired.",
		count(func(m *server.Metrics) int64 { return m.WorkersLost })),
	counter("lease_losses_total", "Runs that this server released because their worker was lost.",
		count(func(m *server.Metrics) int64 { return m.LeasesLost })),
	seconds("schedule_lag_seconds", "Time from a schedule tick until its run was started, without missed ticks.",
		func(m *server.Metrics) server.Lengths { return m.ScheduleLag }),
	counter("schedule_runs_total", "Runs that this server started for schedule ticks.",
		count(func(m *server.Metrics) int64 { return m.ScheduleRuns })),
	counter("schedule_ticks_caught_up_total", "Missed schedule ticks that this server fired later.",
		count(func(m *server.Metrics) int64 { return m.TicksCaughtUp })),
	counter("schedule_ticks_skipped_total", "Schedule ticks that this server skipped.",
		count(func(m *server.Metrics) int64 { return m.TicksSkipped })),
	counter("notifications_total", "Change notifications received by this server, by kind.",
		func(s *scrape, put put) {
			for kind, n := range s.counted.Notifications {
				put(float64(n), kind)
			}
		}, "kind"),
	counter("api_calls_total", "API calls that have ended, by method.",
		func(s *scrape, put put) {
			for _, m := range s.counted.Methods {
				put(float64(m.Calls), m.Name)
			}
		}, "method"),
	counter("api_errors_total", "API calls that ended with an error, by method.",
		func(s *scrape, put put) {
			for _, m := range s.counted.Methods {
				put(float64(m.Errors), m.Name)
			}
		}, "method"),
	gauge("api_calls_in_flight", "API calls in progress, by method.",
		func(s *scrape, put put) {
			for _, m := range s.counted.Methods {
				put(float64(m.InFlight), m.Name)
			}
		}, "method"),
	gauge("worker_sessions", "Workers connected to this server by a stream.",
		func(s *scrape, put put) { put(float64(s.counted.Sessions)) }),
	gauge("connections", "Open API connections.",
		func(s *scrape, put put) { put(float64(s.counted.Connections)) }),
	gauge("streams", "Open API streams.",
		func(s *scrape, put put) { put(float64(s.counted.Streams)) }),
	gauge("watchers", "Calls that wait for changes, by what they wait for: run (any change), run_end, namespace.",
		func(s *scrape, put put) {
			put(float64(s.counted.RunWatchers), "run")
			put(float64(s.counted.RunWaiters), "run_end")
			put(float64(s.counted.NamespaceWatchers), "namespace")
		}, "of"),
	gauge("backup_last_success_timestamp_seconds",
		"Time of the last scheduled backup, in seconds since 1970; 0 if none is known.",
		func(s *scrape, put put) {
			if s.counted.LastBackup.IsZero() {
				put(0)
				return
			}
			put(float64(s.counted.LastBackup.Unix()))
		}),
	counter("backups_failed_total", "Scheduled backups of this server that failed.",
		count(func(m *server.Metrics) int64 { return m.BackupsFailed })),
	gauge("disk_free_bytes",
		"Free bytes on the disk of an SQLite database; new runs are refused below 268435456 (256 MiB).",
		func(s *scrape, put put) {
			if s.counted.Disk.Known {
				put(float64(s.counted.Disk.Free))
			}
		}),
	counter("log_lines_dropped_total", "Log lines that this server dropped, because its stderr was full or closed.",
		func(s *scrape, put put) { put(float64(s.counted.LogLinesDropped)) }),
	gauge("healthy", "1 if the database can make writes durable, otherwise 0.",
		func(s *scrape, put put) { put(oneIf(s.healthy)) }),
	gauge("database_read",
		"1 if the database could be read for this scrape, otherwise 0; then its metrics are missing.",
		func(s *scrape, put put) { put(oneIf(s.read)) }),
}

// stored are the metrics read from the database. All servers on it report the same.
var stored = []metric{
	held("info", "1, with the server's version and database as labels.",
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
		"How long the oldest waiting run has been due; 0 if none waits.",
		func(s *scrape, put put) { put(s.age(s.reading.Stats.OldestDue)) }),
	held("workers_online", "Online workers.",
		func(s *scrape, put put) { put(float64(s.reading.Stats.OnlineWorkers)) }),
	held("schedules_enabled", "Enabled schedules.",
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
		"How long the oldest waiting run of a queue has been due; 0 if none waits.",
		func(s *scrape, put put) {
			for _, q := range s.queues {
				put(s.age(q.OldestDue), q.Namespace, q.Queue)
			}
		}, "namespace", "queue"),
	held("queue_workers_online", "Online workers of a queue.",
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
