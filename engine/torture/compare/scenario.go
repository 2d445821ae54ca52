//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// scenario is something bad that is done to a system at work, for a phase.
type scenario struct {
	name  string
	fault func(ctx context.Context, b *bench) error // returns when it is over
	works bool                                      // Postgres and the worker work meanwhile
}

// verdict is what Kagzi did not do as it should.
func (s scenario) verdict(ours, theirs result) (why []string) {
	want := func(ok bool, format string, args ...any) {
		if !ok {
			why = append(why, fmt.Sprintf(format, args...))
		}
	}
	want(ours.before >= 0.9*float64(*rate), "Kagzi did %.1f of %d jobs a second before: this proves nothing", ours.before, *rate)
	want(ours.lost == 0, "%d effects were lost with Kagzi", ours.lost)
	want(ours.isBack, "Kagzi did not come back")
	want(ours.recovery() >= enough, "Kagzi recovered to %.0f %%, want %.0f %%", 100*ours.recovery(), 100*enough)
	want(ours.recovery() >= min(theirs.recovery(), 1)-noise, "Kagzi recovered to %.0f %%, River to %.0f %%", 100*ours.recovery(), 100*theirs.recovery())
	want(!s.works || ours.kept() >= min(theirs.kept(), 1)-noise, "Kagzi kept %.0f %% meanwhile, River %.0f %%", 100*ours.kept(), 100*theirs.kept())
	return why
}

// bench is one system at work.
type bench struct {
	system  system
	cluster *cluster
	worker  *worker
}

var scenarios = []scenario{
	{name: "restart", fault: func(ctx context.Context, b *bench) error { return b.down(ctx, "fast") }},
	{name: "crash", fault: func(ctx context.Context, b *bench) error { return b.down(ctx, "immediate") }},
	{name: "worker killed", fault: func(ctx context.Context, b *bench) error {
		for end := time.Now().Add(*phase); time.Now().Before(end); pause(ctx, *phase/5) {
			b.worker.kill()
			if err := b.worker.start(); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "old snapshot", works: true, fault: func(ctx context.Context, b *bench) error {
		return b.query(ctx, func(conn *pgx.Conn) error {
			if _, err := conn.Exec(ctx, "begin isolation level repeatable read; select count(*) from "+b.system.table()); err != nil {
				return err
			}
			pause(ctx, *phase)
			_, err := conn.Exec(ctx, "rollback")
			return err
		})
	}},
	{name: "big readers", works: true, fault: func(ctx context.Context, b *bench) error {
		end := time.Now().Add(*phase)
		var group sync.WaitGroup
		errs := make(chan error, 4)
		for range cap(errs) {
			group.Go(func() {
				errs <- b.query(ctx, func(conn *pgx.Conn) error {
					if _, err := conn.Exec(ctx, "begin isolation level repeatable read"); err != nil {
						return err
					}
					for time.Now().Before(end) {
						if _, err := conn.Exec(ctx, "select count(distinct md5(t::text)) from "+b.system.table()+" t, generate_series(1, 20)"); err != nil {
							return err
						}
					}
					_, err := conn.Exec(ctx, "rollback")
					return err
				})
			})
		}
		group.Wait()
		return first(<-errs, <-errs, <-errs, <-errs)
	}},
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) query(ctx context.Context, do func(conn *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, b.cluster.url())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}

// down stops Postgres, and starts it again in the middle of the phase.
func (b *bench) down(ctx context.Context, mode string) error {
	if err := b.cluster.stop(ctx, mode); err != nil {
		return err
	}
	pause(ctx, *phase/2)
	return b.cluster.start(ctx)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// straggle is how long the last jobs may take after the load has ended: what a killed worker held is given to another one late.
const straggle = 3 * abandoned

func (s scenario) run(ctx context.Context, sys system) (r result, err error) {
	c, err := newCluster(ctx, sys.where())
	if err != nil {
		return r, err
	}
	defer c.stop(context.WithoutCancel(ctx), "immediate")
	defer sys.stop()
	at, err := sys.start(ctx, c)
	if err != nil {
		return r, err
	}
	seen := &effects{times: map[int]int{}}
	b := &bench{system: sys, cluster: c, worker: &worker{role: sys.role(), at: at, into: seen}}
	if err := b.worker.start(); err != nil {
		return r, err
	}
	defer b.worker.kill()

	loading, stop := context.WithCancel(ctx)
	defer stop()
	jobs := make(chan int, 1)
	go func() { jobs <- load(loading, sys) }()
	for limit := time.Now().Add(straggle); seen.distinct() == 0 && time.Now().Before(limit) && ctx.Err() == nil; {
		pause(ctx, 100*time.Millisecond)
	}
	pause(ctx, *phase/2) // to warm up, and to catch up with what came before the worker
	began := time.Now()
	pause(ctx, *phase)
	broken := time.Now()
	if err := s.fault(ctx, b); err != nil {
		return r, err
	}
	healed := time.Now()
	pause(ctx, *phase)
	ended := time.Now()
	stop()
	n := <-jobs
	for limit := time.Now().Add(straggle); seen.distinct() < n && time.Now().Before(limit) && ctx.Err() == nil; {
		pause(ctx, 100*time.Millisecond)
	}
	settled := healed.Add(ended.Sub(healed) / 2)
	r = result{before: seen.rate(began, broken), during: seen.rate(broken, healed), after: seen.rate(settled, ended), lost: n - seen.distinct(), twice: seen.repeated()}
	r.back, r.isBack = seen.back(healed, ended, enough*r.before)
	return r, ctx.Err()
}

// load enqueues jobs at the rate and returns how many. Each is offered until it is taken.
func load(ctx context.Context, sys system) int {
	var group sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(*rate))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			group.Wait()
			return n
		case <-tick.C:
		}
		group.Go(func() {
			for {
				try, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
				err := sys.enqueue(try, n)
				cancel()
				if err == nil {
					return
				}
				pause(context.WithoutCancel(ctx), 100*time.Millisecond)
			}
		})
	}
}

// effects is what the jobs did, as it arrives from the workers.
type effects struct {
	mu    sync.Mutex
	rest  []byte
	times map[int]int // by number of the job
	at    []time.Time
}

func (e *effects) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rest = append(e.rest, p...)
	for {
		line, rest, whole := bytes.Cut(e.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		e.rest = rest
		number, err := strconv.Atoi(string(line))
		if err != nil {
			return 0, fmt.Errorf("effect of a worker: %w", err)
		}
		if e.times[number]++; e.times[number] == 1 {
			e.at = append(e.at, time.Now())
		}
	}
}

func (e *effects) distinct() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.times)
}

func (e *effects) repeated() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, times := range e.times {
		n += times - 1
	}
	return n
}

// rate is the jobs that were done for the first time in a span, by second.
func (e *effects) rate(from, to time.Time) float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, at := range e.at {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return float64(n) / to.Sub(from).Seconds()
}

// back is how long after the heal the first second began in which the rate was enough.
func (e *effects) back(healed, ended time.Time, enough float64) (time.Duration, bool) {
	const step = 100 * time.Millisecond
	for from := healed; from.Add(time.Second).Before(ended); from = from.Add(step) {
		if e.rate(from, from.Add(time.Second)) >= enough {
			return from.Sub(healed), true
		}
	}
	return 0, false
}

// result is the figures of one system in one scenario, by second.
type result struct {
	before, during, after float64 // the last when half of the time after is over
	back                  time.Duration
	isBack                bool
	lost, twice           int
}

// recovery is 1 when it does afterwards what it did before; more when it still catches up.
func (r result) recovery() float64 { return r.after / r.before }

// kept is 1 when it does meanwhile what it did before.
func (r result) kept() float64 { return r.during / r.before }

func (r result) String() string {
	back := "not"
	if r.isBack {
		back = fmt.Sprintf("%.1f s", r.back.Seconds())
	}
	return fmt.Sprintf("%9.1f %9.1f %9.1f %8.0f%% %9s %6d %6d", r.before, r.during, r.after, 100*r.recovery(), back, r.lost, r.twice)
}
