package scenario

import (
	"container/heap"
	"slices"
	"time"
)

// agenda is what is going to happen, by time and then in the order in which it was planned.
type agenda struct {
	items []item
	count uint64 // of all that was ever planned
}

// item is one thing that happens. What it does holds on to values that never change, so that a copy
// of the day can do it as well.
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
	a.items[last] = item{} // let go of what it closes over
	a.items = a.items[:last]
	return x
}

func (a *agenda) clone() agenda { return agenda{slices.Clone(a.items), a.count} }

// next is when the first thing happens; unset when nothing does.
func (a *agenda) next() time.Time {
	if len(a.items) == 0 {
		return time.Time{}
	}
	return a.items[0].at
}

// at plans something for a moment.
func (d *Day) at(t time.Time, do func(*Day)) {
	d.agenda.count++
	heap.Push(&d.agenda, item{at: t, order: d.agenda.count, do: do})
}

// after plans something for some time from now.
func (d *Day) after(wait time.Duration, do func(*Day)) { d.at(d.now().Add(wait), do) }
