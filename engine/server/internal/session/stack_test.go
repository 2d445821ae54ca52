package session

import (
	"context"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// sounding is a stream that is over, and notes how deep the stack is when it is asked for its
// context.
type sounding struct {
	kagziv1.WorkerService_SessionServer
	at uintptr
}

func (s *sounding) Context() context.Context {
	s.at = depth()
	return context.Background()
}

func (*sounding) Recv() (*kagziv1.SessionRequest, error) { return nil, io.EOF }

// depth is an address of its frame.
//
//go:noinline
func depth() uintptr {
	var here byte
	return uintptr(unsafe.Pointer(&here))
}

// deepen makes the stack large enough that it is not moved afterwards.
//
//go:noinline
func deepen(levels int) byte {
	var frame [1024]byte
	if levels > 0 {
		frame[levels] = deepen(levels - 1)
	}
	return frame[levels]
}

// TestTheGoroutineOfASessionStaysSmall is about the stacks of ten thousand idle workers: below the
// session gRPC takes 1.5 KB, it waits 0.5 KB above it, Go keeps 0.9 KB free, and the next size
// after 4 KB is 8.
func TestTheGoroutineOfASessionStaysSmall(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection may move a stack
	took := make(chan uintptr)
	go func() {
		deepen(32)
		stream := &sounding{}
		before := depth()
		_ = newTestService(&servertest.Books{}).Session(stream)
		took <- before - stream.at
	}()
	if bytes := <-took; bytes > 600 {
		t.Errorf("a session takes %d bytes of its goroutine's stack, want 600 at most: hold what is large by a pointer",
			bytes)
	} else {
		t.Logf("%d bytes", bytes)
	}
}

// under says whether a function of that name is on the stack.
func under(name string) bool {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "."+name) {
			return true
		}
		if !more {
			return false
		}
	}
}

// TestTheGoroutineThatWaitsForAHeartbeatHasReadNothing: what reads an operation has a stack that is
// twice as large afterwards, until the next collection of garbage, and copies it for that.
func TestTheGoroutineThatWaitsForAHeartbeatHasReadNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(writing{})
		defer s.pool.Close()
		in, answered := make(chan *kagziv1.SessionRequest), make(chan *kagziv1.SessionResponse, 8)
		ctx, end := context.WithCancel(t.Context())
		var read []bool // whether who asks for the next has read the one before
		stream := &requests{ctx: ctx, in: in, asked: func() {
			read = append(read, under("readOn"))
		}}
		go sessionOf(s, func(error) {}, answered).receive(ctx, context.WithoutCancel(ctx), stream)
		beat := &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Heartbeat{
			Heartbeat: &kagziv1.HeartbeatRequest{}}}
		for range 3 {
			in <- beat
			<-answered
		}
		in <- &kagziv1.SessionRequest{Seq: 1}
		<-answered
		synctest.Wait()
		if want := []bool{false, false, false, false, true}; !slices.Equal(read, want) {
			t.Errorf(
				"who asks for the next has read the one before: %v, want %v: only who reads on after an operation that is no heartbeat", read, want)
		}
		end()
	})
}
