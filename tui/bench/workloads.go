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
	id        string
	what      string
	runs      int  // at scale 1; steps in W8, workers in W9, rounds in W11, entities in W12
	least     int  // minimum for a meaningful measurement
	inFlight  int  // runs at a time; 0 if --concurrency does not apply
	slots     int  // at least so many of the worker; 0 if --slots is enough
	timed     bool // whether --duration applies
	alone     bool // no worker until the measurement starts one
	oneWorker bool // looks into the worker process
	fills     bool // needs a second database with many ended runs
	// workflow types that it runs; none if a worker of --worker cannot be measured by it
	types   []string
	measure func(ctx context.Context, r *fixture, p plan) (sample, error)
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
		types: []string{emptyType}, measure: measureEmpty}
	tenSteps = workload{id: "W2", what: "10 sequential steps a run", runs: 2_000, least: 1, inFlight: 100, timed: true,
		types: []string{stepsType}, measure: stepsOf(10)}
	oneStep = workload{id: "W3", what: "1 step, one run at a time", runs: 1_000, least: 1, inFlight: 1, timed: true,
		types: []string{stepsType}, measure: stepsOf(1)}
)

// workloads are commonly used ones, so that the figures can be compared with other engines.
var workloads = []workload{
	emptyRuns, tenSteps, oneStep,
	{id: "W4", what: "100 parallel steps a run", runs: 100, least: 1, inFlight: 1, timed: true,
		types: []string{parallelType}, measure: measureParallel},
	{id: "W5", what: "10 steps of 64 KiB a run", runs: 160, least: 1, inFlight: 16, timed: true,
		types: []string{blobsType}, measure: measureBlobs},
	{id: "W6", what: "backlog, then drain", runs: 20_000, least: 2, alone: true, measure: measureBacklog},
	{id: "W7", what: "sleepers", runs: 1_000, least: 1, measure: measureSleepers},
	{id: "W8", what: "sequential steps of one run", runs: 1_000, least: paceLeast, measure: measurePace},
	{id: "W6-1M", what: "a backlog of a million, against one of 20,000", runs: 1_000_000, least: smallBacklogPart,
		alone: true, measure: measureLargeBacklog},
	{id: "W7-10K", what: "ten thousand sleepers", runs: 10_000, least: 1, measure: measureSleepers},
	{id: "W9", what: "idle workers", runs: 10_000, least: 1, timed: true, alone: true, measure: measureIdle},
	{id: "W10", what: "W1 to W3 in a table of a million ended runs, against an empty one", runs: 1_000_000, least: 100,
		fills: true, measure: measureFull},
	{id: "W11", what: "one run of rounds of a step and a sleep of 1 ms", runs: 5_000, least: roundsLeast,
		measure: measureRounds},
	{id: "W12", what: "entities that handle 1000 signals each, one by one, against W2", runs: 100, least: 1,
		slots: 200, measure: measureEntities},
	{id: "W13", what: "memory of a worker with sleeping runs", runs: 1_000, least: sleepersLeast,
		oneWorker: true, measure: measureAsleep},
	{id: "W13-100K", what: "memory of a worker with a hundred thousand sleeping runs", runs: 100_000, least: sleepersLeast,
		oneWorker: true, measure: measureAsleep},
	{id: "W14", what: "steps of 300 ms, 5 a run, all runs in flight", runs: 3_000, least: 1, slots: 3_000,
		measure: burstOf(longType, longSteps, "steps/s")},
	{id: "W15", what: "20 children a run, started and awaited", runs: 200, least: 1, inFlight: 200, slots: 200,
		timed: true, types: []string{parentType, emptyType}, measure: measureChildren},
	{id: "W16", what: "50 signals a run, one after the other", runs: 100, least: 1, inFlight: 100, slots: 200,
		timed: true, measure: measureSignals},
	{id: "W17", what: "a step that fails once a run", runs: 3_000, least: 1, inFlight: 200, slots: 200,
		timed: true, types: []string{retriedType}, measure: measureRetries},
	{id: "W18", what: "5 sleeps of 50 ms a run, all runs in flight", runs: 1_000, least: 1, slots: 200,
		measure: burstOf(wakesType, wakesEach, "wakes/s")},
	{id: "W19", what: "pending runs, half cancelled, half terminated, each by one request", runs: 20_000, least: 2,
		alone: true, measure: measureBulk},
	{id: "W20", what: "schedules that fire at the same second", runs: 1_000, least: 1, measure: measureTick},
	{id: "W21", what: "pages of lists, 4 at a time, beside 50 runs in flight", runs: 2_000, least: 1,
		measure: measureLists},
	{id: "W22", what: "imports of a run of 10 steps, 16 at a time", runs: 1_000, least: 1, measure: measureImport},
}

// all are the workloads that take seconds.
const all = "W1,W2,W3,W4,W5,W6,W7,W8,W11,W12,W13,W14,W15,W16,W17,W18,W19,W20,W21,W22"

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

// suits refuses workloads that look into the bench's own worker when there is another one.
func (o options) suits(chosen []workload) error {
	if o.worker == "" {
		return nil
	}
	var fit, unfit []string
	for _, w := range workloads {
		if len(w.types) > 0 {
			fit = append(fit, w.id)
		}
	}
	for _, w := range chosen {
		if len(w.types) == 0 {
			unfit = append(unfit, w.id)
		}
	}
	if len(unfit) > 0 {
		return usagef("--worker: %s cannot measure a worker in another language; choose from --workload %s",
			strings.Join(unfit, ", "), strings.Join(fit, ","))
	}
	return nil
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
	one := func(ctx context.Context, i int) error {
		return perform(ctx, r, i, w.kind, w.in(i), w.want(i), w.meanwhile)
	}
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
	// meanwhile does something about the i-th run once it was started; may be nil
	meanwhile func(ctx context.Context, i int, run *kagzi.Run) error
}

func measureEmpty(ctx context.Context, r *fixture, p plan) (sample, error) {
	same := func(i int) int { return i }
	return closed(ctx, r, p, looped[int]{kind: emptyType, in: func(i int) any { return i }, want: same, unit: "runs/s", each: 1})
}

func stepsOf(n int) func(context.Context, *fixture, plan) (sample, error) {
	return func(ctx context.Context, r *fixture, p plan) (sample, error) {
		return closed(ctx, r, p, stepped(stepsType, n, "steps/s"))
	}
}

func measureParallel(ctx context.Context, r *fixture, p plan) (sample, error) {
	const width = 100
	return closed(ctx, r, p, stepped(parallelType, width, "steps/s"))
}

func measureBlobs(ctx context.Context, r *fixture, p plan) (sample, error) {
	const n = 10
	return closed(ctx, r, p, looped[uint32]{kind: blobsType, steps: n, in: jobs(n),
		want: func(i int) uint32 { return job{i, n}.checksum() }, unit: "MB/s", each: n * blobBytes / 1e6})
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
