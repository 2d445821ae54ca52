package server

import (
	"context"
	"io"
	"runtime/debug"
	"testing"
	"unsafe"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// sounding is a stream that is over, and notes how deep the stack is when it is asked for its context.
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

// TestTheGoroutineOfASessionStaysSmall is about the stacks of ten thousand idle workers: below the session gRPC takes 1.5 KB, it waits 0.5 KB
// above it, Go keeps 0.9 KB free, and the next size after 4 KB is 8.
func TestTheGoroutineOfASessionStaysSmall(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection may move a stack
	took := make(chan uintptr)
	go func() {
		deepen(32)
		stream := &sounding{}
		before := depth()
		_ = door(&books{}).Session(stream)
		took <- before - stream.at
	}()
	if bytes := <-took; bytes > 600 {
		t.Errorf("a session takes %d bytes of its goroutine's stack, want 600 at most: hold what is large by a pointer", bytes)
	} else {
		t.Logf("%d bytes", bytes)
	}
}
