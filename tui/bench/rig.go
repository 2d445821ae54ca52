package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/tui/child"
)

// rig is what one measurement works with: a server, and a queue and a worker process of its own.
type rig struct {
	client *kagzi.Client
	spec   workerSpec
	worker *child.Process
}

func newRig(spec workerSpec) (*rig, error) {
	client, err := kagzi.NewClient(kagzi.ClientOptions{
		Profile: spec.profile(), Address: spec.address, Namespace: spec.namespace, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, err
	}
	return &rig{client: client, spec: spec}, nil
}

func (r *rig) startWorker(ctx context.Context) (err error) {
	r.worker, err = r.spec.start(ctx)
	return err
}

func (r *rig) close() error {
	var errs []error
	if r.worker != nil {
		errs = append(errs, r.worker.Stop(stopGrace))
	}
	return errors.Join(append(errs, r.client.Close())...)
}

// perform starts a run and waits for its result, which must be want.
func perform[In any, Out comparable](ctx context.Context, r *rig, workflowType string, in In, want Out) error {
	run, err := kagzi.Start(ctx, r.client, workflowType, in, kagzi.StartOptions{Queue: r.spec.queue})
	if err != nil {
		return fmt.Errorf("start %s: %w", workflowType, err)
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

// plan is how much of a workload to do.
type plan struct {
	runs     int           // or steps, in W8
	duration time.Duration // closed loops go on this long, and do not count runs; 0 means that they do
	inFlight int
}

// loop is what a closed loop has done.
type loop struct {
	runs    int
	elapsed time.Duration   // from the first start to the last result
	times   []time.Duration // of each run, from start call to result
}

// closedLoop keeps p.inFlight calls of one going, each with a number of its own from first on, until the plan is done. The first
// error ends it.
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

// each calls work for 0 to n-1, at most `wide` at a time, in that order. The first error ends it.
func each(ctx context.Context, n, wide int, work func(ctx context.Context, i int) error) error {
	if n == 0 {
		return nil
	}
	_, err := closedLoop(ctx, plan{runs: n, inFlight: min(wide, n)}, 0, work)
	return err
}
