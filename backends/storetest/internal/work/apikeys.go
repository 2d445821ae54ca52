package work

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// expiring sets when a key expires.
func expiring(at time.Time) func(*engine.APIKey) {
	return func(k *engine.APIKey) { k.ExpiresAt = at }
}

func keyNames(keys []engine.APIKey) string {
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return fmt.Sprint(names)
}

var notifyKeys = engine.Notification{Kind: engine.NotifyKeys}

var APIKeyCases = []fixture.Case{
	{Name: "a new store has no keys", Run: func(s *fixture.F) {
		fixture.Equal(s, "keys in the keyring", len(s.Keyring()), 0)
		keys, info := s.KeyPage(engine.Page{Limit: 10, Count: true})
		fixture.Equal(s, "keys", len(keys), 0)
		fixture.Equal(s, "page info", info, engine.PageInfo{})
		s.Must(s.Store.NoteKeyUse(s.Ctx, nil), "NoteKeyUse of nothing")
	}},
	{Name: "a key is kept as it was made", Run: func(s *fixture.F) {
		s.Key("root", engine.RoleAdmin)
		p := s.NewKey("press-7", engine.RoleWorker, expiring(s.Now.Add(time.Hour+789*time.Nanosecond)),
			func(k *engine.APIKey) {
				k.Namespaces, k.Queues, k.Types = []string{"a", "b"}, []string{"orders", "press-*"}, []string{"*"}
				k.WorkerIDs = []string{"press-7", "spare-*"}
				k.CreatedAt, k.LastUsedAt, k.RevokedAt = s.Now.Add(-time.Hour), s.Now, s.Now // the store ignores these
			})
		p.Now = s.Now.Add(456 * time.Nanosecond)
		made, err := s.Store.CreateKey(s.Ctx, p)
		s.Must(err, "CreateKey")
		want := p.Key
		want.CreatedAt, want.ExpiresAt = s.Now, s.Now.Add(time.Hour)
		want.LastUsedAt, want.RevokedAt = time.Time{}, time.Time{}
		s.SameText("answer", fixture.KeyText(made), fixture.KeyText(want))
		s.SameText("key in the list", fixture.KeyText(s.Kept(made.ID)), fixture.KeyText(want))
		ring := s.Keyring()
		fixture.Equal(s, "keys in the keyring", len(ring), 2)
		s.SameText("key in the keyring", fixture.KeyText(ring[1]), fixture.KeyText(want))
		fixture.Equal(s, "queues of an admin", ring[0].Queues == nil && ring[0].Types == nil &&
			ring[0].Namespaces == nil && ring[0].WorkerIDs == nil, true)
	}},
	{Name: "the first key must be an admin key, also after revoking all", Run: func(s *fixture.F) {
		for range 2 {
			for _, role := range []engine.KeyRole{
				engine.RoleOperator, engine.RoleClient, engine.RoleWorker, engine.RoleViewer} {
				s.NoKey(engine.ErrPrecondition, s.NewKey("first", role))
			}
			s.NoKey(engine.ErrPrecondition, s.NewKey("first", engine.RoleAdmin, func(k *engine.APIKey) {
				k.Namespaces = []string{fixture.Space}
			}))
			fixture.Equal(s, "keys in the keyring", len(s.Keyring()), 0)
			root := s.Key("first", engine.RoleAdmin)
			viewer := s.Key("second", engine.RoleViewer)
			s.Revoke(viewer.ID)
			s.Revoke(root.ID)
		}
	}},
	{Name: "the first key may expire, and counts afterwards", Run: func(s *fixture.F) {
		s.Key("root", engine.RoleAdmin, expiring(s.Now.Add(time.Second)))
		s.Pass(time.Hour)
		s.Key("viewer", engine.RoleViewer)
		fixture.Equal(s, "keyring", keyNames(s.Keyring()), "[root viewer]")
	}},
	{Name: "a name is in use until its key is revoked", Run: func(s *fixture.F) {
		s.Key("root", engine.RoleAdmin)
		first := s.Key("ci", engine.RoleClient, expiring(s.Now.Add(time.Second)))
		s.Pass(time.Minute) // it has expired, but still holds its name
		s.NoKey(engine.ErrExists, s.NewKey("ci", engine.RoleViewer))
		s.Key("CI", engine.RoleClient)
		s.Revoke(first.ID)
		second := s.Key("ci", engine.RoleViewer)
		s.NoKey(engine.ErrExists, s.NewKey("ci", engine.RoleClient))
		s.Revoke(second.ID)
		s.Key("ci", engine.RoleOperator)
		keys, _ := s.KeyPage(engine.Page{Limit: 10})
		fixture.Equal(s, "all keys", keyNames(keys), "[ci ci CI ci root]")
	}},
	{Name: "making a key again returns it, its id is taken for others", Run: func(s *fixture.F) {
		p := s.NewKey("root", engine.RoleAdmin)
		first, err := s.Store.CreateKey(s.Ctx, p)
		s.Must(err, "CreateKey")
		s.Pass(time.Minute)
		p.Now, p.AuditID = s.Now, s.ID()
		again, err := s.Store.CreateKey(s.Ctx, p)
		s.Must(err, "CreateKey repeated")
		s.SameText("answer", fixture.KeyText(again), fixture.KeyText(first))
		fixture.Equal(s, "audit events", len(s.KeyAudit()), 1)
		for _, change := range []func(*engine.APIKey){
			func(k *engine.APIKey) { k.Name = "other" },
			func(k *engine.APIKey) { k.Hash[0]++ },
			func(k *engine.APIKey) { k.WorkerIDs = []string{"press-7"} },
		} {
			other := p
			change(&other.Key)
			s.NoKey(engine.ErrExists, other)
		}
	}},
	{Name: "a revoked key leaves the keyring and stays in the list", Run: func(s *fixture.F) {
		root, ci := s.Key("root", engine.RoleAdmin), s.Key("ci", engine.RoleClient)
		s.Pass(time.Minute)
		gone := s.Revoke(ci.ID)
		ci.RevokedAt = s.Now
		s.SameText("answer", fixture.KeyText(gone), fixture.KeyText(ci))
		fixture.Equal(s, "keyring", keyNames(s.Keyring()), "[root]")
		s.SameText("key in the list", fixture.KeyText(s.Kept(ci.ID)), fixture.KeyText(ci))
		s.Pass(time.Minute)
		s.SameText("answer to a second revocation", fixture.KeyText(s.Revoke(ci.ID)), fixture.KeyText(ci))
		fixture.Equal(s, "audit events", len(s.KeyAudit()), 3)
		s.Revoke(root.ID)
		fixture.Equal(s, "keyring", keyNames(s.Keyring()), "[]")
		_, err := s.TryRevoke(s.ID())
		s.Refused(err, engine.ErrNotFound, "RevokeKey of one that was never made")
	}},
	{Name: "the last lasting admin key must be revoked last", Run: func(s *fixture.F) {
		root := s.Key("root", engine.RoleAdmin)
		s.Key("short", engine.RoleAdmin, expiring(s.Now.Add(time.Hour)))
		local := s.Key("local", engine.RoleAdmin, func(k *engine.APIKey) { k.Namespaces = []string{fixture.Space} })
		_, err := s.TryRevoke(root.ID)
		s.Refused(err, engine.ErrPrecondition, "RevokeKey of the last")
		fixture.Equal(s, "keyring", keyNames(s.Keyring()), "[root short local]")
		successor := s.Key("successor", engine.RoleAdmin)
		s.Revoke(root.ID)
		_, err = s.TryRevoke(successor.ID)
		s.Refused(err, engine.ErrPrecondition, "RevokeKey of the successor")
		s.Revoke(local.ID)
		_, err = s.TryRevoke(successor.ID)
		s.Refused(err, engine.ErrPrecondition, "RevokeKey of the successor beside one that expires")
		s.Revoke(s.Keyring()[0].ID)
		s.Revoke(successor.ID)
		fixture.Equal(s, "keyring", keyNames(s.Keyring()), "[]")
	}},
	{Name: "keys are listed newest first, by page in both directions", Run: func(s *fixture.F) {
		var made []engine.APIKey
		for i := range 5 {
			made = append(made, s.Key(fmt.Sprint("k", i), engine.RoleAdmin))
			s.Pass(time.Second)
		}
		s.Revoke(made[2].ID)
		fixture.Equal(s, "keyring", keyNames(s.Keyring()), "[k0 k1 k3 k4]")
		first, info := s.KeyPage(engine.Page{Limit: 2, Count: true})
		fixture.Equal(s, "first page", keyNames(first), "[k4 k3]")
		fixture.Equal(s, "page info", info, engine.PageInfo{HasNext: true, Total: 5})
		rest, info := s.KeyPage(engine.Page{Limit: 3, After: &engine.Cursor{ID: first[1].ID}})
		fixture.Equal(s, "the rest", keyNames(rest), "[k2 k1 k0]")
		fixture.Equal(s, "page info", info, engine.PageInfo{HasPrev: true})
		back, info := s.KeyPage(engine.Page{Limit: 2, Before: &engine.Cursor{ID: made[0].ID}})
		fixture.Equal(s, "back", keyNames(back), "[k2 k1]")
		fixture.Equal(s, "page info", info, engine.PageInfo{HasNext: true, HasPrev: true})
	}},
	{Name: "LastUsedAt only moves forward", Run: func(s *fixture.F) {
		root, ci, gone := s.Key("root", engine.RoleAdmin), s.Key("ci", engine.RoleClient),
			s.Key("gone", engine.RoleClient)
		s.Revoke(gone.ID)
		expect := func(what string, want time.Time, of ...engine.ID) {
			s.Helper()
			for _, id := range of {
				s.SameTime("last use "+what, s.Kept(id).LastUsedAt, want)
			}
		}
		note := func(uses ...engine.KeyUse) {
			s.Helper()
			s.Must(s.Store.NoteKeyUse(s.Ctx, uses), "NoteKeyUse")
		}
		expect("before any", time.Time{}, root.ID, ci.ID, gone.ID)
		at, later := s.Now, s.Now.Add(time.Microsecond)
		note(engine.KeyUse{ID: root.ID, At: at}, engine.KeyUse{ID: s.ID(), At: at}, engine.KeyUse{ID: gone.ID, At: at})
		expect("of the one that was used", at, root.ID, gone.ID)
		expect("of the other", time.Time{}, ci.ID)
		note(engine.KeyUse{ID: ci.ID, At: at}, engine.KeyUse{ID: root.ID, At: later},
			engine.KeyUse{ID: ci.ID, At: later}, engine.KeyUse{ID: ci.ID, At: at})
		expect("of several", later, root.ID, ci.ID)
		note(engine.KeyUse{ID: root.ID, At: at}, engine.KeyUse{ID: ci.ID, At: later.Add(789 * time.Nanosecond)})
		expect("after an older one", later, root.ID, ci.ID)
		fixture.Equal(s, "audit events", len(s.KeyAudit()), 4)
	}},
	{Name: "changes of keys are audited without a namespace", Run: func(s *fixture.F) {
		p := s.NewKey("root", engine.RoleAdmin)
		root, err := s.Store.CreateKey(s.Ctx, p)
		s.Must(err, "CreateKey")
		s.NoKey(engine.ErrExists, s.NewKey("root", engine.RoleAdmin))
		s.Pass(time.Second)
		s.Start()
		gone := engine.RevokeKeyParams{ID: root.ID, By: engine.Actor{Name: "somebody else", Peer: "somewhere"},
			AuditID: s.ID(), Now: s.Now}
		_, err = s.Store.RevokeKey(s.Ctx, gone)
		s.Must(err, "RevokeKey")
		events := s.KeyAudit()
		fixture.Equal(s, "audit events", len(events), 2)
		want := engine.AuditEvent{ID: gone.AuditID, At: gone.Now, Actor: gone.By, Method: "RevokeKey", Subject: "key",
			SubjectID: root.ID.String(),
			Outcome:   "ok", Detail: "admin root"}
		s.SameText("event of the revocation", fixture.AuditText(events[0]), fixture.AuditText(want))
		want.ID, want.At, want.Actor, want.Method = p.AuditID, p.Now, p.By, "CreateKey"
		s.SameText("event of the creation", fixture.AuditText(events[1]), fixture.AuditText(want))
		fixture.Equal(s, "events of the usual namespace", len(s.Audit("")), 0)
		of, _, err := s.Store.ListAuditEvents(s.Ctx, engine.AuditFilter{SubjectID: root.ID.String()},
			engine.Page{Limit: 10, Count: true})
		s.Must(err, "ListAuditEvents")
		fixture.Equal(s, "events of the key", len(of), 2)
	}},
	{Name: "a refusal is recorded once", Run: func(s *fixture.F) {
		e := engine.AuditEvent{ID: s.ID(), At: s.Now, Actor: engine.Actor{Name: "ci", Peer: "10.0.0.7"},
			Method: "CancelWorkflow", Namespace: fixture.Space,
			Subject: "run", SubjectID: s.ID().String(), Outcome: "PERMISSION_DENIED", Reason: "a reason",
			Detail: "a detail"}
		s.Must(s.Store.NoteRefusal(s.Ctx, e), "NoteRefusal")
		second := e
		second.Reason = "another"
		s.Must(s.Store.NoteRefusal(s.Ctx, second), "NoteRefusal repeated")
		events := s.Audit(e.SubjectID)
		fixture.Equal(s, "audit events", len(events), 1)
		s.SameText("event", fixture.AuditText(events[0]), fixture.AuditText(e))
		second.ID, second.Namespace, second.Subject, second.At = s.ID(), "", "key", s.Now.Add(456*time.Nanosecond)
		s.Must(s.Store.NoteRefusal(s.Ctx, second), "NoteRefusal in no namespace")
		second.At = s.Now
		fixture.Equal(s, "events in no namespace", len(s.KeyAudit()), 1)
		s.SameText("event", fixture.AuditText(s.KeyAudit()[0]), fixture.AuditText(second))
	}},
	{Name: "only changes of keys send NotifyKeys", Run: func(s *fixture.F) {
		e := s.Listen()
		p := s.NewKey("root", engine.RoleAdmin)
		var root engine.APIKey
		for _, c := range []change{
			{"creation", func() {
				var err error
				root, err = s.Store.CreateKey(s.Ctx, p)
				s.Must(err, "CreateKey")
			}},
			{"revocation", func() { s.Revoke(root.ID) }},
		} {
			e.Forget()
			c.do()
			e.Hears(c.what, notifyKeys)
		}
		e.Forget()
		_, err := s.Store.CreateKey(s.Ctx, p)
		s.Must(err, "CreateKey repeated")
		s.Revoke(root.ID)
		s.NoKey(engine.ErrPrecondition, s.NewKey("viewer", engine.RoleViewer))
		s.Must(s.Store.NoteKeyUse(s.Ctx, []engine.KeyUse{{ID: root.ID, At: s.Now}}), "NoteKeyUse")
		s.Must(s.Store.NoteRefusal(s.Ctx, engine.AuditEvent{ID: s.ID(), At: s.Now, Outcome: "PERMISSION_DENIED"}),
			"NoteRefusal")
		s.Start()
		over, enough := fixture.Soon()
		defer enough()
		for { // notifications come in the order of the commits
			select {
			case r := <-e.Events:
				switch r.Notification {
				case notifyKeys:
					s.Fatalf("NotifyKeys was sent although no key changed")
				case notifyQueue(fixture.Queue):
					return
				}
			case <-over:
				s.Fatalf("no notification of the start within %s", fixture.Patience)
			}
		}
	}},
}
