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
	collectors = 64 // results asked for at a time
)

// startAll starts one run for each input in batches, in order, `enqueuers` of them at a time.
func startAll[In any](ctx context.Context, r *rig, workflowType string, ins []In) ([]*kagzi.Run, error) {
	runs := make([]*kagzi.Run, len(ins))
	batches := (len(ins) + kagzi.MaxBatch - 1) / kagzi.MaxBatch
	err := each(ctx, batches, enqueuers, func(ctx context.Context, b int) error {
		from := b * kagzi.MaxBatch
		to := min(from+kagzi.MaxBatch, len(ins))
		started, err := kagzi.StartMany(ctx, r.client, workflowType, ins[from:to], kagzi.StartOptions{Queue: r.spec.queue})
		if err != nil {
			return fmt.Errorf("start %d of %s: %w", to-from, workflowType, err)
		}
		copy(runs[from:to], started)
		return nil
	})
	return runs, err
}

// collect waits for runs and hands over each as it ended.
func collect[Out any](ctx context.Context, runs []*kagzi.Run, take func(i int, d *kagzi.RunDetails, out Out) error) error {
	last := len(runs) - 1
	return each(ctx, len(runs), collectors, func(ctx context.Context, n int) error {
		i := last - n // the last first: when it has ended, so have most, and few calls are waiting
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

// window is the time from the earliest to the latest of some moments.
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

// measureBacklog is W6: runs are started with no worker there, then one worker takes them all. Draining is counted from the
// first claim to the last end, by the server's clock, so neither the worker's start nor the collecting is in it.
func measureBacklog(ctx context.Context, r *rig, p plan) (sample, error) {
	seeds := make([]int, p.runs)
	for i := range seeds {
		seeds[i] = i
	}
	began := time.Now()
	runs, err := startAll(ctx, r, emptyType, seeds)
	if err != nil {
		return sample{}, err
	}
	enqueued := time.Since(began)
	if err := r.startWorker(ctx); err != nil {
		return sample{}, err
	}
	var drain window
	err = collect(ctx, runs, func(i int, d *kagzi.RunDetails, out int) error {
		if d.StartedAt.IsZero() || d.FinishedAt.IsZero() {
			return fmt.Errorf("run %s has ended and has no times", d.RunID)
		}
		drain.add(d.StartedAt, d.FinishedAt)
		return expect(runs[i], out, seeds[i])
	})
	if err != nil {
		return sample{}, err
	}
	drained := drain.to.Sub(drain.from)
	return sample{
		figures: []figure{
			{"enqueued", "runs/s", rate(float64(p.runs), enqueued)},
			{"drained", "runs/s", rate(float64(p.runs), drained)},
		},
		runs: p.runs, elapsed: enqueued + drained,
	}, nil
}
