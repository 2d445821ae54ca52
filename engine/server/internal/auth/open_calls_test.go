package auth

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

// caller is one long call at a server: what the interceptor does, without a network.
type caller struct {
	ctx  context.Context
	over chan error
}

// openCallWith begins a long call with a secret, whose handler waits for the end of its context.
func openCallWith(t *testing.T, s *Guard, secret string) *caller {
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
		base = WithCaller(base, key)
	}
	ctx, leave := s.Open(base)
	c := &caller{ctx: ctx, over: make(chan error, 1)}
	go func() {
		defer leave()
		c.over <- RunCall(ctx, func() error {
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	return c
}

// ended says whether the call has ended, and checks that its key was the reason.
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

// inBubble is a server over a locksmith, in a bubble, with its background at work.
func inBubble(t *testing.T, notifications string, test func(t *testing.T, s *Guard, l *servertest.KeyStore)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &servertest.KeyStore{Notifications: notifications}
		l.Make(engine.APIKey{Name: "root", Role: engine.RoleAdmin})
		s := newTestGuard(l)
		defer s.Start()()
		test(t, s, l)
	})
}

func TestALongCallEndsWithItsKey(t *testing.T) {
	t.Run("at once on a notified server", func(t *testing.T) {
		for _, notifications := range []string{"in-process", "listen", "polling"} {
			inBubble(t, notifications, func(t *testing.T, s *Guard, l *servertest.KeyStore) {
				secrets := []string{l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin}),
					l.Make(engine.APIKey{Name: "two", Role: engine.RoleAdmin})}
				one, two := openCallWith(t, s, secrets[0]), openCallWith(t, s, secrets[1])
				s.KeysChanged()
				if one.ended(t) || two.ended(t) {
					t.Fatal("a call ended although its key is valid")
				}
				l.Revoke("one")
				s.KeysChanged()
				if !one.ended(t) || two.ended(t) {
					t.Errorf("%s: after the revocation the one call stays, or the other ended", notifications)
				}
			})
		}
	})
	t.Run("within five seconds if the hint is lost", func(t *testing.T) {
		inBubble(t, "listen", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
			one := openCallWith(t, s, l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin}))
			time.Sleep(time.Minute)
			if one.ended(t) {
				t.Fatal("it ended although its key is valid")
			}
			l.Revoke("one")
			time.Sleep(5 * time.Second)
			if !one.ended(t) {
				t.Error("five seconds after the revocation it is open")
			}
		})
	})
	t.Run("when the key expires", func(t *testing.T) {
		for _, notifications := range []string{"in-process", "listen"} {
			inBubble(t, notifications, func(t *testing.T, s *Guard, l *servertest.KeyStore) {
				secrets := []string{
					l.Make(engine.APIKey{Name: "late", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Hour)}),
					l.Make(engine.APIKey{Name: "early", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Minute)}),
				}
				late, early := openCallWith(t, s, secrets[0]), openCallWith(t, s, secrets[1])
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
	t.Run("when the key of the first call after all others expires", func(t *testing.T) {
		inBubble(t, "in-process", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
			secrets := []string{
				l.Make(engine.APIKey{Name: "first", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Minute)}),
				l.Make(engine.APIKey{Name: "second", Role: engine.RoleAdmin,
					ExpiresAt: l.Now().Add(time.Hour + time.Minute)}),
			}
			if first := openCallWith(t, s, secrets[0]); first.ended(t) {
				t.Fatal("it ended early")
			}
			time.Sleep(time.Hour)
			if open, keyed := s.open.count(); open != 0 || keyed != 0 {
				t.Errorf("%d calls are open, %d with a key, after the only one has ended", open, keyed)
			}
			second := openCallWith(t, s, secrets[1])
			time.Sleep(time.Minute + time.Millisecond)
			if !second.ended(t) {
				t.Error("it stays open although its key has expired")
			}
		})
	})
	t.Run("when the key expires before the next planned check", func(t *testing.T) {
		inBubble(t, "in-process", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
			secrets := []string{
				l.Make(engine.APIKey{Name: "late", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Hour)}),
				l.Make(engine.APIKey{Name: "early", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Second)}),
			}
			late := openCallWith(t, s, secrets[0])
			synctest.Wait() // the next look is planned
			early := openCallWith(t, s, secrets[1])
			time.Sleep(time.Second + time.Millisecond)
			if !early.ended(t) || late.ended(t) {
				t.Error("a moment after its end the call stays whose key has expired, or the other one ended")
			}
		})
	})
	t.Run("when the key ends between its check and the call", func(t *testing.T) {
		inBubble(t, "in-process", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
			key, err := s.identify(t.Context(), []string{
				"Bearer " + l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})})
			if err != nil {
				t.Fatal(err)
			}
			l.Revoke("one")
			s.KeysChanged()
			if _, err := s.keys.get(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, leave := s.Open(WithCaller(t.Context(), key))
			if !errors.Is(context.Cause(ctx), errCallOver) {
				t.Errorf("a call whose key was revoked as it began goes on: %v", context.Cause(ctx))
			}
			leave()
		})
	})
	t.Run("a call that ends with its key leaves nothing behind", func(t *testing.T) {
		inBubble(t, "in-process", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
			key, err := s.identify(t.Context(), []string{
				"Bearer " + l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})})
			if err != nil {
				t.Fatal(err)
			}
			ctx, leave := s.Open(WithCaller(t.Context(), key))
			if open, keyed := s.open.count(); open != 1 || keyed != 1 || ctx.Err() != nil {
				t.Errorf("%d calls are open, %d with a key (%v)", open, keyed, ctx.Err())
			}
			leave()
			if open, keyed := s.open.count(); open != 0 || keyed != 0 || ctx.Err() == nil {
				t.Errorf("%d calls are open, %d with a key, after it has ended (%v)", open, keyed, ctx.Err())
			}
		})
	})
	t.Run("when the clock jumps past the key's expiry", func(t *testing.T) {
		for _, notifications := range []string{"in-process", "listen"} {
			inBubble(t, notifications, func(t *testing.T, s *Guard, l *servertest.KeyStore) {
				secrets := []string{
					l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(time.Hour)}),
					l.Make(engine.APIKey{Name: "two", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(3 * time.Hour)}),
				}
				one, two := openCallWith(t, s, secrets[0]), openCallWith(t, s, secrets[1])
				time.Sleep(time.Minute)
				l.Set(func() { l.Ahead = 2 * time.Hour })
				time.Sleep(5 * time.Second)
				if !one.ended(t) || two.ended(t) {
					t.Errorf("%s: five seconds later the call is open whose key has expired, or the other is not",
						notifications)
				}
			})
		}
	})
	t.Run("when the database gets its first key", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &servertest.KeyStore{Notifications: "in-process"}
			s := newTestGuard(l)
			defer s.Start()()
			local := openCallWith(t, s, "")
			l.Make(engine.APIKey{Name: "first", Role: engine.RoleAdmin})
			s.KeysChanged()
			if !local.ended(t) {
				t.Error("a call without a key stays open although keys are needed now")
			}
		})
	})
	t.Run("when its handler is stuck", func(t *testing.T) {
		inBubble(t, "in-process", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
			secret := l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})
			key, err := s.identify(t.Context(), []string{"Bearer " + secret})
			if err != nil {
				t.Fatal(err)
			}
			ctx, leave := s.Open(WithCaller(t.Context(), key))
			defer leave()
			stuck := make(chan struct{})
			over := make(chan error, 1)
			go func() { over <- RunCall(ctx, func() error { <-stuck; return nil }) }()
			l.Revoke("one")
			s.KeysChanged()
			time.Sleep(lateHandler)
			if err := <-over; !errors.Is(err, errCallOver) {
				t.Errorf("it ended with %v", err)
			}
			close(stuck)
		})
	})
	t.Run("not when the database fails", func(t *testing.T) {
		inBubble(t, "listen", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
			one := openCallWith(t, s, l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin}))
			l.Set(func() { l.Broken = servertest.ErrBroken })
			time.Sleep(time.Minute)
			if one.ended(t) {
				t.Error("it ended although nobody knows anything of its key")
			}
			l.Revoke("one")
			l.Set(func() { l.Broken = nil })
			time.Sleep(5 * time.Second)
			if !one.ended(t) {
				t.Error("it stays open although its key was revoked meanwhile")
			}
		})
	})
}

func TestWithoutOpenCallsNoKeysAreRead(t *testing.T) {
	inBubble(t, "listen", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
		time.Sleep(time.Hour)
		if n := l.Asked(); n != 0 {
			t.Errorf("%d readings in an hour of nobody, want none", n)
		}
		s.KeysMayHaveChanged()
		time.Sleep(time.Hour)
		if n := l.Asked(); n != 0 {
			t.Errorf("%d readings for a hint that concerns nobody, want none", n)
		}
		ctx, stop := context.WithCancel(t.Context())
		key, _ := s.identify(ctx, []string{"Bearer " + l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})})
		stream, leave := s.Open(WithCaller(ctx, key))
		before := l.Asked()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := l.Asked() - before; n < 14 || n > 16 {
			t.Errorf("%d readings in a minute of one open call, want one in %s", n, keyringAge)
		}
		stop()
		<-stream.Done()
		leave()
		time.Sleep(time.Minute)
		before = l.Asked()
		time.Sleep(time.Hour)
		if n := l.Asked() - before; n != 0 {
			t.Errorf("%d readings in an hour after it, want none", n)
		}
	})
	inBubble(t, "in-process", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
		openCallWith(t, s, l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin}))
		before := l.Asked()
		time.Sleep(time.Hour)
		if n := l.Asked() - before; n != 0 {
			t.Errorf("%d readings where no hint is lost, want none", n)
		}
	})
}
