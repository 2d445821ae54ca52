//go:build linux

package workload

import (
	"fmt"
	"math/rand/v2"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// Kind is what a run of the workload does in addition to its steps.
type Kind string

const (
	plain   Kind = "plain"   // sequential steps
	Napping Kind = "napping" // with a sleep after the first step
	Flaky   Kind = "flaky"   // steps whose attempts fail one time in five
	Fanned  Kind = "fanned"  // parallel steps
	Doomed  Kind = "doomed"  // fails at the end, and has a handler
	Poison  Kind = "poison"  // kills the worker's process
	heavy   Kind = "heavy"   // a payload of almost the maximum size
)

const (
	jobType     = "torture"
	HandlerType = "torture.handler"
	TickType    = "torture.tick"
)

// Job is the input of a run of the workload. It follows from the seed and its number.
type Job struct {
	Name   string
	Kind   Kind
	Pauses []int // of each step, in milliseconds
	Nap    int   // milliseconds
	Fails  []int // of each step: how often it fails first
	Filler string
}

// Errand is what a client does with a job.
type Errand struct {
	Job
	Twice  bool          // started twice at once, with one request id
	Cancel time.Duration // after the start; 0: not at all

	Started func(*kagzi.Run) // called once the start is acknowledged; may be nil
}

// Mix is a workload: what is started, and how many of each kind.
type Mix struct {
	Naps, Flaky, Fanned, Doomed, Cancelled, Twice float64 // shares of 1
	Longest                                       int     // milliseconds of a step
	Nap                                           int     // milliseconds of the longest sleep
	Filler                                        int     // bytes of an input
	Poison                                        int     // one run in this many; 0: none
	// the most errands that are open at once, whatever the rate; 0: no limit
	AtOnce int
}

// Standard is the workload of the matrix: three steps of 20 to 200 ms, a tenth with a sleep, a
// tenth with failing steps, and so on.
var Standard = Mix{Naps: 0.1, Flaky: 0.1, Fanned: 0.1, Doomed: 0.02, Cancelled: 0.05, Twice: 0.05,
	Longest: 200, Nap: 3000}

const (
	stepsOfJob  = 3
	MostFails   = 4 // of the five attempts of a step
	failureRate = 0.2
)

func (m Mix) Errand(seed uint64, n int) Errand {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	e := Errand{Job: Job{Name: fmt.Sprintf("job-%d-%d", seed, n), Kind: plain}}
	share := r.Float64()
	for _, k := range []struct {
		kind  Kind
		share float64
	}{{Napping, m.Naps}, {Flaky, m.Flaky}, {Fanned, m.Fanned}, {Doomed, m.Doomed}} {
		if share < k.share && e.Kind == plain {
			e.Kind = k.kind
		}
		share -= k.share
	}
	if m.Poison > 0 && n%m.Poison == m.Poison-1 {
		e.Kind = Poison
	}
	for range stepsOfJob {
		e.Pauses = append(e.Pauses, m.Longest/10+r.IntN(m.Longest))
		fails := 0
		for e.Kind == Flaky && fails < MostFails && r.Float64() < failureRate {
			fails++
		}
		e.Fails = append(e.Fails, fails)
	}
	if e.Kind == Napping {
		e.Nap = m.Nap/3 + r.IntN(m.Nap)
	}
	if m.Filler > 0 {
		e.Kind, e.Filler = heavy, Filler(r, m.Filler)
	}
	e.Twice = r.Float64() < m.Twice
	if r.Float64() < m.Cancelled {
		e.Cancel = time.Duration(1+r.IntN(8*m.Longest)) * time.Millisecond
	}
	return e
}

// handler returns the type of the run that must follow if the errand's run fails.
func (e Errand) handler() string {
	if e.Kind == Doomed || e.Kind == Poison {
		return HandlerType
	}
	return ""
}

func Filler(r *rand.Rand, size int) string {
	text := make([]byte, size)
	for i := range text {
		text[i] = 'a' + byte(r.IntN(26))
	}
	return string(text)
}

// FloodType is the type of the runs of a storm, which end as soon as they begin.
const FloodType = "torture.flood"
