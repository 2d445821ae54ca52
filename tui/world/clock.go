package world

import (
	"container/heap"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// agenda is what is going to happen, by time and then in the order in which it was planned. Nothing in the world happens but from here or
// by a call, so that the same agenda and calls make the same world.
type agenda struct {
	items []item
	count uint64 // of all that was ever planned
}

type item struct {
	at    time.Time
	order uint64
	do    func()
}

func (a *agenda) Len() int { return len(a.items) }

func (a *agenda) Less(i, j int) bool {
	if x, y := a.items[i], a.items[j]; !x.at.Equal(y.at) {
		return x.at.Before(y.at)
	}
	return a.items[i].order < a.items[j].order
}

func (a *agenda) Swap(i, j int) { a.items[i], a.items[j] = a.items[j], a.items[i] }

func (a *agenda) Push(x any) { a.items = append(a.items, x.(item)) }

func (a *agenda) Pop() any {
	last := len(a.items) - 1
	x := a.items[last]
	a.items[last] = item{} // let go of what it closes over
	a.items = a.items[:last]
	return x
}

// at plans something for a moment; one that has passed is now.
func (w *World) at(t time.Time, do func()) {
	w.agenda.count++
	heap.Push(&w.agenda, item{at: micros(later(t, w.now)), order: w.agenda.count, do: do})
}

// after plans something for some time from now.
func (w *World) after(d time.Duration, do func()) { w.at(w.now.Add(d), do) }

// advance lets everything happen that is planned until a moment, and stops the clock there.
func (w *World) advance(until time.Time) {
	until = micros(until)
	for len(w.agenda.items) > 0 && !w.agenda.items[0].at.After(until) {
		next := heap.Pop(&w.agenda).(item)
		w.now = next.at
		next.do()
	}
	w.now = later(until, w.now)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// micros is t as a server stores it: UTC, whole microseconds.
func micros(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// stamp is a moment on the wire; the zero time is none.
func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// moment is a time from the wire; none is the zero time.
func moment(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
