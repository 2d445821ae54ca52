package work

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// newSession returns a session to make for a key.
func newSession(s *fixture.F, key engine.ID) engine.CreateSessionParams {
	one := engine.Session{ID: s.ID(), KeyID: key}
	one.Hash = sha256.Sum256(one.ID[:])
	return engine.CreateSessionParams{Session: one, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now}
}

// login makes a session of a key.
func login(s *fixture.F, key engine.ID) engine.Session {
	s.Helper()
	made, err := s.Store.CreateSession(s.Ctx, newSession(s, key))
	s.Must(err, "CreateSession")
	return made
}

func noSession(s *fixture.F, what string, id engine.ID) {
	s.Helper()
	_, err := s.Store.GetSession(s.Ctx, id)
	s.Refused(err, engine.ErrNotFound, "GetSession of "+what)
}

func keptSession(s *fixture.F, id engine.ID) string {
	s.Helper()
	one, err := s.Store.GetSession(s.Ctx, id)
	s.Must(err, "GetSession")
	return sessionText(one)
}

func useSession(s *fixture.F, uses ...engine.KeyUse) {
	s.Helper()
	s.Must(s.Store.NoteSessionUse(s.Ctx, uses), "NoteSessionUse")
}

func endSession(s *fixture.F, id engine.ID) {
	s.Helper()
	s.Must(s.Store.EndSession(s.Ctx, engine.EndSessionParams{
		ID: id, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now}), "EndSession")
}

func sessionText(one engine.Session) string {
	return fixture.Lines("id", one.ID, "key", one.KeyID, "hash", fmt.Sprintf("%x", one.Hash),
		"created at", fixture.Clock(one.CreatedAt), "used at", fixture.Clock(one.UsedAt),
		"expires at", fixture.Clock(one.ExpiresAt))
}

// SessionCases are about the sessions of API keys.
var SessionCases = []fixture.Case{
	{Name: "a session is kept as it was made", Run: func(s *fixture.F) {
		root := s.Key("root", engine.RoleAdmin)
		p := newSession(s, root.ID)
		p.Now = s.Now.Add(456 * time.Nanosecond)
		p.Session.CreatedAt, p.Session.ExpiresAt = s.Now.Add(time.Hour), s.Now.Add(time.Hour) // the store ignores these
		made, err := s.Store.CreateSession(s.Ctx, p)
		s.Must(err, "CreateSession")
		want := engine.Session{ID: p.Session.ID, KeyID: root.ID, Hash: p.Session.Hash, CreatedAt: s.Now, UsedAt: s.Now,
			ExpiresAt: s.Now.Add(engine.SessionIdle)}
		s.SameText("answer", sessionText(made), sessionText(want))
		s.SameText("session", keptSession(s, made.ID), sessionText(want))
		noSession(s, "one that was never made", s.ID())
	}},
	{Name: "making a session again returns it, its id is taken", Run: func(s *fixture.F) {
		root := s.Key("root", engine.RoleAdmin)
		p := newSession(s, root.ID)
		first, err := s.Store.CreateSession(s.Ctx, p)
		s.Must(err, "CreateSession")
		s.Pass(time.Minute)
		again := p
		again.Now, again.AuditID = s.Now, s.ID()
		second, err := s.Store.CreateSession(s.Ctx, again)
		s.Must(err, "CreateSession repeated")
		s.SameText("answer", sessionText(second), sessionText(first))
		fixture.Equal(s, "audit events", len(s.KeyAudit()), 2)
		again.Session.Hash[0]++
		_, err = s.Store.CreateSession(s.Ctx, again)
		s.Refused(err, engine.ErrExists, "CreateSession with another hash")
	}},
	{Name: "only a valid key gets a session", Run: func(s *fixture.F) {
		s.Key("root", engine.RoleAdmin)
		gone := s.Key("gone", engine.RoleViewer)
		short := s.Key("short", engine.RoleViewer, expiring(s.Now.Add(time.Minute)))
		held := login(s, gone.ID)
		s.Revoke(gone.ID)
		s.Pass(time.Minute)
		for what, key := range map[string]engine.ID{"an unknown": s.ID(), "a revoked": gone.ID, "an expired": short.ID} {
			_, err := s.Store.CreateSession(s.Ctx, newSession(s, key))
			s.Refused(err, engine.ErrNotFound, "CreateSession of "+what+" key")
		}
		keptSession(s, held.ID) // it is of no use without its key, and is deleted later
	}},
	{Name: "a use moves the end of a session, up to its limit", Run: func(s *fixture.F) {
		root := s.Key("root", engine.RoleAdmin)
		used, other := login(s, root.ID), login(s, root.ID)
		before := keptSession(s, other.ID)
		at := s.Now.Add(time.Hour)
		useSession(s, engine.KeyUse{ID: used.ID, At: at.Add(789 * time.Nanosecond)}, engine.KeyUse{ID: s.ID(), At: at})
		used.UsedAt, used.ExpiresAt = at, at.Add(engine.SessionIdle)
		s.SameText("session", keptSession(s, used.ID), sessionText(used))
		useSession(s, engine.KeyUse{ID: used.ID, At: at.Add(-time.Minute)})
		s.SameText("session after an earlier use", keptSession(s, used.ID), sessionText(used))
		late := s.Now.Add(engine.SessionLife - time.Hour)
		useSession(s, engine.KeyUse{ID: used.ID, At: late})
		used.UsedAt, used.ExpiresAt = late, s.Now.Add(engine.SessionLife)
		s.SameText("session near its limit", keptSession(s, used.ID), sessionText(used))
		s.SameText("the other", keptSession(s, other.ID), before)
		fixture.Equal(s, "audit events", len(s.KeyAudit()), 3)
	}},
	{Name: "a session that was ended is gone", Run: func(s *fixture.F) {
		root := s.Key("root", engine.RoleAdmin)
		one, other := login(s, root.ID), login(s, root.ID)
		e := s.Listen()
		e.Forget()
		endSession(s, one.ID)
		e.Hears("the end", notifyKeys)
		noSession(s, "one that was ended", one.ID)
		keptSession(s, other.ID)
		events := len(s.KeyAudit())
		endSession(s, one.ID)
		useSession(s, engine.KeyUse{ID: one.ID, At: s.Now.Add(time.Hour)})
		noSession(s, "one that was ended twice", one.ID)
		fixture.Equal(s, "further audit events", len(s.KeyAudit())-events, 0)
	}},
	{Name: "sessions are audited at their key", Run: func(s *fixture.F) {
		root := s.Key("root", engine.RoleAdmin)
		p := newSession(s, root.ID)
		_, err := s.Store.CreateSession(s.Ctx, p)
		s.Must(err, "CreateSession")
		s.Pass(time.Second)
		end := engine.EndSessionParams{ID: p.Session.ID, By: engine.Actor{Name: "somebody else", Peer: "somewhere"},
			AuditID: s.ID(), Now: s.Now}
		s.Must(s.Store.EndSession(s.Ctx, end), "EndSession")
		events := s.KeyAudit()
		want := engine.AuditEvent{ID: end.AuditID, At: end.Now, Actor: end.By, Method: "EndSession", Subject: "key",
			SubjectID: root.ID.String(), Outcome: "ok", Detail: "session " + p.Session.ID.String()}
		s.SameText("event of the end", fixture.AuditText(events[0]), fixture.AuditText(want))
		want.ID, want.At, want.Actor, want.Method = p.AuditID, p.Now, p.By, "CreateSession"
		s.SameText("event of the creation", fixture.AuditText(events[1]), fixture.AuditText(want))
	}},
	{Name: "a key keeps its newest sessions", Run: func(s *fixture.F) {
		root, viewer := s.Key("root", engine.RoleAdmin), s.Key("viewer", engine.RoleViewer)
		others := login(s, viewer.ID)
		var made []engine.Session
		for range engine.MaxKeySessions + 2 {
			made = append(made, login(s, root.ID))
		}
		noSession(s, "the oldest", made[0].ID)
		noSession(s, "the second oldest", made[1].ID)
		for _, one := range append(made[2:], others) {
			keptSession(s, one.ID)
		}
	}},
	{Name: "a new session deletes some that have expired", Run: func(s *fixture.F) {
		root, viewer := s.Key("root", engine.RoleAdmin), s.Key("viewer", engine.RoleViewer)
		old, used := login(s, root.ID), login(s, root.ID)
		s.Pass(engine.SessionIdle - time.Microsecond)
		login(s, viewer.ID)
		keptSession(s, old.ID) // not yet
		useSession(s, engine.KeyUse{ID: used.ID, At: s.Now})
		s.Pass(time.Microsecond)
		login(s, viewer.ID)
		noSession(s, "one that has expired", old.ID)
		keptSession(s, used.ID)
	}},
}
