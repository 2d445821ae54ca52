package storelogic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// aKey returns an admin key for all namespaces, made before noon.
func aKey(n byte, changes ...func(*engine.APIKey)) engine.APIKey {
	k := engine.APIKey{ID: id(n), Name: fmt.Sprint("key-", n), Role: engine.RoleAdmin, Hash: [32]byte{n},
		CreatedAt: noon.Add(-time.Hour)}
	for _, change := range changes {
		change(&k)
	}
	return k
}

func viewing(k *engine.APIKey)    { k.Role, k.Namespaces = engine.RoleViewer, []string{"default"} }
func inOneSpace(k *engine.APIKey) { k.Namespaces = []string{"default"} }
func expired(k *engine.APIKey)    { k.ExpiresAt = noon.Add(-time.Minute) }
func revoked(k *engine.APIKey)    { k.RevokedAt = noon.Add(-time.Minute) }

func named(name string) func(*engine.APIKey) { return func(k *engine.APIKey) { k.Name = name } }

func TestAKeyIsMadeOrRefusedAsThoseThatAreThereSay(t *testing.T) {
	full := []engine.APIKey{aKey(1)}
	for len(full) < engine.MaxKeys {
		full = append(full, engine.APIKey{Name: fmt.Sprint("full-", len(full))})
	}
	freed := slices.Clone(full)
	freed[7].RevokedAt = noon
	for _, c := range []struct {
		what  string
		there []engine.APIKey
		key   engine.APIKey
		want  error // nil: it is made
	}{
		{"an admin's as the first", nil, aKey(9), nil},
		{"an admin's that expires as the first", nil, aKey(9, expired), nil},
		{"a viewer's as the first", nil, aKey(9, viewing), engine.ErrPrecondition},
		{"an admin's for one namespace as the first", nil, aKey(9, inOneSpace), engine.ErrPrecondition},
		{"a viewer's when all were revoked", []engine.APIKey{aKey(1, revoked)}, aKey(9, viewing),
			engine.ErrPrecondition},
		{"a viewer's beside an admin's", []engine.APIKey{aKey(1)}, aKey(9, viewing), nil},
		{"a viewer's beside an admin's that has expired", []engine.APIKey{aKey(1, expired)}, aKey(9, viewing), nil},
		{"a name that is taken", []engine.APIKey{aKey(1)}, aKey(9, named("key-1")), engine.ErrExists},
		{"a name that an expired key has", []engine.APIKey{aKey(1, expired)}, aKey(9, named("key-1")),
			engine.ErrExists},
		{"a name that a revoked key had", []engine.APIKey{aKey(1, revoked), aKey(2)}, aKey(9, named("key-1")), nil},
		{"one key too many", full, aKey(9, viewing), engine.ErrPrecondition},
		{"one in the place of a revoked one", freed, aKey(9, viewing), nil},
	} {
		m := newMemory(t)
		m.keys = slices.Clone(c.there)
		p := engine.CreateKeyParams{Key: c.key, By: engine.Actor{Name: "local"}, AuditID: id(99),
			Now: noon.Add(789 * time.Nanosecond)}
		made, err := CreateKey(m, p)
		if c.want != nil {
			if !errors.Is(err, c.want) || len(m.log)+len(m.notifications) > 0 {
				t.Errorf("%s: %v, and did %v, want a refusal of kind %d and nothing done", c.what, err, m.log,
					engine.KindOf(c.want))
			}
			continue
		}
		if err != nil || !slices.Equal(m.log, []string{"key " + c.key.Name, "audit"}) ||
			!slices.Equal(m.notifications, []engine.Notification{{Kind: engine.NotifyKeys}}) {
			t.Errorf("%s: %v, did %v and notified %v, want it made, audited and notified", c.what, err, m.log,
				m.notifications)
			continue
		}
		if made.ID != c.key.ID || !made.CreatedAt.Equal(noon) {
			t.Errorf("%s: made key %s at %s, want %s at %s", c.what, made.ID, made.CreatedAt, c.key.ID, noon)
		}
		want := engine.AuditEvent{ID: id(99), At: noon, Actor: p.By, Method: "CreateKey", Subject: "key",
			SubjectID: c.key.ID.String(), Outcome: "ok",
			Detail: c.key.Role.String() + " " + c.key.Name}
		if m.audit[0] != want {
			t.Errorf("%s: audit = %+v, want %+v", c.what, m.audit[0], want)
		}
	}
}

func TestAKeyThatIsMadeAgainIsAnsweredAsItStands(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*engine.APIKey)
		want   error
	}{
		{"the same", func(*engine.APIKey) {}, nil},
		{"another name", named("other"), engine.ErrExists},
		{"another role", func(k *engine.APIKey) { k.Role = engine.RoleViewer }, engine.ErrExists},
		{"other namespaces", inOneSpace, engine.ErrExists},
		{"other queues", func(k *engine.APIKey) { k.Queues = []string{"q"} }, engine.ErrExists},
		{"other types", func(k *engine.APIKey) { k.Types = []string{"t"} }, engine.ErrExists},
		{"another end", expired, engine.ErrExists},
		{"another secret", func(k *engine.APIKey) { k.Hash[0]++ }, engine.ErrExists},
	} {
		m := newMemory(t)
		m.keys = []engine.APIKey{aKey(1, revoked)}
		k := aKey(1)
		c.change(&k)
		made, err := CreateKey(m, engine.CreateKeyParams{Key: k, AuditID: id(99), Now: noon})
		if !errors.Is(err, c.want) || len(m.log)+len(m.notifications) > 0 {
			t.Errorf("%s: %v, and did %v, want %v and nothing done", c.what, err, m.log, c.want)
		}
		if c.want == nil && made.RevokedAt.IsZero() {
			t.Errorf("%s: the answer is not revoked, want it as it stands", c.what)
		}
	}
}

func TestAKeyIsRevokedUnlessNobodyCouldMakeAnother(t *testing.T) {
	for _, c := range []struct {
		what    string
		others  []engine.APIKey
		key     engine.APIKey
		refused bool
	}{
		{"the only key", nil, aKey(9), false},
		{"the last that is not revoked", []engine.APIKey{aKey(1, revoked), aKey(2, revoked, viewing)}, aKey(9), false},
		{"the last admin's beside a viewer's", []engine.APIKey{aKey(1, viewing)}, aKey(9), true},
		{"the last admin's beside a revoked one's", []engine.APIKey{aKey(1, revoked), aKey(2, viewing)}, aKey(9), true},
		{"the last admin's beside one that expires", []engine.APIKey{aKey(1, expired)}, aKey(9), true},
		{"the last admin's beside one of one namespace", []engine.APIKey{aKey(1, inOneSpace)}, aKey(9), true},
		{"one of two admins'", []engine.APIKey{aKey(1), aKey(2, viewing)}, aKey(9), false},
		{"a viewer's", []engine.APIKey{aKey(1)}, aKey(9, viewing), false},
		{"an admin's of one namespace", []engine.APIKey{aKey(1)}, aKey(9, inOneSpace), false},
		{"the last admin's, which expires", []engine.APIKey{aKey(1, viewing)}, aKey(9, expired), false},
	} {
		m := newMemory(t)
		m.keys = append(slices.Clone(c.others), c.key)
		gone, err := RevokeKey(m, engine.RevokeKeyParams{
			ID: c.key.ID, By: engine.Actor{Name: "local"}, AuditID: id(99), Now: noon})
		if c.refused {
			if !errors.Is(err, engine.ErrPrecondition) || !strings.Contains(err.Error(), "key-9") ||
				len(m.log)+len(m.notifications) > 0 {
				t.Errorf("%s: %v, and did %v, want a refusal that names the key, and nothing done", c.what, err, m.log)
			}
			continue
		}
		if err != nil || !gone.RevokedAt.Equal(noon) || !slices.Equal(m.log, []string{"revoke 9", "audit"}) ||
			!slices.Equal(m.notifications, []engine.Notification{{Kind: engine.NotifyKeys}}) {
			t.Errorf("%s: %v, revoked at %s, did %v and notified %v, want it revoked, audited and notified", c.what,
				err, gone.RevokedAt, m.log, m.notifications)
			continue
		}
		want := engine.AuditEvent{ID: id(99), At: noon, Actor: engine.Actor{Name: "local"}, Method: "RevokeKey",
			Subject:   "key",
			SubjectID: c.key.ID.String(), Outcome: "ok", Detail: c.key.Role.String() + " key-9"}
		if m.audit[0] != want {
			t.Errorf("%s: audit = %+v, want %+v", c.what, m.audit[0], want)
		}
	}
}

func TestAKeyIsRevokedOnce(t *testing.T) {
	m := newMemory(t)
	m.keys = []engine.APIKey{aKey(1, revoked)}
	gone, err := RevokeKey(m, engine.RevokeKeyParams{ID: id(1), AuditID: id(99), Now: noon})
	if err != nil || !gone.RevokedAt.Equal(m.keys[0].RevokedAt) || len(m.log)+len(m.notifications) > 0 {
		t.Errorf("a second revocation: %v, at %s, did %v, want the first and nothing done", err, gone.RevokedAt, m.log)
	}
	if _, err := RevokeKey(m, engine.RevokeKeyParams{ID: id(2), AuditID: id(99), Now: noon}); !errors.Is(
		err, engine.ErrNotFound) {
		t.Errorf("a key that was never made: %v, want that it is not there", err)
	}
}
