package server

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// caller is one long call at a server: what the interceptor does, without a network.
type caller struct {
	ctx  context.Context
	over chan error
}

// openVisit begins a long call with a secret, whose handler waits for the end of its context.
func openVisit(t *testing.T, s *Server, secret string) *caller {
	t.Helper()
	header := []string{"Bearer " + secret}
	if secret == "" {
		header = nil
	}
	key, err := s.identify(t.Context(), header)
	if err != nil {
		t.Fatal(err)
	}
	base := t.Context()
	if key != nil {
		base = withCaller(base, key)
	}
	ctx, leave := s.visit(base)
	c := &caller{ctx: ctx, over: make(chan error, 1)}
	go func() {
		defer leave()
		c.over <- carry(ctx, func() error {
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	return c
}

// ended says whether the call has come to its end, and wants it to be for its key.
func (c *caller) ended(t *testing.T) bool {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-c.over:
		if engine.KindOf(err) != engine.KindNoKey {
			t.Errorf("the call ended with %v, want UNAUTHENTICATED", err)
		}
		return true
	default:
		return false
	}
}

// hall is a server over a locksmith, in a bubble, with its background at work.
func hall(t *testing.T, notifications string, story func(t *testing.T, s *Server, l *locksmith)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &locksmith{notifications: notifications}
		l.make(engine.APIKey{Name: "root", Role: engine.RoleAdmin})
		s := New(l, nil, Options{Log: slog.New(slog.DiscardHandler)})
		defer s.watchKeys()()
		story(t, s, l)
	})
}

func TestALongCallEndsWithItsKey(t *testing.T) {
	t.Run("at once on the server that hears of it", func(t *testing.T) {
		for _, notifications := range []string{"in-process", "listen", "polling"} {
			hall(t, notifications, func(t *testing.T, s *Server, l *locksmith) {
				secrets := []string{l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin}), l.make(engine.APIKey{Name: "two", Role: engine.RoleAdmin})}
				one, two := openVisit(t, s, secrets[0]), openVisit(t, s, secrets[1])
				s.Ring(engine.Ring{Kind: engine.RingKeys})
				if one.ended(t) || two.ended(t) {
					t.Fatal("a call ended although its key is valid")
				}
				l.revoke("one")
				s.Ring(engine.Ring{Kind: engine.RingKeys})
				if !one.ended(t) || two.ended(t) {
					t.Errorf("%s: after the revocation the one call stays, or the other ended", notifications)
				}
			})
		}
	})
	t.Run("within five seconds where the hint is lost", func(t *testing.T) {
		hall(t, "listen", func(t *testing.T, s *Server, l *locksmith) {
			one := openVisit(t, s, l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin}))
			time.Sleep(time.Minute)
			if one.ended(t) {
				t.Fatal("it ended although its key is valid")
			}
			l.revoke("one")
			time.Sleep(5 * time.Second)
			if !one.ended(t) {
				t.Error("five seconds after the revocation it is open")
			}
		})
	})
	t.Run("when the key expires", func(t *testing.T) {
		for _, notifications := range []string{"in-process", "listen"} {
			hall(t, notifications, func(t *testing.T, s *Server, l *locksmith) {
				secrets := []string{
					l.make(engine.APIKey{Name: "late", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Hour)}),
					l.make(engine.APIKey{Name: "early", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Minute)}),
				}
				late, early := openVisit(t, s, secrets[0]), openVisit(t, s, secrets[1])
				time.Sleep(time.Minute - time.Millisecond)
				if early.ended(t) {
					t.Error("it ended early")
				}
				time.Sleep(2 * time.Millisecond)
				if !early.ended(t) || late.ended(t) {
					t.Error("a minute later the call stays whose key has expired, or the other one ended")
				}
				time.Sleep(time.Hour)
				if !late.ended(t) {
					t.Error("the second one stays")
				}
			})
		}
	})
	t.Run("when the key expires, also of the first one after all others have gone", func(t *testing.T) {
		hall(t, "in-process", func(t *testing.T, s *Server, l *locksmith) {
			secrets := []string{
				l.make(engine.APIKey{Name: "first", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Minute)}),
				l.make(engine.APIKey{Name: "second", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Hour + time.Minute)}),
			}
			if first := openVisit(t, s, secrets[0]); first.ended(t) {
				t.Fatal("it ended early")
			}
			time.Sleep(time.Hour)
			if open, keyed := s.visits.count(); open != 0 || keyed != 0 {
				t.Errorf("%d calls are open, %d with a key, after the only one has ended", open, keyed)
			}
			second := openVisit(t, s, secrets[1])
			time.Sleep(time.Minute + time.Millisecond)
			if !second.ended(t) {
				t.Error("it stays open although its key has expired")
			}
		})
	})
	t.Run("when the key expires before the next look that was planned", func(t *testing.T) {
		hall(t, "in-process", func(t *testing.T, s *Server, l *locksmith) {
			secrets := []string{
				l.make(engine.APIKey{Name: "late", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Hour)}),
				l.make(engine.APIKey{Name: "early", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Second)}),
			}
			late := openVisit(t, s, secrets[0])
			synctest.Wait() // the next look is planned
			early := openVisit(t, s, secrets[1])
			time.Sleep(time.Second + time.Millisecond)
			if !early.ended(t) || late.ended(t) {
				t.Error("a moment after its end the call stays whose key has expired, or the other one ended")
			}
		})
	})
	t.Run("when the key ends between the look at it and the call", func(t *testing.T) {
		hall(t, "in-process", func(t *testing.T, s *Server, l *locksmith) {
			key, err := s.identify(t.Context(), []string{"Bearer " + l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})})
			if err != nil {
				t.Fatal(err)
			}
			l.revoke("one")
			s.Ring(engine.Ring{Kind: engine.RingKeys})
			if _, err := s.keys.get(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, leave := s.visit(withCaller(t.Context(), key))
			if !errors.Is(context.Cause(ctx), errVisitOver) {
				t.Errorf("a call whose key was revoked as it began goes on: %v", context.Cause(ctx))
			}
			leave()
		})
	})
	t.Run("and leaves nothing behind", func(t *testing.T) {
		hall(t, "in-process", func(t *testing.T, s *Server, l *locksmith) {
			key, err := s.identify(t.Context(), []string{"Bearer " + l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})})
			if err != nil {
				t.Fatal(err)
			}
			ctx, leave := s.visit(withCaller(t.Context(), key))
			if open, keyed := s.visits.count(); open != 1 || keyed != 1 || ctx.Err() != nil {
				t.Errorf("%d calls are open, %d with a key (%v)", open, keyed, ctx.Err())
			}
			leave()
			if open, keyed := s.visits.count(); open != 0 || keyed != 0 || ctx.Err() == nil {
				t.Errorf("%d calls are open, %d with a key, after it has ended (%v)", open, keyed, ctx.Err())
			}
		})
	})
	t.Run("when the clock is set past its expiry, or the machine has slept until then", func(t *testing.T) {
		for _, notifications := range []string{"in-process", "listen"} {
			hall(t, notifications, func(t *testing.T, s *Server, l *locksmith) {
				secrets := []string{
					l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Hour)}),
					l.make(engine.APIKey{Name: "two", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(3 * time.Hour)}),
				}
				one, two := openVisit(t, s, secrets[0]), openVisit(t, s, secrets[1])
				time.Sleep(time.Minute)
				l.set(func() { l.ahead = 2 * time.Hour })
				time.Sleep(5 * time.Second)
				if !one.ended(t) || two.ended(t) {
					t.Errorf("%s: five seconds later the call is open whose key has expired, or the other is not", notifications)
				}
			})
		}
	})
	t.Run("when the database gets its first key", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &locksmith{notifications: "in-process"}
			s := New(l, nil, Options{})
			defer s.watchKeys()()
			local := openVisit(t, s, "")
			l.make(engine.APIKey{Name: "first", Role: engine.RoleAdmin})
			s.Ring(engine.Ring{Kind: engine.RingKeys})
			if !local.ended(t) {
				t.Error("a call without a key stays open although keys are needed now")
			}
		})
	})
	t.Run("also when its handler is stuck", func(t *testing.T) {
		hall(t, "in-process", func(t *testing.T, s *Server, l *locksmith) {
			secret := l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})
			key, err := s.identify(t.Context(), []string{"Bearer " + secret})
			if err != nil {
				t.Fatal(err)
			}
			ctx, leave := s.visit(withCaller(t.Context(), key))
			defer leave()
			stuck := make(chan struct{})
			over := make(chan error, 1)
			go func() { over <- carry(ctx, func() error { <-stuck; return nil }) }()
			l.revoke("one")
			s.Ring(engine.Ring{Kind: engine.RingKeys})
			time.Sleep(visitLate)
			if err := <-over; !errors.Is(err, errVisitOver) {
				t.Errorf("it ended with %v", err)
			}
			close(stuck)
		})
	})
	t.Run("and not for trouble of the database", func(t *testing.T) {
		hall(t, "listen", func(t *testing.T, s *Server, l *locksmith) {
			one := openVisit(t, s, l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin}))
			l.set(func() { l.broken = servertest.ErrBroken })
			time.Sleep(time.Minute)
			if one.ended(t) {
				t.Error("it ended although nobody knows anything of its key")
			}
			l.revoke("one")
			l.set(func() { l.broken = nil })
			time.Sleep(5 * time.Second)
			if !one.ended(t) {
				t.Error("it stays open although its key was revoked meanwhile")
			}
		})
	})
}

func TestNothingIsAskedWhenNobodyIsThere(t *testing.T) {
	hall(t, "listen", func(t *testing.T, s *Server, l *locksmith) {
		time.Sleep(time.Hour)
		if n := l.asked(); n != 0 {
			t.Errorf("%d readings in an hour of nobody, want none", n)
		}
		s.Ring(engine.Ring{Kind: engine.RingAll})
		time.Sleep(time.Hour)
		if n := l.asked(); n != 0 {
			t.Errorf("%d readings for a hint that concerns nobody, want none", n)
		}
		ctx, stop := context.WithCancel(t.Context())
		key, _ := s.identify(ctx, []string{"Bearer " + l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})})
		visit, leave := s.visit(withCaller(ctx, key))
		before := l.asked()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := l.asked() - before; n < 14 || n > 16 {
			t.Errorf("%d readings in a minute of one open call, want one in %s", n, keyringAge)
		}
		stop()
		<-visit.Done()
		leave()
		time.Sleep(time.Minute)
		before = l.asked()
		time.Sleep(time.Hour)
		if n := l.asked() - before; n != 0 {
			t.Errorf("%d readings in an hour after it, want none", n)
		}
	})
	hall(t, "in-process", func(t *testing.T, s *Server, l *locksmith) {
		openVisit(t, s, l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin}))
		before := l.asked()
		time.Sleep(time.Hour)
		if n := l.asked() - before; n != 0 {
			t.Errorf("%d readings where no hint is lost, want none", n)
		}
	})
}

func TestNothingPassesAStreamWhoseKeyHasEnded(t *testing.T) {
	hall(t, "in-process", func(t *testing.T, s *Server, l *locksmith) {
		key, err := s.identify(t.Context(), []string{"Bearer " + l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := s.visit(withCaller(t.Context(), key))
		defer leave()
		inner := &letterbox{}
		g := &guardedStream{ServerStream: inner, ctx: ctx, server: s, method: s.guarded["/kagzi.v1.AdminService/Watch"]}
		if err := g.SendMsg("a"); err != nil || inner.sent != 1 {
			t.Fatalf("before: %v", err)
		}
		l.revoke("one")
		s.Ring(engine.Ring{Kind: engine.RingKeys})
		<-ctx.Done()
		if err := g.SendMsg("b"); status.Code(s.errors.Status(err)) != codes.Unauthenticated || inner.sent != 1 {
			t.Errorf("a message after the end: %v, %d sent", err, inner.sent)
		}
		if err := g.RecvMsg(nil); status.Code(s.errors.Status(err)) != codes.Unauthenticated {
			t.Errorf("a message from the caller after the end: %v", err)
		}
	})
}

func TestACallThatIsOverIsOnTheBooksNoMore(t *testing.T) {
	hall(t, "in-process", func(t *testing.T, s *Server, l *locksmith) {
		secret := l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+secret))
		visitors := func() int {
			open, _ := s.visits.count()
			return open
		}
		for _, end := range []error{nil, errors.New("it went wrong")} {
			inside := -1
			_ = s.stream(nil, &letterbox{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: "/kagzi.v1.AdminService/Watch"}, func(any, grpc.ServerStream) error {
				inside = visitors()
				return end
			})
			if inside != 1 || visitors() != 0 {
				t.Errorf("%d visits during a stream that ends with %v, and %d after it; want 1 and none", inside, end, visitors())
			}
			inside = -1
			request := &kagziv1.WaitWorkflowRequest{Namespace: "default", RunId: servertest.AnID}
			_, _ = s.unary(ctx, request, &grpc.UnaryServerInfo{FullMethod: "/kagzi.v1.WorkflowService/WaitWorkflow"}, func(context.Context, any) (any, error) {
				inside = visitors()
				return &kagziv1.WaitWorkflowResponse{}, end
			})
			if inside != 1 || visitors() != 0 {
				t.Errorf("%d visits during a wait that ends with %v, and %d after it; want 1 and none", inside, end, visitors())
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
