package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

const (
	enqueuers  = 4  // batches in flight
	collectors = 64 // results requested at a time
)

// startAll starts one run per input in batches, in order, `enqueuers` of them at a time.
func startAll[In any](ctx context.Context, r *fixture, workflowType string, ins []In) ([]*kagzi.Run, error) {
	runs := make([]*kagzi.Run, len(ins))
	batches := (len(ins) + kagzi.MaxBatch - 1) / kagzi.MaxBatch
	err := each(ctx, batches, enqueuers, func(ctx context.Context, b int) error {
		from := b * kagzi.MaxBatch
		to := min(from+kagzi.MaxBatch, len(ins))
		started, err := startBatch(ctx, r, b, workflowType, ins[from:to])
		if err != nil {
			return err
		}
		copy(runs[from:to], started)
		return nil
	})
	return runs, err
}

// startBatch starts one run per input in one call; b is the number of the batch.
func startBatch[In any](ctx context.Context, r *fixture, b int, workflowType string, ins []In) ([]*kagzi.Run, error) {
	started, err := kagzi.StartMany(ctx, r.client(b), workflowType, ins, kagzi.StartOptions{Queue: r.spec.queue})
	if err != nil {
		return nil, fmt.Errorf("start %d of %s: %w", len(ins), workflowType, err)
	}
	return started, nil
}

// collect waits for runs and passes on each result.
func collect[Out any](ctx context.Context, runs []*kagzi.Run,
	take func(i int, d *kagzi.RunDetails, out Out) error) error {
	last := len(runs) - 1
	return each(ctx, len(runs), collectors, func(ctx context.Context, n int) error {
		i := last - n // the last first: when it has ended most others have too, and few calls wait
		d, err := runs[i].Wait(ctx)
		if err != nil {
			return fmt.Errorf("wait for run %s: %w", runs[i].ID(), err)
		}
		if d.Status != kagzi.StatusCompleted {
			return d.Error
		}
		out, err := kagzi.Output[Out](d)
		if err != nil {
			return err
		}
		return take(i, d, out)
	})
}

// window is the time from the earliest to the latest of some times.
type window struct {
	mu       sync.Mutex
	from, to time.Time
}

func (w *window) add(from, to time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.from.IsZero() || from.Before(w.from) {
		w.from = from
	}
	if to.After(w.to) {
		w.to = to
	}
}

// backlog is the result of draining a backlog.
type backlog struct {
	enqueued, drained time.Duration
	costs             []cost
}

// drain starts n runs without a worker, then the workers, which process them all. It measures from
// the first claim to the last end by the server's clock, without the workers' start and the
// collecting.
func drain(ctx context.Context, r *fixture, n int) (b backlog, err error) {
	seeds := make([]int, n)
	for i := range seeds {
		seeds[i] = i
	}
	filling, err := r.meter(ctx)
	if err != nil {
		return b, err
	}
	defer filling.halt()
	began := time.Now()
	runs, err := startAll(ctx, r, emptyType, seeds)
	if err != nil {
		return b, err
	}
	b.enqueued = time.Since(began)
	enqueue, err := filling.end("enqueue", "run", n)
	if err != nil {
		return b, err
	}
	emptying, err := r.meter(ctx)
	if err != nil {
		return b, err
	}
	defer emptying.halt()
	if err := r.startWorkers(ctx); err != nil {
		return b, err
	}
	var drain window
	err = collect(ctx, runs, func(i int, d *kagzi.RunDetails, out int) error {
		if d.StartedAt.IsZero() || d.FinishedAt.IsZero() {
			return fmt.Errorf("run %s has ended without times", d.RunID)
		}
		drain.add(d.StartedAt, d.FinishedAt)
		return expect(runs[i], out, seeds[i])
	})
	if err != nil {
		return b, err
	}
	b.drained = drain.to.Sub(drain.from)
	collected, err := emptying.end("drain and collect", "run", n)
	b.costs = []cost{enqueue, collected}
	return b, err
}

// measureBacklog is W6.
func measureBacklog(ctx context.Context, r *fixture, p plan) (sample, error) {
	b, err := drain(ctx, r, p.runs)
	return sample{
		figures: []figure{
			{"enqueued", "runs/s", rate(float64(p.runs), b.enqueued)},
			{"drained", "runs/s", rate(float64(p.runs), b.drained)},
		},
		costs: b.costs, runs: p.runs, elapsed: b.enqueued + b.drained,
	}, err
}

// smallBacklogPart is the ratio of the large backlog of W6-1M to the small one it is compared with.
const smallBacklogPart = 50

// measureLargeBacklog is W6 with a small backlog, then with a large one.
func measureLargeBacklog(ctx context.Context, r *fixture, p plan) (sample, error) {
	few := p.runs / smallBacklogPart
	small, err := drain(ctx, r, few)
	if err != nil {
		return sample{}, err
	}
	if err := r.stopWorkers(); err != nil {
		return sample{}, err
	}
	large, err := drain(ctx, r, p.runs)
	if err != nil {
		return sample{}, err
	}
	smallRate, largeRate := rate(float64(few), small.drained), rate(float64(p.runs), large.drained)
	return sample{
		figures: []figure{
			{"enqueued", "runs/s", rate(float64(p.runs), large.enqueued)},
			{"drained", "runs/s", largeRate},
			{fmt.Sprintf("drained of %d", few), "runs/s", smallRate},
			{"ratio", "", ratio(largeRate, smallRate)},
		},
		costs: large.costs, runs: p.runs + few, elapsed: small.enqueued + small.drained + large.enqueued +
			large.drained,
	}, nil
}
