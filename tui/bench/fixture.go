package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// place is a server to measure. Process and metrics are only known for the bench's own.
type place struct {
	address string
	pid     int
	metrics string // host:port
}

// fixture is the environment of one measurement: servers on one database, and a queue and worker
// processes.
type fixture struct {
	servers  []place
	database string // of private servers on Postgres, as in GetServerInfo
	clients  []*kagzi.Client
	spec     workerSpec // without the address
	workers  []worker
	full     *fixture // in W10: the servers on the database with many ended runs

	heartbeat time.Duration // the servers' heartbeat interval for workers
}

func newFixture(servers []place, database string, spec workerSpec) (*fixture, error) {
	r := &fixture{servers: servers, database: database, spec: spec}
	key, err := spec.reach.Key()
	if err != nil {
		return nil, err
	}
	encrypted, err := spec.reach.TLSConfig()
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		client, err := kagzi.NewClient(kagzi.ClientOptions{
			Profile: kagzi.NoProfile, Address: s.address, Namespace: spec.namespace, APIKey: string(key),
			TLS: encrypted, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.clients = append(r.clients, client)
	}
	return r, nil
}

// client returns the client for the i-th call: servers take turns.
func (r *fixture) client(i int) *kagzi.Client { return r.clients[i%len(r.clients)] }

// startWorkers starts one worker process per server.
func (r *fixture) startWorkers(ctx context.Context) error {
	for _, s := range r.servers {
		spec := r.spec
		spec.address = s.address
		w, err := spec.start(ctx)
		if err != nil {
			return err
		}
		r.workers = append(r.workers, w)
	}
	return nil
}

func (r *fixture) stopWorkers() error {
	var errs []error
	for _, w := range r.workers {
		errs = append(errs, w.Stop(stopGrace))
	}
	r.workers = nil
	return errors.Join(errs...)
}

func (r *fixture) close() error {
	errs := []error{r.stopWorkers()}
	for _, c := range r.clients {
		errs = append(errs, c.Close())
	}
	if r.full != nil {
		errs = append(errs, r.full.close())
	}
	return errors.Join(errs...)
}

// perform starts the i-th run, calls meanwhile, which may be nil, and waits for the run's result,
// which must be want.
func perform[In any, Out comparable](ctx context.Context, r *fixture, i int, workflowType string, in In,
	want Out, meanwhile func(context.Context, int, *kagzi.Run) error) error {
	run, err := kagzi.Start(ctx, r.client(i), workflowType, in, kagzi.StartOptions{Queue: r.spec.queue})
	if err != nil {
		return fmt.Errorf("start %s: %w", workflowType, err)
	}
	if meanwhile != nil {
		if err := meanwhile(ctx, i, run); err != nil {
			return err
		}
	}
	got, err := kagzi.Result[Out](ctx, run)
	if err != nil {
		return fmt.Errorf("result of %s: %w", workflowType, err)
	}
	return expect(run, got, want)
}

func expect[Out comparable](run *kagzi.Run, got, want Out) error {
	if got != want {
		return fmt.Errorf("run %s returned %v, want %v", run.ID(), got, want)
	}
	return nil
}

// plan is the size of a measurement.
type plan struct {
	runs     int           // steps in W8
	duration time.Duration // how long a closed loop runs; 0 means it counts runs
	inFlight int
}

// loop is the result of a closed loop.
type loop struct {
	runs    int
	elapsed time.Duration   // from the first start to the last result
	times   []time.Duration // of each run, from the start call to the result
}

// closedLoop keeps p.inFlight calls of one running until the plan is done, each with its own
// number, from first on. The first error ends it.
func closedLoop(ctx context.Context, p plan, first int, one func(ctx context.Context, i int) error) (loop, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	var next atomic.Int64
	times := make([][]time.Duration, p.inFlight)
	var starters sync.WaitGroup
	for s := range p.inFlight {
		starters.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if p.duration > 0 && time.Since(began) >= p.duration || p.duration == 0 && i >= p.runs {
					return
				}
				from := time.Now()
				if err := one(ctx, first+i); err != nil {
					cancel(err)
					return
				}
				times[s] = append(times[s], time.Since(from))
			}
		})
	}
	starters.Wait()
	if ctx.Err() != nil {
		return loop{}, context.Cause(ctx)
	}
	all := slices.Concat(times...)
	return loop{runs: len(all), elapsed: time.Since(began), times: all}, nil
}

// each calls work for 0 to n-1 in order, at most `wide` at a time. The first error ends it.
func each(ctx context.Context, n, wide int, work func(ctx context.Context, i int) error) error {
	if n == 0 {
		return nil
	}
	_, err := closedLoop(ctx, plan{runs: n, inFlight: min(wide, n)}, 0, work)
	return err
}
