package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// W14 to W18 measure what W1 to W8 do not: steps that are announced before they end, children,
// signals, retries and timers.

const (
	longSteps     = 5 // of a run of W14
	longBody      = 300 * time.Millisecond
	childrenEach  = 20 // of a run of W15
	signalsEach   = 50 // of a run of W16
	inHandRuns    = 10 // of W16, one after the other, whose worker holds the lease
	inHandGap     = 10 * time.Millisecond
	wakesEach     = 5 // of a run of W18
	wakeSleep     = 50 * time.Millisecond
	retryInterval = time.Millisecond // of W17
)

const (
	longType    = "bench.long"
	parentType  = "bench.parent"
	signalsType = "bench.signalled"
	inHandType  = "bench.in-hand"
	retriedType = "bench.retried"
	wakesType   = "bench.wakes"
	signalName  = "go-on"
)

// long runs steps that take so long that the worker announces them before they end.
func long(ctx kagzi.Context, in job) (int, error) {
	sum := 0
	for i := range in.Steps {
		v, err := kagzi.Step(ctx, stepName(i), func(ctx context.Context) (int, error) {
			return in.Seed + i, until(ctx, time.Now().Add(longBody))
		})
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// parent starts children and adds up what they return.
func parent(ctx kagzi.Context, in job) (int, error) {
	children := make([]*kagzi.Child[int], in.Steps)
	for i := range children {
		child, err := kagzi.StartChild[int](ctx, stepName(i), emptyType, in.Seed+i, kagzi.ChildOptions{})
		if err != nil {
			return 0, err
		}
		children[i] = child
	}
	values, err := kagzi.WaitAll(ctx, children...)
	sum := 0
	for _, v := range values {
		sum += v
	}
	return sum, err
}

// signalled receives signals one by one and adds up their values.
func signalled(ctx kagzi.Context, in job) (int, error) {
	sum := 0
	for range in.Steps {
		v, err := kagzi.WaitSignal[int](ctx, signalName, 0)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// retried runs steps whose first attempt fails.
func retried(ctx kagzi.Context, in job) (int, error) {
	sum := 0
	policy := kagzi.Retry{Attempts: 5, Initial: retryInterval, Jitter: -1}
	for i := range in.Steps {
		v, err := kagzi.Step(ctx, stepName(i), func(ctx context.Context) (int, error) {
			if kagzi.Attempt(ctx) == 1 {
				return 0, errors.New("the first attempt fails")
			}
			return in.Seed + i, nil
		}, policy)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// wakes sleeps again and again.
func wakes(ctx kagzi.Context, in job) (int, error) {
	sum := 0
	for i := range in.Steps {
		kagzi.Sleep(ctx, stepName(i), wakeSleep)
		sum += in.Seed + i
	}
	return sum, nil
}

// stepped returns the closed loop of a workflow type whose runs have n steps each.
func stepped(kind string, n int, unit string) looped[int] {
	return looped[int]{kind: kind, steps: n, in: jobs(n), want: func(i int) int { return job{i, n}.total() },
		unit: unit, each: float64(n)}
}

// measureChildren is W15.
func measureChildren(ctx context.Context, r *fixture, p plan) (sample, error) {
	return closed(ctx, r, p, stepped(parentType, childrenEach, "children/s"))
}

// measureRetries is W17.
func measureRetries(ctx context.Context, r *fixture, p plan) (sample, error) {
	return closed(ctx, r, p, stepped(retriedType, 1, "retries/s"))
}

// inHand receives signals while a step keeps the run on its worker, and returns how many nanoseconds
// after its time each of them came.
func inHand(ctx kagzi.Context, n int) ([]int64, error) {
	over := make(chan struct{})
	holds := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
		return 0, kagzi.Do(ctx, "hold", func(step context.Context) error {
			select {
			case <-over:
				return nil
			case <-step.Done():
				return context.Cause(step)
			}
		})
	})
	late := make([]int64, n)
	for i := range late {
		sent, err := kagzi.WaitSignal[int64](ctx, signalName, 0)
		if err != nil {
			return nil, err
		}
		late[i] = time.Now().UnixNano() - sent
	}
	close(over)
	_, err := holds.Wait(ctx)
	return late, err
}

// signalsInHand returns how long signals take to code whose worker holds the run. They are sent one
// after the other, with a gap that lets the run wait again.
func signalsInHand(ctx context.Context, r *fixture, p plan) (times []time.Duration, err error) {
	err = each(ctx, min(inHandRuns, p.runs), 1, func(ctx context.Context, i int) error {
		run, err := kagzi.Start(ctx, r.client(i), inHandType, signalsEach, kagzi.StartOptions{Queue: r.spec.queue})
		if err != nil {
			return fmt.Errorf("start %s: %w", inHandType, err)
		}
		for n := range signalsEach {
			if err := until(ctx, time.Now().Add(inHandGap)); err != nil {
				return err
			}
			if err := kagzi.Signal(ctx, run, signalName, time.Now().UnixNano(), kagzi.SignalOptions{}); err != nil {
				return fmt.Errorf("signal %d of run %s: %w", n+1, run.ID(), err)
			}
		}
		late, err := kagzi.Result[[]int64](ctx, run)
		if err != nil {
			return fmt.Errorf("result of %s: %w", inHandType, err)
		}
		if len(late) != signalsEach {
			return fmt.Errorf("run %s received %d signals, want %d", run.ID(), len(late), signalsEach)
		}
		for _, l := range late[1:] { // the run may have begun after the first was sent
			times = append(times, time.Duration(l))
		}
		return nil
	})
	return times, err
}

// measureSignals is W16. The signals of a run are sent one after the other.
func measureSignals(ctx context.Context, r *fixture, p plan) (sample, error) {
	w := stepped(signalsType, signalsEach, "signals/s")
	w.meanwhile = func(ctx context.Context, i int, run *kagzi.Run) error {
		for n := range signalsEach {
			if err := kagzi.Signal(ctx, run, signalName, i+n, kagzi.SignalOptions{}); err != nil {
				return fmt.Errorf("signal %d of run %s: %w", n+1, run.ID(), err)
			}
		}
		return nil
	}
	s, err := closed(ctx, r, p, w)
	if err != nil {
		return s, err
	}
	times, err := signalsInHand(ctx, r, p)
	s.figures = append(s.figures, percentiles("signal in hand", times)...)
	return s, err
}

// burstOf measures runs of n steps that are all started at once, from the first claim to the last
// end by the server's clock.
func burstOf(kind string, n int, unit string) func(context.Context, *fixture, plan) (sample, error) {
	return func(ctx context.Context, r *fixture, p plan) (sample, error) {
		ins := make([]job, p.runs)
		for i := range ins {
			ins[i] = job{Seed: i, Steps: n}
		}
		m, err := r.meter(ctx)
		if err != nil {
			return sample{}, err
		}
		defer m.halt()
		runs, err := startAll(ctx, r, kind, ins)
		if err != nil {
			return sample{}, err
		}
		var busy window
		err = collect(ctx, runs, func(i int, d *kagzi.RunDetails, out int) error {
			busy.add(d.StartedAt, d.FinishedAt)
			return expect(runs[i], out, ins[i].total())
		})
		if err != nil {
			return sample{}, err
		}
		elapsed := busy.to.Sub(busy.from)
		c, err := m.end("", "step", p.runs*n)
		return sample{
			figures: []figure{
				{"throughput", unit, rate(float64(p.runs*n), elapsed)},
				{"all runs", "ms", milliseconds(elapsed)},
			},
			costs: []cost{c}, runs: p.runs, steps: p.runs * n, elapsed: elapsed,
		}, err
	}
}
