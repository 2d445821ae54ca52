package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
)

// unary surrounds every unary call: who may not make it is refused, and so is a malformed message; a panic is an answer, an error gets
// its code.
func (s *Server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
	began, method := s.options.Clock(), s.methods.begin(info.FullMethod)
	ctx, span := s.span(ctx, info.FullMethod, request)
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
		if err != nil {
			s.noteRefused(ctx, method, request, err)
			answer, err = nil, s.toStatus(err)
			s.logCall(ctx, info.FullMethod, began, err)
		}
		endSpan(span, err)
		method.end(s.options.Clock().Sub(began), err)
	}()
	if ctx, err = s.admit(ctx, method); err != nil {
		return nil, err
	}
	if err := checkWellFormed(request); err != nil {
		return nil, err
	}
	if err := s.checkScope(ctx, method, request); err != nil {
		return nil, err
	}
	if err := s.checkQuota(request); err != nil {
		return nil, err
	}
	size := cargoOf(request)
	if !s.cargo.take(size) {
		return nil, errCargo
	}
	defer s.cargo.give(size)
	if method.rule.waits {
		visit, leave := s.visit(ctx)
		defer leave()
		answer, err = handler(visit, request)
		err = visitError(visit, err)
	} else {
		answer, err = handler(ctx, request)
	}
	if err == nil {
		answer = shownTo(callerOf(ctx), method, answer)
	}
	return answer, err
}

// stream surrounds every stream likewise. What a stream is about comes in its first message.
func (s *Server) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	began, method := s.options.Clock(), s.methods.begin(info.FullMethod)
	guarded := &guardedStream{ServerStream: stream, ctx: stream.Context(), server: s, method: method}
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
		if err != nil {
			s.noteRefused(guarded.ctx, method, guarded.first, err)
			err = s.toStatus(err)
			s.logCall(stream.Context(), info.FullMethod, began, err)
		}
		method.end(s.options.Clock().Sub(began), err)
	}()
	if guarded.ctx, err = s.admit(guarded.ctx, method); err != nil {
		return err
	}
	if method.rule.open {
		return handler(server, guarded)
	}
	visit, leave := s.visit(guarded.ctx)
	defer leave()
	guarded.ctx = visit
	if method.rule.ends {
		return visitError(visit, handler(server, guarded))
	}
	return carry(visit, func() error { return handler(server, guarded) })
}

// admit lets a call in whose caller may use the method, and has its context say who that is.
func (s *Server) admit(ctx context.Context, method *method) (context.Context, error) {
	if method.rule.open {
		return ctx, nil
	}
	key, err := s.authenticate(ctx)
	if err != nil || key == nil {
		return ctx, err
	}
	ctx = withCaller(ctx, key)
	if !method.rule.roles.has(key.Role) {
		return ctx, denied("the API key %q has the role %s, which may not call %s; it takes %s",
			key.Name, key.Role, method.name, method.rule.roles)
	}
	return ctx, nil
}

// checkScope refuses a request that is about what is not the caller's.
func (s *Server) checkScope(ctx context.Context, method *method, request any) error {
	key := callerOf(ctx)
	if key == nil {
		return nil
	}
	return method.rule.scope(s, ctx, key, request)
}

// shownTo is an answer as the caller may see it.
func shownTo(key *heldKey, method *method, answer any) any {
	if key == nil || key.Role != engine.RoleViewer || !method.rule.redact {
		return answer
	}
	if message, ok := answer.(proto.Message); ok {
		return withoutPayloads(message)
	}
	return answer
}

func panicked(v any) error {
	return fmt.Errorf("panic: %v\n%s", v, debug.Stack())
}

func (s *Server) logCall(ctx context.Context, method string, began time.Time, err error) {
	code := status.Code(err)
	level := logLevelOf(code)
	if !s.log.Enabled(ctx, level) {
		return
	}
	from := ""
	if p, ok := peer.FromContext(ctx); ok {
		from = p.Addr.String()
	}
	s.log.Log(ctx, level, "call refused", "method", method, "code", code.String(), "error", err, "peer", from, "took", s.options.Clock().Sub(began))
}

// guardedStream refuses malformed messages of a stream, and what is not the caller's. Nothing passes it once the stream is over.
type guardedStream struct {
	grpc.ServerStream
	ctx    context.Context
	server *Server
	method *method
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
	if err := checkWellFormed(m); err != nil || g.first != nil {
		return err
	}
	g.first = m
	return g.server.checkScope(g.ctx, g.method, m)
}

// receive waits for the caller, and no longer than the server serves where the handler does nothing but wait for a first word or, in a stream of
// questions, for the next: a handler that has begun hears of the stop by itself.
func (g *guardedStream) receive(m any) error {
	if g.first != nil && !g.method.rule.asks {
		return g.ServerStream.RecvMsg(m)
	}
	received := make(chan error, 1)
	go func() { // ends with the stream
		defer func() {
			if v := recover(); v != nil {
				received <- panicked(v)
			}
		}()
		received <- g.ServerStream.RecvMsg(m)
	}()
	select {
	case err := <-received:
		return err
	case <-g.server.stopping:
		return errStopping
	}
}

func (g *guardedStream) SendMsg(m any) error {
	if g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	return g.ServerStream.SendMsg(shownTo(callerOf(g.ctx), g.method, m))
}
