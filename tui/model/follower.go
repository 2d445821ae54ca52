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

// Phase is how a connection stands.
type Phase uint8

const (
	Connecting   Phase = iota // for the first time
	Live                      // what the server tells arrives
	Polling                   // the server cannot tell what changes; it is asked every 2 s
	Reconnecting              // lost, and tried again with growing pauses
	Refused                   // the key is missing or allows too little; tried again each minute
	Ended                     // the server has told everything there is
	Gone                      // what was followed is not there, or not any more
)

// State is how a connection stands. Times are those of this machine.
type State struct {
	Phase   Phase
	Since   time.Time // when it came into this phase
	Attempt int       // of connecting again, from 1; 0 while live
	NextTry time.Time // zero while trying
	Err     error     // what the last try ended with; nil while live
}

// Down says that what is on the screen may be out of date.
func (s State) Down() bool {
	return s.Phase == Reconnecting || s.Phase == Refused
}

const (
	firstPause   = 500 * time.Millisecond
	longestPause = 15 * time.Second
	refusedPause = time.Minute
	pauseJitter  = 0.2 // of a pause, either way
)

// jittered spreads a pause, so that many screens do not come back in one moment.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 + pauseJitter*(2*rand.Float64()-1)))
}

// follower keeps a stream of the server open: what is lost is opened again. Only so many messages
// wait for the UI goroutine, so that a screen that is held up makes the server wait, and merge,
// instead of filling the memory.
type follower[T any] struct {
	tasks *tasks
	open  func(context.Context) (grpc.ServerStreamingClient[T], error)
	// message is called on the UI goroutine with what came and when; first is true for the first one of a stream.
	message func(m *T, at time.Time, first bool)
	changed func()        // the state is another one
	silence time.Duration // a stream that is quiet for longer counts as lost; 0: it may be
	ends    bool          // the stream is about one thing, has an end of its own, and the thing may go

	state State
	drop  context.CancelFunc // of the stream that is open
	run   int                // counts streams; what comes from earlier ones is dropped
	fresh bool               // the stream has brought nothing yet
	watch *timer             // of the silence
	retry *timer
}

// start opens the stream, anew if it is open already.
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

// read brings the messages of one stream to the UI goroutine until it ends; nil is its own end.
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

// backlogMost is how many messages may wait for the UI goroutine: enough that what a server tells
// at the beginning comes in a few frames, few enough that a screen that is held up makes the server
// wait.
const backlogMost = 32

// arrival is a message and when it came.
type arrival[T any] struct {
	message *T
	at      time.Time
}

// backlog is the messages that the UI goroutine has not taken yet.
type backlog[T any] struct {
	mu    sync.Mutex
	list  []arrival[T]
	taken chan struct{} // of capacity one: they have been taken
}

// add is how many there are now.
func (b *backlog[T]) add(a arrival[T]) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		select {
		case <-b.taken: // of a time at which nobody waited
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

// gotAll deals with messages of one stream in their order, until one of them leads to another stream.
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

// listen begins to wait for the next sign of life.
func (f *follower[T]) listen() {
	f.watch.stop()
	f.watch = nil
	if f.silence > 0 {
		f.watch = f.tasks.after(f.silence, func() {
			f.ended(status.Error(codes.Unavailable, fmt.Sprintf("the server has been silent for %s", f.silence)))
		})
	}
}

// ended deals with the end of the stream.
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

// halt closes the stream and opens it no more by itself.
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
