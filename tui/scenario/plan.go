package scenario

import (
	"fmt"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// plan describes the code of a workflow type as data.
type plan struct {
	kind    string // the workflow type
	queue   string
	version string
	share   int // weight among all started runs
	acts    []act
	// compensation after a final failure or a cancellation; nil: cleanUp
	undo   []act
	input  func(l random) string            // JSON
	output func(l random) string            // JSON
	result *kagziv1.Payload                 // replaces output
	tags   func(l random) map[string]string // nil: none
	named  func(l random) string            // external id; nil: none
	key    func(l random) string            // concurrency key; nil: none
	retry  *kagziv1.RetryPolicy             // nil: the default
	// answer returns when and how people answer the signal that it waits for; nil: nobody does
	answer func(l random) (time.Duration, outcome)
	limit  time.Duration // of the whole run; 0: none
	kids   map[int]*plan // plans of its children, by index, if they differ from their type's
}

// outcome is a signal that somebody sends.
type outcome struct{ name, payload string }

// actKind is the kind of an act.
type actKind uint8

const (
	work actKind = iota
	nap
	wait  // for a signal
	child // child runs
)

// act is one part of the code, done in order: a step, or with times that many in parallel.
type act struct {
	name        string
	kind        actKind
	takes, upTo time.Duration        // how long its code runs, or how long it sleeps; upTo 0: exactly takes
	odds        float64              // of failure, per attempt
	failing     int                  // this many first attempts always fail
	retry       *kagziv1.RetryPolicy // nil: that of the run
	mishap      *mishap              // its error; nil: the usual one
	during      string               // the weather in which it fails
	signal      string               // to wait for
	limit       time.Duration        // of that wait; 0: none
	starts      []string             // types of its children
	tolerates   bool                 // the code continues after a failure
	times       int                  // 0: once
	input       string               // JSON; empty: none
	output      func(l random, i int) string
	note        string // the run's note meanwhile
}

// mishap is an error of the code.
type mishap struct {
	kind, message, stack string
	fatal                bool // not retried
	again                time.Duration
	metadata             map[string]string
}

// names returns the names of the act's steps.
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

// cleanUp is the cleanup of cancelled code that has nothing to compensate.
var cleanUp = []act{{name: "clean-up", takes: 1500 * time.Millisecond, upTo: 4 * time.Second, output: done}}

func done(random, int) string { return `{"done":true}` }

// planOf returns the plan of a workflow type; the default is three short steps.
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
