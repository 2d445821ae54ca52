package demo

import (
	"context"
	"fmt"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// scene is one thing that the demo shows, with its expected result.
type scene struct {
	title   string
	about   string
	total   int // steps or ticks, for progress
	perform performance
	check   func(c *check) (note string) // adds differences, or returns a note about a correct scene
}

// performance runs a scene to its end and returns the facts about it.
type performance func(ctx context.Context, p *player) (facts, error)

// scenes are all scenes of the demo.
var scenes = []scene{
	{
		title: "order saga", about: "third step fails for good; undone in reverse", total: 5,
		perform: oneRun(sagaType, queue, order{Item: "fountain pen", Quantity: 2}, nil), check: checkSaga,
	},
	{
		title: "fan-out", about: "50 steps in parallel", total: fanWidth,
		perform: oneRun(fanType, queue, fanWidth, nil), check: checkFanOut,
	},
	{
		title: "flaky step", about: "fails twice, recovers by its retry policy", total: 1,
		perform: oneRun(flakyType, queue, flakyFails, nil), check: checkFlaky,
	},
	{
		title: "nap", about: "sleeps 3 s without holding a worker", total: 3,
		perform: oneRun(napType, queue, napSeconds, nil), check: checkNap,
	},
	{
		title: "approval", about: "five child runs on a worker with one slot, then a signal", total: suppliers + 2,
		perform: oneRun(purchaseType, slotQueue, suppliers, approve), check: checkApproval,
	},
	{
		title: "schedule", about: "fires every second, each tick once, until paused", total: tickCount,
		perform: everySecond, check: checkSchedule,
	},
	{
		title: "kill -9", about: "worker killed halfway; another continues", total: tenSteps,
		perform: oneRun(tenType, crashQueue, tenSteps, killHalfway), check: checkTenSteps,
	},
}

// inLanguages is the scene that needs Python, Node and the packages of their SDKs.
var inLanguages = scene{
	title: "languages", about: "a Go run, its Python child, its TypeScript child; each worker killed",
	total: claimSteps, perform: threeLanguages, check: checkLanguages,
}

// post is a worker's queue and the number of runs it executes at once; 0 means the SDK's default.
type post struct {
	queue string
	slots int
}

// posts are the workers that the scenes need, by name. The second and third back up each other.
var posts = map[string]post{
	steadyWorker: {queue: queue}, "worker-2": {queue: crashQueue}, "worker-3": {queue: crashQueue},
	slotWorker: {queue: slotQueue, slots: 1},
}

const (
	steadyWorker = "worker-1"
	slotWorker   = "worker-4"
)

// meddler acts on a run in progress and adds what it did to the facts.
type meddler func(ctx context.Context, p *player, run *kagzi.Run, f *facts) error

// oneRun returns the performance of a scene with one run; meddle may be nil.
func oneRun[In any](workflowType, queue string, in In, meddle meddler) performance {
	return func(ctx context.Context, p *player) (facts, error) {
		run, err := kagzi.Start(ctx, p.env.client, workflowType, in,
			kagzi.StartOptions{Queue: queue, Tags: demoTags(workflowType)})
		if err != nil {
			return facts{}, fmt.Errorf("start: %w", err)
		}
		return p.follow(ctx, run, meddle)
	}
}

func demoTags(workflowType string) map[string]string { return map[string]string{"demo": workflowType} }
