// Package auth authenticates calls by API key or client certificate, and decides which methods a
// key's role may call and on which namespaces, workers and runs.
//
//   - guard.go: Guard, which the interceptors call. caller.go finds the key of a call. keyring.go
//     caches the keys of the database, sessions.go the sessions of keys.
//   - permissions.go, methods.go, scope.go: the table of methods, with their roles and scopes.
//   - open_calls.go: ends streams and long polls when their key ends. key_uses.go records when keys
//     were last used.
//   - tap.go, unauthenticated.go: limits for callers without a valid key. refusals.go: records
//     refused calls in the audit log. hooks.go does so for deliveries, and gives hooks their rights.
package auth

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

// Store is the part of a store that a Guard needs.
type Store interface {
	keyStore
	sessionStore
	Now() time.Time
	NoteKeyUse(context.Context, []engine.KeyUse) error
	NoteRefusal(context.Context, engine.AuditEvent) error
	GetWorker(ctx context.Context, id string) (engine.Worker, error)
	GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error)
	CurrentLease(ctx context.Context, namespace string, run engine.ID) (engine.Lease, error)
}

// Guard decides who may call what.
type Guard struct {
	store   Store
	log     *slog.Logger
	errors  *wire.Errors
	trusted bool               // no call needs a key
	needKey bool               // calls need a key even if no key exists
	methods map[string]*Method // by full name; written once, before the first call

	keys     keyring
	sessions sessions
	open     openCalls
	uses     keyUses
	failures unauthenticated
	refused  refusalLimiter
	reads    readLimiter
	hooks    hookRefusals
}

// New returns a Guard over a store. trusted: no call needs a key. needKey: calls need a key even if
// no key exists.
func New(store Store, log *slog.Logger, errors *wire.Errors, trusted, needKey bool) *Guard {
	return &Guard{
		store: store, log: log, errors: errors, trusted: trusted, needKey: needKey,
		keys: keyring{store: store}, open: openCalls{wake: make(chan struct{}, 1)},
		uses:  keyUses{wake: make(chan struct{}, 1)},
		hooks: hookRefusals{events: make(chan engine.AuditEvent, hookRefusalsQueued)},
	}
}

// Protect sets the methods that are served, by their full names. Call it before the first call.
func (g *Guard) Protect(methods []string) { g.methods = newMethods(methods) }

// MethodOf returns a method by its full name. A method that is not served has a rule that refuses
// every key.
func (g *Guard) MethodOf(fullMethod string) *Method {
	if one := g.methods[fullMethod]; one != nil {
		return one
	}
	return &Method{}
}

// Admit authenticates a call and refuses a role that may not use the method. The context that it
// returns says who calls.
func (g *Guard) Admit(ctx context.Context, method *Method) (context.Context, error) {
	if method.Rule.NoKey {
		return ctx, nil
	}
	key := CallerOf(ctx) // a hook: see WithHook
	if key == nil {
		var err error
		if key, err = g.authenticate(ctx); err != nil || key == nil {
			return ctx, err
		}
		ctx = WithCaller(ctx, key)
	}
	if !method.Rule.Roles.Has(key.Role) {
		return ctx, denied("the API key %q has the role %s, which may not call %s; it takes %s",
			key.Name, key.Role, method.name, method.Rule.Roles)
	}
	return ctx, nil
}

// Authenticate returns the key of a call whose request is not read yet; nil if none is needed.
func (g *Guard) Authenticate(ctx context.Context, method *Method) (*Key, error) {
	if method.Rule.NoKey {
		return nil, nil
	}
	return g.authenticate(ctx)
}

// CheckScope returns an error if the caller's key is not for the namespace, worker or run of a
// request.
func (g *Guard) CheckScope(ctx context.Context, method *Method, request any) error {
	key := CallerOf(ctx)
	if key == nil {
		return nil
	}
	return method.Rule.Scope(g, ctx, key, request)
}

// Start runs the background work for keys until stop is called; stop waits for its end.
func (g *Guard) Start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { g.recordHookRefusals(ctx) })
	if !g.trusted {
		group.Go(func() { g.watchOpenCalls(ctx) })
		group.Go(func() { g.noteUses(ctx) })
	}
	return func() {
		cancel()
		group.Wait()
		g.tellMissed(g.refused.left())
	}
}

// KeysChanged makes the next call read the keys again, and checks open calls. Call it when a key
// has changed.
func (g *Guard) KeysChanged() {
	g.keys.changed()
	async.Notify(g.open.wake)
}

// KeysMayHaveChanged makes the next call read the keys again. Call it when notifications may have
// been lost.
func (g *Guard) KeysMayHaveChanged() {
	g.keys.doubt()
	async.Notify(g.open.wake)
}

// ShownTo returns the answer that the caller may see: a viewer gets no payloads.
func ShownTo(key *Key, method *Method, answer any) any {
	if key == nil || key.Role != engine.RoleViewer || !method.Rule.Redact {
		return answer
	}
	if message, ok := answer.(proto.Message); ok {
		return wire.WithoutPayloads(message)
	}
	return answer
}

// KeysRequired says whether calls need a key.
func (g *Guard) KeysRequired(ctx context.Context) (bool, error) {
	keys, err := g.keys.get(ctx)
	if err != nil {
		return false, err
	}
	return g.needKey || !keys.empty(), nil
}

// Keyless reports whether calls need no key. While the database does not answer, the keys as last
// read decide; without any the answer is true, with which callers refuse more.
func (g *Guard) Keyless(ctx context.Context) bool {
	if g.needKey {
		return false
	}
	keys, err := g.keys.getOrLast(ctx)
	return g.trusted || err != nil || keys.empty()
}

// OpenCalls returns how many streams and long polls are open, and how many of them have a key.
func (g *Guard) OpenCalls() (open, keyed int) { return g.open.count() }

// MonitorsSystem says whether a role may see how the server is set up.
func MonitorsSystem(role engine.KeyRole) bool { return monitors.Has(role) }
