package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/backends/memory"
)

// bubble is where a target lives from one input to the next, in a time of its own: what waits costs
// nothing, and when nothing is under way any more is known.
type bubble struct {
	begin sync.Once
	asked chan question // made outside, so that time stands still until the next one comes
	over  chan struct{} // closed when the bubble has burst
	stuck atomic.Bool   // something in it goes on for ever, so it never will
}

// question is an input, and where what is wrong with it is told.
type question struct {
	method string
	script []byte
	faults chan []string
}

// changesPerTarget is how often the stage is set anew on one server: the memory store looks through
// all that there is, so it should be little.
const changesPerTarget = 64

// endless is what nothing takes that comes to an end, of the real time, which alone passes while something computes.
const endless = time.Minute

// ask has an input tried. The first one's test is what the bubble begins in; it is not used after that.
func (b *bubble) ask(t *testing.T, method string, script []byte) []string {
	b.begin.Do(func() {
		go func() {
			defer close(b.over)
			synctest.Test(t, b.live)
		}()
	})
	q := question{method, script, make(chan []string, 1)}
	patience := time.After(endless)
	select {
	case b.asked <- q:
	case <-b.over:
	case <-patience:
	}
	select {
	case faults := <-q.faults:
		return faults
	case <-b.over:
	case <-patience:
	}
	b.stuck.Store(true)
	// the fuzzer keeps the input of a process that dies
	panic(fmt.Sprintf("%s did not come to an end: %q", method, script))
}

// close ends the bubble, if it has begun.
func (b *bubble) close(tb testing.TB) {
	b.begin.Do(func() { close(b.over) })
	if b.stuck.Load() {
		return
	}
	close(b.asked)
	select {
	case <-b.over:
	case <-time.After(endless):
		tb.Error("the server does not stop")
	}
}

// live answers until the bubble is closed.
func (b *bubble) live(t *testing.T) {
	time.Sleep(time.Until(time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC))) // what the inputs take for times is about then
	var l *life
	var c *target
	for q := range b.asked {
		if c != nil && c.stages == changesPerTarget {
			l.end()
			c = nil
		}
		if c == nil {
			l = &life{TB: t}
			c = newMemoryTarget(l)
		}
		c.try(l, q.method, q.script)
		q.faults <- l.take()
	}
	if c != nil {
		l.end()
	}
}

// newMemoryTarget is a target on a store in memory, in a bubble.
func newMemoryTarget(tb testing.TB) *target {
	var writes atomic.Int64
	db := memory.New(memory.Options{})
	store := db.Open(func(_ context.Context, c *memory.Call) error {
		db.Commit(c)
		c.Ticket.Admit()
		if c.Write && c.Err == nil {
			writes.Add(1)
		}
		return c.Err
	})
	o := patient
	o.Pipe = bufconn.Listen(64 << 10)
	c := newTarget(tb, store, o)
	c.writes, c.settle = writes.Load, synctest.Wait
	c.remember = func(t testing.TB) func() string {
		copied := db.Clone().Open(nil)
		return func() string { return c.read(t, copied) }
	}
	return c
}

// life is the test that one server of many is in. What it finds is taken from it, and what nobody
// can go on after ends the process.
type life struct {
	testing.TB
	mu       sync.Mutex
	cleanups []func()
	faults   []string
}

func (l *life) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }

func (l *life) Error(args ...any)                 { l.fault(fmt.Sprintln(args...)) }
func (l *life) Errorf(format string, args ...any) { l.fault(fmt.Sprintf(format, args...)) }
func (l *life) Fatal(args ...any)                 { panic(fmt.Sprintln(args...)) }
func (l *life) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (l *life) fault(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, text)
}

// take is what was found since.
func (l *life) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	faults := l.faults
	l.faults = nil
	return faults
}

// end cleans up.
func (l *life) end() {
	for _, f := range slices.Backward(l.cleanups) {
		f()
	}
	for _, told := range l.take() {
		panic(told)
	}
}
