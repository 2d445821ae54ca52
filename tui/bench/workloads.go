package bench

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// workload is a load to measure.
type workload struct {
	id       string
	what     string
	runs     int  // at scale 1; steps in W8, workers in W9
	least    int  // minimum for a meaningful measurement
	inFlight int  // runs at a time; 0 if --concurrency does not apply
	timed    bool // whether --duration applies
	alone    bool // no worker until the measurement starts one
	fills    bool // needs a second database with many ended runs
	measure  func(ctx context.Context, r *fixture, p plan) (sample, error)
}

// sample is one measurement of a workload.
type sample struct {
	figures []figure
	costs   []cost
	runs    int
	steps   int
	elapsed time.Duration
}

// The workloads that W10 compares.
var (
	emptyRuns = workload{id: "W1", what: "empty runs", runs: 20_000, least: 1, inFlight: 100, timed: true,
		measure: measureEmpty}
	tenSteps = workload{id: "W2", what: "10 sequential steps a run", runs: 2_000, least: 1, inFlight: 100, timed: true,
		measure: stepsOf(10)}
	oneStep = workload{id: "W3", what: "1 step, one run at a time", runs: 1_000, least: 1, inFlight: 1, timed: true,
		measure: stepsOf(1)}
)

// workloads are commonly used ones, so that the figures can be compared with other engines.
var workloads = []workload{
	emptyRuns, tenSteps, oneStep,
	{id: "W4", what: "100 parallel steps a run", runs: 100, least: 1, inFlight: 1, timed: true,
		measure: measureParallel},
	{id: "W5", what: "10 steps of 64 KiB a run", runs: 160, least: 1, inFlight: 16, timed: true, measure: measureBlobs},
	{id: "W6", what: "backlog, then drain", runs: 20_000, least: 2, alone: true, measure: measureBacklog},
	{id: "W7", what: "sleepers", runs: 1_000, least: 1, measure: measureSleepers},
	{id: "W8", what: "sequential steps of one run", runs: 1_000, least: paceLeast, measure: measurePace},
	{id: "W6-1M", what: "a backlog of a million, against one of 20,000", runs: 1_000_000, least: smallBacklogPart,
		alone: true, measure: measureLargeBacklog},
	{id: "W7-10K", what: "ten thousand sleepers", runs: 10_000, least: 1, measure: measureSleepers},
	{id: "W9", what: "idle workers", runs: 10_000, least: 1, timed: true, alone: true, measure: measureIdle},
	{id: "W10", what: "W1 to W3 in a table of a million ended runs, against an empty one", runs: 1_000_000, least: 100,
		fills: true, measure: measureFull},
}

// all are the workloads that take seconds.
const all = "W1,W2,W3,W4,W5,W6,W7,W8"

// choose returns the workloads in a list such as "W1,w6".
func choose(list string) ([]workload, error) {
	if strings.EqualFold(strings.TrimSpace(list), "all") {
		list = all
	}
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
			return nil, usagef("--workload %q: must be a comma-separated list of %s, or all", list,
				strings.Join(ids(), ", "))
		}
	}
	return chosen, nil
}

func ids() []string {
	names := make([]string, len(workloads))
	for i, w := range workloads {
		names[i] = w.id
	}
	return names
}

// plan returns the size of the workload for the options.
func (w workload) plan(o options) plan {
	p := plan{runs: max(w.least, int(math.Round(float64(w.runs)*o.scale))), inFlight: w.inFlight}
	if o.runs > 0 {
		p.runs = max(w.least, o.runs)
	}
	if w.timed {
		p.duration = o.duration
	}
	if w.inFlight > 1 && o.concurrency > 0 {
		p.inFlight = o.concurrency
	}
	return p
}

// warmUp is a small, uncounted part of the workload that warms connections, caches and goroutines.
func (p plan) warmUp() plan {
	return plan{runs: max(1, min(p.runs/10, 2*p.inFlight)), inFlight: min(p.inFlight, max(1, p.runs/10))}
}

// closed measures a closed loop of runs after a warm-up. Each run must return the result that want
// gives; cost is per run.
func closed[Out comparable](ctx context.Context, r *fixture, p plan, w looped[Out]) (sample, error) {
	one := func(ctx context.Context, i int) error { return perform(ctx, r, i, w.kind, w.in(i), w.want(i)) }
	warm := p.warmUp()
	if _, err := closedLoop(ctx, warm, 0, one); err != nil {
		return sample{}, err
	}
	m, err := r.meter(ctx)
	if err != nil {
		return sample{}, err
	}
	defer m.halt()
	l, err := closedLoop(ctx, p, warm.runs, one)
	if err != nil {
		return sample{}, err
	}
	per, n := "run", l.runs
	if w.steps > 1 {
		per, n = "step", l.runs*w.steps
	}
	c, err := m.end("", per, n)
	f := figure{"throughput", w.unit, rate(float64(l.runs)*w.each, l.elapsed)}
	return sample{
		figures: append([]figure{f}, percentiles("start to result", l.times)...), costs: []cost{c},
		runs: l.runs, steps: l.runs * w.steps, elapsed: l.elapsed,
	}, err
}

// looped is what a closed loop repeats.
type looped[Out comparable] struct {
	kind  string // workflow type
	steps int    // per run
	in    func(i int) any
	want  func(i int) Out
	unit  string
	each  float64 // how much a run counts, in that unit
}

func measureEmpty(ctx context.Context, r *fixture, p plan) (sample, error) {
	same := func(i int) int { return i }
	return closed(ctx, r, p, looped[int]{emptyType, 0, func(i int) any { return i }, same, "runs/s", 1})
}

func stepsOf(n int) func(context.Context, *fixture, plan) (sample, error) {
	return func(ctx context.Context, r *fixture, p plan) (sample, error) {
		return closed(ctx, r, p, looped[int]{stepsType, n, jobs(n), func(i int) int {
			return job{i, n}.total()
		}, "steps/s", float64(n)})
	}
}

func measureParallel(ctx context.Context, r *fixture, p plan) (sample, error) {
	const width = 100
	return closed(ctx, r, p, looped[int]{parallelType, width, jobs(width), func(i int) int {
		return job{i, width}.total()
	}, "steps/s", width})
}

func measureBlobs(ctx context.Context, r *fixture, p plan) (sample, error) {
	const n = 10
	return closed(ctx, r, p, looped[uint32]{blobsType, n, jobs(n), func(i int) uint32 {
		return job{i, n}.checksum()
	}, "MB/s", n * blobBytes / 1e6})
}

// jobs returns inputs with that many steps.
func jobs(steps int) func(i int) any { return func(i int) any { return job{i, steps} } }

// measurePace is W8: the pace of one run's steps, measured by the run itself.
func measurePace(ctx context.Context, r *fixture, p plan) (sample, error) {
	in := job{Seed: 7, Steps: p.runs}
	m, err := r.meter(ctx)
	if err != nil {
		return sample{}, err
	}
	defer m.halt()
	began := time.Now()
	run, err := kagzi.Start(ctx, r.client(0), paceType, in, kagzi.StartOptions{Queue: r.spec.queue})
	if err != nil {
		return sample{}, fmt.Errorf("start %s: %w", paceType, err)
	}
	got, err := kagzi.Result[paceOf](ctx, run)
	if err != nil {
		return sample{}, fmt.Errorf("result of %s: %w", paceType, err)
	}
	elapsed := time.Since(began)
	c, err := m.end("", "step", in.Steps)
	if err != nil {
		return sample{}, err
	}
	if got.Total != in.total() {
		return sample{}, fmt.Errorf("the steps add up to %d, want %d", got.Total, in.total())
	}
	if got.Executed != in.Steps {
		return sample{},
			fmt.Errorf(
				"the run moved to another execution midway (%d of %d steps in the last one): its pace is meaningless",
				got.Executed, in.Steps)
	}
	return sample{
		figures: []figure{
			{"steps 5 to 24", "ms/step", milliseconds(time.Duration(got.Early))},
			{"last 20 steps", "ms/step", milliseconds(time.Duration(got.Late))},
		},
		costs: []cost{c}, runs: 1, steps: in.Steps, elapsed: elapsed,
	}, nil
}
