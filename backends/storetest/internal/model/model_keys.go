package model

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// API keys in the model, and calls about them.

func (m *model) keyring() (ring []*engine.APIKey) {
	for _, k := range m.keys {
		if k.RevokedAt.IsZero() {
			ring = append(ring, k)
		}
	}
	return ring
}

func (m *model) key(id engine.ID) *engine.APIKey {
	for _, k := range m.keys {
		if k.ID == id {
			return k
		}
	}
	return nil
}

func (m *model) createKey(p engine.CreateKeyParams) string {
	if known := m.key(p.Key.ID); known != nil {
		return fixture.KeyText(*known)
	}
	ring, k := m.keyring(), p.Key
	for _, other := range ring {
		if other.Name == k.Name {
			return errText(engine.ErrExists)
		}
	}
	if len(ring) == 0 && (k.Role != engine.RoleAdmin || len(k.Namespaces) > 0) {
		return errText(engine.ErrPrecondition)
	}
	k.CreatedAt = p.Now
	m.keys = append(m.keys, &k)
	slices.SortFunc(m.keys, func(a, b *engine.APIKey) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return fixture.KeyText(k)
}

func (m *model) revokeKey(p engine.RevokeKeyParams) string {
	k := m.key(p.ID)
	if k == nil {
		return errText(engine.ErrNotFound)
	}
	if !k.RevokedAt.IsZero() {
		return fixture.KeyText(*k)
	}
	others, successors := 0, 0
	for _, other := range m.keyring() {
		if other == k {
			continue
		}
		others++
		if keepsAll(other) {
			successors++
		}
	}
	if keepsAll(k) && successors == 0 && others > 0 {
		return errText(engine.ErrPrecondition)
	}
	k.RevokedAt = p.Now
	return fixture.KeyText(*k)
}

// keepsAll says whether the key is an admin key for all namespaces that never expires.
func keepsAll(k *engine.APIKey) bool {
	return k.Role == engine.RoleAdmin && len(k.Namespaces) == 0 && k.ExpiresAt.IsZero()
}

func (m *model) noteKeyUse(uses []engine.KeyUse) string {
	for _, use := range uses {
		if k := m.key(use.ID); k != nil && k.LastUsedAt.Before(use.At) {
			k.LastUsedAt = use.At
		}
	}
	return m.seenKeys()
}

func (m *model) seenKeys() string {
	var b strings.Builder
	for _, k := range m.keyring() {
		b.WriteString(fixture.KeyText(*k))
	}
	return b.String()
}

// keyCall makes, revokes or uses keys.
func (f *stream) keyCall() act {
	switch f.roll.IntN(5) {
	case 0, 1:
		return f.createKey()
	case 2, 3:
		return f.revokeKey()
	}
	var uses []engine.KeyUse
	for range 1 + f.roll.IntN(4) {
		uses = append(uses, engine.KeyUse{ID: f.someKey(),
			At: f.now.Add(time.Duration(f.roll.IntN(3)-1) * time.Second)})
	}
	return act{text: fmt.Sprintf("note %d uses of keys", len(uses)),
		store: func(ctx context.Context, s engine.Store) string {
			if err := s.NoteKeyUse(ctx, uses); err != nil {
				return errText(err)
			}
			var b strings.Builder
			ring, err := s.Keyring(ctx)
			for _, k := range ring {
				b.WriteString(fixture.KeyText(k))
			}
			return errOr(err, b.String())
		},
		model: func(m *model) string { return m.noteKeyUse(uses) },
	}
}

// someKey returns a key that was made or, sometimes, one that was not.
func (f *stream) someKey() engine.ID {
	if n := len(f.model.keys); n > 0 && !f.chance(10) {
		return f.model.keys[f.roll.IntN(n)].ID
	}
	return f.mint.ID(f.now)
}

func (f *stream) createKey() act {
	p := engine.CreateKeyParams{Key: engine.APIKey{
		ID: f.mint.ID(f.now), Name: f.one("a", "b", "c", "d"), Role: engine.KeyRole(1 + f.roll.IntN(5))},
		By: fixture.Somebody, AuditID: f.mint.ID(f.now), Now: f.now}
	k := &p.Key
	k.Hash = sha256.Sum256(k.ID[:])
	if f.chance(40) {
		k.Role = engine.RoleAdmin
	}
	if k.Role != engine.RoleAdmin || f.chance(20) {
		k.Namespaces = []string{fixture.Space, "team"}
	}
	if k.Role == engine.RoleWorker {
		k.Queues, k.Types = []string{"press-*"}, []string{f.one("a", "*")}
		k.WorkerIDs = []string{f.one("press-7", "press-*")}
	}
	if f.chance(30) {
		k.ExpiresAt = f.now.Add(time.Minute)
	}
	if known := f.someKey(); f.chance(10) && f.model.key(known) != nil {
		p.Key = *f.model.key(known)
	}
	return act{text: fmt.Sprintf("create key %s as %s %s", p.Key.ID, p.Key.Role, p.Key.Name),
		store: func(ctx context.Context, s engine.Store) string {
			k, err := s.CreateKey(ctx, p)
			return errOr(err, fixture.KeyText(k))
		},
		model: func(m *model) string { return m.createKey(p) },
	}
}

func (f *stream) revokeKey() act {
	p := engine.RevokeKeyParams{ID: f.someKey(), By: fixture.Somebody, AuditID: f.mint.ID(f.now), Now: f.now}
	return act{text: fmt.Sprintf("revoke key %s", p.ID),
		store: func(ctx context.Context, s engine.Store) string {
			k, err := s.RevokeKey(ctx, p)
			return errOr(err, fixture.KeyText(k))
		},
		model: func(m *model) string { return m.revokeKey(p) },
	}
}
