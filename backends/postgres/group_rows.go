package postgres

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// groupRows holds the rows that a group has read, with the changes of its operations. Whether a row
// that is not here exists is known only if it was looked for.
type groupRows struct {
	members int
	known   map[want]bool // what was looked for
	wanted  map[want]bool // what the next read looks for
	runs    map[engine.ID]*groupRun
	steps   map[engine.ID]*groupStep
	signals map[signalKey]*groupSignal
	of      map[engine.ID]*rowsOfRun
	changes []func() // undo the operations' changes, the last first

	starts   []engine.StartRun
	receipts []receiptOf
	audits   []args // of insert_audit.sql
	groupSchedules
	handlers   map[string]string
	namespaces map[string]*engine.Namespace
}

// want is something to look for: rows of a run, unless the kind says otherwise.
type want struct {
	what wanted
	id   engine.ID
	text string
}

type wanted uint8

const (
	wantRun       wanted = iota // and its lease
	wantEnding                  // what the end of a run needs of its parent
	wantStep                    // by its own id
	wantName                    // the latest attempt of a step
	wantWaiting                 // the steps that are open or awaited
	wantGroup                   // the first open steps of a group; text: its number
	wantChild                   // the step that started the run
	wantNext                    // the first unconsumed signals of a name
	wantSignal                  // by its sender's id
	wantCount                   // of signals
	wantPayloads                // of the run
	wantChildren                // whether it has open children that end with it
	wantHandler                 // text: namespace and type
	wantNamespace               // text
	wantSchedule                // by its own id
	wantFire                    // the record of a tick; by the schedule's id, text: the tick
)

type groupRun struct {
	base     *storelogic.Run // as it is stored
	now      *storelogic.Run // as operations have left it; nil: unchanged
	output   *engine.Payload // saved by an operation
	paid     bool            // the payloads are known
	input    engine.Payload
	result   engine.Payload
	children bool  // it has open children
	waiting  int   // unconsumed signals
	last     int64 // highest sequence of its signals
	retryAt  args  // of retry_steps.sql; nil: not called
}

type groupStep struct {
	base       *engine.Step // as it is stored; nil: an operation made it
	paid       bool         // base has its payloads
	now        *engine.Step // as operations have left it; nil: unchanged
	output     bool         // they have written the output
	superseded bool
}

func (s *groupStep) current() *engine.Step {
	if s.now != nil {
		return s.now
	}
	return s.base
}

type signalKey struct {
	run      engine.ID
	sequence int64
}

type groupSignal struct {
	base *engine.Signal // as it is stored; nil: an operation made it
	now  *engine.Signal // as operations have left it; nil: unchanged
}

func (s *groupSignal) current() *engine.Signal {
	if s.now != nil {
		return s.now
	}
	return s.base
}

// rowsOfRun are those that are known.
type rowsOfRun struct {
	steps   []*groupStep
	signals []*groupSignal
}

type receiptOf struct {
	run     engine.ID
	token   engine.Token
	receipt storelogic.Receipt
}

func newGroupRows(members int) groupRows {
	return groupRows{members: members, known: map[want]bool{}, wanted: map[want]bool{},
		runs: map[engine.ID]*groupRun{}, steps: map[engine.ID]*groupStep{}, signals: map[signalKey]*groupSignal{},
		of: map[engine.ID]*rowsOfRun{}, handlers: map[string]string{}, namespaces: map[string]*engine.Namespace{},
		groupSchedules: newGroupSchedules()}
}

// change records how to undo a change.
func (g *groupRows) change(undo func()) { g.changes = append(g.changes, undo) }

// undo takes back the changes from this one on.
func (g *groupRows) undo(from int) {
	for i := len(g.changes) - 1; i >= from; i-- {
		g.changes[i]()
	}
	g.changes = g.changes[:from]
}

// need returns nil if that was looked for, or asks for it.
func (g *groupRows) need(what wanted, id engine.ID, text string) error {
	w := want{what, id, text}
	if g.known[w] {
		return nil
	}
	g.ask(w)
	return errMissing
}

func (g *groupRows) ask(w want) {
	if !g.known[w] {
		g.wanted[w] = true
	}
}

// expect asks for what a call will probably need.
func (g *groupRows) expect(c *call) {
	run := func(what wanted) { g.ask(want{what, c.run, ""}) }
	if fire, ok := c.op.Params.(engine.FireScheduleParams); ok {
		run(wantSchedule)
		for _, tick := range fire.Ticks {
			g.ask(wantTick(c.run, micros(engine.Micros(tick.At))))
		}
		return
	}
	run(wantRun)
	step := func(ref engine.StepRef) {
		if ref.ID.IsZero() {
			g.ask(want{wantName, c.run, ref.Name})
		} else {
			g.ask(want{wantStep, ref.ID, ""})
		}
	}
	switch p := c.op.Params.(type) {
	case engine.BeginStepParams:
		step(engine.StepRef{Name: p.Name})
	case engine.CompleteStepParams:
		step(p.Step)
	case engine.FailStepParams:
		step(p.Step)
		if !p.Hold {
			run(wantWaiting)
		}
	case engine.SleepParams:
		step(p.Step)
		if !p.Hold {
			run(wantWaiting)
		}
	case engine.AwaitSignalParams:
		step(engine.StepRef{Name: p.Step})
		g.ask(want{wantNext, c.run, p.Signal})
		run(wantWaiting)
	case engine.SignalRunParams:
		if p.SignalID != "" {
			g.ask(want{wantSignal, c.run, p.SignalID})
		}
		run(wantWaiting)
		run(wantCount)
	case engine.StartChildParams:
		step(engine.StepRef{Name: p.Step})
	case engine.AwaitChildrenParams:
		for _, child := range p.Children {
			g.ask(want{wantChild, child, ""})
		}
		run(wantWaiting)
	case engine.CompleteRunParams:
		for _, what := range []wanted{wantEnding, wantWaiting, wantChildren, wantPayloads, wantCount} {
			run(what)
		}
	case engine.FailRunParams:
		run(wantWaiting)
		run(wantCount)
	case engine.EndRunParams:
		for _, what := range []wanted{wantEnding, wantWaiting, wantChildren, wantCount} {
			run(what)
		}
	case engine.ReleaseParams, settleParams:
		run(wantWaiting)
	}
}

func (g *groupRows) rowsOf(run engine.ID) *rowsOfRun {
	r := g.of[run]
	if r == nil {
		r = &rowsOfRun{}
		g.of[run] = r
	}
	return r
}

//go:embed sql/try_runs.sql
var tryRunsText string

var tryRunsSQL = runColumns.Expand(tryRunsText)

//go:embed sql/try_leases.sql
var tryLeasesSQL string

//go:embed sql/read_steps.sql
var readStepsText string

var readStepsSQL = hot(readStepsText)

//go:embed sql/next_signals.sql
var nextSignalsSQL string

//go:embed sql/get_signals.sql
var getSignalsSQL string

//go:embed sql/count_waiting_signals.sql
var countWaitingSignalsSQL string

//go:embed sql/read_payloads.sql
var readPayloadsSQL string

//go:embed sql/have_open_children.sql
var haveOpenChildrenSQL string

// wants are what a read looks for, by kind.
type wants struct {
	ids   map[wanted][]engine.ID
	texts map[wanted][]string
}

// queueReads queues what reads everything that is wanted: locks first. It forgets all changes,
// because rows are added under them.
func (g *groupRows) queueReads(t *tx) error {
	g.undo(0)
	w := wants{map[wanted][]engine.ID{}, map[wanted][]string{}}
	for one := range g.wanted {
		g.known[one] = true
		w.ids[one.what], w.texts[one.what] = append(w.ids[one.what], one.id), append(w.texts[one.what], one.text)
	}
	clear(g.wanted)
	g.queueLocks(t, w)
	ending, waiting := idArray(w.ids[wantEnding]), w.ids[wantWaiting]
	steps := len(w.ids[wantStep]) + len(w.ids[wantName]) + len(w.ids[wantChild])
	if steps+len(ending)+len(waiting) > 0 {
		g.queueSteps(t, w)
	}
	g.queueSignals(t, w)
	if ids := w.ids[wantPayloads]; len(ids) > 0 {
		var id engine.ID
		var input, result engine.Payload
		t.later(readPayloadsSQL, args{"run_ids": idArray(ids)},
			slices.Concat([]any{idOf(&id)}, payloadPlaces(&input), payloadPlaces(&result)), func() {
				if run := g.runs[id]; run != nil {
					run.paid, run.input, run.result = true, input, result
				}
				input, result = engine.Payload{}, engine.Payload{}
			})
	}
	if ids := w.ids[wantChildren]; len(ids) > 0 {
		var id engine.ID
		t.later(haveOpenChildrenSQL, args{"run_ids": idArray(ids)}, []any{idOf(&id)}, func() {
			if run := g.runs[id]; run != nil {
				run.children = true
			}
		})
	}
	for _, text := range w.texts[wantHandler] {
		namespace, kind, _ := strings.Cut(text, "\x00")
		var queue string
		t.later(getHandlerQueueSQL, args{"namespace": namespace, "workflow_type": kind}, []any{&queue}, func() {
			g.handlers[text] = queue
		})
	}
	for _, name := range w.texts[wantNamespace] {
		var n engine.Namespace
		t.later(getNamespaceSQL, args{"namespace": name}, namespacePlaces(&n), func() { g.namespaces[name] = &n })
	}
	return g.queueSchedules(t, w)
}

// queueLocks queues what locks and reads runs and their leases.
func (g *groupRows) queueLocks(t *tx, w wants) {
	if len(w.ids[wantRun])+len(w.ids[wantEnding]) == 0 {
		return
	}
	which := args{"run_ids": idArray(w.ids[wantRun]), "ending": idArray(w.ids[wantEnding])}
	byID := map[engine.ID]*storelogic.Run{}
	t.queueRunRows(tryRunsSQL, which, func(run *storelogic.Run) bool {
		g.known[want{wantRun, run.ID, ""}] = true
		if g.runs[run.ID] != nil {
			return false
		}
		g.runs[run.ID], byID[run.ID] = &groupRun{base: run}, run
		g.forget(run.ID)
		return true
	})
	t.batch.Queue(tryLeasesSQL, which).Query(func(rows pgx.Rows) error {
		var id engine.ID
		var locked bool
		for rows.Next() {
			var l storelogic.Run
			places := append([]any{idOf(&id), &locked}, leasePlaces(&l)...)
			if rows.RawValues()[2] == nil {
				clear(places[2:]) // pgx skips a column whose place is nil
			}
			if err := rows.Scan(places...); err != nil {
				return err
			}
			switch {
			case byID[id] == nil:
			case locked:
				delete(g.runs, id)
			default:
				t.addLease(byID[id], &l)
			}
		}
		return rows.Err()
	})
}

// forget drops the rows of a run that were read before it was locked: they may have changed.
func (g *groupRows) forget(run engine.ID) {
	of := g.of[run]
	if of == nil {
		return
	}
	for _, s := range of.steps {
		delete(g.steps, s.base.ID)
		delete(g.known, want{wantStep, s.base.ID, ""})
		delete(g.known, want{wantChild, s.base.ChildRunID, ""})
	}
	for _, s := range of.signals {
		delete(g.signals, signalKey{run, s.base.Sequence})
	}
	delete(g.of, run)
}

// queueSteps queues what reads steps.
func (g *groupRows) queueSteps(t *tx, w wants) {
	a := args{"step_ids": idArray(w.ids[wantStep]), "name_run_ids": idArray(w.ids[wantName]),
		"names": w.texts[wantName], "children": idArray(w.ids[wantChild]), "waiting": idArray(w.ids[wantWaiting]),
		"ending": idArray(w.ids[wantEnding])}
	t.batch.Queue(readStepsSQL.text, readStepsSQL.bind(a)...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var paid bool
			step := &engine.Step{}
			if err := rows.Scan(append([]any{&paid}, stepPlaces(step)...)...); err != nil {
				return err
			}
			g.addStep(step, paid)
		}
		for _, id := range w.ids[wantEnding] {
			run := g.runs[id]
			if run == nil || g.runs[run.base.ParentRunID] == nil {
				continue
			}
			if s := g.steps[run.base.ParentStepID]; s != nil {
				g.known[want{wantGroup, s.base.RunID, groupText(s.base.Awaited)}] = true
			}
		}
		return rows.Err()
	})
}

func groupText(group int64) string { return strconv.FormatInt(group, 10) }

// heads limits how many rows of a kind are read; each operation uses at most one of them.
func (g *groupRows) heads() int { return g.members + 1 }

func (g *groupRows) addStep(step *engine.Step, paid bool) {
	known := g.steps[step.ID]
	switch {
	case known == nil:
		known = &groupStep{base: step, paid: paid}
		g.steps[step.ID] = known
		of := g.rowsOf(step.RunID)
		of.steps = append(of.steps, known)
	case paid && !known.paid:
		known.base, known.paid = step, true
	}
	if known.paid {
		g.known[want{wantStep, step.ID, ""}] = true
	}
}

// queueSignals queues what reads and counts signals.
func (g *groupRows) queueSignals(t *tx, w wants) {
	read := func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, scanSignal)
		for i := range list {
			key := signalKey{list[i].RunID, list[i].Sequence}
			if g.signals[key] == nil {
				g.signals[key] = &groupSignal{base: &list[i]}
				of := g.rowsOf(key.run)
				of.signals = append(of.signals, g.signals[key])
			}
		}
		return err
	}
	if ids := w.ids[wantNext]; len(ids) > 0 {
		t.batch.Queue(nextSignalsSQL, args{"run_ids": idArray(ids), "names": w.texts[wantNext],
			"heads": int64(g.heads())}).Query(read)
	}
	if ids := w.ids[wantSignal]; len(ids) > 0 {
		t.batch.Queue(getSignalsSQL, args{"run_ids": idArray(ids), "signal_ids": w.texts[wantSignal]}).Query(read)
	}
	if ids := w.ids[wantCount]; len(ids) > 0 {
		var id engine.ID
		var waiting int
		var last int64
		t.later(countWaitingSignalsSQL, args{"run_ids": idArray(ids)}, []any{idOf(&id), &waiting, &last}, func() {
			if run := g.runs[id]; run != nil {
				run.waiting, run.last = waiting, last
			}
		})
	}
}
