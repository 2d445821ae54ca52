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

// unary wraps every unary call: it checks the key, the message and the limits, returns a panic as
// an error, and gives errors their status code.
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
	if err := s.known.check(ctx, request); err != nil {
		return nil, err
	}
	if err := s.lengthen(ctx, info.FullMethod, request, ""); err != nil {
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
	call := func(ctx context.Context) error {
		return s.onChain(ctx, info.FullMethod, request, func(request any) (err error) {
			answer, err = handler(ctx, request)
			return err
		})
	}
	if method.Rule.LongPoll {
		open, leave := s.guard.Open(ctx)
		defer leave()
		err = auth.CallError(open, call(open))
	} else {
		err = call(ctx)
	}
	if err == nil {
		answer = auth.ShownTo(auth.CallerOf(ctx), method, answer)
	}
	return answer, err
}

// stream wraps every stream in the same way. The first message says what the stream is about.
func (s *Server) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handler grpc.StreamHandler) (err error) {
	began, usage, method := s.options.Clock(), s.methods.Begin(info.FullMethod), s.guard.MethodOf(info.FullMethod)
	guarded := &guardedStream{ServerStream: stream, ctx: stream.Context(), server: s, method: method,
		name: info.FullMethod}
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
	if method.Rule.NoKey {
		return handler(server, guarded)
	}
	open, leave := s.guard.Open(guarded.ctx)
	defer leave()
	guarded.ctx = open
	if method.Rule.EndsItself {
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

// guardedStream refuses malformed messages of a stream, and what the caller's key does not allow.
// After the stream has ended it passes nothing on.
type guardedStream struct {
	grpc.ServerStream
	ctx    context.Context
	server *Server
	method *auth.Method
	name   string // of the method, in full
	first  any    // the first message; nil before it has arrived

	namespace string // of the first message
}

func (g *guardedStream) Context() context.Context { return g.ctx }

func (g *guardedStream) RecvMsg(m any) error {
	if err := g.receive(m); err != nil {
		return err
	}
	if g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	if err := wire.CheckWellFormed(m); err != nil {
		return err
	}
	if g.first != nil {
		return g.server.lengthen(g.ctx, g.name, m, g.namespace)
	}
	g.first = m
	if r, ok := m.(interface{ GetNamespace() string }); ok {
		g.namespace = r.GetNamespace()
	}
	if err := g.server.guard.CheckScope(g.ctx, g.method, m); err != nil {
		return err
	}
	if err := g.server.known.check(g.ctx, m); err != nil {
		return err
	}
	return g.server.lengthen(g.ctx, g.name, m, g.namespace)
}

// receive waits for the caller's next message. If the handler does nothing else meanwhile (for the
// first message, and with Rule.IgnoresStop for every one), receive returns when the server stops.
// Other handlers watch for the stop themselves.
func (g *guardedStream) receive(m any) error {
	if g.first != nil && !g.method.Rule.IgnoresStop {
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
