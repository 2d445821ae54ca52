//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// system is everything under torture: a database, servers, workers, and the proxies between them.
type system struct {
	program string // the server's binary
	dir     string
	seed    uint64

	previous string // that of the previous version, with which the servers begin; empty: they do not
	shape    shape
	log      *history.Log // of the faults
	random   *random

	cluster *fixture.Cluster // nil with SQLite
	spare   *fixture.Cluster // a standby, while there is one
	bouncer *fixture.Process // nil: there is none
	bounce  string           // its socket
	disk    *fixture.Disk    // of the database; nil: that of the directory
	given   string           // a database URL to use instead of a private cluster
	servers []*server
	workers []*worker

	mu      sync.Mutex
	trouble []string // unexpected events
	deaths  []string // what servers did by themselves that is never acceptable, not even in a control run
}

// shape is the size and settings of a system.
type shape struct {
	Servers, Workers, Slots int
	Lease, Heartbeat        time.Duration
	ServerFlags             []string
	ServerEnv               []string
	Wrap                    []string // a command prefix for the server
	DataDir                 string   // of SQLite; empty: one of the system's own
	Cluster                 []string // settings of Postgres
	ClusterDir              string   // of Postgres; empty: one of the system's own
	Bouncer                 bool     // PgBouncer in front of Postgres
	Spin                    int      // goroutines of each worker that only use CPU time
	// the commit of the previous version that the servers run until a scenario changes that; empty:
	// none
	Previous      string
	Ends          []fixture.Ending // how servers may end by themselves
	Clocks        bool             // the wall clock of each server can be set
	DatabaseClock bool             // and that of Postgres
	AGQ           bool             // the servers have a port for AGQ workers
}

// random is a source of random numbers for concurrent use.
type random struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newRandom(seed uint64) *random { return &random{r: rand.New(rand.NewPCG(seed, 0))} }

func (l *random) n(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.IntN(n)
}

// between returns a duration of at least from and less than to.
func (l *random) between(from, to time.Duration) time.Duration {
	return from + time.Duration(l.n(int(max(1, to-from))))
}

// newSystem starts everything.
func newSystem(ctx context.Context, o options, s shape) (*system, error) {
	r := &system{program: o.program, dir: o.dir, seed: o.seed, shape: s, log: history.NewLog("faults"),
		random: newRandom(o.seed)}
	if o.made != nil {
		o.made(r)
	}
	var err error
	if len(s.Wrap) > 0 {
		if _, err := exec.LookPath(s.Wrap[0]); err != nil {
			return r, fixture.NotHere("%s is not installed", s.Wrap[0])
		}
	}
	if s.Clocks {
		r.program, err = o.withClock(ctx)
	}
	if err == nil && s.Previous != "" {
		r.previous, err = o.built(ctx, s.Previous)
	}
	if err != nil {
		return r, err
	}
	if err := r.openDatabase(ctx, o.db); err != nil {
		return r, err
	}
	for i := range s.Servers {
		server, err := r.addServer(fmt.Sprintf("server-%d", i+1))
		if err != nil {
			return r, err
		}
		if err := server.start(ctx); err != nil {
			return r, err
		}
	}
	for i := range s.Workers {
		w := &worker{system: r, name: fmt.Sprintf("worker-%d", i+1), exits: map[int]int{}}
		var err error
		if w.door, err = fixture.NewProxy("tcp", r.servers[i%len(r.servers)].door.Address()); err != nil {
			return r, err
		}
		r.workers = append(r.workers, w)
		if err := w.start(); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *system) openDatabase(ctx context.Context, db string) (err error) {
	switch db {
	case dbSQLite:
		if r.shape.DataDir == "" {
			r.shape.DataDir = filepath.Join(r.dir, "data")
		}
		return os.MkdirAll(r.shape.DataDir, 0o700)
	case dbPostgres:
		dir := cmp.Or(r.shape.ClusterDir, filepath.Join(r.dir, "pg"))
		if r.cluster, err = fixture.EmptyCluster(dir, r.shape.Cluster...); err != nil {
			return err
		}
		if r.shape.DatabaseClock {
			if r.cluster.Clock, err = fixture.NewDatabaseClock(r.cluster, filepath.Join(dir, "clock")); err != nil {
				return err
			}
		}
		err = r.cluster.Create(ctx)
		if err == nil && r.cluster.Clock != nil {
			err = r.cluster.Clock.Install(ctx)
		}
		if err != nil || !r.shape.Bouncer {
			return err
		}
		return r.startBouncer(ctx)
	}
	r.given, err = fixture.FreshSchema(ctx, db)
	return err
}

const (
	dbSQLite   = "sqlite"
	dbPostgres = "postgres"
)

// sqliteFile returns the path of the embedded database.
func (r *system) sqliteFile() string { return filepath.Join(r.shape.DataDir, "kagzi.db") }

// url returns the database URL for the checker.
func (r *system) url() string {
	switch {
	case r.cluster != nil:
		return r.cluster.URL("")
	case r.given != "":
		return r.given
	}
	return "sqlite:" + r.sqliteFile()
}

// report notes an unexpected event; it counts as a violation.
func (r *system) report(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble = append(r.trouble, fmt.Sprintf(format, args...))
}

// died notes what a server did by itself; it counts as a violation.
func (r *system) died(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaths = append(r.deaths, fmt.Sprintf(format, args...))
}

// troubles returns what servers did by themselves and, with all, every other unexpected event.
func (r *system) troubles(all bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all {
		return slices.Concat(r.trouble, r.deaths)
	}
	return slices.Clone(r.deaths)
}

// fault notes one injected fault: what it was, when, and whether it hit.
func (r *system) fault(what string, do func() (hit bool)) {
	e := r.log.Begin(history.Event{Op: history.Fault, Step: what})
	e.Outcome = history.Refused
	if do() {
		e.Outcome = history.OK
	}
	r.log.Finish(e)
}

// heal removes all damage and restarts everything.
func (r *system) heal(ctx context.Context) error {
	for _, p := range r.proxies() {
		p.Set(fixture.Conditions{})
	}
	if r.cluster != nil {
		if r.cluster.Life.Ended() {
			if err := r.cluster.Start(ctx); err != nil {
				return err
			}
		}
		r.cluster.SignalAll(syscall.SIGCONT)
	}
	for _, s := range r.servers {
		life := s.current()
		life.Signal(syscall.SIGCONT)
		if life.Ended() {
			if err := s.start(ctx); err != nil {
				return err
			}
		}
	}
	for _, w := range r.workers {
		w.current().Signal(syscall.SIGCONT)
		if w.current().Ended() {
			if err := w.start(); err != nil {
				return err
			}
		}
	}
	return nil
}

// doors returns the addresses at which clients reach the servers.
func (r *system) doors() []string {
	all := make([]string, len(r.servers))
	for i, s := range r.servers {
		all[i] = s.door.Address()
	}
	return all
}

func (r *system) proxies() []*fixture.Proxy {
	var all []*fixture.Proxy
	for _, s := range r.servers {
		all = append(all, s.door)
		if s.agq != nil {
			all = append(all, s.agq)
		}
		if s.database != nil {
			all = append(all, s.database)
		}
	}
	for _, w := range r.workers {
		all = append(all, w.door)
	}
	return all
}

// stop ends workers and servers gracefully; the database stays for the checker.
func (r *system) stop() {
	var group sync.WaitGroup
	for _, w := range r.workers {
		w.mu.Lock()
		w.ending = true
		w.mu.Unlock()
		group.Go(func() {
			if err := w.current().Stop(stopLimit); err != nil {
				r.report("%s: %v", w.name, err)
			}
		})
	}
	group.Wait()
	for _, s := range r.servers {
		if err := s.current().Stop(stopLimit); err != nil {
			r.report("%s: %v", s.name, err)
		}
	}
}

// stopLimit limits how long a process may take to stop.
const stopLimit = 30 * time.Second

// close ends everything that is left, at once.
func (r *system) close() {
	for _, w := range r.workers {
		w.mu.Lock()
		w.ending = true
		life := w.life
		w.mu.Unlock()
		if life != nil {
			life.Kill()
		}
	}
	for _, s := range r.servers {
		if life := s.current(); life != nil {
			life.Kill()
		}
	}
	if r.bouncer != nil {
		r.bouncer.Kill()
	}
	for _, c := range []*fixture.Cluster{r.cluster, r.spare} {
		if c != nil {
			c.End()
		}
	}
	for _, p := range r.proxies() {
		p.Close()
	}
	for _, s := range r.servers {
		if s.clock != nil {
			s.clock.Close()
		}
	}
}

// events returns the history of all processes.
func (r *system) events() ([]history.Event, error) {
	all := r.log.Events()
	for _, w := range r.workers {
		for life := 1; life <= w.lives; life++ {
			events, err := history.Read(w.history(life))
			if err != nil {
				return nil, err
			}
			all = append(all, events...)
		}
	}
	return all, nil
}
