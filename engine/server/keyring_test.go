package server

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestASecretSaysWhoseItIsAndIsWhole(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	luck := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]bool{}
	for role := engine.RoleAdmin; role <= engine.RoleViewer; role++ {
		for i := range 200 {
			var id engine.ID
			for j := range id {
				id[j] = byte(luck.Uint32())
			}
			switch i {
			case 0:
				id = engine.ID{15: 1}
			case 1:
				id = engine.ID([]byte(strings.Repeat("\xff", 16)))
			}
			secret, hash := newSecret(role, id)
			parts := strings.Split(secret, "_")
			if len(parts) != 5 || parts[0] != "kz" || parts[1] != role.String() || len(parts[2]) != 22 || len(parts[3]) != 43 || len(parts[4]) != 6 || len(secret) > maxSecret {
				t.Fatalf("secret %q", secret)
			}
			if got, ok := parseSecret(secret); !ok || got != id || hash != hashOf(secret) || seen[parts[3]] {
				t.Fatalf("%q is read as %v %v, want %v", secret, got, ok, id)
			}
			seen[parts[3]] = true
			for range 20 { // one character is another
				at := luck.IntN(len(secret))
				spoiled := []byte(secret)
				spoiled[at] = digits62[luck.IntN(62)]
				if _, ok := parseSecret(string(spoiled)); ok && string(spoiled) != secret {
					t.Fatalf("%q is taken for whole", spoiled)
				}
			}
		}
	}
	tooLarge := "kz_admin_" + strings.Repeat("Z", 22) + "_" + strings.Repeat("0", 43)
	for _, bad := range []string{"", "_", "____", "kz____", tooLarge + "_" + sumOf(tooLarge)} {
		if _, ok := parseSecret(bad); ok {
			t.Errorf("%q is taken for a secret", bad)
		}
	}
}

// ringOf is a keyring over a locksmith with one key.
func ringOf(notifications string) (*keyring, *locksmith) {
	l := &locksmith{notifications: notifications}
	l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})
	return &keyring{store: l}, l
}

func TestTheKeysAreReadAgain(t *testing.T) {
	look := func(t *testing.T, k *keyring, l *locksmith, reads int) {
		t.Helper()
		if _, err := k.get(t.Context()); err != nil || l.asked() != reads {
			t.Errorf("%d readings (%v), want %d", l.asked(), err, reads)
		}
	}
	for _, c := range []struct {
		name, notifications string
		then                func(k *keyring)
		reads               int
	}{
		{"never where no hint is lost", "in-process", func(*keyring) { time.Sleep(time.Hour) }, 1},
		{"after a hint", "in-process", func(k *keyring) { k.changed() }, 2},
		{"not within four seconds where hints may be lost", "listen", func(*keyring) { time.Sleep(keyringAge - 1) }, 1},
		{"after four seconds where hints may be lost", "listen", func(*keyring) { time.Sleep(keyringAge) }, 2},
		{"likewise by polling", "polling", func(*keyring) { time.Sleep(keyringAge) }, 2},
		{"after a hint there too", "listen", func(k *keyring) { k.changed() }, 2},
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
			l.slow = make(chan struct{})
			var group sync.WaitGroup
			for range 50 {
				group.Go(func() {
					if r, err := k.get(t.Context()); err != nil || r.empty() {
						t.Errorf("the keys are %v (%v)", r, err)
					}
				})
			}
			synctest.Wait()
			close(l.slow)
			group.Wait()
			if l.asked() != 1 {
				t.Errorf("%d readings for 50 callers at once, want 1", l.asked())
			}
		})
	})
	t.Run("for a change during a reading", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k, l := ringOf("in-process")
			l.slow = make(chan struct{})
			go func() { _, _ = k.get(context.Background()) }()
			synctest.Wait()
			l.revoke("one")
			k.changed()
			second := make(chan *keyset)
			go func() {
				r, _ := k.get(context.Background())
				second <- r
			}()
			synctest.Wait()
			close(l.slow)
			if r := <-second; r == nil || !r.empty() || l.asked() != 2 {
				t.Errorf("who asks after a revocation gets %v in %d readings, want no key in 2", r, l.asked())
			}
		})
	})
}

func TestKeysThatCannotBeReadOpenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, l := ringOf("listen")
		if _, err := k.get(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.set(func() { l.broken = errors.New("the database is away") })
		if _, err := k.get(t.Context()); err != nil {
			t.Errorf("keys that were read a moment ago: %v", err)
		}
		time.Sleep(keyringAge)
		if _, err := k.get(t.Context()); !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("after %s: %v, want UNAVAILABLE", keyringAge, err)
		}
		l.set(func() { l.broken, l.slow = nil, make(chan struct{}) })
		began := time.Now()
		if _, err := k.get(t.Context()); !errors.Is(err, engine.ErrUnavailable) || time.Since(began) > keyringTime {
			t.Errorf("a database that does not answer: %v after %s, want UNAVAILABLE within %s", err, time.Since(began), keyringTime)
		}
		slow := make(chan struct{})
		l.set(func() { l.slow = slow })
		time.AfterFunc(2*time.Second, func() { close(slow) })
		if _, err := k.get(t.Context()); err != nil {
			t.Errorf("when it is back, and slow: %v", err)
		}
	})
}

// TestWhoLooksAtMetricsIsKnownWhileTheDatabaseIsAway: that is what metrics are for, and a server that could never read its keys knows nobody.
func TestWhoLooksAtMetricsIsKnownWhileTheDatabaseIsAway(t *testing.T) {
	away := &engine.Error{Kind: engine.KindUnavailable, Message: "the database does not answer"}
	for _, c := range []struct {
		name      string
		keyless   bool
		Undecoded bool                          // never
		broken    error                         // what the database says in the outage; nil: nothing at all
		then      func(s *Server, l *locksmith) // before the question
		want      engine.Kind                   // of the answer; 0: let in
	}{
		{name: "an outage", broken: away},
		{name: "an outage where no key was ever made", keyless: true, broken: away},
		{name: "a database that says nothing"},
		{name: "one where hints may have been lost", broken: away, then: func(s *Server, _ *locksmith) { s.Ring(engine.Ring{Kind: engine.RingAll}) }},
		{name: "a key that has expired", broken: away, then: func(_ *Server, l *locksmith) { l.set(func() { l.ahead = 48 * time.Hour }) }, want: engine.KindNoKey},
		{name: "a server that could never read them", Undecoded: true, broken: away, want: engine.KindUnavailable},
		{name: "a server without keys that could never read them", keyless: true, Undecoded: true, broken: away, want: engine.KindUnavailable},
		{name: "keys that are known to have changed", broken: away, then: func(s *Server, _ *locksmith) { s.Ring(engine.Ring{Kind: engine.RingKeys}) }, want: engine.KindUnavailable},
		{name: "the first key of all", keyless: true, broken: away, then: func(s *Server, _ *locksmith) { s.keysChanged() }, want: engine.KindUnavailable},
		{name: "an answer that is none", broken: errors.New("a hash has 5 bytes, want 32"), want: engine.KindUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, header := &locksmith{notifications: "listen"}, ""
				if !c.keyless {
					header = "Bearer " + l.make(engine.APIKey{Name: "one", Role: engine.RoleViewer, ExpiresAt: l.Now().Add(24 * time.Hour)})
				}
				s := New(l, nil, Options{})
				if !c.Undecoded {
					if _, err := s.KeyOf(t.Context(), header); err != nil {
						t.Fatal(err)
					}
				}
				l.set(func() {
					if l.broken = c.broken; c.broken == nil {
						l.slow = make(chan struct{})
					}
				})
				time.Sleep(time.Hour)
				if c.then != nil {
					c.then(s, l)
				}
				key, err := s.KeyOf(t.Context(), header)
				if engine.KindOf(err) != c.want && (err != nil || c.want != 0) || err == nil && (key == nil) != c.keyless {
					t.Errorf("at the metrics: %v, %v; want an error of kind %v", key, err, c.want)
				}
				if _, err := s.identify(t.Context(), []string{header}); !errors.Is(err, engine.ErrUnavailable) {
					t.Errorf("any other call: %v, want UNAVAILABLE", err)
				}
			})
		})
	}
}

// TestAKeyThatWasRevokedInAnOutageOpensNothingAfterIt, not at the first call either, and nothing but the metrics in it.
func TestAKeyThatWasRevokedInAnOutageOpensNothingAfterIt(t *testing.T) {
	for name, door := range map[string]func(*Server, context.Context, string) error{
		"the metrics": func(s *Server, ctx context.Context, header string) error { _, err := s.KeyOf(ctx, header); return err },
		"a call": func(s *Server, ctx context.Context, header string) error {
			_, err := s.identify(ctx, []string{header})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &locksmith{notifications: "listen"}
				l.make(engine.APIKey{Name: "root", Role: engine.RoleAdmin})
				header := "Bearer " + l.make(engine.APIKey{Name: "one", Role: engine.RoleViewer})
				s := New(l, nil, Options{})
				if err := door(s, t.Context(), header); err != nil {
					t.Fatal(err)
				}
				l.set(func() { l.broken = engine.ErrUnavailable })
				time.Sleep(time.Minute)
				if _, err := s.KeyOf(t.Context(), header); err != nil {
					t.Errorf("the metrics in the outage: %v", err)
				}
				l.revoke("one") // at another server, which reaches the database
				l.set(func() { l.broken = nil })
				if err := door(s, t.Context(), header); engine.KindOf(err) != engine.KindNoKey {
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
		l.slow = make(chan struct{})
		read := make(chan error)
		go func() {
			_, err := k.get(context.Background())
			read <- err
		}()
		synctest.Wait()
		l.revoke("one")
		k.changed()
		close(l.slow)
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		l.set(func() { l.broken = engine.ErrUnavailable })
		if r, err := k.getOrLast(t.Context()); !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("the keys are %v (%v), want none that may be from before the revocation", r, err)
		}
	})
}

func TestAKeyOpensFromItsMakingUntilItsRevocationIsAnswered(t *testing.T) {
	_, conn, l, secrets := guarded(t)
	admin, root := kagziv1.NewAdminServiceClient(conn), with(soon(t), secrets[engine.RoleAdmin])
	if _, err := admin.WhoAmI(root, &kagziv1.WhoAmIRequest{}); err != nil { // the keys are in memory from here on
		t.Fatal(err)
	}
	made, err := admin.CreateKey(root, &kagziv1.CreateKeyRequest{Key: &kagziv1.Key{Name: "new", Role: kagziv1.KeyRole_KEY_ROLE_VIEWER, Namespaces: []string{"team"}}})
	if err != nil {
		t.Fatal(err)
	}
	if me, err := admin.WhoAmI(with(soon(t), made.Secret), &kagziv1.WhoAmIRequest{}); err != nil || me.Key.GetName() != "new" {
		t.Errorf("with the new key: %v, %v", me, err)
	}
	if _, err := admin.RevokeKey(root, &kagziv1.RevokeKeyRequest{KeyId: made.Key.KeyId}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.WhoAmI(with(soon(t), made.Secret), &kagziv1.WhoAmIRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("with the revoked key: %v, want UNAUTHENTICATED", err)
	}
	for i, method := range []string{"CreateKey", "RevokeKey"} {
		if e := l.recorded()[i]; e.Method != method || !strings.HasPrefix(e.Actor.Name, "the-admin (") {
			t.Errorf("%s was by %q, want the admin's key", e.Method, e.Actor.Name)
		}
	}
}

func TestACallIsToldThatTheDatabaseIsAwayAndNotItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, l := ringOf("listen")
		for said, want := range map[error]string{
			engine.ErrUnavailable: "the database does not answer", errors.New("a hash has 5 bytes"): "the API keys could not be read",
		} {
			l.set(func() { l.broken = said })
			if _, err := k.get(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: a call is told %v, want that %s", said, err, want)
			}
		}
	})
}

func TestTheLastUseOfAKeyIsNotedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &locksmith{}
		one, two := l.make(engine.APIKey{Name: "one", Role: engine.RoleAdmin}), l.make(engine.APIKey{Name: "two", Role: engine.RoleAdmin})
		s := New(l, nil, Options{})
		stop := s.watchKeys()
		use := func(secret string) {
			t.Helper()
			if key, err := s.KeyOf(t.Context(), "Bearer "+secret); err != nil || key == nil {
				t.Fatalf("%v, %v", key, err)
			}
		}
		noted := func(want int) {
			t.Helper()
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			if len(l.uses) != want {
				t.Errorf("%d uses noted, want %d: %v", len(l.uses), want, l.uses)
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

func TestWhatIsNotedNowAndThenIsNotedAgainAfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for name, c := range map[string]struct {
			last int64
			want bool
		}{
			"never":              {0, true},
			"this second":        {now.Unix(), false},
			"59 seconds ago":     {now.Unix() - 59, false},
			"a minute ago":       {now.Unix() - 60, true},
			"by a clock ahead":   {now.Unix() + 1, true},
			"by a clock of 2100": {time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), true},
		} {
			var last atomic.Int64
			last.Store(c.last)
			if got := passed(&last, 60); got != c.want {
				t.Errorf("%s: passed = %v, want %v", name, got, c.want)
			}
			if c.want && last.Load() != now.Unix() {
				t.Errorf("%s: the last moment is %d, want now, %d", name, last.Load(), now.Unix())
			}
		}
	})
}
