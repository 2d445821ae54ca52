package auth

import (
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/secret"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

// begin makes a session of the key with that name, and returns its secret.
func begin(t *testing.T, l *servertest.KeyStore, name string) (string, engine.ID) {
	t.Helper()
	now := l.Now()
	id := engine.NewID(now)
	text, hash := secret.NewSession(id)
	_, err := l.CreateSession(t.Context(), engine.CreateSessionParams{
		Session: engine.Session{ID: id, KeyID: l.Named(name).ID, Hash: hash}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return text, id
}

func identified(t *testing.T, s *Guard, text string) error {
	t.Helper()
	_, err := s.identify(t.Context(), []string{"Bearer " + text})
	if err != nil && engine.KindOf(err) != engine.KindNoKey {
		t.Errorf("identify: %v, want UNAUTHENTICATED or nothing", err)
	}
	return err
}

func TestASessionStandsForItsKey(t *testing.T) {
	inBubble(t, "in-process", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
		l.Make(engine.APIKey{Name: "team", Role: engine.RoleViewer, Namespaces: []string{"team"}})
		text, id := begin(t, l, "team")
		key, err := s.identify(t.Context(), []string{"Bearer " + text})
		if err != nil || key.Name != "team" || key.Role != engine.RoleViewer || !key.Reaches("team") || key.Reaches("other") {
			t.Fatalf("the caller is %+v (%v), want the key", key, err)
		}
		if actor := key.actor(); !strings.HasSuffix(actor, " session "+id.String()) || !strings.HasPrefix(actor, "team (") {
			t.Errorf("in the audit it is %q, want the key and the session", actor)
		}
		l.Revoke("team")
		s.KeysChanged()
		if identified(t, s, text) == nil {
			t.Error("the session outlives its key")
		}
	})
}

func TestASessionIsRefused(t *testing.T) {
	inBubble(t, "in-process", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
		text, id := begin(t, l, "root")
		other, _ := secret.NewSession(id)
		unknown, _ := secret.NewSession(engine.NewID(l.Now()))
		for what, bad := range map[string]string{
			"with another secret": other, "that never was": unknown, "without its end": text[:len(text)-1],
			"as a key": strings.Replace(text, "kzs_", "kz_admin_", 1), "with more": text + "_0",
		} {
			if identified(t, s, bad) == nil {
				t.Errorf("a session %s is accepted", what)
			}
		}
		if err := identified(t, s, text); err != nil {
			t.Errorf("the session itself: %v", err)
		}
	})
}

func TestASessionEndsWithoutUseAndAtItsLimit(t *testing.T) {
	inBubble(t, "in-process", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
		began := l.Now()
		idle, _ := begin(t, l, "root")
		used, id := begin(t, l, "root")
		for l.Now().Sub(began) < engine.SessionLife-time.Hour {
			if err := identified(t, s, used); err != nil {
				t.Fatalf("a session in use, after %s: %v", l.Now().Sub(began), err)
			}
			time.Sleep(engine.SessionIdle - time.Hour)
		}
		if identified(t, s, idle) == nil {
			t.Error("a session without use is accepted")
		}
		if limit := began.Add(engine.SessionLife); l.Logins[id].ExpiresAt.After(limit) {
			t.Errorf("the session expires at %s, at most %s is allowed", l.Logins[id].ExpiresAt, limit)
		}
		time.Sleep(engine.SessionIdle - time.Second) // its last use may be a while ago, but not so long
		if identified(t, s, used) == nil {
			t.Error("a session is accepted after its limit")
		}
	})
}

func TestAUseOfASessionIsWrittenRarely(t *testing.T) {
	inBubble(t, "listen", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
		text, id := begin(t, l, "root")
		began := l.Now()
		for range 20 {
			if err := identified(t, s, text); err != nil {
				t.Fatal(err)
			}
			time.Sleep(keyringAge + 1) // it is read again
		}
		if used := l.Logins[id].UsedAt; used.Sub(began) > usesGather {
			t.Errorf("the last use is at +%s, want only the first in %d s", used.Sub(began), sessionUsedEvery)
		}
	})
}

func TestALongCallEndsWithItsSession(t *testing.T) {
	for notifications, wait := range map[string]time.Duration{"in-process": 0, "listen": keyringAge + time.Second} {
		inBubble(t, notifications, func(t *testing.T, s *Guard, l *servertest.KeyStore) {
			text, id := begin(t, l, "root")
			other, _ := begin(t, l, "root")
			one, two := openCallWith(t, s, text), openCallWith(t, s, other)
			if one.ended(t) || two.ended(t) {
				t.Fatal("a call ended at once")
			}
			if err := l.EndSession(t.Context(), engine.EndSessionParams{ID: id}); err != nil {
				t.Fatal(err)
			}
			if wait == 0 {
				s.KeysChanged()
			}
			time.Sleep(wait)
			if !one.ended(t) || two.ended(t) {
				t.Errorf("%s: want the call of the ended session to end, and no other", notifications)
			}
		})
	}
}

func TestALongCallKeepsItsSession(t *testing.T) {
	inBubble(t, "in-process", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
		text, _ := begin(t, l, "root")
		one := openCallWith(t, s, text)
		for range 3 {
			time.Sleep(engine.SessionIdle - time.Hour)
		}
		if one.ended(t) {
			t.Error("the session of an open call ended for want of use")
		}
		time.Sleep(engine.SessionLife)
		if !one.ended(t) {
			t.Error("an open call goes on after the limit of its session")
		}
	})
}

func TestAUseCountsBeforeItIsWritten(t *testing.T) {
	inBubble(t, "in-process", func(t *testing.T, s *Guard, l *servertest.KeyStore) {
		text, _ := begin(t, l, "root")
		time.Sleep(engine.SessionIdle - time.Second)
		for _, wait := range []time.Duration{0, 0, usesGather - 100*time.Millisecond} {
			time.Sleep(wait)
			if err := identified(t, s, text); err != nil {
				t.Errorf("%s after a use: %v", wait, err)
			}
			s.KeysChanged() // it is read again, from rows that do not have the use yet
		}
	})
}
