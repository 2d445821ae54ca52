package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// GetSession returns a session, even one that has expired.
func (s *Store) GetSession(ctx context.Context, id engine.ID) (engine.Session, error) {
	return read(ctx, s, "GetSession", func(t *tx) (engine.Session, error) {
		one, known := t.db.sessions[id]
		if !known {
			return engine.Session{}, engine.SessionNotFound(id)
		}
		return one, nil
	})
}

func (t *tx) Session(id engine.ID) (*engine.Session, error) {
	if one, known := t.db.sessions[id]; known {
		return &one, nil
	}
	return nil, nil
}

func (t *tx) InsertSession(s *engine.Session) error {
	put(t, t.db.sessions, s.ID, *s)
	return nil
}

func (t *tx) UseSession(id engine.ID, used, expires time.Time) error {
	row := t.db.sessions[id]
	row.UsedAt, row.ExpiresAt = used, expires
	put(t, t.db.sessions, id, row)
	return nil
}

func (t *tx) DeleteSession(id engine.ID) error {
	remove(t, t.db.sessions, id)
	return nil
}

func (t *tx) DeleteOldSessions(key engine.ID, keep int) error {
	var own []engine.ID
	for id, s := range t.db.sessions {
		if s.KeyID == key {
			own = append(own, id)
		}
	}
	slices.SortFunc(own, compareIDs)
	for _, id := range own[:max(0, len(own)-keep)] {
		remove(t, t.db.sessions, id)
	}
	return nil
}

func (t *tx) DeleteExpiredSessions(now time.Time, limit int) error {
	var expired []engine.Session
	for _, s := range t.db.sessions {
		if !s.ExpiresAt.After(now) {
			expired = append(expired, s)
		}
	}
	slices.SortFunc(expired, func(a, b engine.Session) int {
		return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), compareIDs(a.ID, b.ID))
	})
	for _, s := range expired[:min(limit, len(expired))] {
		remove(t, t.db.sessions, s.ID)
	}
	return nil
}
