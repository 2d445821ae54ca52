package scenario

import (
	"container/heap"
	"slices"
	"time"
)

// agenda holds future events, by time and then in the order in which they were planned.
type agenda struct {
	items []item
	count uint64 // of all events ever planned
}

// item is one event. Its function closes only over values that never change, so that a copy of the
// day can run it too.
type item struct {
	at    time.Time
	order uint64
	do    func(*Day)
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
	a.items[last] = item{} // release what it closes over
	a.items = a.items[:last]
	return x
}

func (a *agenda) clone() agenda { return agenda{slices.Clone(a.items), a.count} }

// next returns the time of the first event; zero if there is none.
func (a *agenda) next() time.Time {
	if len(a.items) == 0 {
		return time.Time{}
	}
	return a.items[0].at
}

// at plans an event for a moment.
func (d *Day) at(t time.Time, do func(*Day)) {
	d.agenda.count++
	heap.Push(&d.agenda, item{at: t, order: d.agenda.count, do: do})
}

// after plans an event for some time from now.
func (d *Day) after(wait time.Duration, do func(*Day)) { d.at(d.now().Add(wait), do) }
