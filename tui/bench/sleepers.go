package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

const (
	sleeperSpread = 10 * time.Second
	sleeperGap    = 10 * time.Millisecond // between two sleepers, if that makes the spread shorter
	sleeperLead   = 2 * time.Second       // for all to be started and parked, plus
	parkRate      = 1000                  // one second per this many
)

// measureSleepers is W7: runs that sleep until times spread evenly over ten seconds, and report how
// late they woke.
func measureSleepers(ctx context.Context, r *fixture, p plan) (sample, error) {
	m, err := r.meter(ctx)
	if err != nil {
		return sample{}, err
	}
	defer m.halt()
	began := time.Now()
	first := began.Add(sleeperLead + time.Duration(p.runs)*time.Second/parkRate)
	gap := min(sleeperSpread/time.Duration(p.runs), sleeperGap)
	due := make([]int64, p.runs)
	for i := range due {
		due[i] = first.Add(time.Duration(i) * gap).UnixMilli()
	}
	runs, err := startAll(ctx, r, sleeperType, due)
	if err != nil {
		return sample{}, err
	}
	if err := until(ctx, time.UnixMilli(due[len(due)-1])); err != nil { // collecting must not disturb them
		return sample{}, err
	}
	late := make([]time.Duration, p.runs)
	err = collect(ctx, runs, func(i int, d *kagzi.RunDetails, out int64) error {
		late[i] = time.Duration(out)
		switch {
		case out < 0:
			return fmt.Errorf("run %s woke %s too early", d.RunID, -late[i])
		case !d.StartedAt.Before(time.UnixMilli(due[i])):
			return errors.New(
				"runs were started only after they were due, so their lateness is meaningless: use a smaller --scale")
		}
		return nil
	})
	if err != nil {
		return sample{}, err
	}
	elapsed := time.Since(began)
	c, err := m.end("", "run", p.runs)
	return sample{figures: percentiles("late", late), costs: []cost{c}, runs: p.runs, steps: p.runs, elapsed: elapsed},
		err
}

// until waits for a time.
func until(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
