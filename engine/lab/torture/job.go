//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// kind is what a run of the workload does beside its steps.
type kind string

const (
	plain   kind = "plain"   // steps one after the other
	napping kind = "napping" // with a sleep after the first
	flaky   kind = "flaky"   // steps whose attempts fail one time in five
	fanned  kind = "fanned"  // steps side by side
	doomed  kind = "doomed"  // fails at the end, and has a handler
	poison  kind = "poison"  // ends the worker's process
	heavy   kind = "heavy"   // a payload of almost the largest size
)

const (
	jobType     = "torture"
	handlerType = "torture.handler"
	tickType    = "torture.tick"
)

// job is the input of a run of the workload. It follows from the seed and its number alone.
type job struct {
	Name   string
	Kind   kind
	Pauses []int // of each step: milliseconds
	Nap    int   // milliseconds
	Fails  []int // of each step: how often it fails first
	Filler string
}

// errand is what a client does about a job.
type errand struct {
	job
	Twice  bool          // started twice at once, under one request id
	Cancel time.Duration // after the start; 0 not at all

	Started func(*kagzi.Run) // told once the start is acknowledged; nil: nobody is
}

// mix is a workload: what is started, of how many kinds.
type mix struct {
	Naps, Flaky, Fanned, Doomed, Cancelled, Twice float64 // shares of 1
	Longest                                       int     // milliseconds of a step
	Nap                                           int     // milliseconds of the longest sleep
	Filler                                        int     // bytes of an input
	Poison                                        int     // every so-manieth run; 0 none
	AtOnce                                        int     // the most errands that are open at once, whatever the rate; 0 is no limit
}

// standard is the workload of the matrix: three steps of 20 to 200 ms, a tenth with a sleep, a tenth with failing steps, and so on.
var standard = mix{Naps: 0.1, Flaky: 0.1, Fanned: 0.1, Doomed: 0.02, Cancelled: 0.05, Twice: 0.05, Longest: 200, Nap: 3000}

const (
	stepsOfJob  = 3
	mostFails   = 4 // of the five attempts that a step has
	failureRate = 0.2
)

func (m mix) errand(seed uint64, n int) errand {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	e := errand{job: job{Name: fmt.Sprintf("job-%d-%d", seed, n), Kind: plain}}
	share := r.Float64()
	for _, k := range []struct {
		kind  kind
		share float64
	}{{napping, m.Naps}, {flaky, m.Flaky}, {fanned, m.Fanned}, {doomed, m.Doomed}} {
		if share < k.share && e.Kind == plain {
			e.Kind = k.kind
		}
		share -= k.share
	}
	if m.Poison > 0 && n%m.Poison == m.Poison-1 {
		e.Kind = poison
	}
	for range stepsOfJob {
		e.Pauses = append(e.Pauses, m.Longest/10+r.IntN(m.Longest))
		fails := 0
		for e.Kind == flaky && fails < mostFails && r.Float64() < failureRate {
			fails++
		}
		e.Fails = append(e.Fails, fails)
	}
	if e.Kind == napping {
		e.Nap = m.Nap/3 + r.IntN(m.Nap)
	}
	if m.Filler > 0 {
		e.Kind, e.Filler = heavy, filler(r, m.Filler)
	}
	e.Twice = r.Float64() < m.Twice
	if r.Float64() < m.Cancelled {
		e.Cancel = time.Duration(1+r.IntN(8*m.Longest)) * time.Millisecond
	}
	return e
}

// handler is the type of the run that is to follow when the errand's fails.
func (e errand) handler() string {
	if e.Kind == doomed || e.Kind == poison {
		return handlerType
	}
	return ""
}

func filler(r *rand.Rand, size int) string {
	text := make([]byte, size)
	for i := range text {
		text[i] = 'a' + byte(r.IntN(26))
	}
	return string(text)
}
