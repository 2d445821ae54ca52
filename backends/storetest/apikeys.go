package storetest

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// newKey is a key to be made, with nothing special: of an admin for all namespaces, of anybody else for the usual one.
func (s *stage) newKey(name string, role engine.KeyRole, changes ...func(*engine.APIKey)) engine.CreateKeyParams {
	k := engine.APIKey{ID: s.id(), Name: name, Role: role}
	k.Hash = sha256.Sum256(k.ID[:])
	if role != engine.RoleAdmin {
		k.Namespaces = []string{space}
	}
	for _, change := range changes {
		change(&k)
	}
	return engine.CreateKeyParams{Key: k, By: somebody, AuditID: s.id(), Now: s.now}
}

// key makes a key.
func (s *stage) key(name string, role engine.KeyRole, changes ...func(*engine.APIKey)) engine.APIKey {
	s.Helper()
	k, err := s.store.CreateKey(s.ctx, s.newKey(name, role, changes...))
	s.must(err, "CreateKey "+name)
	return k
}

func (s *stage) noKey(target error, p engine.CreateKeyParams) {
	s.Helper()
	_, err := s.store.CreateKey(s.ctx, p)
	s.refused(err, target, "CreateKey "+p.Key.Name)
}

func (s *stage) tryRevoke(id engine.ID) (engine.APIKey, error) {
	return s.store.RevokeKey(s.ctx, engine.RevokeKeyParams{ID: id, By: somebody, AuditID: s.id(), Now: s.now})
}

func (s *stage) revoke(id engine.ID) engine.APIKey {
	s.Helper()
	k, err := s.tryRevoke(id)
	s.must(err, "RevokeKey")
	return k
}

func (s *stage) keyring() []engine.APIKey {
	s.Helper()
	keys, err := s.store.Keyring(s.ctx)
	s.must(err, "Keyring")
	return keys
}

func (s *stage) keyPage(p engine.Page) ([]engine.APIKey, engine.PageInfo) {
	s.Helper()
	keys, info, err := s.store.ListKeys(s.ctx, p)
	s.must(err, "ListKeys")
	return keys, info
}

// kept is a key as the list of all shows it.
func (s *stage) kept(id engine.ID) engine.APIKey {
	s.Helper()
	keys, _ := s.keyPage(engine.Page{Limit: engine.MaxPage})
	for _, k := range keys {
		if k.ID == id {
			return k
		}
	}
	s.Fatalf("key %s is not in the list", id)
	return engine.APIKey{}
}

func (s *stage) keyAudit() []engine.AuditEvent {
	s.Helper()
	events, _, err := s.store.ListAuditEvents(s.ctx, engine.AuditFilter{}, engine.Page{Limit: engine.MaxPage})
	s.must(err, "ListAuditEvents")
	return events
}

// expiring gives a key an end.
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

func keyText(k engine.APIKey) string {
	return lines(
		"id", k.ID, "name", k.Name, "role", k.Role, "namespaces", k.Namespaces, "queues", k.Queues, "types", k.Types, "hash", fmt.Sprintf("%x", k.Hash),
		"created at", clock(k.CreatedAt), "expires at", clock(k.ExpiresAt), "last used at", clock(k.LastUsedAt), "revoked at", clock(k.RevokedAt),
	)
}

func auditText(e engine.AuditEvent) string {
	return lines("id", e.ID, "at", clock(e.At), "actor", e.Actor.Name+" from "+e.Actor.Peer, "method", e.Method, "namespace", e.Namespace,
		"subject", e.Subject+" "+e.SubjectID, "outcome", e.Outcome, "reason", e.Reason, "detail", e.Detail)
}

var ringKeys = engine.Notification{Kind: engine.NotifyKeys}

var apiKeyCases = []testCase{
	{"a fresh store has no keys", func(s *stage) {
		equal(s, "keys in the ring", len(s.keyring()), 0)
		keys, info := s.keyPage(engine.Page{Limit: 10, Count: true})
		equal(s, "keys", len(keys), 0)
		equal(s, "page info", info, engine.PageInfo{})
		s.must(s.store.NoteKeyUse(s.ctx, nil), "NoteKeyUse of nothing")
	}},
	{"a key is kept as it was made", func(s *stage) {
		s.key("root", engine.RoleAdmin)
		p := s.newKey("press-7", engine.RoleWorker, expiring(s.now.Add(time.Hour+789*time.Nanosecond)), func(k *engine.APIKey) {
			k.Namespaces, k.Queues, k.Types = []string{"a", "b"}, []string{"orders", "press-*"}, []string{"*"}
			k.CreatedAt, k.LastUsedAt, k.RevokedAt = s.now.Add(-time.Hour), s.now, s.now // of no concern
		})
		p.Now = s.now.Add(456 * time.Nanosecond)
		made, err := s.store.CreateKey(s.ctx, p)
		s.must(err, "CreateKey")
		want := p.Key
		want.CreatedAt, want.ExpiresAt = s.now, s.now.Add(time.Hour)
		want.LastUsedAt, want.RevokedAt = time.Time{}, time.Time{}
		s.sameText("answer", keyText(made), keyText(want))
		s.sameText("key in the list", keyText(s.kept(made.ID)), keyText(want))
		ring := s.keyring()
		equal(s, "keys in the ring", len(ring), 2)
		s.sameText("key in the ring", keyText(ring[1]), keyText(want))
		equal(s, "queues of an admin", ring[0].Queues == nil && ring[0].Types == nil && ring[0].Namespaces == nil, true)
	}},
	{"the first key is an admin's for all namespaces, also after all were revoked", func(s *stage) {
		for range 2 {
			for _, role := range []engine.KeyRole{engine.RoleOperator, engine.RoleClient, engine.RoleWorker, engine.RoleViewer} {
				s.noKey(engine.ErrPrecondition, s.newKey("first", role))
			}
			s.noKey(engine.ErrPrecondition, s.newKey("first", engine.RoleAdmin, func(k *engine.APIKey) { k.Namespaces = []string{space} }))
			equal(s, "keys in the ring", len(s.keyring()), 0)
			root := s.key("first", engine.RoleAdmin)
			viewer := s.key("second", engine.RoleViewer)
			s.revoke(viewer.ID)
			s.revoke(root.ID)
		}
	}},
	{"the first key may expire, and counts when it has", func(s *stage) {
		s.key("root", engine.RoleAdmin, expiring(s.now.Add(time.Second)))
		s.pass(time.Hour)
		s.key("viewer", engine.RoleViewer)
		equal(s, "ring", keyNames(s.keyring()), "[root viewer]")
	}},
	{"a name is one key's until that is revoked", func(s *stage) {
		s.key("root", engine.RoleAdmin)
		first := s.key("ci", engine.RoleClient, expiring(s.now.Add(time.Second)))
		s.pass(time.Minute) // it has expired, which does not free its name
		s.noKey(engine.ErrExists, s.newKey("ci", engine.RoleViewer))
		s.key("CI", engine.RoleClient)
		s.revoke(first.ID)
		second := s.key("ci", engine.RoleViewer)
		s.noKey(engine.ErrExists, s.newKey("ci", engine.RoleClient))
		s.revoke(second.ID)
		s.key("ci", engine.RoleOperator)
		keys, _ := s.keyPage(engine.Page{Limit: 10})
		equal(s, "all keys", keyNames(keys), "[ci ci CI ci root]")
	}},
	{"a key that was made is made again with the same answer, and an id is one key's", func(s *stage) {
		p := s.newKey("root", engine.RoleAdmin)
		first, err := s.store.CreateKey(s.ctx, p)
		s.must(err, "CreateKey")
		s.pass(time.Minute)
		p.Now, p.AuditID = s.now, s.id()
		again, err := s.store.CreateKey(s.ctx, p)
		s.must(err, "CreateKey repeated")
		s.sameText("answer", keyText(again), keyText(first))
		equal(s, "audit events", len(s.keyAudit()), 1)
		for _, change := range []func(*engine.APIKey){
			func(k *engine.APIKey) { k.Name = "other" },
			func(k *engine.APIKey) { k.Hash[0]++ },
		} {
			other := p
			change(&other.Key)
			s.noKey(engine.ErrExists, other)
		}
	}},
	{"a revoked key is out of the ring for good and stays in the list", func(s *stage) {
		root, ci := s.key("root", engine.RoleAdmin), s.key("ci", engine.RoleClient)
		s.pass(time.Minute)
		gone := s.revoke(ci.ID)
		ci.RevokedAt = s.now
		s.sameText("answer", keyText(gone), keyText(ci))
		equal(s, "ring", keyNames(s.keyring()), "[root]")
		s.sameText("key in the list", keyText(s.kept(ci.ID)), keyText(ci))
		s.pass(time.Minute)
		s.sameText("answer to a second revocation", keyText(s.revoke(ci.ID)), keyText(ci))
		equal(s, "audit events", len(s.keyAudit()), 3)
		s.revoke(root.ID)
		equal(s, "ring", keyNames(s.keyring()), "[]")
		_, err := s.tryRevoke(s.id())
		s.refused(err, engine.ErrNotFound, "RevokeKey of one that was never made")
	}},
	{"the last admin's key that opens all and never expires goes last", func(s *stage) {
		root := s.key("root", engine.RoleAdmin)
		s.key("short", engine.RoleAdmin, expiring(s.now.Add(time.Hour)))
		local := s.key("local", engine.RoleAdmin, func(k *engine.APIKey) { k.Namespaces = []string{space} })
		_, err := s.tryRevoke(root.ID)
		s.refused(err, engine.ErrPrecondition, "RevokeKey of the last")
		equal(s, "ring", keyNames(s.keyring()), "[root short local]")
		heir := s.key("heir", engine.RoleAdmin)
		s.revoke(root.ID)
		_, err = s.tryRevoke(heir.ID)
		s.refused(err, engine.ErrPrecondition, "RevokeKey of the heir")
		s.revoke(local.ID)
		_, err = s.tryRevoke(heir.ID)
		s.refused(err, engine.ErrPrecondition, "RevokeKey of the heir beside one that expires")
		s.revoke(s.keyring()[0].ID)
		s.revoke(heir.ID)
		equal(s, "ring", keyNames(s.keyring()), "[]")
	}},
	{"keys are listed newest first, by page in both directions", func(s *stage) {
		var made []engine.APIKey
		for i := range 5 {
			made = append(made, s.key(fmt.Sprint("k", i), engine.RoleAdmin))
			s.pass(time.Second)
		}
		s.revoke(made[2].ID)
		equal(s, "ring", keyNames(s.keyring()), "[k0 k1 k3 k4]")
		first, info := s.keyPage(engine.Page{Limit: 2, Count: true})
		equal(s, "first page", keyNames(first), "[k4 k3]")
		equal(s, "page info", info, engine.PageInfo{HasNext: true, Total: 5})
		rest, info := s.keyPage(engine.Page{Limit: 3, After: &engine.Cursor{ID: first[1].ID}})
		equal(s, "the rest", keyNames(rest), "[k2 k1 k0]")
		equal(s, "page info", info, engine.PageInfo{HasPrev: true})
		back, info := s.keyPage(engine.Page{Limit: 2, Before: &engine.Cursor{ID: made[0].ID}})
		equal(s, "back", keyNames(back), "[k2 k1]")
		equal(s, "page info", info, engine.PageInfo{HasNext: true, HasPrev: true})
	}},
	{"use moves forward, never back, for many keys in one call", func(s *stage) {
		root, ci, gone := s.key("root", engine.RoleAdmin), s.key("ci", engine.RoleClient), s.key("gone", engine.RoleClient)
		s.revoke(gone.ID)
		expect := func(what string, want time.Time, of ...engine.ID) {
			s.Helper()
			for _, id := range of {
				s.sameTime("last use "+what, s.kept(id).LastUsedAt, want)
			}
		}
		note := func(uses ...engine.KeyUse) {
			s.Helper()
			s.must(s.store.NoteKeyUse(s.ctx, uses), "NoteKeyUse")
		}
		expect("before any", time.Time{}, root.ID, ci.ID, gone.ID)
		at, later := s.now, s.now.Add(time.Microsecond)
		note(engine.KeyUse{ID: root.ID, At: at}, engine.KeyUse{ID: s.id(), At: at}, engine.KeyUse{ID: gone.ID, At: at})
		expect("of the one that was used", at, root.ID, gone.ID)
		expect("of the other", time.Time{}, ci.ID)
		note(engine.KeyUse{ID: ci.ID, At: at}, engine.KeyUse{ID: root.ID, At: later}, engine.KeyUse{ID: ci.ID, At: later}, engine.KeyUse{ID: ci.ID, At: at})
		expect("of several", later, root.ID, ci.ID)
		note(engine.KeyUse{ID: root.ID, At: at}, engine.KeyUse{ID: ci.ID, At: later.Add(789 * time.Nanosecond)})
		expect("after an older one", later, root.ID, ci.ID)
		equal(s, "audit events", len(s.keyAudit()), 4)
	}},
	{"changes of keys are audited, in no namespace", func(s *stage) {
		p := s.newKey("root", engine.RoleAdmin)
		root, err := s.store.CreateKey(s.ctx, p)
		s.must(err, "CreateKey")
		s.noKey(engine.ErrExists, s.newKey("root", engine.RoleAdmin))
		s.pass(time.Second)
		s.start()
		gone := engine.RevokeKeyParams{ID: root.ID, By: engine.Actor{Name: "somebody else", Peer: "somewhere"}, AuditID: s.id(), Now: s.now}
		_, err = s.store.RevokeKey(s.ctx, gone)
		s.must(err, "RevokeKey")
		events := s.keyAudit()
		equal(s, "audit events", len(events), 2)
		want := engine.AuditEvent{ID: gone.AuditID, At: gone.Now, Actor: gone.By, Method: "RevokeKey", Subject: "key", SubjectID: root.ID.String(),
			Outcome: "ok", Detail: "admin root"}
		s.sameText("event of the revocation", auditText(events[0]), auditText(want))
		want.ID, want.At, want.Actor, want.Method = p.AuditID, p.Now, p.By, "CreateKey"
		s.sameText("event of the creation", auditText(events[1]), auditText(want))
		equal(s, "events of the usual namespace", len(s.audit("")), 0)
		of, _, err := s.store.ListAuditEvents(s.ctx, engine.AuditFilter{SubjectID: root.ID.String()}, engine.Page{Limit: 10, Count: true})
		s.must(err, "ListAuditEvents")
		equal(s, "events of the key", len(of), 2)
	}},
	{"a refusal is noted once", func(s *stage) {
		e := engine.AuditEvent{ID: s.id(), At: s.now, Actor: engine.Actor{Name: "ci", Peer: "10.0.0.7"}, Method: "CancelWorkflow", Namespace: space,
			Subject: "run", SubjectID: s.id().String(), Outcome: "PERMISSION_DENIED", Reason: "a reason", Detail: "a detail"}
		s.must(s.store.NoteRefusal(s.ctx, e), "NoteRefusal")
		second := e
		second.Reason = "another"
		s.must(s.store.NoteRefusal(s.ctx, second), "NoteRefusal repeated")
		events := s.audit(e.SubjectID)
		equal(s, "audit events", len(events), 1)
		s.sameText("event", auditText(events[0]), auditText(e))
		second.ID, second.Namespace, second.Subject, second.At = s.id(), "", "key", s.now.Add(456*time.Nanosecond)
		s.must(s.store.NoteRefusal(s.ctx, second), "NoteRefusal in no namespace")
		second.At = s.now
		equal(s, "events in no namespace", len(s.keyAudit()), 1)
		s.sameText("event", auditText(s.keyAudit()[0]), auditText(second))
	}},
	{"what changes a key rings, and nothing else", func(s *stage) {
		e := s.listen()
		p := s.newKey("root", engine.RoleAdmin)
		var root engine.APIKey
		for _, c := range []change{
			{"creation", func() {
				var err error
				root, err = s.store.CreateKey(s.ctx, p)
				s.must(err, "CreateKey")
			}},
			{"revocation", func() { s.revoke(root.ID) }},
		} {
			e.forget()
			c.do()
			e.hears(c.what, ringKeys)
		}
		e.forget()
		_, err := s.store.CreateKey(s.ctx, p)
		s.must(err, "CreateKey repeated")
		s.revoke(root.ID)
		s.noKey(engine.ErrPrecondition, s.newKey("viewer", engine.RoleViewer))
		s.must(s.store.NoteKeyUse(s.ctx, []engine.KeyUse{{ID: root.ID, At: s.now}}), "NoteKeyUse")
		s.must(s.store.NoteRefusal(s.ctx, engine.AuditEvent{ID: s.id(), At: s.now, Outcome: "PERMISSION_DENIED"}), "NoteRefusal")
		s.start()
		over, enough := soon()
		defer enough()
		for { // rings come in the order of the commits
			select {
			case r := <-e.rings:
				switch r.Notification {
				case ringKeys:
					s.Fatalf("the keys were rung, though nothing has changed them")
				case ringQueue(queue):
					return
				}
			case <-over:
				s.Fatalf("no ring of the start within %s", patience)
			}
		}
	}},
}
