package storelogic

import (
	"bytes"
	"slices"

	"github.com/kagzi/kagzi/engine"
)

// CreateSession makes a session. If the same session with the same id exists, it returns that one.
func CreateSession(tx Tx, p engine.CreateSessionParams) (engine.Session, error) {
	u := begin(tx, p.Now)
	known, err := tx.Session(p.Session.ID)
	switch {
	case err != nil:
		return engine.Session{}, err
	case known == nil:
	case known.KeyID == p.Session.KeyID && known.Hash == p.Session.Hash:
		return *known, nil
	default:
		return engine.Session{}, &engine.Error{Kind: engine.KindExists, Subject: "session",
			SubjectID: known.ID.String(), Message: "there is another session with the id " + known.ID.String()}
	}
	key, err := tx.APIKey(p.Session.KeyID)
	if err != nil {
		return engine.Session{}, err
	}
	if key == nil || !key.ValidAt(u.now) {
		return engine.Session{}, engine.KeyNotFound(p.Session.KeyID)
	}
	if err := tx.DeleteExpiredSessions(u.now, engine.MaxSessionsPruned); err != nil {
		return engine.Session{}, err
	}
	s := engine.Session{ID: p.Session.ID, KeyID: key.ID, Hash: p.Session.Hash, CreatedAt: u.now, UsedAt: u.now,
		ExpiresAt: engine.SessionExpiry(u.now, u.now)}
	if err := tx.InsertSession(&s); err != nil {
		return engine.Session{}, err
	}
	if err := tx.DeleteOldSessions(key.ID, engine.MaxKeySessions); err != nil {
		return engine.Session{}, err
	}
	return s, u.audit(p.By, p.AuditID, "CreateSession", onSession(&s), "", sessionDetail(&s))
}

// NoteSessionUse records uses in the order of ids, in which two servers that record the same sessions
// lock them.
func NoteSessionUse(tx Tx, uses []engine.KeyUse) error {
	uses = slices.Clone(uses)
	slices.SortFunc(uses, func(a, b engine.KeyUse) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for _, use := range uses {
		s, err := tx.Session(use.ID)
		if err != nil {
			return err
		}
		at := engine.Micros(use.At)
		if s == nil || !at.After(s.UsedAt) {
			continue
		}
		if err := tx.UseSession(s.ID, at, engine.SessionExpiry(s.CreatedAt, at)); err != nil {
			return err
		}
	}
	return nil
}

// EndSession deletes a session.
func EndSession(tx Tx, p engine.EndSessionParams) error {
	u := begin(tx, p.Now)
	s, err := tx.Session(p.ID)
	if err != nil || s == nil {
		return err
	}
	if err := tx.DeleteSession(s.ID); err != nil {
		return err
	}
	tx.Notify(engine.Notification{Kind: engine.NotifyKeys})
	return u.audit(p.By, p.AuditID, "EndSession", onSession(s), "", sessionDetail(s))
}

// onSession is about the session's key, under which people look for what was done with it.
func onSession(s *engine.Session) subject { return subject{"", "key", s.KeyID.String()} }

func sessionDetail(s *engine.Session) string { return "session " + s.ID.String() }
