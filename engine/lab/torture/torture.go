//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// options say how much is tried.
type options struct {
	program  string
	base     string // directory of everything that is built
	dir      string // of this torture
	db       string // sqlite, postgres or a URL
	seed     uint64
	scale    float64       // of the load; 1 is the workload of the matrix
	duration time.Duration // under faults
	strict   bool
	atOnce   int           // parallel scenarios; 0: 1
	again    int           // how often a scenario that proved nothing is repeated
	made     func(*system) // called for each system; may be nil
}

// torture is one running scenario.
type torture struct {
	scenario scenario
	options  options
	system   *system
	load     *workload.Load
	replays  *history.Log       // of writes that the fault sent itself
	onlooker *workload.Onlooker // nil: there is none
	ticks    []*kagzi.Schedule

	calm, faulty, healed int64 // when the load began, the faults began, and the last damage was removed
	over                 int64 // when the load ended
	pauses               []pausing
	settings             []setting // of the servers' clock
	peak, left           int64     // bytes of SQLite's log: at the end of the faults, at the very end
	memory               int       // MiB: peak of a server
	flood                flooding  // outcome of a storm
	failures             []diskFailure
	outage               time.Duration   // the longest from a server's kill until it served again
	exits                []time.Duration // how long processes took to stop
	shares               []float64       // of a core that starved workers got
	// how long after Postgres's first answer the servers served that were started before it
	boots  []time.Duration
	events []history.Event
	dump   check.Dump

	cuts commitCounts // what a fault cut off
	heat heat         // outcome of crowded rows

	deaths     []time.Duration // how long a worker took to notice that its connection was dead; -1: it did not
	modes      []string        // by server: how it learns about other servers' changes
	filled     []*noRoom       // periods in which the disk of Postgres was full
	relistened []time.Duration // how long a deaf server took until it listened again; -1: it did not
	withheld   []span          // when a later promoted standby got no WAL

	cutShort int // killed upgrades that left migrations to be applied

	mu     sync.Mutex
	stamps int // that were made to see a server's clock
	gaveUp int // servers that ended by themselves because Postgres did not come
}

// report is the result of a scenario.
type report struct {
	scope   string // how much was checked against the promises
	lines   []check.Line
	figures []figure
	met     string   // what happened that makes it prove something; empty if the figures say so
	vacuous []string // why it proves nothing
	trouble []string
}

// periods are the cron expressions of the workload, in seconds.
var periods = map[string]int64{"* * * * * *": 1, "*/5 * * * * *": 5, "0 * * * * *": 60}

const (
	standardRate = 50 // starts a second
	clients      = 4
	// the load runs for the duration divided by this before the first fault and after the last
	calmShare     = 4
	leastRecovery = 6 * time.Second  // of load after the last fault
	settleLimit   = 2 * time.Minute  // in which everything must end after the last fault
	emptyLimit    = 20 * time.Second // in which the last ticks must end then
)

// run runs the scenario. Unexpected events count also if the scenario came to nothing because of
// them.
func run(ctx context.Context, s scenario, o options) (*report, error) {
	var systems []*system
	o.made = func(r *system) { systems = append(systems, r) }
	carryOut := s.alone
	if carryOut == nil {
		carryOut = s.underLoad
	}
	r, err := carryOut(ctx, o)
	var trouble []string
	for _, one := range systems {
		trouble = append(trouble, one.troubles(err != nil || s.alone != nil)...) // otherwise the report has the others
	}
	switch {
	case err == nil:
		r.trouble = append(r.trouble, trouble...)
	case len(trouble) > 0:
		return &report{trouble: append(trouble, "did not run: "+err.Error())}, nil
	}
	return r, err
}

// underLoad runs a scenario that is a load under faults.
func (s scenario) underLoad(ctx context.Context, o options) (*report, error) {
	o.duration = max(o.duration, s.least)
	t := &torture{scenario: s, options: o, replays: history.NewLog("replayer")}
	shape := shape{Servers: 1, Workers: 4, Slots: 8, Lease: 2 * time.Second, Heartbeat: 500 * time.Millisecond}
	if o.db != dbSQLite {
		shape.Servers = 2
	}
	if s.shape != nil {
		s.shape(&shape)
	}
	if s.scaled {
		shape.Slots = max(1, int(float64(shape.Slots)*o.scale))
	}
	var made *fixture.Disk
	if s.disk != nil {
		var err error
		if made, err = s.disk(ctx, o.dir); err != nil {
			return nil, err
		}
		defer func() {
			if err := made.Unmount(); err != nil {
				fmt.Printf("  %v\n", err)
			}
		}()
		shape.DataDir = filepath.Join(made.Dir, "data")
		shape.ClusterDir = filepath.Join(made.Dir, "pg")
	}
	var err error
	t.system, err = newSystem(ctx, o, shape)
	defer t.system.close()
	if err != nil {
		return nil, err
	}
	t.system.disk = made
	if err := t.torture(ctx); err != nil {
		return nil, err
	}
	if info, err := os.Stat(t.system.sqliteFile() + "-wal"); err == nil {
		t.left = info.Size()
	}
	t.system.stop()
	return t.judge(ctx)
}

// torture runs the load with the faults in its middle, and waits until everything has ended.
func (t *torture) torture(ctx context.Context) error {
	m := t.scenario.mix
	if m == (workload.Mix{}) {
		m = workload.Standard
	}
	var err error
	if t.load, err = workload.NewLoad(m, t.options.seed, standardRate*t.options.scale*cmp.Or(t.scenario.rate, 1),
		t.system.doors(), clients); err != nil {
		return err
	}
	defer t.load.Close()
	if err := t.schedule(ctx); err != nil {
		return err
	}
	if t.scenario.prepare != nil {
		if err := t.scenario.prepare(ctx, t); err != nil {
			return err
		}
	}
	if t.onlooker, err = workload.NewOnlooker(m, t.options.seed, t.system.doors()); err != nil {
		return err
	}
	defer t.onlooker.Start(ctx)()
	rest, giveUp := context.WithCancel(ctx)
	defer giveUp()
	starting, enough := context.WithCancel(ctx)
	defer enough()
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.load.Run(starting, rest)
	}()
	err = t.strike(ctx)
	enough()
	<-done
	t.over = history.Now()
	if err != nil {
		giveUp()
		t.load.Wait()
		return err
	}
	return t.settle(ctx, giveUp)
}

// strike injects the fault for the duration, with a calm before and after.
func (t *torture) strike(ctx context.Context) error {
	calm := t.options.duration / calmShare
	t.calm = history.Now()
	t.pause(ctx, calm, calm)
	t.faulty = history.Now()
	if t.scenario.inject != nil {
		faulty, cancel := context.WithTimeout(ctx, t.options.duration)
		err := t.scenario.inject(faulty, t)
		cancel()
		if err != nil {
			return err
		}
	} else {
		t.pause(ctx, t.options.duration, t.options.duration)
	}
	if err := t.system.heal(ctx); err != nil {
		return err
	}
	t.healed = history.Now()
	calm = max(calm, leastRecovery, t.scenario.after)
	t.pause(ctx, calm, calm)
	return ctx.Err()
}

// schedule makes the schedules of the workload.
func (t *torture) schedule(ctx context.Context) error {
	for _, cron := range slices.Sorted(maps.Keys(periods)) {
		s, err := kagzi.CreateSchedule(ctx, t.load.Clients[0].SDK, workload.TickType, cron, workload.Job{Name: "tick"},
			kagzi.ScheduleOptions{MaxCatchup: cmp.Or(t.scenario.catchUp, 100_000)})
		if err != nil {
			return fmt.Errorf("create schedule %s: %w", cron, err)
		}
		t.ticks = append(t.ticks, s)
	}
	return nil
}

// settle waits until all runs have ended, probes the healed system, and ends the schedules.
func (t *torture) settle(ctx context.Context, giveUp func()) error {
	all := make(chan struct{})
	go func() {
		defer close(all)
		t.load.Wait()
	}()
	if err := t.standBy(ctx, all); err != nil {
		return err
	}
	giveUp() // the dump shows what has not ended
	<-all
	t.countUnheard()
	for n := range tailCalls {
		c := t.load.Clients[n%len(t.load.Clients)]
		call, cancel := context.WithTimeout(ctx, workload.CallLimit)
		_, err := kagziv1.NewWorkflowServiceClient(c.SDK.Conn()).ListWorkflows(
			call, &kagziv1.ListWorkflowsRequest{}, grpc.WaitForReady(true))
		cancel()
		if err != nil {
			t.system.report("call %d of %d after the faults: %v", n+1, tailCalls, err)
		}
	}
	for _, s := range t.ticks {
		if err := t.retire(ctx, s, settleLimit); err != nil {
			return fmt.Errorf("pause a schedule: %w", err)
		}
	}
	return t.emptied(ctx)
}

// standBy waits until everything is over, or long enough. A server that ends by itself meanwhile is
// restarted.
func (t *torture) standBy(ctx context.Context, all <-chan struct{}) error {
	limit := time.After(cmp.Or(t.scenario.settle, settleLimit))
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-all:
			return nil
		case <-limit:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
		for _, s := range t.system.servers {
			if s.current().Ended() { // already reported
				if err := s.start(ctx); err != nil {
					return err
				}
			}
		}
	}
}

// tailCalls are made when everything is over: each must succeed at once.
const tailCalls = 20

// countUnheard counts clients that were never told that their run was started, or how it ended,
// although there was time for that.
func (t *torture) countUnheard() {
	if n := t.load.Started.Load() - t.load.Ended.Load(); n > 0 && !t.scenario.lossy && !t.scenario.control {
		t.system.report("%d of %d clients have not heard of their run's end", n, t.load.Started.Load())
	}
}

// retire pauses a schedule once it has no tick to catch up, by the servers' clock. A schedule that
// still has some after atMost is stuck.
func (t *torture) retire(ctx context.Context, s *kagzi.Schedule, atMost time.Duration) error {
	limit := time.Now().Add(atMost)
	for {
		d, err := s.Describe(ctx)
		if status.Code(err) == codes.NotFound && (t.scenario.lossy || t.scenario.control) {
			return nil // it is among what was lost
		}
		if err == nil && d.NextFireAt.After(time.Now().Add(t.ahead())) {
			return s.Pause(ctx, "over")
		}
		if err == nil && time.Now().After(limit) {
			t.system.report("schedule %s (%s) is still at its tick of %s, broken: %q", s.ID(), d.Cron,
				d.NextFireAt, d.Broken)
			return s.Pause(ctx, "over")
		}
		if err != nil && time.Now().After(limit) {
			return err
		}
		fixture.Breathe(ctx)
	}
}

// emptied waits until no run is open.
func (t *torture) emptied(ctx context.Context) error {
	limit := time.Now().Add(emptyLimit)
	open := kagzi.ListOptions{Statuses: []kagzi.Status{kagzi.StatusPending, kagzi.StatusRunning, kagzi.StatusSleeping}}
	for time.Now().Before(limit) {
		left := 0
		for _, err := range t.load.Clients[0].SDK.List(ctx, open) {
			if err != nil {
				return err
			}
			left++
		}
		if left == 0 {
			return nil
		}
		fixture.Breathe(ctx)
	}
	return nil // the dump shows which
}
