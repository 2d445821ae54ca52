package server

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

// locksmith is a store that has keys, and workers and runs in the namespaces that its tests say. What else it is asked for is a panic,
// which the door answers as INTERNAL: so a test sees that a call was let in.
type locksmith struct {
	servertest.StubStore
	notifications string

	mu      sync.Mutex
	keys    []engine.APIKey
	workers map[string]engine.Worker
	runs    map[engine.ID]engine.Run
	broken  error
	slow    chan struct{} // Keyring waits for it, if set
	ahead   time.Duration // of the clock
	reads   int           // of the keyring
	uses    []engine.KeyUse
	events  []engine.AuditEvent
}

func (l *locksmith) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *locksmith) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.StubStore.Now().Add(l.ahead)
}

// make makes a key and returns its secret.
func (l *locksmith) make(key engine.APIKey) string {
	key.CreatedAt = l.Now()
	key.ID = engine.NewID(key.CreatedAt)
	var secret string
	secret, key.Hash = newSecret(key.Role, key.ID)
	l.set(func() { l.keys = append(l.keys, key) })
	return secret
}

// named is the key of that name.
func (l *locksmith) named(name string) (key engine.APIKey) {
	l.set(func() {
		for _, k := range l.keys {
			if k.Name == name {
				key = k
			}
		}
	})
	return key
}

// CreateKey and RevokeKey ring nothing: a store rings after its answer at the earliest.
func (l *locksmith) CreateKey(_ context.Context, p engine.CreateKeyParams) (engine.APIKey, error) {
	l.set(func() {
		l.keys = append(l.keys, p.Key)
		l.events = append(l.events, engine.AuditEvent{Method: "CreateKey", Actor: p.By})
	})
	return p.Key, nil
}

func (l *locksmith) RevokeKey(_ context.Context, p engine.RevokeKeyParams) (key engine.APIKey, _ error) {
	l.set(func() {
		for i := range l.keys {
			if l.keys[i].ID == p.ID {
				l.keys[i].RevokedAt = p.Now
				key = l.keys[i]
			}
		}
		l.events = append(l.events, engine.AuditEvent{Method: "RevokeKey", Actor: p.By})
	})
	return key, nil
}

// revoke makes the key of that name worthless.
func (l *locksmith) revoke(name string) {
	now := l.Now()
	l.set(func() {
		for i := range l.keys {
			if l.keys[i].Name == name {
				l.keys[i].RevokedAt = now
			}
		}
	})
}

func (l *locksmith) Keyring(ctx context.Context) ([]engine.APIKey, error) {
	l.mu.Lock()
	l.reads++
	broken, slow := l.broken, l.slow
	keys := slices.DeleteFunc(slices.Clone(l.keys), func(k engine.APIKey) bool { return !k.RevokedAt.IsZero() })
	l.mu.Unlock()
	if slow != nil {
		select {
		case <-slow:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return keys, broken
}

func (l *locksmith) ListKeys(context.Context, engine.Page) ([]engine.APIKey, engine.PageInfo, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.keys), engine.PageInfo{}, nil
}

func (l *locksmith) Describe(context.Context) (engine.Description, error) {
	return engine.Description{Backend: "stub", Notifications: l.notifications}, nil
}

func (l *locksmith) GetWorker(_ context.Context, id string) (engine.Worker, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w, known := l.workers[id]; known {
		return w, nil
	}
	return engine.Worker{}, &engine.Error{Kind: engine.KindNotFound, Message: "no worker " + id}
}

func (l *locksmith) GetRuns(_ context.Context, namespace string, ids []engine.ID) (runs []engine.Run, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if r, known := l.runs[id]; known && r.Namespace == namespace {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

func (l *locksmith) NoteKeyUse(_ context.Context, uses []engine.KeyUse) error {
	l.set(func() { l.uses = append(l.uses, uses...) })
	return nil
}

func (l *locksmith) NoteRefusal(_ context.Context, e engine.AuditEvent) error {
	l.set(func() { l.events = append(l.events, e) })
	return nil
}

// recorded is the events so far.
func (l *locksmith) recorded() []engine.AuditEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// asked is how often the keyring was read.
func (l *locksmith) asked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reads
}

// with is a context whose calls show a secret.
func with(ctx context.Context, secret string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+secret)
}

// guarded is a server over keys of every role for the namespaces "default" and "team", and one admin's for all.
func guarded(t *testing.T) (*Server, *grpc.ClientConn, *locksmith, map[engine.KeyRole]string) {
	t.Helper()
	l := &locksmith{notifications: "in-process"}
	l.make(engine.APIKey{Name: "root", Role: engine.RoleAdmin})
	secrets := map[engine.KeyRole]string{}
	for role := engine.RoleAdmin; role <= engine.RoleViewer; role++ {
		key := engine.APIKey{Name: "the-" + role.String(), Role: role, Namespaces: []string{"default", "team"}}
		if role == engine.RoleAdmin {
			key.Namespaces = nil
		}
		secrets[role] = l.make(key)
	}
	s, conn := serve(t, l)
	return s, conn, l, secrets
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
