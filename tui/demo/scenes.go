package demo

import (
	"context"
	"fmt"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// scene is one of the workflows that the demo runs, and what must come of it.
type scene struct {
	title string
	about string
	total int // steps, to show progress by
	start func(ctx context.Context, c *kagzi.Client) (*kagzi.Run, error)
	check func(c *check) (note string) // differs, or what to tell of a run that is as it must be
	// meddle is what happens to the run while it is under way; most are left alone.
	meddle func(ctx context.Context, s *stage, run *kagzi.Run, say func(string)) (*kill, error)
}

// scenes are all that the demo shows.
var scenes = []scene{
	{
		title: "order saga", about: "third step fails for good; undone in reverse", total: 5,
		start: starter(sagaType, queue, order{Item: "fountain pen", Quantity: 2}), check: checkSaga,
	},
	{
		title: "fan-out", about: "50 steps in parallel", total: fanWidth,
		start: starter(fanType, queue, fanWidth), check: checkFanOut,
	},
	{
		title: "flaky step", about: "fails twice, recovers by its retry policy", total: 1,
		start: starter(flakyType, queue, flakyFails), check: checkFlaky,
	},
	{
		title: "nap", about: "sleeps 3 s and holds no worker", total: 3,
		start: starter(napType, queue, napSeconds), check: checkNap,
	},
	{
		title: "kill -9", about: "worker killed halfway; another goes on", total: tenSteps,
		start: starter(tenType, crashQueue, tenSteps), check: checkTenSteps, meddle: killHalfway,
	},
}

// workerQueues are the workers that the scenes need, and where each works. The last two stand by for each other.
var workerQueues = map[string]string{"worker-1": queue, "worker-2": crashQueue, "worker-3": crashQueue}

func starter[In any](workflowType, queue string, in In) func(context.Context, *kagzi.Client) (*kagzi.Run, error) {
	return func(ctx context.Context, c *kagzi.Client) (*kagzi.Run, error) {
		return kagzi.Start(ctx, c, workflowType, in, kagzi.StartOptions{Queue: queue, Tags: map[string]string{"demo": workflowType}})
	}
}

// lookEvery is how often the ledger is read while the demo waits for the middle of a run.
const lookEvery = 10 * time.Millisecond

// killHalfway waits until the step after the middle one is at work, and kills the worker that is at it.
func killHalfway(ctx context.Context, s *stage, run *kagzi.Run, say func(string)) (*kill, error) {
	victim, err := atWorkOn(ctx, s.ledger, run.ID(), stepName(tenSteps/2+1))
	if err != nil {
		return nil, err
	}
	steps, err := listSteps(ctx, s.api, run.ID())
	if err != nil {
		return nil, err
	}
	k := &kill{worker: victim}
	for _, step := range steps {
		if step.completed() {
			k.recorded = append(k.recorded, step)
		}
	}
	if err := s.kill(victim); err != nil {
		return nil, err
	}
	say(fmt.Sprintf("%s killed with %d steps recorded", victim, len(k.recorded)))
	return k, nil
}

// atWorkOn waits until a step has begun and returns the worker that began it.
func atWorkOn(ctx context.Context, l ledger, runID, step string) (worker string, err error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		executions, err := l.read(runID)
		if err != nil {
			return "", err
		}
		for _, e := range executions {
			if e.Step == step {
				return e.Worker, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("step %s never began: %w", step, ctx.Err())
		}
	}
}
