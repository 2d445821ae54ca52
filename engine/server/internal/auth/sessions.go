package auth

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/secret"
)

const (
	// maxSessionsCached limits the sessions in memory. Further ones are read for each call.
	maxSessionsCached = 4096
	// sessionUsedEvery is the resolution of a session's last use, in seconds. It is coarse, because an
	// open page uses its session all the time.
	sessionUsedEvery = 300
)

// sessionStore is the part of a store that sessions need.
type sessionStore interface {
	GetSession(context.Context, engine.ID) (engine.Session, error)
	NoteSessionUse(context.Context, []engine.KeyUse) error
}

// session is a session in this server's memory. Its hash and its key never change.
type session struct {
	engine.Session
	expires atomic.Int64 // in microseconds since 1970; later than Session.ExpiresAt after a use
	used    atomic.Int64 // when its use was last recorded, in seconds since 1970; 0: never
	as      *Key         // the caller: a copy of the key, with this session and its hash
	mark    uint64       // keyring.mark when it was read
	readAt  time.Time    // when its reading began, by the monotonic clock
}

// validAt says whether the session has not expired at the time now.
func (s *session) validAt(now time.Time) bool { return now.UnixMicro() < s.expires.Load() }

func (s *session) expiresAt() time.Time { return time.UnixMicro(s.expires.Load()).UTC() }

// sessions caches the sessions in use. An entry is as old as a keyset may be, and is read again when
// keys or sessions may have changed.
type sessions struct {
	mu    sync.Mutex
	known map[engine.ID]*session
}

// session returns a session of a key in keys; nil if there is none.
func (g *Guard) session(ctx context.Context, keys *keyset, id engine.ID) (*session, error) {
	mark := g.keys.mark.Load()
	g.sessions.mu.Lock()
	old := g.sessions.known[id]
	g.sessions.mu.Unlock()
	if old != nil && old.mark >= mark && keys.byID[old.KeyID] != nil &&
		(g.keys.sure.Load() || time.Since(old.readAt) < keyringAge) {
		return old, nil
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, keyringTime)
	defer cancel()
	row, err := g.store.GetSession(ctx, id)
	key := keys.byID[row.KeyID]
	switch {
	case engine.KindOf(err) == engine.KindNotFound, err == nil && key == nil:
		g.sessions.forget(id)
		return nil, nil
	case err != nil:
		return nil, keysUnread(err)
	}
	s := &session{Session: row, mark: mark, readAt: begun, as: &Key{APIKey: key.APIKey}}
	s.as.session, s.as.Hash = s, row.Hash
	s.expires.Store(row.ExpiresAt.UnixMicro())
	if old != nil {
		s.used.Store(old.used.Load())
		s.expires.Store(max(s.expires.Load(), old.expires.Load())) // its use may not be written yet
	}
	g.sessions.keep(s)
	return s, nil
}

func (c *sessions) keep(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxSessionsCached {
		c.known = map[engine.ID]*session{}
	}
	c.known[s.ID] = s
}

func (c *sessions) forget(id engine.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, id)
}

// bySession returns the caller that the secret of a session stands for; nil if text is not one.
func (g *Guard) bySession(ctx context.Context, keys *keyset, text string) (*Key, error) {
	id, ok := secret.ParseSession(text)
	if !ok {
		return nil, nil
	}
	s, err := g.session(ctx, keys, id)
	if err != nil {
		return nil, err
	}
	if hash := secret.Hash(text); s == nil || !s.as.opensWith(&hash) || !s.validAt(g.store.Now()) {
		return nil, errSessionOver
	}
	return s.as, nil
}

var errSessionOver = noKey("the session has ended or has expired; log in again")

// usedSession records that a session was used, at most once in sessionUsedEvery seconds.
func (g *Guard) usedSession(s *session) {
	if s == nil || !async.Elapsed(&s.used, sessionUsedEvery) {
		return
	}
	now := g.store.Now()
	s.expires.Store(engine.SessionExpiry(s.CreatedAt, now).UnixMicro())
	g.uses.mu.Lock()
	if g.uses.sessions == nil {
		g.uses.sessions = map[engine.ID]time.Time{}
	}
	g.uses.sessions[s.ID] = now
	g.uses.mu.Unlock()
	async.Notify(g.uses.wake)
}

// SessionOf returns the session that makes a call; false for a call with a key, or without one.
func SessionOf(ctx context.Context) (engine.Session, bool) {
	key := CallerOf(ctx)
	if key == nil || key.session == nil {
		return engine.Session{}, false
	}
	s := key.session.Session
	s.ExpiresAt = key.session.expiresAt()
	return s, true
}

// endedSessions returns those sessions of open calls that are of no use any more. While one is open,
// it is in use.
func (g *Guard) endedSessions(ctx context.Context, keys *keyset, open []engine.ID) (map[engine.ID]bool, error) {
	ended := map[engine.ID]bool{}
	for _, id := range open {
		s, err := g.session(ctx, keys, id)
		if err != nil {
			return nil, err
		}
		if s == nil || !s.validAt(g.store.Now()) {
			ended[id] = true
			continue
		}
		g.usedSession(s)
	}
	return ended, nil
}
