package bench

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// workload is one of the loads that are measured.
type workload struct {
	id       string
	what     string
	runs     int // at scale 1; for W8 steps
	least    int // that the measurement makes sense with
	inFlight int // runs at a time; 0 where --concurrency means nothing
	closed   bool
	backlog  bool // no worker until the measurement starts one
	measure  func(ctx context.Context, r *rig, p plan) (sample, error)
}

// sample is one measurement of a workload.
type sample struct {
	figures []figure
	runs    int
	steps   int
	elapsed time.Duration
}

// workloads are those of research: the figures can be put beside those of other engines measured in the same way.
var workloads = []workload{
	{id: "W1", what: "empty runs", runs: 20_000, least: 1, inFlight: 100, closed: true, measure: measureEmpty},
	{id: "W2", what: "10 sequential steps a run", runs: 2_000, least: 1, inFlight: 100, closed: true, measure: stepsOf(10)},
	{id: "W3", what: "1 step, one run at a time", runs: 1_000, least: 1, inFlight: 1, closed: true, measure: stepsOf(1)},
	{id: "W4", what: "100 parallel steps a run", runs: 100, least: 1, inFlight: 1, closed: true, measure: measureParallel},
	{id: "W5", what: "10 steps of 64 KiB a run", runs: 160, least: 1, inFlight: 16, closed: true, measure: measureBlobs},
	{id: "W6", what: "backlog, then drain", runs: 20_000, least: 2, backlog: true, measure: measureBacklog},
	{id: "W7", what: "sleepers", runs: 1_000, least: 1, measure: measureSleepers},
	{id: "W8", what: "sequential steps of one run", runs: 1_000, least: paceLeast, measure: measurePace},
}

// choose finds the workloads that a list such as "W1,w6" names.
func choose(list string) ([]workload, error) {
	var chosen []workload
	for name := range strings.SplitSeq(list, ",") {
		name = strings.ToUpper(strings.TrimSpace(name))
		found := false
		for _, w := range workloads {
			if w.id == name {
				chosen, found = append(chosen, w), true
			}
		}
		if !found {
			return nil, usagef("--workload %q: want W1 to W8, separated by commas", list)
		}
	}
	return chosen, nil
}

// plan says how much of the workload the options ask for.
func (w workload) plan(o options) plan {
	p := plan{runs: max(w.least, int(math.Round(float64(w.runs)*o.scale))), inFlight: w.inFlight}
	if o.runs > 0 {
		p.runs = max(w.least, o.runs)
	}
	if w.closed {
		p.duration = o.duration
	}
	if w.inFlight > 1 && o.concurrency > 0 {
		p.inFlight = o.concurrency
	}
	return p
}

// warmUp is a little of the workload that is not counted: connections, caches, and the goroutines of both processes.
func (p plan) warmUp() plan {
	return plan{runs: max(1, min(p.runs/10, 2*p.inFlight)), inFlight: min(p.inFlight, max(1, p.runs/10))}
}

// closed measures a closed loop of runs that each return what want says, after a warm-up.
func closed[Out comparable](ctx context.Context, r *rig, p plan, workflowType string, in func(i int) any, want func(i int) Out) (loop, error) {
	one := func(ctx context.Context, i int) error { return perform(ctx, r, workflowType, in(i), want(i)) }
	warm := p.warmUp()
	if _, err := closedLoop(ctx, warm, 0, one); err != nil {
		return loop{}, err
	}
	return closedLoop(ctx, p, warm.runs, one)
}

func measureEmpty(ctx context.Context, r *rig, p plan) (sample, error) {
	l, err := closed(ctx, r, p, emptyType, func(i int) any { return i }, func(i int) int { return i })
	return l.sample(0, figure{"throughput", "runs/s", rate(float64(l.runs), l.elapsed)}), err
}

func stepsOf(n int) func(context.Context, *rig, plan) (sample, error) {
	return func(ctx context.Context, r *rig, p plan) (sample, error) {
		l, err := closed(ctx, r, p, stepsType, func(i int) any { return job{i, n} }, func(i int) int { return job{i, n}.total() })
		return l.sample(n, figure{"throughput", "steps/s", rate(float64(l.runs*n), l.elapsed)}), err
	}
}

func measureParallel(ctx context.Context, r *rig, p plan) (sample, error) {
	const width = 100
	l, err := closed(ctx, r, p, parallelType, func(i int) any { return job{i, width} }, func(i int) int { return job{i, width}.total() })
	return l.sample(width, figure{"throughput", "steps/s", rate(float64(l.runs*width), l.elapsed)}), err
}

func measureBlobs(ctx context.Context, r *rig, p plan) (sample, error) {
	const n = 10
	l, err := closed(ctx, r, p, blobsType, func(i int) any { return job{i, n} }, func(i int) uint32 { return job{i, n}.checksum() })
	megabytes := float64(l.runs) * n * blobBytes / 1e6
	return l.sample(n, figure{"throughput", "MB/s", rate(megabytes, l.elapsed)}), err
}

// sample reports a loop of runs of so many steps each.
func (l loop) sample(steps int, f figure) sample {
	return sample{
		figures: append([]figure{f}, percentiles("start to result", l.times)...),
		runs:    l.runs, steps: l.runs * steps, elapsed: l.elapsed,
	}
}

// measurePace is W8: the pace of one run's steps, as the run itself saw it.
func measurePace(ctx context.Context, r *rig, p plan) (sample, error) {
	in := job{Seed: 7, Steps: p.runs}
	began := time.Now()
	run, err := kagzi.Start(ctx, r.client, paceType, in, kagzi.StartOptions{Queue: r.spec.queue})
	if err != nil {
		return sample{}, fmt.Errorf("start %s: %w", paceType, err)
	}
	got, err := kagzi.Result[paceOf](ctx, run)
	if err != nil {
		return sample{}, fmt.Errorf("result of %s: %w", paceType, err)
	}
	if got.Total != in.total() {
		return sample{}, fmt.Errorf("the steps add up to %d, want %d", got.Total, in.total())
	}
	if got.Executed != in.Steps {
		return sample{}, fmt.Errorf("the run changed hands midway (%d of %d steps in the last execution): its pace says nothing", got.Executed, in.Steps)
	}
	return sample{
		figures: []figure{
			{"steps 5 to 24", "ms/step", milliseconds(time.Duration(got.Early))},
			{"last 20 steps", "ms/step", milliseconds(time.Duration(got.Late))},
		},
		runs: 1, steps: in.Steps, elapsed: time.Since(began),
	}, nil
}
