//go:build linux

package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
)

// worker returns a random worker.
func (t *torture) worker() *worker { return t.system.workers[t.system.random.n(len(t.system.workers))] }

// server returns a random server.
func (t *torture) server() *server { return t.system.servers[t.system.random.n(len(t.system.servers))] }

// killWorkers is F-01.
func killWorkers(ctx context.Context, t *torture) error {
	return t.every(ctx, t.brief(1), t.brief(4), func() error {
		w := t.worker()
		t.system.fault(faultOnWorker+w.alias(), func() bool { return w.current().Kill() })
		t.pause(ctx, 0, 2*time.Second)
		return w.start()
	})
}

// alias returns the name of the worker's current life in the history.
func (w *worker) alias() string { return w.name + "." + strconv.Itoa(w.number()) }

// number returns the number of the worker's current life, from 1.
func (w *worker) number() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lives
}

// brief returns this many seconds, or less if the scenario is shorter than in the matrix.
func (t *torture) brief(seconds float64) time.Duration {
	share := min(1, float64(t.options.duration)/float64(time.Minute))
	return max(200*time.Millisecond, time.Duration(seconds*share*float64(time.Second)))
}

// killServers is F-02 and F-03.
func killServers(ctx context.Context, t *torture) error {
	return t.every(ctx, t.brief(5), t.brief(15), func() error {
		s := t.server()
		killed := time.Now()
		t.system.fault("kill "+s.name, s.kill)
		t.pause(ctx, 0, time.Second)
		if t.options.db == dbSQLite {
			if err := t.soundNow(ctx); err != nil {
				return err
			}
		}
		err := s.start(context.WithoutCancel(ctx))
		t.outage = max(t.outage, time.Since(killed))
		return err
	})
}

// soundNow checks the database of a server that was just killed.
func (t *torture) soundNow(ctx context.Context) error {
	findings, err := soundness(context.WithoutCancel(ctx), t.system.program, t.system.dir, t.system.url())
	for _, f := range findings {
		t.system.report("after a kill: %s", f)
	}
	return err
}

// failpoints are the points at which a server can die, each with the maximum number of passes
// before.
var failpoints = map[string][]string{
	dbSQLite: {"sqlite.before_commit:25", "sqlite.after_commit:25", "sqlite.mid_group:3", "sqlite.after_claim:4",
		"matching.after_claim:4"},
	dbPostgres: {"postgres.before_commit:25", "postgres.after_commit:25", "postgres.mid_group:3",
		"postgres.after_claim:4", "matching.after_claim:4"},
}

// dieAtFailpoints is F-04: each life of a server ends at the next failpoint.
func dieAtFailpoints(ctx context.Context, t *torture) error {
	points := failpoints[dbSQLite]
	if t.options.db != dbSQLite {
		points = failpoints[dbPostgres]
	}
	defer t.disarm(context.WithoutCancel(ctx))
	for n := 0; ctx.Err() == nil; n++ {
		s := t.server()
		name, most, _ := strings.Cut(points[n%len(points)], ":")
		passes, _ := strconv.Atoi(most)
		s.kill() // this life has no failpoint; the next one has
		s.mu.Lock()
		s.env = []string{"KAGZI_FAILPOINT=" + name + ":" + strconv.Itoa(1+t.system.random.n(passes))}
		s.ends = []fixture.Ending{fixture.BySignal(syscall.SIGKILL)}
		s.mu.Unlock()
		err := s.start(context.WithoutCancel(ctx))
		if err != nil && !s.current().Ended() {
			return err
		}
		select {
		case <-s.current().Done: // some die before they serve
			t.system.fault("die at "+name, func() bool {
				return s.current().Ending() == fixture.BySignal(syscall.SIGKILL)
			})
		case <-time.After(pointLimit):
			t.system.fault("die at "+name, func() bool { return false })
		case <-ctx.Done():
		}
	}
	return nil
}

// disarm ends lives that still wait for a failpoint.
func (t *torture) disarm(ctx context.Context) {
	for _, s := range t.system.servers {
		s.kill()
		if err := s.start(ctx); err != nil {
			t.system.report("%v", err)
		}
	}
}

// pointLimit limits how long a server with a failpoint may live.
const pointLimit = 20 * time.Second

// killPostgres is F-05.
func killPostgres(ctx context.Context, t *torture) error {
	return t.every(ctx, t.brief(10), t.brief(20), func() error {
		t.system.fault("kill Postgres", t.system.cluster.Kill)
		t.pause(ctx, 0, 500*time.Millisecond)
		return t.system.cluster.Start(context.WithoutCancel(ctx))
	})
}

// killEverything is F-06.
func killEverything(ctx context.Context, t *torture) error {
	return t.every(ctx, t.brief(10), t.brief(20), func() error {
		var group sync.WaitGroup
		for _, s := range t.system.servers {
			group.Go(func() { t.system.fault("kill "+s.name, s.kill) })
		}
		for _, w := range t.system.workers {
			group.Go(func() { t.system.fault(faultOnWorker+w.alias(), func() bool { return w.current().Kill() }) })
		}
		if t.system.cluster != nil {
			group.Go(func() { t.system.fault("kill Postgres", t.system.cluster.Kill) })
		}
		group.Wait()
		return t.system.heal(context.WithoutCancel(ctx))
	})
}

// restartAll is F-07: each part in turn is asked to stop, and is replaced.
func restartAll(ctx context.Context, t *torture) error {
	n := 0
	return t.every(ctx, t.brief(5), t.brief(10), func() error {
		defer func() { n++ }()
		parts := len(t.system.workers) + len(t.system.servers)
		if i := n % parts; i < len(t.system.servers) {
			s := t.system.servers[i]
			t.system.fault("stop "+s.name, func() bool { return t.ends(s.name, s.current()) })
			return s.start(context.WithoutCancel(ctx))
		}
		w := t.system.workers[n%len(t.system.workers)]
		t.system.fault("stop "+w.name, func() bool { return t.ends(w.name, w.current()) })
		return w.start()
	})
}

func (t *torture) ends(name string, p *fixture.Process) bool {
	asked := time.Now()
	if err := p.Stop(stopLimit); err != nil {
		t.system.report("%s: %v", name, err)
	}
	t.exits = append(t.exits, time.Since(asked))
	return true
}

// freezeServers is F-11.
func freezeServers(ctx context.Context, t *torture) error {
	return t.every(ctx, t.brief(2), t.brief(5), func() error {
		s := t.server()
		life := s.current()
		t.system.fault("freeze "+s.name, func() bool { return life.Signal(syscall.SIGSTOP) })
		t.pause(context.WithoutCancel(ctx), 2*t.system.shape.Lease, 2*t.system.shape.Lease+time.Second)
		life.Signal(syscall.SIGCONT)
		return nil
	})
}

// freezePostgres is F-12.
func freezePostgres(ctx context.Context, t *torture) error {
	return t.every(ctx, t.brief(5), t.brief(10), func() error {
		t.system.fault(freezing, func() bool { return t.system.cluster.SignalAll(syscall.SIGSTOP) })
		t.pause(context.WithoutCancel(ctx), t.brief(20), t.brief(40))
		t.system.cluster.SignalAll(syscall.SIGCONT)
		t.system.cluster.Back.Note()
		return nil
	})
}
