package sandbox

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// clock is the time of a sandbox. It moves when its owner sets it, and with each commit.
type clock struct {
	mu   sync.Mutex
	now  time.Time
	disk *rand.Rand // durations of commits
	due  dueRuns
	n    uint64 // number of commits
}

// The duration of commits is uniform between fastest and slowest.
const (
	fastest = 1200 * time.Microsecond
	slowest = 7 * time.Millisecond
)

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// set moves the clock forward to t. It never moves it back.
func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}

// commit moves the clock by the duration of a commit.
func (c *clock) commit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.now = c.now.Add(fastest + time.Duration(
		c.disk.Int64N(int64((slowest-fastest)/time.Microsecond)))*time.Microsecond)
}

// dueRun says that a run of a queue may be claimed from a time on.
type dueRun struct {
	at               time.Time
	namespace, queue string
}

// dueRuns is a heap of due runs, the earliest first.
type dueRuns []dueRun

func (d dueRuns) Len() int           { return len(d) }
func (d dueRuns) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d dueRuns) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dueRuns) Push(x any)        { *d = append(*d, x.(dueRun)) }
func (d *dueRuns) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

func (c *clock) expect(r dueRun) {
	c.mu.Lock()
	defer c.mu.Unlock()
	heap.Push(&c.due, r)
}

// nextDue returns when the next run may be claimed; zero if none is known.
func (c *clock) nextDue() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.due) == 0 {
		return time.Time{}
	}
	return c.due[0].at
}

// takeDue returns the queues in which runs may be claimed now, by name, and removes them.
func (c *clock) takeDue() [][2]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[[2]string]bool{}
	var queues [][2]string
	for len(c.due) > 0 && !c.due[0].at.After(c.now) {
		r := heap.Pop(&c.due).(dueRun)
		if key := [2]string{r.namespace, r.queue}; !found[key] {
			found[key] = true
			queues = append(queues, key)
		}
	}
	slices.SortFunc(queues, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return queues
}
