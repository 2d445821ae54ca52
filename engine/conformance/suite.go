// Package conformance implements `kagzi conformance`: it proves an SDK against proto/PROTOCOL.md.
//
// The subject is a program of the SDK's author (proto/CONFORMANCE.md), which executes programs (package
// program) that the suite sends it as inputs of runs. A lane (lane.go) is a private server (host.go), a
// proxy that reads and disturbs the subject's session (proxy.go, board.go), a gate for the bodies of steps
// (gate.go), and the subject's process (process.go).
//
// Fixed cases (case.go, cases_*.go) are named after paragraphs. Random programs (generate.go, random.go)
// run by scripts (script.go) that the Go SDK's worker (package subject) writes, under faults (modes.go);
// what is recorded is compared (history.go, order.go, json.go).
package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options say what is run.
type Options struct {
	Stores  Stores
	Command []string // of the subject
	Seeds   uint64   // how many random programs
	From    uint64   // seed of the first
	Modes   []string // only these; nil: all
	Only    []string // only cases whose paragraph begins with one of these; nil: all
	Skip    []string // no cases whose paragraph begins with one of these
	Case    string   // only cases whose name has this in it
	Report  func(Finding)
}

// casesAtOnce is how many cases share the subject of a lane at a time.
const casesAtOnce = 6

// fixedCases returns all cases but those about code that changes.
func fixedCases() []fixed {
	return slices.Concat(stepCases(), refusalCases(), nameCases(), orderCases(), signalCases(),
		childCases(), cancelCases(),
		errorCases(), noteCases(), continueCases(), sessionCases(), wireCases(), startCases(), codecCases())
}

// wants reports whether a case is to be run.
func (o *Options) wants(id, name string) bool {
	under := func(prefix string) bool { return id == prefix || strings.HasPrefix(id, prefix+".") }
	return (len(o.Only) == 0 || slices.ContainsFunc(o.Only, under)) && !o.lacks(id) && strings.Contains(name, o.Case)
}

// lacks reports whether the SDK does not claim a paragraph.
func (o *Options) lacks(id string) bool {
	return slices.ContainsFunc(o.Skip, func(skip string) bool { return id == skip || strings.HasPrefix(id, skip+".") })
}

// Run runs the suite. The error is about the suite itself or a subject that cannot be started; what the
// subject does wrong goes to Report.
func Run(ctx context.Context, o Options) error {
	report := o.Report
	var mu sync.Mutex
	o.Report = func(f Finding) {
		mu.Lock()
		defer mu.Unlock()
		report(f)
	}
	var shared, alone, coded []fixed
	var parts []func() error
	for _, f := range fixedCases() {
		switch {
		case !o.wants(f.id, f.name), o.lacks(f.needs), f.when == encrypted && o.lacks("23.5"):
		case f.long:
			parts = append(parts, func() error { return o.cases(ctx, []fixed{f}, 1, nil, false) })
		case f.alone:
			alone = append(alone, f)
		case f.when == encrypted:
			coded = append(coded, f)
		default:
			shared = append(shared, f)
		}
	}
	parts = append(parts,
		func() error { return o.cases(ctx, shared, casesAtOnce, nil, true) },
		func() error { return o.cases(ctx, alone, 1, nil, false) },
		func() error {
			return o.cases(ctx, coded, casesAtOnce, map[string]string{"KAGZI_CONFORMANCE_AES": codecKey}, false)
		},
		func() error { return o.changes(ctx) })
	if o.wants("random", o.Case) || len(o.Only) == 0 {
		parts = append(parts, func() error { return o.random(ctx) })
	}
	return together(parts)
}

// random runs random programs.
func (o *Options) random(ctx context.Context) error {
	chosen := slices.DeleteFunc(slices.Clone(modes), func(m mode) bool {
		return len(o.Modes) > 0 && !slices.Contains(o.Modes, m.name)
	})
	return runRandom(ctx, randomOptions{stores: o.Stores, command: o.Command, from: o.From, n: o.Seeds,
		modes: chosen, progress: o.Report})
}

// together calls functions at the same time and joins their errors.
func together(parts []func() error) error {
	var group sync.WaitGroup
	errs := make([]error, len(parts))
	for i, part := range parts {
		group.Go(func() { errs[i] = part() })
	}
	group.Wait()
	return errors.Join(errs...)
}

// laneFor makes a lane for cases and starts its subject.
func (o *Options) laneFor(ctx context.Context, env map[string]string, lease time.Duration) (*lane, *board, error) {
	l, err := newLane(o.Stores, "cases", o.Command, false, lease)
	if err != nil {
		return nil, nil, err
	}
	b := newBoard(l.host.changes)
	l.proxy.set(b.tamper())
	l.gate.setAuto(answerCases)
	if err := l.begin(ctx, env); err != nil {
		l.close()
		return nil, nil, err
	}
	return l, b, nil
}

// cases runs fixed cases on one lane, and then checks the rules of its traffic.
func (o *Options) cases(ctx context.Context, all []fixed, atOnce int, env map[string]string, ruled bool) error {
	if len(all) == 0 {
		return nil
	}
	lease := caseLease
	if all[0].patient {
		lease = programLease
	}
	l, b, err := o.laneFor(ctx, env, lease)
	if err != nil {
		return err
	}
	defer l.close()
	places := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for _, f := range all {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			defer func() { <-places }()
			began := time.Now()
			o.tell(Finding{Section: f.id, Case: f.name}, began, f.try(ctx, l, b))
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, r := range rules() {
		if ruled && o.wants(r.id, r.name) {
			o.tell(Finding{Section: r.id, Case: r.name}, time.Now(), r.check(b.all()))
		}
	}
	return nil
}

func (o *Options) tell(f Finding, began time.Time, err error) {
	f.Millis = time.Since(began).Milliseconds()
	if err != nil {
		f.Failure = err.Error()
	}
	o.Report(f)
}

// changes runs the cases about code that changes: for each option of the subject it starts the runs with
// the code before, and then the subject with the code after.
func (o *Options) changes(ctx context.Context) error {
	var parts []func() error
	for _, how := range []string{"", "fail", "warn"} {
		var all []changed
		for _, x := range divergenceCases() {
			if x.how == how && o.wants(x.id, x.name) {
				all = append(all, x)
			}
		}
		if len(all) > 0 {
			parts = append(parts, func() error { return o.change(ctx, how, all) })
		}
	}
	return together(parts)
}

func (o *Options) change(ctx context.Context, how string, all []changed) error {
	env := map[string]string{"KAGZI_CONFORMANCE_ON_DIVERGENCE": how, "KAGZI_CONFORMANCE_REMOVED_PATCHES": "gone"}
	l, b, err := o.laneFor(ctx, env, programLease) // no case about code that changes waits for the end of a lease
	if err != nil {
		return err
	}
	defer l.close()
	runs, errs := make([]*going, len(all)), make([]error, len(all))
	began := time.Now()
	part := func(do func(i int, c *attempt)) {
		var group sync.WaitGroup
		for i := range all {
			if errs[i] != nil {
				continue
			}
			group.Go(func() {
				f := fixed{run: func(c *attempt) { do(i, c) }, keeps: true, changed: true}
				errs[i] = f.try(ctx, l, b)
			})
		}
		group.Wait()
	}
	part(func(i int, c *attempt) {
		runs[i] = c.start(all[i].program()...)
		if all[i].drive != nil {
			all[i].drive(runs[i])
			return
		}
		runs[i].parked()
	})
	after := map[string]string{"KAGZI_CONFORMANCE_VARIANT": "1", "KAGZI_CONFORMANCE_BUILD": "build-b"}
	for name, value := range env {
		after[name] = value
	}
	if err := l.change(ctx, after); err != nil {
		return err
	}
	part(func(i int, c *attempt) {
		runs[i].c = c
		all[i].then(runs[i])
	})
	if slices.ContainsFunc(all, func(x changed) bool { return x.restored != nil }) {
		if err := l.change(ctx, env); err != nil {
			return err
		}
		part(func(i int, c *attempt) {
			if all[i].restored != nil {
				runs[i].c = c
				all[i].restored(runs[i])
			}
		})
	}
	for i, x := range all {
		o.tell(Finding{Section: x.id, Case: x.name}, began, errs[i])
	}
	return nil
}

// Headings are those of PROTOCOL.md.
var headings = []string{"", "Hello", "New stream", "Credit", "Heartbeat", "Order and after", "Repeatable answers", "Lease gone",
	"Local lease clock", "Server time", "Ends of a lease", "Hold, release, park", "Steps", "Reading a row", "History pages",
	"Names, branches, reserved names", "Order of delivery", "Replay and divergence", "Signals", "Children", "Cancel and pause", "Note",
	"Continue as new", "JSON and codec bytes", "Errors", "Drain, goodbye, second signal", "Unknown enums and events", "Sizes",
	"Keepalive", "Trace context", "Starting runs", "Runs in memory"}

// heading returns the heading of a paragraph.
func heading(id string) (number int, title string) {
	if _, err := fmt.Sscanf(id, "%d", &number); err != nil || number >= len(headings) {
		return len(headings), "Random programs"
	}
	return number, headings[number]
}
