package server

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// keyed is a server over a store with one key, in a bubble, with its background at work.
func keyed(t *testing.T, tell func(t *testing.T, s *Server, l *servertest.KeyStore)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &servertest.KeyStore{Notifications: "in-process"}
		l.Make(engine.APIKey{Name: "root", Role: engine.RoleAdmin})
		s := New(l, nil, Options{Log: slog.New(slog.DiscardHandler)})
		defer s.guard.Start()()
		tell(t, s, l)
	})
}

func TestAStreamWhoseKeyHasEndedPassesNothingOn(t *testing.T) {
	keyed(t, func(t *testing.T, s *Server, l *servertest.KeyStore) {
		secret := l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})
		method := s.guard.MethodOf("/kagzi.v1.AdminService/Watch")
		ctx, err := s.guard.Admit(metadata.NewIncomingContext(
			t.Context(), metadata.Pairs("authorization", "Bearer "+secret)), method)
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := s.guard.Open(ctx)
		defer leave()
		inner := &letterbox{}
		g := &guardedStream{ServerStream: inner, ctx: ctx, server: s, method: method}
		if err := g.SendMsg("a"); err != nil || inner.sent != 1 {
			t.Fatalf("before: %v", err)
		}
		l.Revoke("one")
		s.Notify(engine.Notification{Kind: engine.NotifyKeys})
		<-ctx.Done()
		if err := g.SendMsg("b"); status.Code(s.errors.Status(err)) != codes.Unauthenticated || inner.sent != 1 {
			t.Errorf("a message after the end: %v, %d sent", err, inner.sent)
		}
		if err := g.RecvMsg(nil); status.Code(s.errors.Status(err)) != codes.Unauthenticated {
			t.Errorf("a message from the caller after the end: %v", err)
		}
	})
}

func TestAnEndedCallIsNoLongerCounted(t *testing.T) {
	keyed(t, func(t *testing.T, s *Server, l *servertest.KeyStore) {
		secret := l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+secret))
		openStreams := func() int {
			open, _ := s.guard.OpenCalls()
			return open
		}
		for _, end := range []error{nil, errors.New("it went wrong")} {
			inside := -1
			_ = s.stream(nil, &letterbox{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: "/kagzi.v1.AdminService/Watch"},
				func(any, grpc.ServerStream) error {
					inside = openStreams()
					return end
				})
			if inside != 1 || openStreams() != 0 {
				t.Errorf("%d open calls during a stream that ends with %v, and %d after it; want 1 and none", inside,
					end, openStreams())
			}
			inside = -1
			request := &kagziv1.WaitWorkflowRequest{Namespace: "default", RunId: servertest.AnID}
			_, _ = s.unary(ctx, request, &grpc.UnaryServerInfo{FullMethod: "/kagzi.v1.WorkflowService/WaitWorkflow"},
				func(context.Context, any) (any, error) {
					inside = openStreams()
					return &kagziv1.WaitWorkflowResponse{}, end
				})
			if inside != 1 || openStreams() != 0 {
				t.Errorf("%d open calls during a wait that ends with %v, and %d after it; want 1 and none", inside, end,
					openStreams())
			}
		}
	})
}

// letterbox is a stream that takes everything.
type letterbox struct {
	grpc.ServerStream
	ctx  context.Context
	sent int
}

func (l *letterbox) Context() context.Context { return l.ctx }

func (l *letterbox) SendMsg(any) error { l.sent++; return nil }
func (l *letterbox) RecvMsg(any) error { return nil }
