package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Phase is the phase of a connection.
type Phase uint8

const (
	Connecting   Phase = iota // for the first time
	Live                      // changes arrive
	Polling                   // the server cannot stream changes; it is polled every 2 s
	Reconnecting              // lost; retried with growing delays
	Refused                   // the key is missing or does not allow it; retried every minute
	Ended                     // the server sent everything and closed the stream
	Gone                      // the followed object does not exist, or no longer
)

// State is the state of a connection. Times are those of this machine's clock.
type State struct {
	Phase   Phase
	Since   time.Time // start of this phase
	Attempt int       // of reconnecting, from 1; 0 while live
	NextTry time.Time // zero while connecting
	Err     error     // of the last attempt; nil while live
}

// Down reports whether the screen may be out of date.
func (s State) Down() bool {
	return s.Phase == Reconnecting || s.Phase == Refused
}

const (
	firstPause   = 500 * time.Millisecond
	longestPause = 15 * time.Second
	refusedPause = time.Minute
	pauseJitter  = 0.2 // part of a delay, either way
)

// jittered varies a delay, so that many screens do not reconnect at the same moment.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 + pauseJitter*(2*rand.Float64()-1)))
}

// follower keeps a server stream open and reopens a lost one. It buffers a limited number of
// messages for the UI goroutine: a slow screen slows the server down, which then merges changes,
// instead of filling memory.
type follower[T any] struct {
	tasks *tasks
	open  func(context.Context) (grpc.ServerStreamingClient[T], error)
	// message is called on the UI goroutine with a message and its arrival; first is true for the
	// first one of a stream.
	message func(m *T, at time.Time, first bool)
	changed func()        // called after a change of state
	silence time.Duration // silence after which a stream counts as lost; 0: never
	ends    bool          // the stream is about one object, can end normally, and the object may be deleted

	state State
	drop  context.CancelFunc // cancels the open stream
	run   int                // counts streams; messages of earlier ones are dropped
	fresh bool               // no message on this stream yet
	watch *timer             // for silence
	retry *timer
}

// start opens the stream, and replaces one that is open.
func (f *follower[T]) start() {
	f.halt()
	f.fresh = true
	f.state.NextTry = time.Time{}
	run, open := f.run, f.open
	ctx, cancel := context.WithCancel(f.tasks.ctx)
	f.drop = cancel
	f.listen()
	mine := func(do func()) {
		f.tasks.hand(func() {
			if f.run == run {
				do()
			}
		})
	}
	f.tasks.group.Go(func() {
		defer cancel()
		err := f.read(ctx, open, mine)
		mine(func() { f.ended(err) })
	})
}

// read delivers the messages of one stream to the UI goroutine until it ends; a nil error is a
// normal end.
func (f *follower[T]) read(ctx context.Context, open func(context.Context) (grpc.ServerStreamingClient[T], error),
	mine func(func())) error {
	stream, err := open(ctx)
	if err != nil {
		return err
	}
	waiting := &backlog[T]{taken: make(chan struct{}, 1)}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		n := waiting.add(arrival[T]{m, f.tasks.now()})
		if n == 1 {
			mine(func() { f.gotAll(waiting.take()) })
		}
		if n < backlogMost {
			continue
		}
		select {
		case <-waiting.taken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// backlogMost limits the messages that wait for the UI goroutine. It is large enough that the
// initial messages take few frames, and small enough that a slow screen slows the server down.
const backlogMost = 32

// arrival is a message with its arrival time.
type arrival[T any] struct {
	message *T
	at      time.Time
}

// backlog holds the messages that the UI goroutine has not taken yet.
type backlog[T any] struct {
	mu    sync.Mutex
	list  []arrival[T]
	taken chan struct{} // capacity one: the messages were taken
}

// add returns the number of waiting messages.
func (b *backlog[T]) add(a arrival[T]) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		select {
		case <-b.taken: // left over from a time without a waiter
		default:
		}
	}
	b.list = append(b.list, a)
	return len(b.list)
}

func (b *backlog[T]) take() []arrival[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list
	b.list = nil
	select {
	case b.taken <- struct{}{}:
	default:
	}
	return list
}

// gotAll handles messages of one stream in order, until one of them starts another stream.
func (f *follower[T]) gotAll(list []arrival[T]) {
	run := f.run
	for _, a := range list {
		if f.run != run {
			return
		}
		f.got(a.message, a.at)
	}
}

func (f *follower[T]) got(m *T, at time.Time) {
	first := f.fresh
	f.fresh = false
	f.listen()
	if f.state.Phase != Live {
		f.setState(State{Phase: Live})
	}
	f.message(m, at, first)
}

// listen restarts the timer of silence.
func (f *follower[T]) listen() {
	f.watch.stop()
	f.watch = nil
	if f.silence > 0 {
		f.watch = f.tasks.after(f.silence, func() {
			f.ended(status.Error(codes.Unavailable, fmt.Sprintf("the server has been silent for %s", f.silence)))
		})
	}
}

// ended handles the end of the stream.
func (f *follower[T]) ended(err error) {
	attempt := f.state.Attempt + 1
	f.halt()
	next := State{Phase: Reconnecting, Attempt: attempt, Err: err}
	pause := min(firstPause<<min(attempt-1, 10), longestPause)
	switch status.Code(err) {
	case codes.OK:
		if f.ends {
			f.setState(State{Phase: Ended})
			return
		}
		next.Err = status.Error(codes.Unavailable, "the server ended the stream")
	case codes.Unimplemented:
		f.setState(State{Phase: Polling, Err: err})
		return
	case codes.NotFound:
		if f.ends {
			f.setState(State{Phase: Gone, Err: err})
			return
		}
	case codes.Unauthenticated, codes.PermissionDenied:
		next.Phase, pause = Refused, refusedPause
	}
	pause = jittered(pause)
	next.NextTry = f.tasks.now().Add(pause)
	f.retry = f.tasks.after(pause, f.start)
	f.setState(next)
}

// setState changes the state.
func (f *follower[T]) setState(next State) {
	next.Since = f.state.Since
	if next.Phase != f.state.Phase || next.Since.IsZero() {
		next.Since = f.tasks.now()
	}
	f.state = next
	f.changed()
}

// halt closes the stream for good.
func (f *follower[T]) halt() {
	f.run++
	f.watch.stop()
	f.retry.stop()
	f.watch, f.retry = nil, nil
	if f.drop != nil {
		f.drop()
		f.drop = nil
	}
}
