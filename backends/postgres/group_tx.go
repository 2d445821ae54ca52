package postgres

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// groupTx is the storelogic.Tx of one operation of a group: it reads and changes the rows that the
// group has read. Methods that it does not have itself are those of a tx that sends nothing: the
// operation then goes alone.
type groupTx struct {
	*tx
	rows *groupRows
}

// Run returns a copy, because operations change it.
func (t *groupTx) Run(namespace string, id engine.ID) (*storelogic.Run, error) {
	run := t.rows.runs[id]
	if run == nil {
		if err := t.rows.need(wantRun, id, ""); err != nil {
			return nil, err
		}
		return nil, errLocked // or it does not exist
	}
	if run.base.Gated { // the lock of its key comes first, see tx.lockGates
		return nil, errElsewhere
	}
	copied := *cmp.Or(run.now, run.base)
	copied.WasHeld = !copied.Token.IsZero()
	if namespace != "" && copied.Namespace != namespace {
		return nil, nil
	}
	return &copied, nil
}

// SaveRun keeps a copy.
func (t *groupTx) SaveRun(r *storelogic.Run) error {
	run := t.rows.runs[r.ID]
	if run == nil {
		return errElsewhere
	}
	saved, before := *r, run.now
	if saved.Ending && saved.ContinuedAs.IsZero() { // the statement would not see signals of the group
		unread, _, err := t.CountSignals(r.ID)
		if err != nil {
			return err
		}
		saved.UnreadSignals, saved.Ending = unread, false
	}
	t.rows.change(func() { run.now = before })
	run.now = &saved
	return nil
}

// Payloads has the output that an operation of the group has saved.
func (t *groupTx) Payloads(id engine.ID) (input, output engine.Payload, err error) {
	run := t.rows.runs[id]
	if run == nil {
		return input, output, errElsewhere
	}
	if err := t.rows.need(wantPayloads, id, ""); err != nil {
		return input, output, err
	}
	if run.output != nil {
		return run.input, *run.output, nil
	}
	return run.input, run.result, nil
}

func (t *groupTx) SaveOutput(id engine.ID, output engine.Payload) error {
	run := t.rows.runs[id]
	if run == nil {
		return errElsewhere
	}
	before := run.output
	t.rows.change(func() { run.output = before })
	run.output = &output
	return nil
}

// InsertRun takes runs whose lane and namespace are in the caches. Others are made by the operation
// alone, and are in the caches then.
func (t *groupTx) InsertRun(start *engine.StartRun) error {
	if _, err := t.ensureLane(laneKeyOf(start)); err != nil {
		return err
	}
	if _, known := t.store.namespaces.Load(start.Namespace); !known {
		return errElsewhere
	}
	t.rows.change(func() { t.rows.starts = t.rows.starts[:len(t.rows.starts)-1] })
	t.rows.starts = append(t.rows.starts, *start)
	return nil
}

// OpenChildren returns none; a run that has some ends alone.
func (t *groupTx) OpenChildren(parent engine.ID) ([]engine.ID, error) {
	if err := t.rows.need(wantChildren, parent, ""); err != nil {
		return nil, err
	}
	mine := func(s engine.StartRun) bool { return s.ParentRunID == parent }
	if run := t.rows.runs[parent]; run == nil || run.children || slices.ContainsFunc(t.rows.starts, mine) {
		return nil, errElsewhere
	}
	return nil, nil
}

func (t *groupTx) HandlerQueue(namespace, workflowType string) (string, error) {
	text := namespace + "\x00" + workflowType
	if err := t.rows.need(wantHandler, engine.ID{}, text); err != nil {
		return "", err
	}
	return t.rows.handlers[text], nil
}

func (t *groupTx) Namespace(name string) (*engine.Namespace, error) {
	if err := t.rows.need(wantNamespace, engine.ID{}, name); err != nil {
		return nil, err
	}
	return t.rows.namespaces[name], nil
}

func (t *groupTx) LeaveReceipt(run engine.ID, token engine.Token, r storelogic.Receipt) error {
	t.rows.change(func() { t.rows.receipts = t.rows.receipts[:len(t.rows.receipts)-1] })
	t.rows.receipts = append(t.rows.receipts, receiptOf{run, token, r})
	return nil
}

func (t *groupTx) InsertAudit(e engine.AuditEvent) error {
	t.rows.change(func() { t.rows.audits = t.rows.audits[:len(t.rows.audits)-1] })
	t.rows.audits = append(t.rows.audits, auditArgs(&e))
	return nil
}

// Attempt tries the id first.
func (t *groupTx) Attempt(run engine.ID, ref engine.StepRef) (*engine.Step, error) {
	if !ref.ID.IsZero() {
		if s := t.rows.steps[ref.ID]; s != nil {
			if s.current().RunID == run {
				return t.paid(s)
			}
		} else if err := t.rows.need(wantStep, ref.ID, ""); err != nil {
			return nil, err
		}
	}
	if ref.Name == "" {
		return nil, nil
	}
	for _, s := range t.rows.rowsOf(run).steps {
		if s.current().Name == ref.Name && s.current().Latest {
			return t.paid(s)
		}
	}
	return nil, t.rows.need(wantName, run, ref.Name)
}

// paid returns a copy of a step with its payloads.
func (t *groupTx) paid(s *groupStep) (*engine.Step, error) {
	if s.base != nil && !s.paid {
		return nil, t.rows.need(wantStep, s.base.ID, "")
	}
	step := *s.current()
	return &step, t.fresh(step.RunID)
}

// fresh refuses to tell steps that a statement about all of a run's steps will change.
func (t *groupTx) fresh(run engine.ID) error {
	if r := t.rows.runs[run]; r == nil || r.retryAt != nil {
		return errElsewhere
	}
	return nil
}

// stepsOf returns copies of the known steps of a run that meet the condition.
func (t *groupTx) stepsOf(run engine.ID, take func(*engine.Step) bool) (steps []engine.Step) {
	for _, s := range t.rows.rowsOf(run).steps {
		if take(s.current()) {
			steps = append(steps, *s.current())
		}
	}
	return steps
}

func (t *groupTx) Waiting(run engine.ID) ([]engine.Step, error) {
	if err := cmp.Or(t.fresh(run), t.rows.need(wantWaiting, run, "")); err != nil {
		return nil, err
	}
	steps := t.stepsOf(run, func(s *engine.Step) bool { return s.Open() || s.Awaited != 0 })
	slices.SortFunc(steps, func(a, b engine.Step) int {
		return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Attempt, b.Attempt))
	})
	return bare(steps), nil
}

// bare removes the payloads.
func bare(steps []engine.Step) []engine.Step {
	for i := range steps {
		steps[i].Input, steps[i].Output = engine.Payload{}, engine.Payload{}
	}
	return steps
}

// NextOfGroup knows the first open steps of the group, one more than end in the group of operations,
// if it does not know all open steps of the run.
func (t *groupTx) NextOfGroup(run engine.ID, group int64) (*engine.Step, error) {
	if err := t.fresh(run); err != nil {
		return nil, err
	}
	open := t.stepsOf(run, func(s *engine.Step) bool { return s.Open() && s.Awaited == group })
	if len(open) == 0 || !t.rows.known[want{wantGroup, run, groupText(group)}] {
		if err := t.rows.need(wantWaiting, run, ""); err != nil || len(open) == 0 {
			return nil, err
		}
	}
	next := slices.MinFunc(bare(open), func(a, b engine.Step) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return &next, nil
}

func (t *groupTx) ChildSteps(run engine.ID, children []engine.ID) (steps []engine.Step, err error) {
	for _, child := range children {
		started := func(s *engine.Step) bool { return s.Kind == engine.StepChild && s.Latest && s.ChildRunID == child }
		i := slices.IndexFunc(t.rows.rowsOf(run).steps, func(s *groupStep) bool { return started(s.current()) })
		if i < 0 {
			err = cmp.Or(err, t.rows.need(wantChild, child, ""))
			continue
		}
		step, missing := t.paid(t.rows.rowsOf(run).steps[i])
		if err = cmp.Or(err, missing); err == nil {
			steps = append(steps, *step)
		}
	}
	return steps, err
}

func (t *groupTx) InsertSteps(steps []engine.Step) error {
	for _, step := range steps {
		if t.rows.steps[step.ID] != nil {
			return errElsewhere // where the database refuses it
		}
		of := t.rows.rowsOf(step.RunID)
		t.rows.change(func() {
			delete(t.rows.steps, step.ID)
			of.steps = of.steps[:len(of.steps)-1]
		})
		s := &groupStep{now: &step}
		t.rows.steps[step.ID] = s
		of.steps = append(of.steps, s)
	}
	return nil
}

// changeStep changes a copy of a step that is known.
func (t *groupTx) changeStep(id engine.ID, change func(s *groupStep, step *engine.Step)) error {
	s := t.rows.steps[id]
	if s == nil {
		return errElsewhere
	}
	before := *s
	t.rows.change(func() { *s = before })
	step := *s.current()
	change(s, &step)
	s.now = &step
	return nil
}

func (t *groupTx) Supersede(id engine.ID) error {
	return t.changeStep(id, func(s *groupStep, step *engine.Step) {
		s.superseded, step.Latest = true, false
		if step.Status == engine.StepPending {
			step.Status = engine.StepFailed
		}
	})
}

func (t *groupTx) SaveStep(saved *engine.Step) error {
	return t.changeStep(saved.ID, func(s *groupStep, step *engine.Step) {
		was := *step
		*step, s.output = *saved, true
		step.Latest, step.Attempt, step.Sequence, step.Input, step.CreatedAt = was.Latest, was.Attempt, was.Sequence,
			was.Input, was.CreatedAt
		step.OverriddenBy, step.OverrideReason = was.OverriddenBy, was.OverrideReason
		step.Branch, step.BegunIn = was.Branch, was.BegunIn
	})
}

func (t *groupTx) SetAwaited(steps []engine.ID, group int64) error {
	for _, id := range steps {
		if err := t.changeStep(id, func(_ *groupStep, step *engine.Step) { step.Awaited = group }); err != nil {
			return err
		}
	}
	return nil
}

// changeOpen changes the open steps of a run that the condition takes.
func (t *groupTx) changeOpen(run engine.ID, take func(*engine.Step) bool, change func(*engine.Step)) error {
	if err := cmp.Or(t.fresh(run), t.rows.need(wantWaiting, run, "")); err != nil {
		return err
	}
	for _, s := range t.rows.rowsOf(run).steps {
		if step := s.current(); step.Open() && take(step) {
			if err := t.changeStep(step.ID, func(_ *groupStep, step *engine.Step) { change(step) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *groupTx) InterruptSteps(run engine.ID, f engine.Failure, now time.Time) error {
	return t.changeOpen(run, func(s *engine.Step) bool {
		return s.Status == engine.StepRunning && s.Kind == engine.StepFunction
	}, func(s *engine.Step) {
		s.Status, s.Error, s.FinishedAt, s.TimeoutAt = engine.StepFailed, &f, now, time.Time{}
	})
}

func (t *groupTx) EndSteps(run engine.ID, f engine.Failure, now time.Time) error {
	return t.changeOpen(run, func(*engine.Step) bool { return true }, func(s *engine.Step) {
		if s.Status == engine.StepRunning {
			s.Error, s.FinishedAt = &f, now
		}
		s.Status, s.TimeoutAt = engine.StepFailed, time.Time{}
	})
}

func (t *groupTx) WakeSteps(run engine.ID, now time.Time) error {
	return t.changeOpen(run, func(s *engine.Step) bool {
		return s.Status == engine.StepRunning && s.Kind == engine.StepSleep && !s.WakeAt.IsZero() &&
			!s.WakeAt.After(now)
	}, func(s *engine.Step) {
		s.Status, s.FinishedAt = engine.StepCompleted, s.WakeAt
		s.Settled, s.Awaited = engine.Unsettled, engine.AwaitedByNone
	})
}

func (t *groupTx) SettleStep(id engine.ID, settled int64) error {
	return t.changeStep(id, func(_ *groupStep, step *engine.Step) { step.Settled = settled })
}

// RetrySteps concerns steps that the group has not read.
func (t *groupTx) RetrySteps(run engine.ID, at time.Time) error {
	r := t.rows.runs[run]
	if err := t.fresh(run); err != nil {
		return err
	}
	t.rows.change(func() { r.retryAt = nil })
	r.retryAt = args{"run_id": [16]byte(run), "retry_at": micros(at)}
	return nil
}

// NextSignal knows the first signals of the name, one more than there are operations.
func (t *groupTx) NextSignal(run engine.ID, name string) (*engine.Signal, error) {
	if err := t.rows.need(wantNext, run, name); err != nil {
		return nil, err
	}
	var next *engine.Signal
	stored := 0
	for _, s := range t.rows.rowsOf(run).signals {
		if s.base != nil && s.base.Name == name && s.base.StepName == "" {
			stored++
		}
		if c := s.current(); c.Name == name && c.StepName == "" && (next == nil || c.Sequence < next.Sequence) {
			next = c
		}
	}
	if next == nil && stored >= t.rows.heads() {
		return nil, errElsewhere
	}
	if next == nil {
		return nil, nil
	}
	signal := *next
	return &signal, nil
}

func (t *groupTx) SignalByID(run engine.ID, signalID string) (*engine.Signal, error) {
	for _, s := range t.rows.rowsOf(run).signals {
		if c := s.current(); c.SignalID == signalID {
			signal := *c
			return &signal, nil
		}
	}
	return nil, t.rows.need(wantSignal, run, signalID)
}

func (t *groupTx) CountSignals(run engine.ID) (waiting int, last int64, err error) {
	r := t.rows.runs[run]
	if r == nil {
		return 0, 0, errElsewhere
	}
	if err := t.rows.need(wantCount, run, ""); err != nil {
		return 0, 0, err
	}
	waiting, last = r.waiting, r.last
	for _, s := range t.rows.rowsOf(run).signals {
		if s.now == nil {
			continue
		}
		if s.base != nil && s.base.StepName == "" {
			waiting--
		}
		if s.now.StepName == "" {
			waiting++
		}
		last = max(last, s.now.Sequence)
	}
	return waiting, last, nil
}

func (t *groupTx) InsertSignals(signals []engine.Signal) error {
	for _, signal := range signals {
		key, of := signalKey{signal.RunID, signal.Sequence}, t.rows.rowsOf(signal.RunID)
		if t.rows.signals[key] != nil {
			return errElsewhere
		}
		t.rows.change(func() {
			delete(t.rows.signals, key)
			of.signals = of.signals[:len(of.signals)-1]
		})
		s := &groupSignal{now: &signal}
		t.rows.signals[key] = s
		of.signals = append(of.signals, s)
	}
	return nil
}

func (t *groupTx) ConsumeSignal(run engine.ID, sequence int64, step string) error {
	s := t.rows.signals[signalKey{run, sequence}]
	if s == nil {
		return errElsewhere
	}
	before := s.now
	t.rows.change(func() { s.now = before })
	consumed := *s.current()
	consumed.StepName = step
	s.now = &consumed
	return nil
}
