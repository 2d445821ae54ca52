package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// book is one verb at work. It reads each run once and writes each that has changed once, when it is closed: by then the verb has
// refused or not, so a verb that refuses has written nothing. Rows of steps and signals are written at once, by verbs that refuse no more.
type book struct {
	tx     Tx
	now    time.Time
	runs   map[engine.ID]*Run  // nil where there is no such run
	dirty  []*Run              // that have changed, in the order in which they did
	noted  map[*Run]bool       // that are among them
	ended  []*Run              // of the dirty ones
	slots  []*Run              // whose concurrency key has a slot more, once for each slot
	next   []engine.StartRun   // to be started when the others are written: they may take over external ids
	passed []engine.Signal     // of these
	beside *engine.SideEffects // what the verb does and does not answer; nil: nothing yet
}

func open(tx Tx, now time.Time) *book {
	return &book{tx: tx, now: engine.Micros(now), runs: map[engine.ID]*Run{}, noted: map[*Run]bool{}}
}

// find is the run, nil when there is none. An empty namespace is any.
func (b *book) find(namespace string, id engine.ID) (*Run, error) {
	run, known := b.runs[id]
	if !known {
		var err error
		if run, err = b.tx.Run("", id); err != nil {
			return nil, err
		}
		b.runs[id] = run
	}
	if run != nil && namespace != "" && run.Namespace != namespace {
		return nil, nil
	}
	return run, nil
}

// run is the run, or RunNotFound.
func (b *book) run(namespace string, id engine.ID) (*Run, error) {
	run, err := b.find(namespace, id)
	if err == nil && run == nil {
		err = engine.RunNotFound(id)
	}
	return run, err
}

// held is the run that a lease is for, and whether the lease is the current one.
func (b *book) held(l engine.Lease) (*Run, bool, error) {
	run, err := b.run(l.Namespace, l.RunID)
	if err != nil {
		return nil, false, err
	}
	return run, run.Current(l), nil
}

// change has the run written when the book is closed.
func (b *book) change(run *Run) {
	if b.noted[run] {
		return
	}
	b.noted[run] = true
	b.dirty = append(b.dirty, run)
	b.tx.Ring(engine.Notification{Kind: engine.NotifyRun, ID: run.ID})
}

// aside is for counting what nobody asked of the verb.
func (b *book) aside() *engine.SideEffects {
	if b.beside == nil {
		b.beside = &engine.SideEffects{}
		b.tx.Ring(engine.Notification{Kind: engine.NotifySideEffects, SideEffects: b.beside})
	}
	return b.beside
}

// start has a run made when the book is closed.
func (b *book) start(start engine.StartRun) { b.next = append(b.next, start) }

// close writes what has changed, and then what follows from it for runs that could not be asked for before.
func (b *book) close() error {
	if err := b.save(); err != nil {
		return err
	}
	for i := range b.next {
		if err := b.insert(&b.next[i]); err != nil {
			return err
		}
	}
	if len(b.passed) > 0 {
		if err := b.tx.InsertSignals(b.passed); err != nil {
			return err
		}
	}
	for _, run := range b.ended {
		if err := b.settleSchedule(run); err != nil {
			return err
		}
	}
	for _, run := range b.slots {
		if err := b.openGates(run); err != nil {
			return err
		}
	}
	return nil
}

func (b *book) save() error {
	for _, run := range b.dirty {
		if err := b.tx.SaveRun(run); err != nil {
			return err
		}
	}
	b.dirty = nil
	clear(b.noted)
	return nil
}

// insert makes a run now.
func (b *book) insert(start *engine.StartRun) error {
	start.CreatedAt, start.AvailableAt = engine.Micros(start.CreatedAt), engine.Micros(start.AvailableAt)
	start.DeadlineAt, start.NamedDeadlineAt = engine.Micros(start.DeadlineAt), engine.Micros(start.NamedDeadlineAt)
	start.ScheduledAt = engine.Micros(start.ScheduledAt)
	if err := b.tx.InsertRun(start); err != nil {
		return err
	}
	b.ringQueue(&start.Run)
	if !start.DeadlineAt.IsZero() {
		b.ringTimer()
	}
	return nil
}

func (b *book) ringQueue(run *engine.Run) {
	b.tx.Ring(engine.Notification{Kind: engine.NotifyQueue, Namespace: run.Namespace, Name: run.Queue})
}

func (b *book) ringWorker(id string) {
	if id != "" {
		b.tx.Ring(engine.Notification{Kind: engine.NotifyWorker, Name: id})
	}
}

func (b *book) ringSchedule(s *engine.Schedule) {
	b.tx.Ring(engine.Notification{Kind: engine.NotifySchedule, Namespace: s.Namespace, Name: s.ID.String()})
}

func (b *book) ringTimer() { b.tx.Ring(engine.Notification{Kind: engine.NotifyTimer}) }
