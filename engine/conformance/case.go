package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// fixed is a case that is written down. Its id is the paragraph of PROTOCOL.md that it tests.
type fixed struct {
	id, name string
	run      func(c *attempt)
	alone    bool   // it disturbs everybody on its lane
	long     bool   // it takes so long that it has a lane of its own
	patient  bool   // that lane's leases outlast a machine that is busy
	needs    string // another section that it uses; "": none
	when     setting
	keeps    bool // the runs go on after it
	changed  bool // as in attempt
}

// setting selects the subject that a case needs.
type setting int

const (
	usual setting = iota
	encrypted
)

// caseLimit limits one case.
const caseLimit = 90 * time.Second

// attempt is one run of a case. Its methods end the case when they fail.
type attempt struct {
	ctx context.Context
	*lane
	board   *board
	started []*family
	changed bool // the code is not the one that the runs have begun with
}

// failed ends a case.
type failed struct{ error }

func (c *attempt) fail(format string, args ...any) { panic(failed{fmt.Errorf(format, args...)}) }

func (c *attempt) check(err error) {
	if err != nil {
		panic(failed{err})
	}
}

func (c *attempt) want(ok bool, format string, args ...any) {
	if !ok {
		c.fail(format, args...)
	}
}

// try runs a case and returns why it failed.
func (f *fixed) try(ctx context.Context, l *lane, b *board) (err error) {
	limit := caseLimit
	if f.long {
		limit *= 2
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("the time for a case is over"))
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			why, ok := v.(failed)
			if !ok {
				panic(v)
			}
			err = why.error
			if l.process != nil && l.process.over() != nil {
				err = errors.Join(err, l.process.over())
			}
		}
	}()
	if err := l.alive(ctx); err != nil {
		return err
	}
	c := &attempt{ctx: ctx, lane: l, board: b, changed: f.changed}
	if !f.keeps {
		defer func() {
			for _, f := range c.started {
				l.abandon(context.WithoutCancel(ctx), f)
			}
		}()
	}
	f.run(c)
	return nil
}

// answered are the names of steps that the gate of a lane for cases answers by itself, as those of
// random programs.
var answered = regexp.MustCompile(`^[^/]+/(a|x|r\d)-`)

func answerCases(q program.Question, given int) (program.Answer, bool) {
	if !answered.MatchString(q.Key) {
		return program.Answer{}, false
	}
	return answerFor(q.Key, given), true
}

// going is a program that runs.
type going struct {
	c *attempt
	p *program.Program
	f *family
}

// start starts a program.
func (c *attempt) start(ops ...*program.Op) *going { return c.startWith(nil, ops...) }

func (c *attempt) startWith(change func(*kagziv1.StartWorkflowRequest), ops ...*program.Op) *going {
	p := &program.Program{Ops: ops}
	f, err := c.lane.start(c.ctx, p, change)
	c.check(err)
	c.started = append(c.started, f)
	return &going{c: c, p: p, f: f}
}

func (g *going) id() string { return g.f.root }

// until waits for something.
func (g *going) until(what string, done func() bool) {
	if err := g.c.while(g.c.ctx, func() (bool, error) { return done(), nil }); err != nil {
		s, _, _ := g.c.look(context.WithoutCancel(g.c.ctx), g.f)
		g.c.fail("%s: %w; the program stands at %s", what, err, s)
	}
}

// asked waits until the body of a step asks the gate, and returns what it asked.
func (g *going) asked(step string) program.Question { return g.askedIn(g.id(), step) }

func (g *going) askedIn(run, step string) (q program.Question) {
	key := run + "/" + step
	g.until("the body of step "+step, func() bool {
		g.c.gate.mu.Lock()
		defer g.c.gate.mu.Unlock()
		v := g.c.gate.waiting[key]
		if v != nil {
			q = v.question
		}
		return v != nil
	})
	return q
}

// say waits for the body of a step and lets it go on.
func (g *going) say(step string, a program.Answer) program.Question {
	q := g.asked(step)
	g.c.want(g.c.gate.answer(q.Key, a), "step %s does not wait any more", step)
	return q
}

// give is say for a result.
func (g *going) give(step, value string) program.Question {
	return g.say(step, program.Answer{Do: "return", Value: json.RawMessage(value)})
}

// recorded waits until a row has a result, and returns it.
func (g *going) recorded(name string) (row *kagziv1.Step) {
	g.until("the result of "+name, func() bool { row = g.row(name); return row.GetSettled() > 0 })
	return row
}

// row returns the latest attempt of a step; nil if there is none.
func (g *going) row(name string) *kagziv1.Step {
	for _, s := range g.rows() {
		if s.GetName() == name {
			return s
		}
	}
	return nil
}

// rows returns the latest attempts.
func (g *going) rows() []*kagziv1.Step {
	all, err := g.c.host.rows(g.c.ctx, g.id())
	g.c.check(err)
	var latest []*kagziv1.Step
	for _, s := range all {
		if s.GetIsLatest() {
			latest = append(latest, s)
		}
	}
	return latest
}

func (g *going) get() *kagziv1.Workflow { return g.c.get(g.id()) }

func (c *attempt) get(run string) *kagziv1.Workflow {
	r, err := c.host.runs.GetWorkflow(c.ctx, &kagziv1.GetWorkflowRequest{Namespace: namespace, RunId: run})
	c.check(err)
	return r.GetWorkflow()
}

// parked waits until nobody holds the run.
func (g *going) parked() {
	g.until("that the run is parked", func() bool {
		return g.get().GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING
	})
}

// ends waits until the run has ended.
func (g *going) ends() *kagziv1.Workflow {
	all, err := g.c.finish(g.c.ctx, g.f)
	g.c.check(err)
	for _, m := range all {
		if m.path == "" {
			return m.run
		}
	}
	return nil
}

// completes waits for the end and returns what the program returned.
func (g *going) completes() program.Result {
	run := g.ends()
	g.c.want(run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, "the run is %s: %s", run.GetStatus(),
		errorText(run.GetError())+" "+run.GetError().GetMessage())
	var out program.Result
	g.c.check(json.Unmarshal(run.GetOutput().GetData(), &out))
	if !g.c.changed {
		g.c.check(member{run: run, rows: g.rows()}.inOrder())
	}
	return out
}

// fails waits for the end and returns the error.
func (g *going) fails() *kagziv1.ErrorDetail {
	run := g.ends()
	g.c.want(run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, "the run is %s, want FAILED", run.GetStatus())
	return run.GetError()
}

// failsWith checks the error's type and code, and that it is final.
func (g *going) failsWith(kind string, code kagziv1.ErrorCode) *kagziv1.ErrorDetail {
	d := g.fails()
	g.c.want(d.GetType() == kind && d.GetCode() == code && d.GetNonRetryable(),
		"the run failed with %s %q, want type %q, code %s, non_retryable", errorText(d), d.GetMessage(), kind, code)
	return d
}

// traced checks the trace of a program: label and value in turn.
func (g *going) traced(out program.Result, want ...string) {
	var got []string
	for _, e := range out.Trace {
		var label string
		g.c.check(json.Unmarshal(e[0], &label))
		got = append(got, label, valueText(e[1]))
	}
	for i := 1; i < len(want); i += 2 {
		want[i] = valueText([]byte(want[i]))
	}
	g.c.want(strings.Join(got, "\n") == strings.Join(want, "\n"), "the code got %q, want %q", got, want)
}

func (g *going) signal(name, value string) { g.signalIn(g.id(), name, value) }

func (g *going) signalIn(run, name, value string) {
	_, err := g.c.host.runs.SignalWorkflow(g.c.ctx, &kagziv1.SignalWorkflowRequest{Namespace: namespace, RunId: run,
		Name: name, Payload: &kagziv1.Payload{Data: []byte(value)}})
	g.c.check(err)
}

func (g *going) cancel(grace time.Duration) {
	_, err := g.c.host.runs.CancelWorkflow(g.c.ctx, &kagziv1.CancelWorkflowRequest{Namespace: namespace, RunId: g.id(),
		Grace: durationpb.New(grace)})
	g.c.check(err)
}

func (g *going) terminate() {
	_, err := g.c.host.runs.TerminateWorkflow(g.c.ctx, &kagziv1.TerminateWorkflowRequest{
		Namespace: namespace, RunId: g.id()})
	g.c.check(err)
}

func (g *going) pause() {
	_, err := g.c.host.runs.PauseWorkflow(g.c.ctx, &kagziv1.PauseWorkflowRequest{Namespace: namespace, RunId: g.id()})
	g.c.check(err)
}

// resume lets a paused run go on; with accept its divergence is accepted.
func (g *going) resume(accept bool) {
	_, err := g.c.host.runs.ResumeWorkflow(g.c.ctx, &kagziv1.ResumeWorkflowRequest{
		Namespace: namespace, RunId: g.id(), AcceptDivergence: accept})
	g.c.check(err)
}

// suspend takes the run away from its worker and gives it back: the code starts again.
func (g *going) suspend() {
	g.c.check(suspend(nil, g.c.lane, 0)(g.c.ctx, g.f, 0))
}

// waiting waits until the bodies of exactly these steps ask the gate.
func (g *going) waiting(steps string) {
	var got []string
	g.until("the bodies ["+steps+"]", func() bool {
		got = nil
		for _, key := range g.c.gate.keys() {
			if name, ok := strings.CutPrefix(key, g.id()+"/"); ok {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		return strings.Join(got, " ") == steps
	})
}

// forgotten waits for a heartbeat that the subject sends from now on and that does not name the run: its
// activation is over.
func (g *going) forgotten() (at time.Time) {
	from := g.c.board.length()
	g.until("a heartbeat without the run", func() bool {
		return slices.ContainsFunc(g.c.board.since(from), func(m message) bool {
			of := func(held *kagziv1.Lease) bool { return held.GetRunId() == g.id() }
			beat := m.up.GetHeartbeat()
			at = m.at
			return beat != nil && !slices.ContainsFunc(beat.GetHeld(), of)
		})
	})
	return at
}

// message waits for the first message about the run that f accepts.
func (g *going) message(what string, f func(m message) bool) (found message) {
	g.until(what, func() bool {
		for _, m := range g.c.board.of(g.id()) {
			if f(m) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// hook lets the board answer operations of the run.
func (g *going) hook(h hook) { g.c.board.set(g.id(), h) }

// operations returns the operations of the run so far.
func (g *going) operations() []*kagziv1.SessionRequest {
	var all []*kagziv1.SessionRequest
	for _, m := range g.c.board.of(g.id()) {
		if m.up != nil {
			all = append(all, m.up)
		}
	}
	return all
}

// count counts the operations of the run that f accepts.
func (g *going) count(f func(*kagziv1.SessionRequest) bool) (n int) {
	for _, r := range g.operations() {
		if f(r) {
			n++
		}
	}
	return n
}

// Short forms of ops. They are not inlined: hundreds of cases call them.
//
//go:noinline
func step(name string) *program.Op { return &program.Op{Op: "step", Name: name} }

//go:noinline
func nap(name string, ms int64) *program.Op { return &program.Op{Op: "sleep", Name: name, MS: ms} }

//go:noinline
func wait(name string) *program.Op { return &program.Op{Op: "signal", Name: name} }

//go:noinline
func returns(value string) *program.Op {
	return &program.Op{Op: "return", Value: json.RawMessage(value)}
}

//go:noinline
func fork(bodies ...[]*program.Op) *program.Op { return &program.Op{Op: "branches", Bodies: bodies} }

//go:noinline
func list(ops ...*program.Op) []*program.Op { return ops }

//go:noinline
func within(name string, limit int64) *program.Op {
	return &program.Op{Op: "signal", Name: name, LimitMS: &limit}
}

//go:noinline
func try(ops, catch []*program.Op) *program.Op { return &program.Op{Op: "try", Ops: ops, Catch: catch} }

//go:noinline
func child(name string, ops ...*program.Op) *program.Op {
	return &program.Op{Op: "child", Name: name, Program: &program.Program{Ops: ops}}
}

//go:noinline
func startOnly(o *program.Op) *program.Op {
	no := false
	o.Wait = &no
	return o
}

// stands for no code of the application's errors.
const noCode = kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED

func failing(kind string, final bool) program.Answer {
	return program.Answer{Do: "fail", Message: "no " + kind, Type: kind, NonRetryable: final}
}
