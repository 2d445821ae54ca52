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

	"github.com/kagzi/kagzi/engine"
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
