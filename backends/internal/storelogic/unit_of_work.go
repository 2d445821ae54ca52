package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// unitOfWork is one operation in its transaction. It reads each run once, and flush writes each
// changed run once. An operation refuses before flush, so a refused one has written nothing. Rows
// of steps and signals are written at once, by operations that can no longer be refused.
type unitOfWork struct {
	tx      Tx
	now     time.Time
	runs    map[engine.ID]*Run  // by id; nil: there is no such run
	dirty   []*Run              // changed runs, in the order of their first change
	changed map[*Run]bool       // the same runs
	ended   []*Run              // the dirty runs that ended
	places  []*Run              // runs that freed a place of their concurrency key, once for each place
	next    []engine.StartRun   // starts to insert after the dirty runs, because they may take over external ids
	passed  []engine.Signal     // copies of signals for these starts
	moved   []engine.ID         // runs whose unconsumed signals move to the run they continued as
	toPause []engine.ID         // runs among the starts that are paused from the beginning
	silent  engine.ID           // a SIGNAL step for which no signal has come
	effects *engine.SideEffects // side effects that the operation does not return; nil: none yet
}

func begin(tx Tx, now time.Time) *unitOfWork {
	return &unitOfWork{tx: tx, now: engine.Micros(now), runs: map[engine.ID]*Run{}, changed: map[*Run]bool{}}
}

// find returns the run, or nil. An empty namespace matches any.
func (u *unitOfWork) find(namespace string, id engine.ID) (*Run, error) {
	run, known := u.runs[id]
	if !known {
		var err error
		if run, err = u.tx.Run("", id); err != nil {
			return nil, err
		}
		u.runs[id] = run
	}
	if run != nil && namespace != "" && run.Namespace != namespace {
		return nil, nil
	}
	return run, nil
}

// run returns the run, or RunNotFound.
func (u *unitOfWork) run(namespace string, id engine.ID) (*Run, error) {
	run, err := u.find(namespace, id)
	if err == nil && run == nil {
		err = engine.RunNotFound(id)
	}
	return run, err
}

// held returns the run of a lease, and whether the lease is the current one.
func (u *unitOfWork) held(l engine.Lease) (*Run, bool, error) {
	run, err := u.run(l.Namespace, l.RunID)
	if err != nil {
		return nil, false, err
	}
	return run, run.Current(l), nil
}

// change marks the run to be written by flush.
func (u *unitOfWork) change(run *Run) {
	if u.changed[run] {
		return
	}
	u.changed[run] = true
	u.dirty = append(u.dirty, run)
	u.tx.Notify(engine.Notification{Kind: engine.NotifyRun, ID: run.ID})
}

// sideEffects returns the counts of what the operation does beyond its request.
func (u *unitOfWork) sideEffects() *engine.SideEffects {
	if u.effects == nil {
		u.effects = &engine.SideEffects{}
		u.tx.ReportSideEffects(u.effects)
	}
	return u.effects
}

// start adds a run for flush to insert.
func (u *unitOfWork) start(start engine.StartRun) { u.next = append(u.next, start) }

// flush writes the changed runs, and then what follows for other runs.
func (u *unitOfWork) flush() error {
	if err := u.save(); err != nil {
		return err
	}
	for i := range u.next {
		if err := u.insert(&u.next[i]); err != nil {
			return err
		}
	}
	if err := u.pauseStarted(); err != nil {
		return err
	}
	if len(u.passed) > 0 {
		if err := u.tx.InsertSignals(u.passed); err != nil {
			return err
		}
	}
	for _, from := range u.moved {
		if err := u.tx.MoveSignals(from, u.runs[from].ContinuedAs); err != nil {
			return err
		}
	}
	for _, run := range u.ended {
		if err := u.settleSchedule(run); err != nil {
			return err
		}
	}
	for _, run := range u.places {
		if err := u.openGates(run); err != nil {
			return err
		}
	}
	return nil
}

// pauseStarted pauses runs that were just inserted.
func (u *unitOfWork) pauseStarted() error {
	for _, id := range u.toPause {
		run, err := u.run("", id)
		if err != nil {
			return err
		}
		u.pause(run)
	}
	return u.save()
}

func (u *unitOfWork) save() error {
	for _, run := range u.dirty {
		if err := u.tx.SaveRun(run); err != nil {
			return err
		}
	}
	u.dirty = nil
	clear(u.changed)
	return nil
}

// insert makes a run now.
func (u *unitOfWork) insert(start *engine.StartRun) error {
	start.CreatedAt, start.AvailableAt = engine.Micros(start.CreatedAt), engine.Micros(start.AvailableAt)
	start.DeadlineAt, start.NamedDeadlineAt = engine.Micros(start.DeadlineAt), engine.Micros(start.NamedDeadlineAt)
	start.ScheduledAt = engine.Micros(start.ScheduledAt)
	if err := u.tx.InsertRun(start); err != nil {
		return err
	}
	u.notifyQueue(&start.Run)
	if !start.DeadlineAt.IsZero() {
		u.notifyTimer()
	}
	return nil
}

func (u *unitOfWork) notifyQueue(run *engine.Run) {
	u.tx.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: run.Namespace, Name: run.Queue})
}

// notifyWait sends a hint to the holder of a run: what this step waits for has happened.
func (u *unitOfWork) notifyWait(run *Run, step string) {
	u.tx.Notify(engine.Notification{Kind: engine.NotifyWait, Name: run.Holder, ID: run.ID, Step: step})
}

func (u *unitOfWork) notifyWorker(id string) {
	if id != "" {
		u.tx.Notify(engine.Notification{Kind: engine.NotifyWorker, Name: id})
	}
}

func (u *unitOfWork) notifySchedule(s *engine.Schedule) {
	u.tx.Notify(engine.Notification{Kind: engine.NotifySchedule, Namespace: s.Namespace, Name: s.ID.String()})
}

func (u *unitOfWork) notifyTimer() { u.tx.Notify(engine.Notification{Kind: engine.NotifyTimer}) }
