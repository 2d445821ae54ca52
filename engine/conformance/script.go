package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// A script says in which order things happen to a program: which step's body goes on, when a signal
// comes, when the run is cancelled. The Go SDK's worker makes it, in the order that the seed chooses
// among all that is possible whenever the program rests. Other subjects then follow the same script, each
// event only in the very state in which it happened. So the order of results does not depend on how fast
// a subject is. Timers need no event: the program does not rest while one runs. That a program of the Go
// SDK's worker rests is no matter of time either: its code is watched (subject.Watch).

// event is one thing that happens to a program, and the state in which it does.
type event struct {
	kind  string // gate, signal or cancel
	path  string // of the run; of a gate
	name  string // of the step or signal
	value string // of the signal
	state state
}

// state is what can be seen of a program at rest: who waits at the gate, and which rows there are.
type state struct {
	gates string
	rows  string
}

func (s state) String() string { return "bodies [" + s.gates + "], rows [" + s.rows + "]" }

// script is what happened to a program, and what was recorded then.
type script struct {
	events  []event
	records []Record
}

// eventLimit limits how long a subject may do nothing at all while the suite waits for it. Tests make it
// shorter.
var eventLimit = 15 * time.Second

var errStuck = errors.New("the program rests, and nothing is left that could happen to it")

// look reads the state of a family.
func (l *lane) look(ctx context.Context, f *family) (s state, over bool, err error) {
	s, _, over, err = l.inspect(ctx, f)
	return s, over, err
}

// inspect reads the state of a family, and its runs that have not ended with the steps whose bodies wait.
func (l *lane) inspect(ctx context.Context, f *family) (s state, open map[*member][]string, over bool, err error) {
	all, err := f.members(ctx)
	if err != nil {
		return s, nil, false, err
	}
	waiting := map[string][]string{} // names by run
	for _, key := range l.gate.keys() {
		if run, name, ok := strings.Cut(key, "/"); ok {
			waiting[run] = append(waiting[run], name)
		}
	}
	var gates, rows []string
	open, over = map[*member][]string{}, true
	for i := range all {
		m := &all[i]
		id := m.run.GetRunId()
		if ended(m.run.GetStatus()) {
			rows = append(rows, m.path+":"+m.run.GetStatus().String())
			l.gate.drop(id)
			continue
		}
		over, open[m] = false, waiting[id]
		for _, name := range waiting[id] {
			text := m.path + "|" + name
			if n := l.gate.times(id + "/" + name); n > 0 {
				text += "#" + strconv.Itoa(n) // it waits for another answer than before
			}
			gates = append(gates, text)
		}
		for _, s := range m.rows {
			switch text, counts := standing(s); {
			case m.dropped(s):
				rows = append(rows, m.path+"|"+s.GetName()+"=*")
			case counts:
				rows = append(rows, m.path+"|"+text)
			}
		}
	}
	slices.Sort(gates)
	slices.Sort(rows)
	return state{strings.Join(gates, " "), strings.Join(rows, " ")}, open, over, nil
}

// standing says how a row stands, if that is the same for every subject. Whether the beginning of a step is
// announced depends on time, so a step without a result has no row here: it waits at the gate.
func standing(s *kagziv1.Step) (string, bool) {
	if isOwn(s.GetName()) || interrupted(s) || s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_PENDING {
		return "", false
	}
	settled := ""
	if s.GetSettled() > 0 {
		settled = "!"
	}
	return s.GetName() + "=" + strings.TrimPrefix(s.GetStatus().String(), "STEP_STATUS_") + settled, true
}

// rests reports whether a run of the Go SDK's worker can only be moved on by the gate, or by a signal that
// was not sent: every branch is in a call that nothing which has happened can end, and every result that
// the code has is recorded. waiting are the steps whose bodies wait at the gate.
func (l *lane) rests(m *member, waiting []string, sent func(signal string) bool) bool {
	rows := map[string]*kagziv1.Step{}
	for _, s := range m.rows {
		rows[s.GetName()] = s
	}
	at, begun := l.watch.Look(m.run.GetRunId())
	cancelled := rows["kagzi:cancelled"] != nil
	switch {
	case !begun, at.Moving, at.Timers > 0, at.Steps != len(waiting),
		m.run.CancelRequestedAt != nil && !cancelled,
		cancelled && len(at.Signals)+len(at.Children) > 0: // which the cancellation ends
		return false
	}
	running := func(name string) bool { return rows[name].GetStatus() == kagziv1.StepStatus_STEP_STATUS_RUNNING }
	for _, name := range at.Signals {
		if sent(name) || !running(name) {
			return false
		}
	}
	for _, name := range l.gate.finished(m.run.GetRunId()) {
		if rows[name].GetSettled() == 0 {
			return false
		}
	}
	return !slices.ContainsFunc(at.Children, func(name string) bool { return !running(name) })
}

// settle waits until a program of the Go SDK's worker rests, or has ended. All that it looks at rings
// the bell, so nothing has changed while it looked if the bell did not ring.
func (l *lane) settle(ctx context.Context, f *family, sent func(signal string) bool) (s state, over bool, err error) {
	err = await(ctx, func() (bool, error) {
		changed := l.host.changes.next()
		var open map[*member][]string
		if s, open, over, err = l.inspect(ctx, f); over || err != nil {
			return over, err
		}
		for m, waiting := range open {
			if path, _ := f.path(m.run.GetRunId()); !l.rests(m, waiting, func(name string) bool { return path == "" && sent(name) }) {
				return false, nil
			}
		}
		select {
		case <-changed:
			return false, nil
		default:
			return true, nil
		}
	}, l.host.changes)
	if err != nil {
		return s, false, fmt.Errorf("%w; %s", err, s)
	}
	return s, over, nil
}

// write runs a program on the Go SDK and makes its script. If cancelAt is not negative, the run is
// cancelled before that event, or before the last.
func (l *lane) write(ctx context.Context, t test, cancelAt int) (*script, error) {
	f, err := l.start(ctx, t.Program, nil)
	if err != nil {
		return nil, err
	}
	defer l.abandon(context.WithoutCancel(ctx), f)
	rnd := rand.New(rand.NewPCG(t.Seed, 0x736372697074))
	sc, unsent, cancelled := &script{}, slices.Clone(t.Signals), false
	for {
		s, over, err := l.settle(ctx, f, func(name string) bool {
			return !slices.ContainsFunc(unsent, func(s sending) bool { return s.Name == name })
		})
		if err != nil {
			return nil, err
		}
		if over {
			break
		}
		may := t.sendable(s, unsent)
		if cancelled { // no SDK promises what becomes of a signal for a wait that the cancellation has ended
			may = slices.DeleteFunc(may, func(one sending) bool { return strings.Contains(s.rows, "|"+one.Name+"=") })
		}
		e, ok := choose(rnd, s, may)
		if cancelAt >= 0 && !cancelled && (len(sc.events) == cancelAt || !ok) {
			e, ok, cancelled = event{kind: "cancel"}, true, true
		}
		if !ok {
			return nil, fmt.Errorf("%w: %s", errStuck, s)
		}
		e.state = s
		if e.kind == "signal" {
			unsent = slices.DeleteFunc(unsent, func(s sending) bool { return s.Name == e.name })
		}
		switch err := l.happen(ctx, f, e); {
		case e.kind != "gate" && status.Code(err) == codes.FailedPrecondition: // the run has ended, its children have not
			continue
		case err != nil:
			return nil, err
		}
		sc.events = append(sc.events, e)
	}
	all, err := f.members(ctx)
	sc.records = records(all, t.Program, true)
	return sc, err
}

// sendable returns the signals that may come now: at any time, also before the wait. But only one comes
// before its wait: of several that are there when branches begin to wait, no SDK promises which it takes
// first. Nor does any promise it of such a signal and the end of a sleep in another branch.
func (t test) sendable(s state, unsent []sending) []sending {
	early := t.sleepsInBranch() || slices.ContainsFunc(t.Signals, func(sent sending) bool {
		return !slices.Contains(unsent, sent) && !s.has("|"+sent.Name+"=COMPLETED!")
	})
	return slices.DeleteFunc(slices.Clone(unsent), func(one sending) bool {
		return early && !s.has("|"+one.Name+"=RUNNING")
	})
}

// sleepsInBranch says whether a branch of the program sleeps.
func (t test) sleepsInBranch() (sleeps bool) {
	program.Each(t.Program.Ops, func(o *program.Op) {
		for _, body := range o.Bodies {
			program.Each(body, func(in *program.Op) { sleeps = sleeps || in.Op == "sleep" })
		}
	})
	return sleeps
}

// has says whether a row of the root run stands like that.
func (s state) has(row string) bool { return slices.Contains(strings.Fields(s.rows), row) }

// choose picks what happens next.
func choose(rnd *rand.Rand, s state, unsent []sending) (event, bool) {
	gates := strings.Fields(s.gates)
	n := len(gates) + len(unsent)
	if n == 0 {
		return event{}, false
	}
	i := rnd.IntN(n)
	if i < len(gates) {
		path, name, _ := strings.Cut(gates[i], "|")
		name, _, _ = strings.Cut(name, "#")
		return event{kind: "gate", path: path, name: name}, true
	}
	signal := unsent[i-len(gates)]
	return event{kind: "signal", name: signal.Name, value: signal.Value}, true
}

// happen lets an event happen.
func (l *lane) happen(ctx context.Context, f *family, e event) error {
	switch e.kind {
	case "gate":
		key := f.run(e.path) + "/" + e.name
		if !l.gate.answer(key, answerFor(key, l.gate.times(key))) {
			return fmt.Errorf("step %s of run %q does not wait at the gate any more", e.name, e.path)
		}
		return nil
	case "signal":
		_, err := l.host.runs.SignalWorkflow(ctx, &kagziv1.SignalWorkflowRequest{Namespace: namespace, RunId: f.root,
			Name: e.name, SignalId: e.name, Payload: &kagziv1.Payload{Data: []byte(e.value)}})
		return err
	default:
		_, err := l.host.runs.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{Namespace: namespace, RunId: f.root,
			Grace: durationpb.New(time.Minute), Reason: "the suite"})
		return err
	}
}

// reach waits until a family comes to a state.
func (l *lane) reach(ctx context.Context, f *family, want state) error {
	var last state
	err := l.while(ctx, func() (bool, error) {
		got, over, err := l.look(ctx, f)
		last = got
		switch {
		case got == want:
			return true, nil
		case err == nil && over:
			return false, fmt.Errorf("the program has ended; %s; want %s", got, want)
		}
		return false, err
	})
	var late *lateError
	if errors.As(err, &late) {
		return fmt.Errorf("%w: %s; want %s", err, last, want)
	}
	return err
}

// follow runs a program on the lane's subject by a script, and returns what was recorded. disturb is
// called in the state before each event.
func (l *lane) follow(ctx context.Context, t test, sc *script, attempts bool,
	disturb func(ctx context.Context, f *family, i int) error) ([]Record, error) {
	f, err := l.start(ctx, t.Program, nil)
	if err != nil {
		return nil, err
	}
	defer l.abandon(context.WithoutCancel(ctx), f)
	for i, e := range sc.events {
		if err := l.reach(ctx, f, e.state); err != nil {
			return nil, fmt.Errorf("before event %d (%s %s%s): %w", i+1, e.kind, e.path, e.name, err)
		}
		if disturb != nil {
			if err := disturb(ctx, f, i); err != nil {
				return nil, err
			}
			if err := l.reach(ctx, f, e.state); err != nil {
				return nil, fmt.Errorf("after the fault before event %d (%s %s%s): %w", i+1, e.kind, e.path, e.name, err)
			}
		}
		if err := l.happen(ctx, f, e); err != nil {
			return nil, fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	all, err := l.finish(ctx, f)
	if err != nil {
		return nil, err
	}
	return records(all, t.Program, attempts), nil
}

// finish waits until all runs of a family have ended, and returns them.
func (l *lane) finish(ctx context.Context, f *family) ([]member, error) {
	var last state
	err := l.while(ctx, func() (over bool, err error) {
		last, over, err = l.look(ctx, f)
		return over, err
	})
	if err != nil {
		return nil, fmt.Errorf("the program does not end: %w: %s", err, last)
	}
	return f.members(ctx)
}

// free runs a program whose steps end as they may, and checks what must hold in any order.
func (l *lane) free(ctx context.Context, t test, sc *script) error {
	l.gate.setAuto(func(q program.Question, given int) (program.Answer, bool) { return answerFor(q.Key, given), true })
	defer l.gate.setAuto(nil)
	f, err := l.start(ctx, t.Program, nil)
	if err != nil {
		return err
	}
	defer l.abandon(context.WithoutCancel(ctx), f)
	for _, s := range t.Signals {
		err := l.happen(ctx, f, event{kind: "signal", name: s.Name, value: s.Value})
		if err != nil && !strings.Contains(err.Error(), "already ended") { // a branch that was left may want it
			return err
		}
	}
	all, err := l.finish(ctx, f)
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := m.inOrder(); err != nil {
			return fmt.Errorf("run %q: %w", m.path, err)
		}
	}
	if orderMatters(t.Program) {
		return nil
	}
	return sameRows(records(all, t.Program, false), sc.records)
}

// orderMatters reports whether a program's calls depend on the order of results.
func orderMatters(p *program.Program) (matters bool) {
	program.Each(p.Ops, func(o *program.Op) { matters = matters || o.Op == "first" })
	return matters
}

// sameRows compares two families without the order of results.
func sameRows(got, want []Record) error {
	plain := func(list []Record) []Record {
		list = slices.Clone(list)
		for i := range list {
			list[i].Rows = slices.Clone(list[i].Rows)
			list[i].Output = ""
			for j := range list[i].Rows {
				r := &list[i].Rows[j]
				r.Order, r.Attempt = 0, 0
				if r.Kind == "CHILD_WORKFLOW" {
					r.Result = "" // has a trace
				}
			}
			slices.SortFunc(list[i].Rows, func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
		}
		return list
	}
	if d := difference(plain(got), plain(want)); d != "" {
		return errors.New("with steps that end as they may: " + d)
	}
	return nil
}
