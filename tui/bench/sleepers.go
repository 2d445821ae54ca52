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
	sleeperGap    = 10 * time.Millisecond // between two sleepers, when that makes the spread shorter
	sleeperLead   = 2 * time.Second       // for all to be started and parked, and
	parkRate      = 1000                  // a second more for so many of them
)

// measureSleepers is W7: runs that sleep until moments spread evenly over ten seconds, and tell how
// late their first line after the sleep came.
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
	if err := until(ctx, time.UnixMilli(due[len(due)-1])); err != nil { // collecting must not disturb
		return sample{}, err
	}
	late := make([]time.Duration, p.runs)
	err = collect(ctx, runs, func(i int, d *kagzi.RunDetails, out int64) error {
		late[i] = time.Duration(out)
		switch {
		case out < 0:
			return fmt.Errorf("run %s went on %s too early", d.RunID, -late[i])
		case !d.StartedAt.Before(time.UnixMilli(due[i])):
			return errors.New(
				"runs were handed out only when they were due already: the lateness says nothing, take a smaller --scale")
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

// until waits for a moment.
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
