package auth

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

// ringOf is a keyring over a locksmith with one key.
func ringOf(notifications string) (*keyring, *servertest.KeyStore) {
	l := &servertest.KeyStore{Notifications: notifications}
	l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})
	return &keyring{store: l}, l
}

func TestTheKeysAreReadAgain(t *testing.T) {
	look := func(t *testing.T, k *keyring, l *servertest.KeyStore, reads int) {
		t.Helper()
		if _, err := k.get(t.Context()); err != nil || l.Asked() != reads {
			t.Errorf("%d readings (%v), want %d", l.Asked(), err, reads)
		}
	}
	for _, c := range []struct {
		name, notifications string
		then                func(k *keyring)
		reads               int
	}{
		{"never if hints cannot be lost", "in-process", func(*keyring) { time.Sleep(time.Hour) }, 1},
		{"after a hint", "in-process", func(k *keyring) { k.changed() }, 2},
		{"not within four seconds if hints may be lost", "listen", func(*keyring) { time.Sleep(keyringAge - 1) }, 1},
		{"after four seconds if hints may be lost", "listen", func(*keyring) { time.Sleep(keyringAge) }, 2},
		{"after four seconds with polling", "polling", func(*keyring) { time.Sleep(keyringAge) }, 2},
		{"after a hint if hints may be lost", "listen", func(k *keyring) { k.changed() }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, l := ringOf(c.notifications)
				look(t, k, l, 1)
				look(t, k, l, 1)
				c.then(k)
				look(t, k, l, c.reads)
			})
		})
	}
	t.Run("once for all who ask at a time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k, l := ringOf("in-process")
			l.Slow = make(chan struct{})
			var group sync.WaitGroup
			for range 50 {
				group.Go(func() {
					if r, err := k.get(t.Context()); err != nil || r.empty() {
						t.Errorf("the keys are %v (%v)", r, err)
					}
				})
			}
			synctest.Wait()
			close(l.Slow)
			group.Wait()
			if l.Asked() != 1 {
				t.Errorf("%d readings for 50 callers at once, want 1", l.Asked())
			}
		})
	})
	t.Run("for a change during a reading", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k, l := ringOf("in-process")
			l.Slow = make(chan struct{})
			go func() { _, _ = k.get(context.Background()) }()
			synctest.Wait()
			l.Revoke("one")
			k.changed()
			second := make(chan *keyset)
			go func() {
				r, _ := k.get(context.Background())
				second <- r
			}()
			synctest.Wait()
			close(l.Slow)
			if r := <-second; r == nil || !r.empty() || l.Asked() != 2 {
				t.Errorf("who asks after a revocation gets %v in %d readings, want no key in 2", r, l.Asked())
			}
		})
	})
}

func TestCallsAreRefusedWhileKeysCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, l := ringOf("listen")
		if _, err := k.get(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.Set(func() { l.Broken = errors.New("the database is away") })
		if _, err := k.get(t.Context()); err != nil {
			t.Errorf("keys that were read a moment ago: %v", err)
		}
		time.Sleep(keyringAge)
		if _, err := k.get(t.Context()); !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("after %s: %v, want UNAVAILABLE", keyringAge, err)
		}
		l.Set(func() { l.Broken, l.Slow = nil, make(chan struct{}) })
		began := time.Now()
		if _, err := k.get(t.Context()); !errors.Is(err, engine.ErrUnavailable) || time.Since(began) > keyringTime {
			t.Errorf("a database that does not answer: %v after %s, want UNAVAILABLE within %s", err, time.Since(began),
				keyringTime)
		}
		slow := make(chan struct{})
		l.Set(func() { l.Slow = slow })
		time.AfterFunc(2*time.Second, func() { close(slow) })
		if _, err := k.get(t.Context()); err != nil {
			t.Errorf("when it is back, and slow: %v", err)
		}
	})
}

// TestMetricsCanBeReadDuringAnOutage also checks that a server that could never read its keys
// refuses all callers.
func TestMetricsCanBeReadDuringAnOutage(t *testing.T) {
	away := &engine.Error{Kind: engine.KindUnavailable, Message: "the database does not answer"}
	for _, c := range []struct {
		name    string
		keyless bool
		unread  bool                                   // never
		broken  error                                  // what the database says in the outage; nil: nothing at all
		then    func(s *Guard, l *servertest.KeyStore) // before the question
		want    engine.Kind                            // of the answer; 0: let in
	}{
		{name: "an outage", broken: away},
		{name: "an outage where no key was ever made", keyless: true, broken: away},
		{name: "a database that says nothing"},
		{name: "one where hints may have been lost", broken: away, then: func(s *Guard, _ *servertest.KeyStore) {
			s.KeysMayHaveChanged()
		}},
		{name: "a key that has expired", broken: away, then: func(_ *Guard, l *servertest.KeyStore) {
			l.Set(func() { l.Ahead = 48 * time.Hour })
		}, want: engine.KindNoKey},
		{name: "a server that could never read them", unread: true, broken: away, want: engine.KindUnavailable},
		{name: "a server without keys that could never read them", keyless: true, unread: true, broken: away,
			want: engine.KindUnavailable},
		{name: "keys that are known to have changed", broken: away, then: func(s *Guard, _ *servertest.KeyStore) {
			s.KeysChanged()
		}, want: engine.KindUnavailable},
		{name: "the first key of all", keyless: true, broken: away, then: func(s *Guard, _ *servertest.KeyStore) {
			s.KeysChanged()
		}, want: engine.KindUnavailable},
		{name: "an answer that is none", broken: errors.New("a hash has 5 bytes, want 32"),
			want: engine.KindUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, header := &servertest.KeyStore{Notifications: "listen"}, ""
				if !c.keyless {
					header = "Bearer " + l.Make(engine.APIKey{
						Name: "one", Role: engine.RoleViewer, ExpiresAt: l.Now().Add(24 * time.Hour)})
				}
				s := newTestGuard(l)
				if !c.unread {
					if _, err := s.KeyOf(t.Context(), header); err != nil {
						t.Fatal(err)
					}
				}
				l.Set(func() {
					if l.Broken = c.broken; c.broken == nil {
						l.Slow = make(chan struct{})
					}
				})
				time.Sleep(time.Hour)
				if c.then != nil {
					c.then(s, l)
				}
				key, err := s.KeyOf(t.Context(), header)
				if engine.KindOf(err) != c.want && (err != nil || c.want != 0) || err == nil &&
					(key == nil) != c.keyless {
					t.Errorf("at the metrics: %v, %v; want an error of kind %v", key, err, c.want)
				}
				if _, err := s.identify(t.Context(), []string{header}); !errors.Is(err, engine.ErrUnavailable) {
					t.Errorf("any other call: %v, want UNAVAILABLE", err)
				}
			})
		})
	}
}

// TestAKeyRevokedInAnOutageIsRefusedAfterIt, not at the first call either, and nothing
// but the metrics in it.
func TestAKeyRevokedInAnOutageIsRefusedAfterIt(t *testing.T) {
	for name, method := range map[string]func(*Guard, context.Context, string) error{
		"the metrics": func(s *Guard, ctx context.Context, header string) error {
			_, err := s.KeyOf(ctx, header)
			return err
		},
		"a call": func(s *Guard, ctx context.Context, header string) error {
			_, err := s.identify(ctx, []string{header})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &servertest.KeyStore{Notifications: "listen"}
				l.Make(engine.APIKey{Name: "root", Role: engine.RoleAdmin})
				header := "Bearer " + l.Make(engine.APIKey{Name: "one", Role: engine.RoleViewer})
				s := newTestGuard(l)
				if err := method(s, t.Context(), header); err != nil {
					t.Fatal(err)
				}
				l.Set(func() { l.Broken = engine.ErrUnavailable })
				time.Sleep(time.Minute)
				if _, err := s.KeyOf(t.Context(), header); err != nil {
					t.Errorf("the metrics in the outage: %v", err)
				}
				l.Revoke("one") // at another server, which reaches the database
				l.Set(func() { l.Broken = nil })
				if err := method(s, t.Context(), header); engine.KindOf(err) != engine.KindNoKey {
					t.Errorf("the first call after it: %v, want UNAUTHENTICATED", err)
				}
			})
		})
	}
}

// TestAChangeDuringTheLastReadingIsNotForgottenInAnOutage: what was read may be from before it.
func TestAChangeDuringTheLastReadingIsNotForgottenInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, l := ringOf("listen")
		l.Slow = make(chan struct{})
		read := make(chan error)
		go func() {
			_, err := k.get(context.Background())
			read <- err
		}()
		synctest.Wait()
		l.Revoke("one")
		k.changed()
		close(l.Slow)
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		l.Set(func() { l.Broken = engine.ErrUnavailable })
		if r, err := k.getOrLast(t.Context()); !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("the keys are %v (%v), want none that may be from before the revocation", r, err)
		}
	})
}

func TestACallIsToldThatTheDatabaseIsAwayAndNotItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, l := ringOf("listen")
		for said, want := range map[error]string{
			engine.ErrUnavailable:            "the database does not answer",
			errors.New("a hash has 5 bytes"): "the API keys could not be read",
		} {
			l.Set(func() { l.Broken = said })
			if _, err := k.get(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: a call is told %v, want that %s", said, err, want)
			}
		}
	})
}

func TestTheLastUseOfAKeyIsNotedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &servertest.KeyStore{}
		one, two := l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin}),
			l.Make(engine.APIKey{Name: "two", Role: engine.RoleAdmin})
		s := newTestGuard(l)
		stop := s.Start()
		use := func(secret string) {
			t.Helper()
			if key, err := s.KeyOf(t.Context(), "Bearer "+secret); err != nil || key == nil {
				t.Fatalf("%v, %v", key, err)
			}
		}
		noted := func(want int) {
			t.Helper()
			synctest.Wait()
			l.Mu.Lock()
			defer l.Mu.Unlock()
			if len(l.Uses) != want {
				t.Errorf("%d uses noted, want %d: %v", len(l.Uses), want, l.Uses)
			}
		}
		for range 100 {
			use(one)
			use(two)
		}
		noted(0)
		time.Sleep(usesGather)
		noted(2)
		time.Sleep(50 * time.Second)
		use(one)
		time.Sleep(usesGather)
		noted(2)
		time.Sleep(10 * time.Second)
		use(one)
		stop() // does not lose it
		noted(3)
	})
}
