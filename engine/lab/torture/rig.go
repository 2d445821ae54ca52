//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// rig is a whole system under torture: a database, servers, workers, and the proxies between them.
type rig struct {
	program string // the server's binary
	dir     string
	seed    uint64

	previous string // that of the version before, with which the servers begin; empty: they do not
	shape    shape
	log      *history.Log // of the nemesis
	luck     *luck

	cluster *cluster // nil with SQLite
	spare   *cluster // a standby, while there is one
	bouncer *process // nil: there is none
	bounce  string   // its socket
	disk    *disk    // of the database; nil: that of the directory
	given   string   // a database URL to use instead of a cluster of its own
	servers []*server
	workers []*worker

	mu      sync.Mutex
	trouble []string // what happened that nobody ordered
	deaths  []string // what servers did by themselves that is never in order, not even in a control run
}

// shape is how large a rig is and how its parts are set.
type shape struct {
	Servers, Workers, Slots int
	Lease, Heartbeat        time.Duration
	ServerFlags             []string
	ServerEnv               []string
	Wrap                    []string // a command before the server's
	DataDir                 string   // of SQLite; empty means one of the rig's own
	Cluster                 []string // settings of Postgres
	ClusterDir              string   // of Postgres; empty means one of the rig's own
	Bouncer                 bool     // PgBouncer in front of Postgres
	Spin                    int      // goroutines of each worker that only take time
	Previous                string   // the commit of the version before that the servers are of, until a scenario changes that; empty: none
	Ends                    []ending // how servers may end by themselves
	Clocks                  bool     // the wall clock of each server can be set
	DatabaseClock           bool     // and that of Postgres
}

// luck is a source of random numbers that many may draw from.
type luck struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newLuck(seed uint64) *luck { return &luck{r: rand.New(rand.NewPCG(seed, 0))} }

func (l *luck) n(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.IntN(n)
}

// between is a duration of at least from and less than to.
func (l *luck) between(from, to time.Duration) time.Duration {
	return from + time.Duration(l.n(int(max(1, to-from))))
}

// server is a place for server processes, one after the other, behind a door that stays.
type server struct {
	rig      *rig
	name     string
	program  string     // its binary
	door     *proxy     // for clients and workers
	database *proxy     // to Postgres; nil with SQLite
	clock    *wallClock // nil: that of the machine

	mu     sync.Mutex
	life   *process
	direct string   // its address behind the door
	env    []string // of the next life alone
	ends   []ending // likewise: how it may end by itself
	wrap   []string
	starts []time.Duration // how long each life took until it served
}

// worker is a place for worker processes.
type worker struct {
	rig  *rig
	name string
	door *proxy

	mu     sync.Mutex
	life   *process
	lives  int
	exits  map[int]int // by exit code
	ending bool        // it is not started again
}

// newRig starts everything.
func newRig(ctx context.Context, o options, s shape) (*rig, error) {
	r := &rig{program: o.program, dir: o.dir, seed: o.seed, shape: s, log: history.NewLog("nemesis"), luck: newLuck(o.seed)}
	if o.made != nil {
		o.made(r)
	}
	var err error
	if len(s.Wrap) > 0 {
		if _, err := exec.LookPath(s.Wrap[0]); err != nil {
			return r, notHere("%s is not installed", s.Wrap[0])
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
		w := &worker{rig: r, name: fmt.Sprintf("worker-%d", i+1), exits: map[int]int{}}
		var err error
		if w.door, err = newProxy("tcp", r.servers[i%len(r.servers)].door.address()); err != nil {
			return r, err
		}
		r.workers = append(r.workers, w)
		if err := w.start(); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *rig) openDatabase(ctx context.Context, db string) (err error) {
	switch db {
	case dbSQLite:
		if r.shape.DataDir == "" {
			r.shape.DataDir = filepath.Join(r.dir, "data")
		}
		return os.MkdirAll(r.shape.DataDir, 0o700)
	case dbPostgres:
		dir := cmp.Or(r.shape.ClusterDir, filepath.Join(r.dir, "pg"))
		if r.cluster, err = emptyCluster(dir, r.shape.Cluster...); err != nil {
			return err
		}
		if r.shape.DatabaseClock {
			if r.cluster.clock, err = newDatabaseClock(r.cluster, filepath.Join(dir, "clock")); err != nil {
				return err
			}
		}
		err = r.cluster.create(ctx)
		if err == nil && r.cluster.clock != nil {
			err = r.cluster.clock.install(ctx)
		}
		if err != nil || !r.shape.Bouncer {
			return err
		}
		return r.startBouncer(ctx)
	}
	r.given, err = freshSchema(ctx, db)
	return err
}

const (
	dbSQLite   = "sqlite"
	dbPostgres = "postgres"
)

// sqliteFile is the path of the embedded database.
func (r *rig) sqliteFile() string { return filepath.Join(r.shape.DataDir, "kagzi.db") }

// url is the database as the checker reaches it.
func (r *rig) url() string {
	switch {
	case r.cluster != nil:
		return r.cluster.url("")
	case r.given != "":
		return r.given
	}
	return "sqlite:" + r.sqliteFile()
}

func (r *rig) addServer(name string) (*server, error) {
	s := &server{rig: r, name: name, program: cmp.Or(r.previous, r.program), wrap: r.shape.Wrap}
	var err error
	if s.door, err = newProxy("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if r.shape.Clocks {
		if s.clock, err = newWallClock(filepath.Join(r.dir, name+".clock")); err != nil {
			return nil, err
		}
	}
	if r.cluster != nil {
		if s.database, err = newProxy("unix", cmp.Or(r.bounce, r.cluster.socket())); err != nil {
			return nil, err
		}
	}
	r.servers = append(r.servers, s)
	return s, nil
}

func (s *server) url() string {
	if s.database != nil {
		return s.rig.cluster.url(s.database.address())
	}
	return s.rig.url()
}

// listening is what a server says when it serves.
var listening = regexp.MustCompile(`address +(127\.0\.0\.1:[1-9][0-9]*)`)

// command is a server on this place's database.
func (s *server) command(flags ...string) *exec.Cmd {
	r := s.rig
	args := slices.Concat(s.wrap, []string{s.program, "server", "--listen", "127.0.0.1:0", "--http", "off", "--config", "off",
		"--data-dir", filepath.Join(r.dir, s.name), "--worker-lease", r.shape.Lease.String(), "--heartbeat-interval", r.shape.Heartbeat.String(),
		"--coordinator-interval", "1s", "--drain-timeout", "10s", "--log-format", "json"}, r.shape.ServerFlags, flags)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "KAGZI_DB_URL="+s.url())
	cmd.Env = append(append(cmd.Env, r.shape.ServerEnv...), s.env...)
	if s.clock != nil {
		cmd.Env = append(cmd.Env, clockVariable+"="+s.clock.path)
	}
	return cmd
}

func isSetting(pair string) bool { return len(pair) > 6 && pair[:6] == "KAGZI_" }

// start begins a life of the server and waits until it serves.
func (s *server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(filepath.Join(s.rig.dir, s.name), 0o700); err != nil {
		return err
	}
	begun := time.Now()
	life, err := s.spawn()
	if err != nil {
		return err
	}
	s.life, s.env, s.ends = life, nil, nil
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	address, err := life.await(ctx, listening)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.direct = address
	s.door.aim(address)
	s.starts = append(s.starts, time.Since(begun))
	return nil
}

// kill ends the server's life as kill -9 does.
func (s *server) kill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life.kill()
}

// current is the server's life.
func (s *server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// start begins a life of the worker. Lives that a poisonous run ends are followed by others.
func (w *worker) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending {
		return nil
	}
	w.lives++
	spec, err := json.Marshal(handSpec{Name: w.name + "." + strconv.Itoa(w.lives), Address: w.door.address(), Log: w.history(w.lives),
		Slots: w.rig.shape.Slots, Spin: w.rig.shape.Spin, Stamp: w.lives})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), isSetting), handVariable+"="+string(spec))
	if w.life, err = spawn(cmd, filepath.Join(w.rig.dir, w.name+".log")); err != nil {
		return err
	}
	go w.follow(w.life)
	return nil
}

// follow looks after a life that ends by itself.
func (w *worker) follow(life *process) {
	code := life.exit()
	w.mu.Lock()
	w.exits[code]++
	mine := w.life == life && !w.ending
	w.mu.Unlock()
	if !mine || code == -1 || code == 0 {
		return
	}
	if code != poisonExit {
		w.rig.report("%s ended by itself with exit code %d: %s", w.name, code, life.out.tail())
	}
	if err := w.start(); err != nil {
		w.rig.report("%s: %v", w.name, err)
	}
}

func (w *worker) history(life int) string {
	return filepath.Join(w.rig.dir, fmt.Sprintf("%s.%d.jsonl", w.name, life))
}

func (w *worker) current() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life
}

// report notes what nobody has ordered; it counts as a violation.
func (r *rig) report(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble = append(r.trouble, fmt.Sprintf(format, args...))
}

// fault notes one deed of the nemesis: what it was, when, and whether it hit.
func (r *rig) fault(what string, do func() (hit bool)) {
	e := r.log.Begin(history.Event{Op: history.Fault, Step: what})
	e.Outcome = history.Refused
	if do() {
		e.Outcome = history.OK
	}
	r.log.Finish(e)
}

// heal takes all damage away, and has everything run again.
func (r *rig) heal(ctx context.Context) error {
	for _, p := range r.proxies() {
		p.set(weather{})
	}
	if r.cluster != nil {
		if r.cluster.life.ended() {
			if err := r.cluster.start(ctx); err != nil {
				return err
			}
		}
		r.cluster.signalAll(syscall.SIGCONT)
	}
	for _, s := range r.servers {
		life := s.current()
		life.signal(syscall.SIGCONT)
		if life.ended() {
			if err := s.start(ctx); err != nil {
				return err
			}
		}
	}
	for _, w := range r.workers {
		w.current().signal(syscall.SIGCONT)
		if w.current().ended() {
			if err := w.start(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rig) proxies() []*proxy {
	var all []*proxy
	for _, s := range r.servers {
		all = append(all, s.door)
		if s.database != nil {
			all = append(all, s.database)
		}
	}
	for _, w := range r.workers {
		all = append(all, w.door)
	}
	return all
}

// stop ends workers and servers in good order; the database stays for the checker.
func (r *rig) stop() {
	var group sync.WaitGroup
	for _, w := range r.workers {
		w.mu.Lock()
		w.ending = true
		w.mu.Unlock()
		group.Go(func() {
			if err := w.current().stop(stopLimit); err != nil {
				r.report("%s: %v", w.name, err)
			}
		})
	}
	group.Wait()
	for _, s := range r.servers {
		if err := s.current().stop(stopLimit); err != nil {
			r.report("%s: %v", s.name, err)
		}
	}
}

// stopLimit is how long a process may take to stop in good order.
const stopLimit = 30 * time.Second

// close ends whatever is left, at once.
func (r *rig) close() {
	for _, w := range r.workers {
		w.mu.Lock()
		w.ending = true
		life := w.life
		w.mu.Unlock()
		if life != nil {
			life.kill()
		}
	}
	for _, s := range r.servers {
		if life := s.current(); life != nil {
			life.kill()
		}
	}
	if r.bouncer != nil {
		r.bouncer.kill()
	}
	for _, c := range []*cluster{r.cluster, r.spare} {
		if c != nil {
			c.end()
		}
	}
	for _, p := range r.proxies() {
		p.close()
	}
	for _, s := range r.servers {
		if s.clock != nil {
			s.clock.close()
		}
	}
}

// events are the history of all processes.
func (r *rig) events() ([]history.Event, error) {
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
