package servertest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/secret"
)

// KeyStore is a store with keys, and with workers and runs in the namespaces that tests set. Other
// calls panic, which the server answers as INTERNAL: so a test sees that a call was accepted.
type KeyStore struct {
	StubStore
	Notifications string

	Mu      sync.Mutex
	Keys    []engine.APIKey
	workers map[string]engine.Worker
	Runs    map[engine.ID]engine.Run
	Broken  error
	Slow    chan struct{} // Keyring waits for it, if set
	Ahead   time.Duration // of the clock
	reads   int           // of the keyring
	Uses    []engine.KeyUse
	Logins  map[engine.ID]engine.Session
	events  []engine.AuditEvent
}

func (l *KeyStore) Set(change func()) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	change()
}

func (l *KeyStore) Now() time.Time {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.StubStore.Now().Add(l.Ahead)
}

// Make makes a key and returns its secret.
func (l *KeyStore) Make(key engine.APIKey) string {
	key.CreatedAt = l.Now()
	key.ID = engine.NewID(key.CreatedAt)
	text, hash := secret.New(key.Role, key.ID)
	key.Hash = hash
	l.Set(func() { l.Keys = append(l.Keys, key) })
	return text
}

// Named returns the key with that name.
func (l *KeyStore) Named(name string) (key engine.APIKey) {
	l.Set(func() {
		for _, k := range l.Keys {
			if k.Name == name {
				key = k
			}
		}
	})
	return key
}

// CreateKey, like RevokeKey, sends no notification: a store may send it after the answer.
func (l *KeyStore) CreateKey(_ context.Context, p engine.CreateKeyParams) (engine.APIKey, error) {
	l.Set(func() {
		l.Keys = append(l.Keys, p.Key)
		l.events = append(l.events, engine.AuditEvent{Method: "CreateKey", Actor: p.By})
	})
	return p.Key, nil
}

func (l *KeyStore) RevokeKey(_ context.Context, p engine.RevokeKeyParams) (key engine.APIKey, _ error) {
	l.Set(func() {
		for i := range l.Keys {
			if l.Keys[i].ID == p.ID {
				l.Keys[i].RevokedAt = p.Now
				key = l.Keys[i]
			}
		}
		l.events = append(l.events, engine.AuditEvent{Method: "RevokeKey", Actor: p.By})
	})
	return key, nil
}

// Revoke revokes the key with that name.
func (l *KeyStore) Revoke(name string) {
	now := l.Now()
	l.Set(func() {
		for i := range l.Keys {
			if l.Keys[i].Name == name {
				l.Keys[i].RevokedAt = now
			}
		}
	})
}

func (l *KeyStore) Keyring(ctx context.Context) ([]engine.APIKey, error) {
	l.Mu.Lock()
	l.reads++
	broken, slow := l.Broken, l.Slow
	keys := slices.DeleteFunc(slices.Clone(l.Keys), func(k engine.APIKey) bool { return !k.RevokedAt.IsZero() })
	l.Mu.Unlock()
	if slow != nil {
		select {
		case <-slow:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return keys, broken
}

func (l *KeyStore) ListKeys(context.Context, engine.Page) ([]engine.APIKey, engine.PageInfo, error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return slices.Clone(l.Keys), engine.PageInfo{}, nil
}

func (l *KeyStore) Describe(context.Context) (engine.Description, error) {
	return engine.Description{Backend: "stub", Notifications: l.Notifications}, nil
}

func (l *KeyStore) GetWorker(_ context.Context, id string) (engine.Worker, error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if w, known := l.workers[id]; known {
		return w, nil
	}
	return engine.Worker{}, &engine.Error{Kind: engine.KindNotFound, Message: "no worker " + id}
}

func (l *KeyStore) GetRuns(_ context.Context, namespace string, ids []engine.ID) (runs []engine.Run, _ error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for _, id := range ids {
		if r, known := l.Runs[id]; known && r.Namespace == namespace {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

func (l *KeyStore) NoteKeyUse(_ context.Context, uses []engine.KeyUse) error {
	l.Set(func() { l.Uses = append(l.Uses, uses...) })
	return nil
}

func (l *KeyStore) NoteRefusal(_ context.Context, e engine.AuditEvent) error {
	l.Set(func() { l.events = append(l.events, e) })
	return nil
}

// Recorded returns the audit events so far.
func (l *KeyStore) Recorded() []engine.AuditEvent {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return slices.Clone(l.events)
}

// Asked returns how often the keyring was read.
func (l *KeyStore) Asked() int {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.reads
}

func (l *KeyStore) CreateSession(_ context.Context, p engine.CreateSessionParams) (engine.Session, error) {
	s := p.Session
	s.CreatedAt, s.UsedAt, s.ExpiresAt = p.Now, p.Now, engine.SessionExpiry(p.Now, p.Now)
	l.Set(func() {
		if l.Logins == nil {
			l.Logins = map[engine.ID]engine.Session{}
		}
		l.Logins[s.ID] = s
		l.events = append(l.events, engine.AuditEvent{Method: "CreateSession", Actor: p.By})
	})
	return s, nil
}

// EndSession, like RevokeKey, sends no notification.
func (l *KeyStore) EndSession(_ context.Context, p engine.EndSessionParams) error {
	l.Set(func() {
		delete(l.Logins, p.ID)
		l.events = append(l.events, engine.AuditEvent{Method: "EndSession", Actor: p.By})
	})
	return nil
}

func (l *KeyStore) GetSession(_ context.Context, id engine.ID) (engine.Session, error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if s, known := l.Logins[id]; known {
		return s, l.Broken
	}
	return engine.Session{}, engine.SessionNotFound(id)
}

func (l *KeyStore) NoteSessionUse(_ context.Context, uses []engine.KeyUse) error {
	l.Set(func() {
		for _, use := range uses {
			if s, known := l.Logins[use.ID]; known {
				s.UsedAt, s.ExpiresAt = use.At, engine.SessionExpiry(s.CreatedAt, use.At)
				l.Logins[use.ID] = s
			}
		}
	})
	return nil
}
