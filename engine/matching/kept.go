package matching

import (
	"container/list"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// keepTime is how long a worker keeps a parked run in memory at most.
const keepTime = 10 * time.Minute

// kept remembers which poller's worker parked a run and keeps its code in memory. All of it is a hint:
// a claim compares the token with the run's last lease, and a worker that does not keep the run any
// more asks for its whole history.
type kept struct {
	mu   sync.Mutex
	runs map[engine.ID]*list.Element // of the list of its poller
	time time.Duration               // for which workers keep a run
}

// KeepFor sets for how long workers keep a parked run in memory, instead of 10 minutes. Call it before
// Run.
func (d *Matcher) KeepFor(t time.Duration) { d.kept.time = t }

// keptRun is a run in the list of a poller.
type keptRun struct {
	run    engine.ID
	token  engine.Token
	at     time.Time
	poller *Poller
}

// Keep records that the worker of the poller is about to park a run that it holds under this lease.
// Of more runs than the worker keeps, it has dropped those that it parked first.
func (s *Poller) Keep(l engine.Lease) {
	if s.request.Keeps <= 0 {
		return
	}
	k := &s.matcher.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.gone {
		return
	}
	k.drop(l.RunID)
	if k.runs == nil {
		k.runs = map[engine.ID]*list.Element{}
	}
	k.runs[l.RunID] = s.kept.PushBack(&keptRun{run: l.RunID, token: l.Token, at: time.Now(), poller: s})
	if s.kept.Len() > s.request.Keeps {
		k.drop(s.kept.Front().Value.(*keptRun).run)
	}
}

// drop forgets a run. k.mu is held.
func (k *kept) drop(run engine.ID) {
	if e := k.runs[run]; e != nil {
		delete(k.runs, run)
		e.Value.(*keptRun).poller.kept.Remove(e)
	}
}

// claimed forgets a run that a worker got.
func (k *kept) claimed(run engine.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(run)
}

// leave forgets the runs of a poller that is gone.
func (k *kept) leave(s *Poller) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.gone = true
	for s.kept.Len() > 0 {
		k.drop(s.kept.Front().Value.(*keptRun).run)
	}
}

// of returns who keeps a run.
func (k *kept) of(run engine.ID) (keptRun, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.runs[run]
	if e == nil || time.Since(e.Value.(*keptRun).at) >= k.time {
		return keptRun{}, false
	}
	return *e.Value.(*keptRun), true
}

func (k *kept) any() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.runs) > 0
}

// keptFor returns what a claim of this group has to know about the memory of workers. prefer says that
// there are several workers to choose from.
func (t *group) keptFor(queue string) (of func(engine.ID) engine.KeptRun, prefer bool) {
	d := t.matcher
	if !d.kept.any() {
		return nil, false
	}
	return func(run engine.ID) engine.KeptRun {
		one, known := d.kept.of(run)
		if !known {
			return engine.KeptRun{}
		}
		k := engine.KeptRun{WorkerID: one.poller.request.Worker.ID, Token: one.token}
		if other := one.poller.group; other != t {
			// A worker of this group without a slot here has no room, or waits behind many others.
			other.mu.Lock()
			k.Room = one.poller.credit > 0
			other.mu.Unlock()
		}
		return k
	}, d.serve(queueKey{t.namespace, queue}) > 1
}

// serve returns how many pollers serve a queue.
func (d *Matcher) serve(queue queueKey) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.queues[queue] {
		t.mu.Lock()
		n += len(t.pollers)
		t.mu.Unlock()
	}
	return n
}
