package bench

import (
	"context"
	"fmt"
	"hash/crc32"
	"strings"
	"sync/atomic"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// The workflow types of the bench.
const (
	emptyType    = "bench.empty"
	stepsType    = "bench.steps"
	parallelType = "bench.parallel"
	blobsType    = "bench.blobs"
	sleeperType  = "bench.sleeper"
	paceType     = "bench.pace"
)

func handle(w *kagzi.Worker) {
	kagzi.Handle(w, emptyType, empty)
	kagzi.Handle(w, stepsType, steps)
	kagzi.Handle(w, parallelType, parallel)
	kagzi.Handle(w, blobsType, blobs)
	kagzi.Handle(w, sleeperType, sleeper)
	kagzi.Handle(w, paceType, pace)
	kagzi.Handle(w, longType, long)
	kagzi.Handle(w, parentType, parent)
	kagzi.Handle(w, signalsType, signalled)
	kagzi.Handle(w, retriedType, retried)
	kagzi.Handle(w, wakesType, wakes)
	kagzi.Handle(w, roundsType, rounds)
	kagzi.Handle(w, entityType, entity)
	kagzi.Handle(w, memoryType, memory)
	kagzi.Handle(w, inHandType, inHand)
}

// job is the input of most workflow types. Seed differs between runs, so that a result of the wrong
// run is noticed.
type job struct {
	Seed  int `json:"seed"`
	Steps int `json:"steps"`
}

// total returns the sum of the results of a job's steps.
func (j job) total() int { return j.Seed*j.Steps + j.Steps*(j.Steps-1)/2 }

func empty(_ kagzi.Context, seed int) (int, error) { return seed, nil }

func steps(ctx kagzi.Context, in job) (int, error) {
	sum := 0
	for i := range in.Steps {
		v, err := kagzi.Step(ctx, stepName(i), func(context.Context) (int, error) { return in.Seed + i, nil })
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

func parallel(ctx kagzi.Context, in job) (int, error) {
	branches := make([]int, in.Steps)
	for i := range branches {
		branches[i] = i
	}
	values, err := kagzi.Map(ctx, branches, func(ctx kagzi.Context, i int) (int, error) {
		return kagzi.Step(ctx, stepName(i), func(context.Context) (int, error) { return in.Seed + i, nil })
	})
	sum := 0
	for _, v := range values {
		sum += v
	}
	return sum, err
}

// blobs returns the checksum of what its steps returned.
func blobs(ctx kagzi.Context, in job) (uint32, error) {
	var sum uint32
	for i := range in.Steps {
		text, err := kagzi.Step(ctx, stepName(i), func(context.Context) (string, error) {
			return blob(in.Seed, i), nil
		})
		if err != nil {
			return 0, err
		}
		sum = addText(sum, text)
	}
	return sum, nil
}

// addText updates a checksum. It does not copy the text, so that the worker does not spend its time
// on garbage that only the measurement produces.
func addText(sum uint32, text string) uint32 {
	var part [4 << 10]byte
	for len(text) > 0 {
		n := copy(part[:], text)
		sum, text = crc32.Update(sum, crc32.IEEETable, part[:n]), text[n:]
	}
	return sum
}

// checksum returns the result of blobs for a job.
func (j job) checksum() (sum uint32) {
	for i := range j.Steps {
		head, rest := blobParts(j.Seed, i)
		sum = crc32.Update(sum, crc32.IEEETable, []byte(head))
		sum = crc32.Update(sum, crc32.IEEETable, rest)
	}
	return sum
}

// blobBytes is the size of a step's result in W5, as JSON.
const blobBytes = 64 << 10

// letters is a text whose JSON is only two quotes longer.
var letters = []byte(strings.Repeat("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", blobBytes/64))

// blob returns a different text for each step of each job.
func blob(seed, step int) string {
	head, rest := blobParts(seed, step)
	var b strings.Builder
	b.Grow(len(head) + len(rest))
	b.WriteString(head)
	b.Write(rest)
	return b.String()
}

func blobParts(seed, step int) (head string, rest []byte) {
	head = fmt.Sprintf("%d/%d:", seed, step)
	return head, letters[:blobBytes-2-len(head)]
}

// sleeper returns how many nanoseconds late the first line after its sleep ran. at is in Unix
// milliseconds.
func sleeper(ctx kagzi.Context, at int64) (int64, error) {
	due := time.UnixMilli(at)
	kagzi.SleepUntil(ctx, "until-due", due)
	return int64(time.Since(due)), nil
}

// paceOf is the pace of a run's own steps, in nanoseconds per step.
type paceOf struct {
	Total int `json:"total"`
	// steps executed by the last execution of the run; fewer than all make the figures useless
	Executed int   `json:"executed"`
	Early    int64 `json:"early"`
	Late     int64 `json:"late"`
}

const (
	paceFirst  = 5 // the first of the early steps, from 1
	paceWindow = 20
	paceLeast  = paceFirst - 1 + 2*paceWindow // steps
)

func pace(ctx kagzi.Context, in job) (paceOf, error) {
	began := make([]time.Time, 0, in.Steps+1) // start of each step, and the end
	var executed atomic.Int64
	sum := 0
	for i := range in.Steps {
		began = append(began, time.Now())
		v, err := kagzi.Step(ctx, stepName(i), func(context.Context) (int, error) {
			executed.Add(1)
			return in.Seed + i, nil
		})
		if err != nil {
			return paceOf{}, err
		}
		sum += v
	}
	began = append(began, time.Now())
	if in.Steps < paceLeast {
		return paceOf{}, kagzi.NonRetryable(fmt.Errorf("%d steps are too few, want %d", in.Steps, paceLeast))
	}
	early, late := began[paceFirst-1:], began[in.Steps-paceWindow:]
	return paceOf{
		Total: sum, Executed: int(executed.Load()),
		Early: int64(early[paceWindow].Sub(early[0])) / paceWindow,
		Late:  int64(late[paceWindow].Sub(late[0])) / paceWindow,
	}, nil
}

func stepName(i int) string { return fmt.Sprintf("step-%d", i+1) }
