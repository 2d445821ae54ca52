package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/limit"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

// unary surrounds every unary call: who may not make it is refused, and so is a malformed message;
// a panic is an answer, an error gets its code.
func (s *Server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler) (answer any, err error) {
	began, usage, method := s.options.Clock(), s.methods.Begin(info.FullMethod), s.guard.MethodOf(info.FullMethod)
	ctx, span := s.span(ctx, info.FullMethod, request)
	defer func() {
		if v := recover(); v != nil {
			err = async.Recovered(v)
		}
		if err != nil {
			s.guard.NoteRefused(ctx, method, request, err)
			answer, err = nil, s.errors.Status(err)
			s.logCall(ctx, info.FullMethod, began, err)
		}
		endSpan(span, err)
		usage.End(s.options.Clock().Sub(began), err)
	}()
	if ctx, err = s.guard.Admit(ctx, method); err != nil {
		return nil, err
	}
	if err := wire.CheckWellFormed(request); err != nil {
		return nil, err
	}
	if err := s.guard.CheckScope(ctx, method, request); err != nil {
		return nil, err
	}
	if err := s.quotas.Check(request); err != nil {
		return nil, err
	}
	size := limit.PayloadBytes(request)
	if !s.inFlight.TryAcquire(size) {
		return nil, limit.ErrTooManyBytes
	}
	defer s.inFlight.Release(size)
	if method.Rule.Waits {
		open, leave := s.guard.Open(ctx)
		defer leave()
		answer, err = handler(open, request)
		err = auth.CallError(open, err)
	} else {
		answer, err = handler(ctx, request)
	}
	if err == nil {
		answer = auth.ShownTo(auth.CallerOf(ctx), method, answer)
	}
	return answer, err
}

// stream surrounds every stream likewise. What a stream is about comes in its first message.
func (s *Server) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handler grpc.StreamHandler) (err error) {
	began, usage, method := s.options.Clock(), s.methods.Begin(info.FullMethod), s.guard.MethodOf(info.FullMethod)
	guarded := &guardedStream{ServerStream: stream, ctx: stream.Context(), server: s, method: method}
	defer func() {
		if v := recover(); v != nil {
			err = async.Recovered(v)
		}
		if err != nil {
			s.guard.NoteRefused(guarded.ctx, method, guarded.first, err)
			err = s.errors.Status(err)
			s.logCall(stream.Context(), info.FullMethod, began, err)
		}
		usage.End(s.options.Clock().Sub(began), err)
	}()
	if guarded.ctx, err = s.guard.Admit(guarded.ctx, method); err != nil {
		return err
	}
	if method.Rule.Open {
		return handler(server, guarded)
	}
	open, leave := s.guard.Open(guarded.ctx)
	defer leave()
	guarded.ctx = open
	if method.Rule.Ends {
		return auth.CallError(open, handler(server, guarded))
	}
	return auth.RunCall(open, func() error { return handler(server, guarded) })
}

func (s *Server) logCall(ctx context.Context, method string, began time.Time, err error) {
	code := status.Code(err)
	level := wire.LogLevelOf(code)
	if !s.log.Enabled(ctx, level) {
		return
	}
	from := ""
	if p, ok := peer.FromContext(ctx); ok {
		from = p.Addr.String()
	}
	s.log.Log(ctx, level, "call refused", "method", method, "code", code.String(), "error", err, "peer", from, "took",
		s.options.Clock().Sub(began))
}

// guardedStream refuses malformed messages of a stream, and what is not the caller's. Nothing
// passes it once the stream is over.
type guardedStream struct {
	grpc.ServerStream
	ctx    context.Context
	server *Server
	method *auth.Method
	first  any // the first message, once it is here
}

func (g *guardedStream) Context() context.Context { return g.ctx }

func (g *guardedStream) RecvMsg(m any) error {
	if err := g.receive(m); err != nil {
		return err
	}
	if g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	if err := wire.CheckWellFormed(m); err != nil || g.first != nil {
		return err
	}
	g.first = m
	return g.server.guard.CheckScope(g.ctx, g.method, m)
}

// receive waits for the caller, and no longer than the server serves where the handler does nothing
// but wait for a first word or, in a stream of questions, for the next: a handler that has begun
// hears of the stop by itself.
func (g *guardedStream) receive(m any) error {
	if g.first != nil && !g.method.Rule.Asks {
		return g.ServerStream.RecvMsg(m)
	}
	received := make(chan error, 1)
	go func() { // ends with the stream
		defer func() {
			if v := recover(); v != nil {
				received <- async.Recovered(v)
			}
		}()
		received <- g.ServerStream.RecvMsg(m)
	}()
	select {
	case err := <-received:
		return err
	case <-g.server.stopping:
		return wire.ErrStopping
	}
}

func (g *guardedStream) SendMsg(m any) error {
	if g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	return g.ServerStream.SendMsg(auth.ShownTo(auth.CallerOf(g.ctx), g.method, m))
}
