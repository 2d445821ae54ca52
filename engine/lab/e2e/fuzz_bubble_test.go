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

// bubble keeps a target from one input to the next in virtual time: waiting costs nothing, and it
// is known when nothing is in flight.
type bubble struct {
	begin sync.Once
	asked chan question // made outside, so that time stops until the next input
	over  chan struct{} // closed when the bubble has ended
	stuck atomic.Bool   // something in it never ends, so neither will the bubble
}

// question is an input, and the test to which its failures are reported.
type question struct {
	method string
	script []byte
	faults chan []string
}

// changesPerTarget limits how often the fixture is reset on one server: the memory store scans
// everything, so it must stay small.
const changesPerTarget = 64

// endless is real time that no input takes: only real time passes during a computation.
const endless = time.Minute

// ask tries an input. The bubble starts in the first one's test, which is not used after that.
func (b *bubble) ask(t *testing.T, method string, script []byte) []string {
	b.begin.Do(func() {
		go func() {
			defer close(b.over)
			synctest.Test(t, b.live)
		}()
	})
	q := question{method, script, make(chan []string, 1)}
	limit := time.After(endless)
	select {
	case b.asked <- q:
	case <-b.over:
	case <-limit:
	}
	select {
	case faults := <-q.faults:
		return faults
	case <-b.over:
	case <-limit:
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
	time.Sleep(time.Until(time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC))) // the inputs contain times around then
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

// newMemoryTarget returns a target on the in-memory store, in a bubble.
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

// life is the testing.TB of one of many servers. Its failures are passed on; a fatal one ends the
// process.
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

// take returns the failures since the last call.
func (l *life) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	faults := l.faults
	l.faults = nil
	return faults
}

// end runs the cleanups.
func (l *life) end() {
	for _, f := range slices.Backward(l.cleanups) {
		f()
	}
	for _, told := range l.take() {
		panic(told)
	}
}
