package postgres

import (
	"math"
	"sync"
)

// wholeLook is which of a queue's looks, counted from the last that began at the beginning, begins there again, whatever is known.
const wholeLook = 16

// floors is where looks for due runs begin in the lanes of a queue that has more than is asked for: where the last one has found the head. It
// spares them what was claimed since the last vacuum, which may be a minute's work, but never hides a run of this server's: whatever
// makes one due says so before it is answered. One that another server makes due with an earlier time is found within wholeLook looks, and so
// is one that a crash of the database gives back; so is everything when fewer were found than asked for.
type floors struct {
	mu     sync.Mutex
	queues map[queueKey]*queueFloors
}

type queueKey struct{ namespace, queue string }

// queueFloors is there while one of its lanes has a floor, or somebody looks.
type queueFloors struct {
	lanes map[int64]int64 // times in microseconds
	looks int             // since the last from the beginning
	under map[*floored]struct{}
}

// floored is one look, and where it begins.
type floored struct {
	floors *floors
	key    queueKey
	lanes  []int64 // that have a floor
	from   []int64
	lowest int64 // what has become due meanwhile, at the earliest
}

// look begins a look. whole: at the beginning of each lane.
func (f *floors) look(key queueKey, whole bool) *floored {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[key]
	if q == nil {
		q = &queueFloors{lanes: map[int64]int64{}, under: map[*floored]struct{}{}}
		if f.queues == nil {
			f.queues = map[queueKey]*queueFloors{}
		}
		f.queues[key] = q
	}
	l := &floored{floors: f, key: key, lowest: math.MaxInt64}
	if q.looks++; whole || q.looks >= wholeLook {
		q.looks = 0
	} else {
		for lane, from := range q.lanes {
			l.lanes, l.from = append(l.lanes, lane), append(l.from, from)
		}
	}
	q.under[l] = struct{}{}
	return l
}

// bounded says that something may have been passed.
func (l *floored) bounded() bool { return len(l.lanes) > 0 }

// end says what a look has come to: the heads that it found, each behind its lane's id. more: as much as was asked for, so that there may be more.
// Otherwise the lanes that it knew of, and those that it found, have no floor from now on.
func (l *floored) end(heads []int64, more bool) {
	f := l.floors
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[l.key]
	delete(q.under, l)
	for _, lane := range l.lanes {
		delete(q.lanes, lane)
	}
	for i := 0; i+1 < len(heads); i += 2 {
		lane, head := heads[i], heads[i+1]
		delete(q.lanes, lane)
		if more {
			q.lanes[lane] = min(head, l.lowest)
		}
	}
	if len(q.lanes) == 0 && len(q.under) == 0 {
		delete(f.queues, l.key)
	}
}

// dueRun is what there is to say of a run that becomes due.
type dueRun struct {
	queueKey
	at int64 // microseconds
}

// dueOf is the runs that a group starts.
func dueOf(group []*call) (due []dueRun) {
	for _, c := range group {
		if c.start == nil {
			continue
		}
		for i := range c.start.starts {
			r := &c.start.starts[i]
			due = append(due, dueRun{queueKey{r.Namespace, r.Queue}, micros(r.AvailableAt)})
		}
	}
	return due
}

// due says which runs have become due, or will be, or may have: a transaction about them has come to its end.
func (f *floors) due(runs []dueRun) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queues) == 0 {
		return
	}
	for _, r := range runs {
		q := f.queues[r.queueKey]
		if q == nil {
			continue
		}
		for lane, from := range q.lanes {
			q.lanes[lane] = min(from, r.at)
		}
		for l := range q.under {
			l.lowest = min(l.lowest, r.at)
		}
	}
}
