package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// CreateSession creates a session while no key can be revoked.
func (s *Store) CreateSession(_ context.Context, p engine.CreateSessionParams) (engine.Session, error) {
	return locked(s, "create a session", lockAPIKeysSQL, args{}, storelogic.CreateSession, p)
}

//go:embed sql/get_session.sql
var getSessionSQL string

// GetSession returns a session, even one that has expired.
func (s *Store) GetSession(ctx context.Context, id engine.ID) (one engine.Session, err error) {
	missing := engine.SessionNotFound(id)
	err = s.view(ctx, "read a session", func(ctx context.Context) error {
		row := s.views.QueryRow(ctx, getSessionSQL, args{"session_id": [16]byte(id)})
		return notFound(row.Scan(sessionPlaces(&one)...), missing)
	})
	if err != nil {
		return engine.Session{}, err
	}
	return one, nil
}

// Session does not lock the row: UseSession checks it again, and DeleteSession may miss it.
func (t *tx) Session(id engine.ID) (*engine.Session, error) {
	var one engine.Session
	found, err := t.found(getSessionSQL, args{"session_id": [16]byte(id)}, sessionPlaces(&one)...)
	if err != nil || !found {
		return nil, err
	}
	return &one, nil
}

//go:embed sql/insert_session.sql
var insertSessionSQL string

// InsertSession inserts the session with the given fields.
func (t *tx) InsertSession(s *engine.Session) error {
	return t.queue(insertSessionSQL, args{"session_id": [16]byte(s.ID), "key_id": [16]byte(s.KeyID), "hash": s.Hash[:],
		"created_at": micros(s.CreatedAt), "used_at": micros(s.UsedAt), "expires_at": micros(s.ExpiresAt)})
}

//go:embed sql/use_session.sql
var useSessionSQL string

// UseSession moves the session's times forward.
func (t *tx) UseSession(id engine.ID, used, expires time.Time) error {
	return t.queue(useSessionSQL, args{"session_id": [16]byte(id), "used_at": micros(used),
		"expires_at": micros(expires)})
}

//go:embed sql/delete_session.sql
var deleteSessionSQL string

// DeleteSession does nothing if another server was faster.
func (t *tx) DeleteSession(id engine.ID) error {
	return t.queue(deleteSessionSQL, args{"session_id": [16]byte(id)})
}

//go:embed sql/delete_old_sessions.sql
var deleteOldSessionsSQL string

// DeleteOldSessions is exact in a transaction that has locked the keys.
func (t *tx) DeleteOldSessions(key engine.ID, keep int) error {
	return t.queue(deleteOldSessionsSQL, args{"key_id": [16]byte(key), "keep": keep,
		"limit": engine.MaxSessionsPruned})
}

//go:embed sql/delete_expired_sessions.sql
var deleteExpiredSessionsSQL string

// DeleteExpiredSessions skips sessions that are just being used.
func (t *tx) DeleteExpiredSessions(now time.Time, limit int) error {
	return t.queue(deleteExpiredSessionsSQL, args{"now": micros(now), "limit": limit})
}

// sessionPlaces returns the scan targets of get_session.sql.
func sessionPlaces(s *engine.Session) []any {
	return []any{idOf(&s.ID), idOf(&s.KeyID), hashColumn{&s.Hash}, timeOf(&s.CreatedAt), timeOf(&s.UsedAt),
		timeOf(&s.ExpiresAt)}
}
