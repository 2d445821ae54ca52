package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// unary surrounds every unary call: a malformed message is refused, a panic is an answer, an error gets its code.
func (s *Server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
	began, method := time.Now(), s.methods.begin(info.FullMethod)
	ctx, span := s.span(ctx, info.FullMethod, request)
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
		if err != nil {
			answer, err = nil, s.toStatus(err)
			s.logCall(ctx, info.FullMethod, began, err)
		}
		endSpan(span, err)
		method.end(time.Since(began), err)
	}()
	if err := checkWellFormed(request); err != nil {
		return nil, err
	}
	return handler(ctx, request)
}

// stream surrounds every stream likewise.
func (s *Server) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	began, method := time.Now(), s.methods.begin(info.FullMethod)
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
		if err != nil {
			err = s.toStatus(err)
			s.logCall(stream.Context(), info.FullMethod, began, err)
		}
		method.end(time.Since(began), err)
	}()
	return handler(server, checkedStream{stream})
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
	s.log.Log(ctx, level, "call refused", "method", method, "code", code.String(), "error", err, "peer", from, "took", time.Since(began))
}

// checkedStream refuses malformed messages of a stream.
type checkedStream struct{ grpc.ServerStream }

func (c checkedStream) RecvMsg(m any) error {
	if err := c.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return checkWellFormed(m)
}
