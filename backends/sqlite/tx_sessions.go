package sqlite

import (
	"context"
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_session.sql
var getSessionSQL string

// GetSession returns a session, even one that has expired.
func (s *Store) GetSession(ctx context.Context, id engine.ID) (engine.Session, error) {
	return read(ctx, s, "GetSession", func(r session) (one engine.Session, err error) {
		found, err := r.found(&getSessionSQL, func(r *row) error {
			one = readSession(r)
			return nil
		}, idArg("session_id", id))
		if err == nil && !found {
			err = engine.SessionNotFound(id)
		}
		return one, err
	})
}

func (t *tx) Session(id engine.ID) (*engine.Session, error) {
	var one engine.Session
	found, err := t.found(&getSessionSQL, func(r *row) error {
		one = readSession(r)
		return nil
	}, idArg("session_id", id))
	if err != nil || !found {
		return nil, err
	}
	return &one, nil
}

//go:embed sql/insert_session.sql
var insertSessionSQL string

func (t *tx) InsertSession(s *engine.Session) error {
	_, err := t.exec(&insertSessionSQL, idArg("session_id", s.ID), idArg("key_id", s.KeyID), blob("hash", s.Hash[:]),
		instant("created_at", s.CreatedAt), instant("used_at", s.UsedAt), instant("expires_at", s.ExpiresAt))
	return err
}

//go:embed sql/use_session.sql
var useSessionSQL string

func (t *tx) UseSession(id engine.ID, used, expires time.Time) error {
	_, err := t.exec(&useSessionSQL, idArg("session_id", id), instant("used_at", used),
		instant("expires_at", expires))
	return err
}

//go:embed sql/delete_session.sql
var deleteSessionSQL string

func (t *tx) DeleteSession(id engine.ID) error {
	_, err := t.exec(&deleteSessionSQL, idArg("session_id", id))
	return err
}

//go:embed sql/delete_old_sessions.sql
var deleteOldSessionsSQL string

func (t *tx) DeleteOldSessions(key engine.ID, keep int) error {
	_, err := t.exec(&deleteOldSessionsSQL, idArg("key_id", key), num("keep", keep),
		num("limit", engine.MaxSessionsPruned))
	return err
}

//go:embed sql/delete_expired_sessions.sql
var deleteExpiredSessionsSQL string

func (t *tx) DeleteExpiredSessions(now time.Time, limit int) error {
	_, err := t.exec(&deleteExpiredSessionsSQL, instant("now", now), num("limit", limit))
	return err
}

// readSession reads the columns of get_session.sql.
func readSession(r *row) engine.Session {
	s := engine.Session{ID: r.id(), KeyID: r.id()}
	copy(s.Hash[:], r.bytes())
	s.CreatedAt, s.UsedAt, s.ExpiresAt = r.time(), r.time(), r.time()
	return s
}
