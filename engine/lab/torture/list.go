//go:build linux

package main

import (
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
)

// shortScale and shortDuration are the maximum for --short.
const (
	shortScale    = 0.2
	shortDuration = 6 * time.Second
)

// shortAtOnce and shortAgain are the defaults of --short. A scenario mostly waits: three of them
// use two cores.
const (
	shortAtOnce = 3
	shortAgain  = 1
)

// shortSelection is what --short runs, and on which databases.
var shortSelection = []string{
	"F-01 postgres", "F-02 postgres", "F-03 sqlite", "F-04 sqlite", "F-06 sqlite", "F-14 postgres", "F-29 postgres",
	"F-40 sqlite", "F-40-control sqlite", "F-44 sqlite", "F-53 sqlite",
	"Q-01 sqlite", "Q-01 postgres",
}

// scenarios are the rows of the matrix.
var scenarios = []scenario{
	{id: "F-00", name: "no fault at all"},
	{id: "F-01", name: "workers are killed", pass: "runs of lost workers are handed out again within lease + suspect period + 1 s", least: 12 * time.Second,
		inject: killWorkers, figures: []func(*torture) figure{takeover}, need: need{faults: 3, takeovers: 3}},
	{id: "F-02", name: "servers are killed", on: []string{dbPostgres}, pass: "starts acknowledged within 3 s (p99)",
		inject: killServers, figures: []func(*torture) figure{clientErrors, restart}, need: need{faults: 2}},
	{id: "F-02-lease", name: "servers are killed, and are back within half a lease", on: []string{dbPostgres},
		pass:   "no lease is lost",
		inject: killServers, shape: calmLeases(nil),
		figures: []func(*torture) figure{keptLeases, clientErrors, restart}, need: need{faults: 2}},
	{id: "F-03", name: "the server is killed", on: []string{dbSQLite},
		pass:   "serves again within 2 s, the database is sound each time",
		inject: killServers, figures: []func(*torture) figure{clientErrors, restart},
		need: need{faults: 2, repeated: 1}},
	{id: "F-04", name: "servers die at failpoints", pass: "at every one of them", inject: dieAtFailpoints,
		need: need{faults: 2}},
	{id: "F-05", name: "Postgres is killed", on: []string{dbPostgres}, pass: "recovery ≥ 95 %", inject: killPostgres,
		figures: []func(*torture) figure{backEachTime(5 * time.Second)}, need: need{faults: 1}},
	{id: "F-06", name: "everything is killed at once", pass: "recovery ≥ 95 %", inject: killEverything,
		need: need{faults: 4}},
	{id: "F-07", name: "servers and workers are stopped gracefully",
		pass: "no lease lost, no call of a client fails, exit within 30 s", inject: restartAll,
		shape: calmLeases(nil), figures: []func(*torture) figure{
			hard(noLeaseLost), hard(endedSoon), hard(clientsAnswered), clientErrors}, need: need{faults: 2}},
	{id: "F-08", name: "runs that end their worker's process",
		pass: "they fail after 10 lost workers, each with its handler once; other runs continue", rate: 0.2,
		mix:    workload.Mix{Naps: 0.1, Flaky: 0.1, Longest: 100, Nap: 1000, Poison: 12},
		settle: 10 * time.Minute, figures: []func(*torture) figure{poisoned}},
	{id: "F-10", name: "workers freeze and come back", pass: "no late write counts", inject: freezeWorkers,
		least: 16 * time.Second,
		// Steps are long, so that the run is still at work under the next lease when its last
		// holder comes back. There are spare slots, or the figure would measure how long runs of
		// the frozen worker wait for slots.
		mix: workload.Mix{Naps: 0.1, Flaky: 0.1, Fanned: 0.1, Doomed: 0.02, Cancelled: 0.05, Longest: 2500,
			Nap: 1000},
		rate:    0.5,
		shape:   func(s *shape) { s.Slots = 32 },
		figures: []func(*torture) figure{takeover, lateWrites, begunUnconfirmed},
		need:    need{faults: 1, takeovers: 3, late: 3}},
	{id: "F-11", name: "servers freeze and come back", inject: freezeServers,
		figures: []func(*torture) figure{clientErrors}, need: need{faults: 1}},
	{id: "F-12", name: "Postgres freezes and comes back", on: []string{dbPostgres},
		pass:   "at most 5 % of the leases are lost",
		inject: freezePostgres, figures: []func(*torture) figure{backEachTime(5 * time.Second), fewLeasesLost},
		need: need{faults: 1}},
	{id: "F-13", name: "the network between workers and server goes silent",
		pass:  "runs are handed out again within lease + suspect period + 1 s; each silence of more than 40 s is noticed within 45 s",
		least: 24 * time.Second, inject: silenceWorkers, figures: []func(*torture) figure{takeover, deadNoticed},
		need: need{faults: 1, takeovers: 1}},
	{id: "F-14", name: "answers are lost, requests arrive",
		inject:  storms("deafness", fixture.Conditions{Deaf: true}, 1, 5, serverDoor),
		figures: []func(*torture) figure{clientErrors}, need: need{faults: 2}},
	{id: "F-15", name: "old writes are sent again, and forged ones", pass: "no replay changes anything",
		inject:  replayWrites,
		figures: []func(*torture) figure{forged}, need: need{faults: 10}},
	{id: "F-16", name: "the network is slow and sometimes breaks", pass: "no lease is lost",
		inject: slower("a slow network", fixture.Conditions{
			Delay: 50 * time.Millisecond, Jitter: 50 * time.Millisecond, Breaking: 0.002},
			fixture.Conditions{Delay: 200 * time.Millisecond, Jitter: 100 * time.Millisecond, Breaking: 0.02},
			fixture.Conditions{Delay: time.Second, Jitter: 200 * time.Millisecond, Breaking: 0.01}),
		shape: calmLeases(nil), figures: []func(*torture) figure{hard(noLeaseLost)}, need: need{faults: 1}},
	{id: "F-17", name: "the network between servers and Postgres goes silent", on: []string{dbPostgres},
		inject:  storms("silence", fixture.Conditions{Silent: true}, 10, 20, databaseDoor),
		figures: []func(*torture) figure{clientErrors}, need: need{faults: 1}},
	{id: "F-17-listen", name: "the connection on which a server listens goes silent", on: []string{dbPostgres},
		pass:   "noticed within 15 s, runs begin within 5 s meanwhile",
		inject: silenceListener, least: 20 * time.Second,
		figures: []func(*torture) figure{listensAgain, codeSoon(5 * time.Second)}, need: need{faults: 1}},
	{id: "F-18", name: "links of 64 kbit/s", pass: "no lease is lost",
		inject: constantly("narrow links", fixture.Conditions{Rate: 8 << 10}),
		shape:  calmLeases(nil), figures: []func(*torture) figure{hard(noLeaseLost)}, need: need{faults: 1}},
	{id: "F-19", name: "workers get a twentieth of a core each, and spin",
		pass: "no lease is lost, with heartbeats that come late", inject: starve,
		// Lasts three times the silence that loses a worker. Few runs of long steps: what is
		// started must be done within what is left.
		mix: workload.Mix{Naps: 0.1, Flaky: 0.1, Fanned: 0.1, Longest: 2500, Nap: 1000}, rate: 0.3,
		least:   48 * time.Second,
		shape:   calmLeases(func(s *shape) { s.Spin, s.Slots = spinners, 32 }),
		figures: []func(*torture) figure{hard(noLeaseLost), starvedFor}, need: need{faults: 4}},
	{id: "F-20", name: "Postgres is restarted", on: []string{dbPostgres}, pass: "recovery ≥ 95 %",
		inject:  restartPostgres,
		figures: []func(*torture) figure{backEachTime(5 * time.Second)}, need: need{faults: 1}},
	{id: "F-21", name: "Postgres ends our connections", on: []string{dbPostgres}, pass: "recovery ≥ 95 %",
		inject:  terminateBackends,
		figures: []func(*torture) figure{clientErrors, during}, need: need{faults: 20}},
	{id: "F-22", name: "Postgres has no connection left", on: []string{dbPostgres},
		pass:   "running servers continue, a starting one waits",
		inject: takeConnections, figures: []func(*torture) figure{during}, need: need{faults: 1}},
	{id: "F-23", name: "a long transaction keeps all dead rows", on: []string{dbPostgres},
		pass:   "throughput ≥ 90 % meanwhile",
		inject: pinRows, figures: []func(*torture) figure{during}, need: need{faults: 1}},
	{id: "F-24", name: "analysts read everything repeatedly", on: []string{dbPostgres},
		pass:   "throughput ≥ 95 % meanwhile",
		inject: readEverything, figures: []func(*torture) figure{goesOn(0.95)}, need: need{faults: 1}},
	{id: "F-25", name: "a table is locked for 10 s", on: []string{dbPostgres}, pass: "recovers within 5 s",
		inject:  lockTables,
		figures: []func(*torture) figure{backEachTime(5 * time.Second)}, need: need{faults: 1}},
	{id: "F-26", name: "branches, failures, signals and cancellations collide",
		pass:  "no caller gets a deadlock or lock timeout",
		mix:   workload.Mix{Flaky: 0.3, Fanned: 0.5, Naps: 0.2, Cancelled: 0.6, Twice: 0.3, Longest: 30, Nap: 200},
		shape: func(s *shape) { s.Cluster = []string{"deadlock_timeout=10ms"} }, inject: heatRows,
		figures: []func(*torture) figure{noRefusal}, need: need{faults: 1}, proof: contended},
	{id: "F-27", name: "the disk of Postgres is full", on: []string{dbPostgres},
		pass: "nothing is acknowledged meanwhile, and the servers recover",
		disk: inMemory(400), shape: func(s *shape) { s.Cluster = []string{"max_wal_size=64MB"} }, inject: fillPostgres,
		figures: []func(*torture) figure{quietWithoutRoom, toldOfNoRoom, wellWithRoom}, need: need{faults: 1}},
	{id: "F-28", name: "PgBouncer in transaction mode", on: []string{dbPostgres},
		pass: "it polls every second, and says so",
		shape: func(s *shape) {
			s.Bouncer = true
		}, prepare: askMode, figures: []func(*torture) figure{polls, codeSoon(1500 * time.Millisecond)}},
	{id: "F-29", name: "the answers of commits are cut off", on: []string{dbPostgres},
		pass:   "no double effect, no lost acknowledgement",
		inject: cutCommits, figures: []func(*torture) figure{cutsByKind}, need: need{faults: 10}, proof: eachKindCut},
	{id: "F-30", name: "a synchronous standby takes over", on: []string{dbPostgres},
		pass:   "no acknowledged write is lost",
		inject: promote(false), figures: []func(*torture) figure{backEachTime(10 * time.Second)},
		need: need{faults: 1}},
	{id: "F-31", name: "a standby that lags behind takes over", on: []string{dbPostgres},
		pass:   "no token counts twice, no run is stuck, no schedule either",
		inject: promote(true), lossy: true, figures: []func(*torture) figure{
			lostInTheLag, backEachTime(10 * time.Second)}, need: need{faults: 1}, proof: someLost},
	{id: "F-40", name: "the power is cut", on: []string{dbSQLite}, pass: "no acknowledged write is lost",
		disk: onLoop(512), inject: powerCuts,
		figures: []func(*torture) figure{restart}, need: need{faults: 2}},
	// An acknowledgement that does not wait for its sync is lost at nearly every cut here;
	// elsewhere only with luck.
	{id: "F-40-slow", name: "the power is cut while syncs take 20 ms", on: []string{dbSQLite},
		pass: "no acknowledged write is lost", disk: onLoop(512),
		inject: powerCuts, shape: slowSyncs(20 * time.Millisecond), need: need{faults: 2}},
	{id: "F-40-control", name: "the power is cut while commits are not synced", on: []string{dbSQLite},
		pass: "acknowledged writes are lost: the cut has an effect",
		disk: onLoop(512), inject: powerCuts, shape: func(s *shape) {
			s.ServerEnv = []string{"KAGZI_UNSAFE_SYNCHRONOUS=normal"}
		},
		settle: 20 * time.Second, control: true, need: need{faults: 2}},
	{id: "F-43", name: "the disk is full", on: []string{dbSQLite},
		pass: "open runs may end, and the server recovers without a restart",
		// Steps are long, so that some are unreported when the disk fills.
		mix:  workload.Mix{Naps: 0.1, Flaky: 0.1, Fanned: 0.1, Doomed: 0.02, Cancelled: 0.05, Longest: 1000, Nap: 1000},
		disk: inMemory(500), inject: fillDisk, figures: []func(*torture) figure{
			littleRoom, refusedAtOnce, backWithRoom}, need: need{faults: 2}},
	{id: "F-44", name: "syncs and writes fail", on: []string{dbSQLite},
		pass: "the server stops with exit code 70, nothing is acknowledged after",
		disk: onLoop(512), least: 12 * time.Second, inject: failing("EIO", "fsync,fdatasync", "pwrite64"),
		figures: []func(*torture) figure{nothingAfter, hard(gone(time.Second))}, need: need{faults: 2}},
	{id: "F-45", name: "syncs take 100 ms", on: []string{dbSQLite}, pass: "no lease lost",
		shape:  slowSyncs(100 * time.Millisecond),
		inject: justSlow, figures: []func(*torture) figure{noLeaseLost, clientErrors}, need: need{faults: 1}},
	// The load must be small enough to finish: each answer takes a second or two, and a run has
	// five.
	{id: "F-45-second", name: "syncs take 1 s", on: []string{dbSQLite}, pass: "no lease lost",
		least: 40 * time.Second, rate: 0.5,
		shape:  calmLeases(func(s *shape) { s.Slots = 32 }),
		inject: slowMeanwhile(time.Second), figures: []func(*torture) figure{hard(noLeaseLost), clientErrors},
		need: need{faults: 1}},
	{id: "F-46", name: "the disk turns read-only", on: []string{dbSQLite},
		pass: "the server stops with exit code 70, nothing is acknowledged after",
		disk: onLoop(512), inject: failing("EROFS", "fsync,fdatasync,pwrite64,ftruncate"),
		figures: []func(*torture) figure{nothingAfter, hard(gone(5 * time.Second))}, need: need{faults: 2}},
	{id: "F-50", name: "a reader holds SQLite's log", on: []string{dbSQLite},
		pass:   "the log is below 64 MiB again within a minute",
		inject: pinLog, figures: []func(*torture) figure{during, logShrinks}, need: need{faults: 1}},
	{id: "F-47", name: "a second server on the same file", on: []string{dbSQLite}, alone: shareFile},
	{id: "F-48", name: "the file is damaged", on: []string{dbSQLite}, pass: "no wrong result in 500 copies",
		alone: corrupt},
	{id: "F-49", name: "the file is moved away from under a server", on: []string{dbSQLite}, alone: loseFile},
	{id: "F-53", name: "permissions of files", on: []string{dbSQLite}, alone: permissions},
	{id: "F-60", name: "the server's clock is set", on: []string{dbSQLite},
		pass: "no lease is lost, no tick fires twice, no sleep ends early", inject: setServerClock,
		// Each period is longer than the silence that loses a worker: a lease, a heartbeat and a
		// second.
		shape: func(s *shape) {
			s.Clocks, s.Lease, s.Heartbeat = true, 4*time.Second, time.Second
		}, least: 72 * time.Second, catchUp: caughtUp,
		readings: 2 * time.Second, figures: []func(*torture) figure{hard(noLeaseLost)}, need: need{faults: 9}},
	{id: "F-61", name: "the clock of Postgres is set", on: []string{dbPostgres},
		pass: "no lease is lost, no tick fires twice", inject: setDatabaseClock,
		// A server reads the time once a minute, and must have read each.
		shape: calmLeases(func(s *shape) { s.DatabaseClock = true }), catchUp: caughtUp, least: 210 * time.Second,
		readings: 75 * time.Second,
		figures:  []func(*torture) figure{hard(noLeaseLost)}, need: need{faults: 3}},
	{id: "F-62", name: "the servers' clocks differ", on: []string{dbPostgres},
		pass:   "the clock of Postgres counts: no lease is lost, no sleep ends early",
		inject: skewServerClocks, shape: calmLeases(func(s *shape) { s.Servers, s.Clocks = 3, true }),
		figures: []func(*torture) figure{hard(noLeaseLost)}, need: need{faults: 6}},
	{id: "F-63", name: "many servers fire many schedules", on: []string{dbPostgres},
		pass: "each tick once, while servers are killed", rate: 0.2,
		shape: func(s *shape) {
			s.Servers, s.Slots = 8, 32
		}, prepare: manySchedules, inject: killServers, need: need{faults: 2}},
	{id: "F-64", name: "an hour of downtime", pass: "100 ticks are caught up, the others are counted",
		catchUp: caughtUp,
		inject:  sleepThrough, figures: []func(*torture) figure{skippedOnce}, need: need{faults: 1}},
	{id: "F-66", name: "schedules that cannot be read", pass: "they are reported as broken, and no other is affected",
		inject: badSchedules, need: need{faults: 1}},
	{id: "F-67", name: "schedules are paused, resumed, changed and deleted as they fire",
		pass: "nothing fires in a pause", inject: raceSchedules,
		figures: []func(*torture) figure{quietWhilePaused}, need: need{faults: 50}},
	{id: "F-68", name: "sleeping runs while servers are killed", pass: "none wakes early",
		mix:    workload.Mix{Naps: 1, Longest: 20, Nap: 3000},
		inject: killServers, need: need{faults: 2}},
	{id: "H-01", name: "upgrades of the database are killed",
		pass: "another start continues, and the database is sound each time", inject: killUpgrades,
		shape: func(s *shape) { s.Previous = olderCommit }, figures: []func(*torture) figure{upgradesCut},
		// It lasts for minutes. Workers are back within 12 s of such a long outage, and half of the
		// time after it is measured.
		after: 30 * time.Second, need: need{faults: upgradesKilled / 2, cutShort: leastCutShort}},
	{id: "H-02", name: "servers are upgraded in order", on: []string{dbPostgres},
		pass:   "two versions share the database",
		inject: rollingUpgrade(false), shape: func(s *shape) {
			s.Previous = previousCommit
		}, figures: []func(*torture) figure{clientErrors}, need: need{faults: 2}},
	{id: "H-02-reverse", name: "servers are upgraded in reverse order", on: []string{dbPostgres},
		pass:   "two versions share the database",
		inject: rollingUpgrade(true), shape: func(s *shape) {
			s.Previous = previousCommit
		}, figures: []func(*torture) figure{clientErrors}, need: need{faults: 2}},
	{id: "H-02-schema", name: "servers are upgraded to a newer schema", on: []string{dbPostgres},
		pass:   "the older ones work on it, and none can be restarted",
		inject: rollingUpgrade(false), shape: func(s *shape) {
			s.Previous = olderCommit
		}, figures: []func(*torture) figure{clientErrors}, need: need{faults: 2}},
	{id: "H-05", name: "the servers start before Postgres", on: []string{dbPostgres},
		pass: "they serve within 10 s of its first answer", least: 45 * time.Second,
		inject: bootFirst, figures: []func(*torture) figure{serveSoon}, need: need{faults: 2}},
	{id: "L-01", name: "idle workers", alone: idleWorkers,
		pass: "10,000 of them within 600 MiB and 10 % of a core, and back within a minute"},
	{id: "L-02", name: "hundreds of thousands of ended, due and sleeping runs", alone: fullStore,
		pass: "a run is handed out within 20 ms (p99)"},
	{id: "L-03", name: "a burst of starts", alone: burst, pass: "no error, and the burst drains"},
	{id: "L-06", name: "runs without a worker are due first", alone: mismatch,
		pass: "a run is handed out within 50 ms (p99)"},
	// Eight runs at a time use the whole machine. The storm asks for more, whatever that is.
	{id: "L-07", name: "a storm of payloads of almost 2 MiB",
		pass: "no lease lost, the server within 512 MiB", rate: 0.2,
		// It lasts much longer than a lease, which is as short as a worker on a busy machine can
		// keep.
		mix: workload.Mix{Longest: 20, Filler: largePayload, AtOnce: 8}, shape: calmLeases(nil),
		least:  48 * time.Second,
		inject: flood, settle: 5 * time.Minute, figures: []func(*torture) figure{
			hard(noLeaseLost), hard(memory(512)), flooded}, need: need{faults: 1}},
	{id: "L-09", name: "three times the load that the workers can take",
		pass: "starts acknowledged within 3 s, no lease lost", rate: 6,
		shape: func(s *shape) {
			s.Slots = 10
		}, scaled: true, settle: 5 * time.Minute, inject: overload,
		figures: []func(*torture) figure{noLeaseLost, clientErrors}, need: need{faults: 1}},
	{id: "Q-01", name: "AGQ workers, while connections break, answers are lost and servers are killed",
		alone: agqWorkers, pass: "each report counts once, late ones are refused, no job waits for a lease"},
}

// calmLeases sets leases that a busy machine does not lose, so that only the fault loses one.
func calmLeases(change func(s *shape)) func(s *shape) {
	return func(s *shape) {
		s.Lease, s.Heartbeat = 12*time.Second, 3*time.Second
		if change != nil {
			change(s)
		}
	}
}
