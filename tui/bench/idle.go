package bench

import (
	"context"
	"fmt"
	"time"
)

const (
	idleFor       = 30 * time.Second // three heartbeats of every worker
	idleLeast     = time.Second
	idleSettles   = 2 * time.Second // at most, after the last worker has joined
	idleWorkers   = 1000            // with at least this many, measure for the full time
	firstTasks    = 100
	filesOfOthers = 200 // open files of a process in addition to the connections
)

// measureIdle is W9: connected workers without work, what they cost the server, and how soon one
// gets the first task.
func measureIdle(ctx context.Context, r *fixture, p plan) (sample, error) {
	each := (p.runs + len(r.servers) - 1) / len(r.servers)
	if limit, need := openFiles(), uint64(each+filesOfOthers); limit > 0 && limit < need {
		return sample{},
			fmt.Errorf(
				"%d workers on a server need %d open files there and in the worker process, but this user may have %d: raise the limit (ulimit -Hn %[2]d) or use a smaller --scale",
				each, need, limit)
	}
	before, _ := r.serverMemory()
	began := time.Now()
	r.spec.count = each
	if err := r.startWorkers(ctx); err != nil {
		return sample{}, err
	}
	joined := time.Since(began)
	if err := until(ctx, time.Now().Add(min(idleSettles, idleLength(p)))); err != nil {
		return sample{}, err
	}
	workers := each * len(r.servers)
	idle, err := idleStretch(ctx, r, idleLength(p), workers)
	if err != nil {
		return sample{}, err
	}
	m, err := r.meter(ctx)
	if err != nil {
		return sample{}, err
	}
	defer m.halt()
	var times []time.Duration
	for i := range min(firstTasks, workers) {
		from := time.Now()
		if err := perform(ctx, r, i, stepsType, job{i, 1}, job{i, 1}.total(), nil); err != nil {
			return sample{}, err
		}
		times = append(times, time.Since(from))
	}
	c, err := m.end("first tasks", "run", len(times))
	s := sample{costs: []cost{c}, runs: len(times), steps: len(times), elapsed: time.Since(began)}
	s.figures = append(s.figures, figure{"joined", "workers/s", rate(float64(workers), joined)})
	if after, known := r.serverMemory(); known {
		s.figures = append(s.figures, figure{"server memory", "MiB", mebibytes(after)},
			figure{"server memory for each worker", "KiB", float64(after-before) / float64(workers) / (1 << 10)})
	}
	s.figures = append(s.figures, idle...)
	s.figures = append(s.figures, figure{"first task", "ms", milliseconds(times[0])})
	s.figures = append(s.figures, percentiles("first tasks", times)...)
	return s, err
}

// idleLength returns how long to measure idle workers: less for fewer workers.
func idleLength(p plan) time.Duration {
	if p.duration > 0 {
		return p.duration
	}
	return max(idleLeast, min(idleFor, idleFor*time.Duration(p.runs)/idleWorkers))
}

// idleStretch waits without any due work and measures what servers do meanwhile. Only heartbeats
// should write.
func idleStretch(ctx context.Context, r *fixture, length time.Duration, workers int) ([]figure, error) {
	counted, err := r.counted(ctx)
	if err != nil {
		return nil, err
	}
	before, from := r.read(), time.Now()
	if err := until(ctx, from.Add(length)); err != nil {
		return nil, err
	}
	after, took := r.read(), time.Since(from)
	var figures []figure
	share := func(name string, used time.Duration) {
		if after.since(before, name) {
			figures = append(figures, figure{name + " processor while idle", "% of a core",
				100 * used.Seconds() / took.Seconds()})
		}
	}
	share(serverTime, after.server-before.server)
	share(workerTime, after.worker-before.worker)
	share(databaseTime, after.database-before.database)
	if r.servers[0].metrics == "" {
		return figures, nil
	}
	later, err := r.counted(ctx)
	did := later.minus(counted)
	return append(figures,
		figure{"claims while idle", "/s", rate(did.claims, took)},
		figure{"writes while idle", "/s", rate(did.writes, took)},
		figure{"of them due as heartbeats", "/s", rate(float64(workers), r.heartbeat)},
		figure{"commits while idle", "/s", rate(did.commits, took)},
	), err
}
