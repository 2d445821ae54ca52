package world

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// stream is the receiving end of a stream. It has no goroutine: whoever receives looks at what the world holds, and waits for its bell.
type stream[M any] struct {
	world *World
	ctx   context.Context
	falls int64 // of the server, when the stream began
	look  func() (*M, error)
	over  error // what it ended with
}

// await says that a stream has nothing to send until the bell rings or, when it is more than 0, so much time of ours has passed.
type await time.Duration

func (await) Error() string { return "nothing to send yet" }

// open begins a stream. look is called with the world locked; it returns the next message, an await, io.EOF or another error.
func open[M any](w *World, ctx context.Context, look func() (*M, error)) *stream[M] {
	w.streams++
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.streams--
	})
	return &stream[M]{world: w, ctx: ctx, falls: w.trouble.falls, look: look}
}

// Recv is the next message, io.EOF after the last, or why there is none.
func (s *stream[M]) Recv() (*M, error) {
	if s.over != nil {
		return nil, s.over
	}
	for {
		message, bell, err := s.try()
		wait, ok := errors.AsType[await](err)
		if !ok {
			s.over = toStatus(err)
			return message, s.over
		}
		if err := pause(s.ctx, bell, time.Duration(wait)); err != nil {
			s.over = toStatus(err)
			return nil, s.over
		}
	}
}

func (s *stream[M]) try() (*M, <-chan struct{}, error) {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case s.ctx.Err() != nil:
		return nil, nil, s.ctx.Err()
	case w.trouble.falls != s.falls:
		return nil, nil, w.trouble.last
	case w.trouble.hung:
		return nil, w.news.bell, await(0)
	}
	message, err := s.look()
	return message, w.news.bell, err
}

// pause waits for the bell, the end of ctx or, when wait is more than 0, so much time.
func pause(ctx context.Context, bell <-chan struct{}, wait time.Duration) error {
	var over <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-bell:
	case <-over:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Context is the call's.
func (s *stream[M]) Context() context.Context { return s.ctx }

// Header is empty.
func (s *stream[M]) Header() (metadata.MD, error) { return metadata.MD{}, nil }

// Trailer is empty.
func (s *stream[M]) Trailer() metadata.MD { return metadata.MD{} }

// CloseSend does nothing: there is only one request.
func (s *stream[M]) CloseSend() error { return nil }

// SendMsg has nothing to send: the one request was sent when the stream began.
func (s *stream[M]) SendMsg(any) error { return io.EOF }

// RecvMsg is Recv into a message.
func (s *stream[M]) RecvMsg(into any) error {
	message, err := s.Recv()
	if err != nil {
		return err
	}
	proto.Merge(into.(proto.Message), any(message).(proto.Message))
	return nil
}
