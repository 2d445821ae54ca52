package servertest

import (
	"context"

	"google.golang.org/grpc"
)

// Stream is the server's end of a stream; it drops what is sent.
type Stream[T any] struct {
	grpc.ServerStream
	Ctx context.Context
}

// Context returns Ctx.
func (s *Stream[T]) Context() context.Context { return s.Ctx }

// Send drops a message; it fails once Ctx has ended.
func (s *Stream[T]) Send(*T) error { return s.Ctx.Err() }
