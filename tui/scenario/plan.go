package scenario

import (
	"fmt"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// plan is what a workflow type's code does, as data.
type plan struct {
	kind    string // the workflow type
	queue   string
	version string
	share   int // how often it is started, among all
	acts    []act
	// what its code does when it has failed for good, or is told to stop; nil: cleans up
	undo   []act
	input  func(l random) string            // JSON
	output func(l random) string            // JSON
	result *kagziv1.Payload                 // in place of output
	tags   func(l random) map[string]string // nil: none
	named  func(l random) string            // external id; nil: none
	key    func(l random) string            // concurrency key; nil: none
	retry  *kagziv1.RetryPolicy             // nil: the default
	// when and how people answer the signal that it waits for; nil: nobody does
	answer func(l random) (time.Duration, outcome)
	limit  time.Duration // on the whole run; 0: none
	kids   map[int]*plan // what its children do, where that is not the usual
}

// outcome is a signal that somebody sends.
type outcome struct{ name, payload string }

// actKind says what an act of a plan is.
type actKind uint8

const (
	work actKind = iota
	nap
	wait  // for a signal
	child // child runs
)

// act is one thing after another that code does: a step or, with times, so many at once.
type act struct {
	name        string
	kind        actKind
	takes, upTo time.Duration        // how long its code works, or how long it sleeps; upTo 0: as long as takes
	odds        float64              // that an attempt fails
	failing     int                  // so many attempts fail in any case, before others may succeed
	retry       *kagziv1.RetryPolicy // nil: that of the run decides
	mishap      *mishap              // what goes wrong; nil: the usual
	during      string               // the weather in which it fails
	signal      string               // that it waits for
	limit       time.Duration        // of that wait; 0: none
	starts      []string             // the types of its children
	tolerates   bool                 // the code goes on though it has failed
	times       int                  // 0: once
	input       string               // JSON; empty: none
	output      func(l random, i int) string
	note        string // the run's note while it goes on
}

// mishap is how code fails.
type mishap struct {
	kind, message, stack string
	fatal                bool // is not tried again
	again                time.Duration
	metadata             map[string]string
}

// names are those of the act's steps.
func (a *act) names() []string {
	switch {
	case len(a.starts) > 1:
		names := make([]string, len(a.starts))
		for i, kind := range a.starts {
			names[i] = fmt.Sprintf("%s/%d-%s", a.name, i+1, kind)
		}
		return names
	case a.times == 0:
		return []string{a.name}
	}
	names := make([]string, a.times)
	for i := range names {
		names[i] = fmt.Sprintf("%s/%03d", a.name, i+1)
	}
	return names
}

func (m *mishap) detail() *kagziv1.ErrorDetail {
	return &kagziv1.ErrorDetail{
		Type: m.kind, Message: m.message, Stack: m.stack, NonRetryable: m.fatal, RetryAfterMs: m.again.Milliseconds(),
		Metadata: m.metadata,
	}
}

// cleanUp is what code does that is told to stop and has nothing of its own to undo.
var cleanUp = []act{{name: "clean-up", takes: 1500 * time.Millisecond, upTo: 4 * time.Second, output: done}}

func done(random, int) string { return `{"done":true}` }

// planOf is the plan of a workflow type. One that nobody has written a plan for does three short steps.
func planOf(kind string) *plan {
	for _, p := range catalog {
		if p.kind == kind {
			return p
		}
	}
	return &plan{kind: kind, queue: "default", version: "1", acts: []act{
		{name: "prepare", takes: 300 * time.Millisecond, upTo: time.Second, output: done},
		{name: "work", takes: time.Second, upTo: 6 * time.Second, output: done},
		{name: "finish", takes: 200 * time.Millisecond, upTo: time.Second, output: done},
	}}
}
