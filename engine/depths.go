package engine

import (
	"maps"
	"slices"
	"time"
)

// Depths makes what Views.QueueDepths returns out of what a backend has counted in one namespace. The zero value has counted nothing.
type Depths struct {
	queues map[string]*QueueDepth
	due    []LaneDepth // those with due runs
}

// LaneDepth is what waits in one lane. Its priority is left out, for the same workers serve it whatever that is.
type LaneDepth struct {
	Queue        string
	Type         string
	Requirements map[string]string
	Pending      int64
	Sleeping     int64
	Due          int64
	OldestDue    time.Time // with Due
}

func (d *Depths) queue(name string) *QueueDepth {
	if d.queues == nil {
		d.queues = map[string]*QueueDepth{}
	}
	if d.queues[name] == nil {
		d.queues[name] = &QueueDepth{Queue: name}
	}
	return d.queues[name]
}

// AddLane counts a lane to its queue.
func (d *Depths) AddLane(l LaneDepth) {
	q := d.queue(l.Queue)
	q.Pending += l.Pending
	q.Sleeping += l.Sleeping
	if l.Due == 0 {
		return
	}
	d.due = append(d.due, l)
	if q.OldestDue.IsZero() || l.OldestDue.Before(q.OldestDue) {
		q.OldestDue = l.OldestDue
	}
}

// SetRunning notes how many runs of a queue workers hold.
func (d *Depths) SetRunning(queue string, running int64) { d.queue(queue).Running = running }

// List is the queues by name, those of the workers included. workers is all of the namespace that are not OFFLINE; with only, the lanes and the
// runs were counted of that queue alone, and no other is listed for its workers.
func (d *Depths) List(workers []Worker, only string) (list []QueueDepth) {
	for i := range workers {
		for _, name := range workers[i].Queues {
			if only != "" && name != only {
				continue
			}
			q := d.queue(name)
			if workers[i].Status == WorkerOnline {
				q.OnlineWorkers++
			}
		}
	}
	for i := range d.due {
		d.match(&d.due[i], workers)
	}
	for _, name := range slices.Sorted(maps.Keys(d.queues)) {
		list = append(list, *d.queues[name])
	}
	return list
}

// match counts the due runs of a lane as Unserved when no ONLINE worker serves it.
func (d *Depths) match(l *LaneDepth, workers []Worker) {
	served := slices.ContainsFunc(workers, func(w Worker) bool {
		return w.Status == WorkerOnline && slices.Contains(w.Queues, l.Queue) && slices.Contains(w.Types, l.Type) && Meets(w.Offers(), l.Requirements)
	})
	if served {
		return
	}
	q := d.queue(l.Queue)
	if q.Unserved == nil {
		q.Unserved = map[string]int64{}
	}
	q.Unserved[l.Type] += l.Due
}
