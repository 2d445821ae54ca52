package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// W11 to W13 measure what a run costs that comes back again and again: the rounds of a long run,
// entities that handle signals one by one, and what a worker keeps of runs that sleep.

const (
	roundSleep    = time.Millisecond // of W11
	roundsLeast   = 20
	entitySignals = 1000 // of an entity of W12
	entityChain   = 500  // signals after which an entity continues as new, in its second part
	sleepLead     = 3 * time.Second
	sleepersLeast = 200             // a few runs weigh less than what the worker's memory changes by between two looks
	sleepMeasured = 5 * time.Second // between the last park of W13 and the first wake, plus
)

const (
	roundsType = "bench.rounds"
	entityType = "bench.entity"
	memoryType = "bench.memory"
	handleStep = "handle"
)

// rounds runs a step and sleeps, again and again.
func rounds(ctx kagzi.Context, in job) (int, error) {
	sum := 0
	for i := range in.Steps {
		v, err := kagzi.Step(ctx, stepName(i), func(context.Context) (int, error) { return in.Seed + i, nil })
		if err != nil {
			return 0, err
		}
		sum += v
		kagzi.Sleep(ctx, "pause", roundSleep)
	}
	return sum, nil
}

// feed is the input of an entity: how many signals it still has to handle, after how many it continues
// as new (0: never), and the sum of those before.
type feed struct {
	Left  int `json:"left"`
	Chain int `json:"chain"`
	Sum   int `json:"sum"`
}

// entity handles signals one by one, with a step each.
func entity(ctx kagzi.Context, in feed) (int, error) {
	for n := 1; in.Left > 0; n++ {
		v, err := kagzi.WaitSignal[int](ctx, signalName, 0)
		if err != nil {
			return 0, err
		}
		v, err = kagzi.Step(ctx, handleStep, func(context.Context) (int, error) { return v, nil })
		if err != nil {
			return 0, err
		}
		in.Sum += v
		if in.Left--; n == in.Chain && in.Left > 0 {
			return kagzi.ContinueAsNew[int](ctx, in)
		}
	}
	return in.Sum, nil
}

// memory returns the bytes that the worker's process has in use, without garbage.
func memory(ctx kagzi.Context, _ int) (int64, error) {
	return kagzi.Step(ctx, "read", func(context.Context) (int64, error) {
		var m runtime.MemStats
		for range 2 { // finalizers run between the collections
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse), nil
	})
}

// measureRounds is W11: one run, whose rounds are timed by the server's clock.
func measureRounds(ctx context.Context, r *fixture, p plan) (sample, error) {
	in := job{Seed: 3, Steps: p.runs}
	m, err := r.meter(ctx)
	if err != nil {
		return sample{}, err
	}
	defer m.halt()
	began := time.Now()
	run, err := kagzi.Start(ctx, r.client(0), roundsType, in, kagzi.StartOptions{Queue: r.spec.queue})
	if err != nil {
		return sample{}, fmt.Errorf("start %s: %w", roundsType, err)
	}
	got, err := kagzi.Result[int](ctx, run)
	if err != nil {
		return sample{}, fmt.Errorf("result of %s: %w", roundsType, err)
	}
	if err := expect(run, got, in.total()); err != nil {
		return sample{}, err
	}
	elapsed := time.Since(began)
	c, err := m.end("", "round", in.Steps)
	if err != nil {
		return sample{}, err
	}
	ends, err := stepEnds(ctx, r, run.ID(), func(s *kagziv1.Step) bool {
		return s.GetKind() == kagziv1.StepKind_STEP_KIND_FUNCTION
	})
	if err != nil {
		return sample{}, err
	}
	if len(ends) != in.Steps {
		return sample{}, fmt.Errorf("run %s has %d steps, want %d", run.ID(), len(ends), in.Steps)
	}
	return sample{figures: tenths("round", ends), costs: []cost{c}, runs: 1, steps: in.Steps, elapsed: elapsed}, nil
}

// stepEnds returns when the completed steps of a run ended that want selects, in order.
func stepEnds(ctx context.Context, r *fixture, run string, want func(*kagziv1.Step) bool) (ends []time.Time,
	err error) {
	admin := kagziv1.NewAdminServiceClient(r.client(0).Conn())
	page := &kagziv1.PageRequest{PageSize: 1000}
	for {
		answer, err := admin.ListSteps(ctx,
			&kagziv1.ListStepsRequest{Namespace: r.spec.namespace, RunId: run, Page: page})
		if err != nil {
			return nil, err
		}
		for _, s := range answer.GetSteps() {
			if s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_COMPLETED && want(s) {
				ends = append(ends, s.GetFinishedAt().AsTime())
			}
		}
		if page.PageToken = answer.GetPage().GetNextPageToken(); page.PageToken == "" {
			slices.SortFunc(ends, time.Time.Compare)
			return ends, nil
		}
	}
}

// tenths returns how long a turn took in the first and in the last tenth, and the ratio.
func tenths(what string, ends []time.Time) []figure {
	n := max(1, (len(ends)-1)/10)
	pace := func(part []time.Time) float64 {
		return milliseconds(part[len(part)-1].Sub(part[0])) / float64(len(part)-1)
	}
	first, last := pace(ends[:n+1]), pace(ends[len(ends)-n-1:])
	return []figure{
		{"first tenth", "ms/" + what, first}, {"last tenth", "ms/" + what, last},
		{"last against first tenth", "", ratio(last, first)},
	}
}

// measureEntities is W12: entities that handle signals one by one, first without end and then continuing
// as new, after W2 in the same run.
func measureEntities(ctx context.Context, r *fixture, p plan) (s sample, err error) {
	two, err := measureTwo(ctx, r, p)
	if err != nil {
		return s, err
	}
	s = sample{figures: []figure{{"W2 throughput", "steps/s", two}}}
	for _, part := range []struct {
		name  string
		chain int
	}{{"signals", 0}, {fmt.Sprintf("signals, continued every %d", entityChain), entityChain}} {
		if err := s.addEntities(ctx, r, p, part.name, part.chain, two); err != nil {
			return s, err
		}
	}
	return s, nil
}

// measureTwo returns the throughput of W2, with as many steps in all as signals.
func measureTwo(ctx context.Context, r *fixture, p plan) (stepsPerSecond float64, err error) {
	w := tenSteps.plan(options{scale: 1, runs: p.runs * entitySignals / 10})
	two, err := closed(ctx, r, w, stepped(stepsType, 10, "steps/s"))
	if err != nil {
		return 0, fmt.Errorf("W2: %w", err)
	}
	return two.figures[0].value, nil
}

func (s *sample) addEntities(ctx context.Context, r *fixture, p plan, name string, chain int, two float64) error {
	m, err := r.meter(ctx)
	if err != nil {
		return err
	}
	defer m.halt()
	began := time.Now()
	runs := make([]*kagzi.Run, p.runs)
	err = each(ctx, p.runs, p.runs, func(ctx context.Context, i int) (err error) {
		runs[i], err = kagzi.Start(ctx, r.client(i), entityType, feed{Left: entitySignals, Chain: chain},
			kagzi.StartOptions{Queue: r.spec.queue})
		if err != nil {
			return fmt.Errorf("start %s: %w", entityType, err)
		}
		for n := range entitySignals {
			if err := kagzi.Signal(ctx, runs[i], signalName, i+n, kagzi.SignalOptions{}); err != nil {
				return fmt.Errorf("signal %d of run %s: %w", n+1, runs[i].ID(), err)
			}
		}
		got, err := kagzi.Result[int](ctx, runs[i])
		if err != nil {
			return fmt.Errorf("result of %s: %w", entityType, err)
		}
		return expect(runs[i], got, job{i, entitySignals}.total())
	})
	if err != nil {
		return err
	}
	elapsed, n := time.Since(began), p.runs*entitySignals
	c, err := m.end(name, "signal", n)
	if err != nil {
		return err
	}
	pace := rate(float64(n), elapsed)
	s.figures = append(s.figures, figure{name, "signals/s", pace}, figure{name + ", against W2", "", ratio(pace, two)})
	s.costs, s.runs, s.steps, s.elapsed = append(s.costs, c), s.runs+p.runs, s.steps+n, s.elapsed+elapsed
	if chain > 0 {
		return nil
	}
	ends, err := stepEnds(ctx, r, runs[0].ID(), func(s *kagziv1.Step) bool {
		return s.GetKind() == kagziv1.StepKind_STEP_KIND_FUNCTION
	})
	if err == nil && len(ends) != entitySignals {
		err = fmt.Errorf("run %s has %d steps, want %d", runs[0].ID(), len(ends), entitySignals)
	}
	if err == nil {
		s.figures = append(s.figures, tenths("signal", ends)...)
	}
	return err
}

// measureAsleep is W13: what the worker's process has in use while runs sleep, for each of them.
func measureAsleep(ctx context.Context, r *fixture, p plan) (sample, error) {
	m, err := r.meter(ctx)
	if err != nil {
		return sample{}, err
	}
	defer m.halt()
	use := func() (int64, error) {
		run, err := kagzi.Start(ctx, r.client(0), memoryType, 0, kagzi.StartOptions{Queue: r.spec.queue})
		if err != nil {
			return 0, fmt.Errorf("start %s: %w", memoryType, err)
		}
		return kagzi.Result[int64](ctx, run)
	}
	before, err := use()
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	due := began.Add(sleepLead + sleepMeasured + time.Duration(p.runs)*time.Second/parkRate*2)
	ins := make([]int64, p.runs)
	for i := range ins {
		ins[i] = due.UnixMilli()
	}
	runs, err := startAll(ctx, r, sleeperType, ins)
	if err != nil {
		return sample{}, err
	}
	if err := reached(ctx, r, kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING, p.runs); err != nil {
		return sample{}, err
	}
	during, err := use()
	if err != nil {
		return sample{}, err
	}
	if time.Now().After(due) {
		return sample{}, errors.New("runs woke before the memory was read: use a smaller --scale")
	}
	err = collect(ctx, runs, func(i int, d *kagzi.RunDetails, late int64) error {
		if late < 0 {
			return fmt.Errorf("run %s woke %s too early", d.RunID, -time.Duration(late))
		}
		return nil
	})
	if err != nil {
		return sample{}, err
	}
	elapsed := time.Since(began)
	c, err := m.end("", "run", p.runs)
	return sample{
		figures: []figure{
			{"worker memory for each sleeping run", "KiB", float64(max(0, during-before)) / float64(p.runs) / (1 << 10)},
			{"worker memory", "MiB", mebibytes(during)},
			{"worker memory before", "MiB", mebibytes(before)},
		},
		costs: []cost{c}, runs: p.runs, steps: p.runs, elapsed: elapsed,
	}, err
}
