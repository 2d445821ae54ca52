// Package auth decides who may call what: the API keys, the permissions of their roles, and what of
// a request must be a key's own.
//
//   - guard.go: Guard, which the interceptors ask. caller.go finds the key of a call, keyring.go
//     keeps the keys of the database in memory.
//   - permissions.go, methods.go, scope.go: the table of who may call which method, on what.
//   - open_calls.go: streams and long polls end with the key that let them in. key_uses.go notes
//     when keys were last used.
//   - tap.go, unauthenticated.go: limits for callers without a valid key. refusals.go: what of them
//     goes to the audit log.
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

// Store is what is read and written of the store to decide who may call what.
type Store interface {
	keyStore
	Now() time.Time
	NoteKeyUse(context.Context, []engine.KeyUse) error
	NoteRefusal(context.Context, engine.AuditEvent) error
	GetWorker(ctx context.Context, id string) (engine.Worker, error)
	GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error)
}

// Guard decides who may call what.
type Guard struct {
	store   Store
	log     *slog.Logger
	errors  *wire.Errors
	trusted bool               // no call needs a key
	needKey bool               // calls need a key also while there is none
	methods map[string]*Method // by full name; written once, before the first call

	keys     keyring
	open     openCalls
	uses     keyUses
	failures unauthenticated
	refused  refusalLimiter
	reads    readLimiter
}

// New returns a Guard over a store. trusted: no call needs a key. needKey: calls need one also while there is none.
func New(store Store, log *slog.Logger, errors *wire.Errors, trusted, needKey bool) *Guard {
	return &Guard{
		store: store, log: log, errors: errors, trusted: trusted, needKey: needKey,
		keys: keyring{store: store}, open: openCalls{wake: make(chan struct{}, 1)},
		uses: keyUses{wake: make(chan struct{}, 1)},
	}
}

// Protect sets the methods that are served, by their full names. Call it before the first call comes.
func (g *Guard) Protect(methods []string) { g.methods = newMethods(methods) }

// MethodOf returns a method by its full name; one that is not served lets no key in.
func (g *Guard) MethodOf(fullMethod string) *Method {
	if one := g.methods[fullMethod]; one != nil {
		return one
	}
	return &Method{} // of a server that registered none
}

// Admit authenticates a call and refuses a role that may not use the method. The context that it
// returns says who calls.
func (g *Guard) Admit(ctx context.Context, method *Method) (context.Context, error) {
	if method.Rule.Open {
		return ctx, nil
	}
	key, err := g.authenticate(ctx)
	if err != nil || key == nil {
		return ctx, err
	}
	ctx = WithCaller(ctx, key)
	if !method.Rule.Roles.Has(key.Role) {
		return ctx, denied("the API key %q has the role %s, which may not call %s; it takes %s",
			key.Name, key.Role, method.name, method.Rule.Roles)
	}
	return ctx, nil
}

// CheckScope refuses a request about a namespace, worker or run that the caller's key is not for.
func (g *Guard) CheckScope(ctx context.Context, method *Method, request any) error {
	key := CallerOf(ctx)
	if key == nil {
		return nil
	}
	return method.Rule.Scope(g, ctx, key, request)
}

// Start runs what keys need in the background until stop, which waits for its end.
func (g *Guard) Start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
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

// KeysChanged has the keys read again before the next call, and open calls checked.
func (g *Guard) KeysChanged() {
	g.keys.changed()
	async.Notify(g.open.wake)
}

// KeysMayHaveChanged has the keys read again, because notifications may have been lost.
func (g *Guard) KeysMayHaveChanged() {
	g.keys.doubt()
	async.Notify(g.open.wake)
}

// ShownTo returns an answer as the caller may see it: a viewer gets no payloads.
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

// OpenCalls returns how many streams and long polls are open, and how many of them have a key.
func (g *Guard) OpenCalls() (open, keyed int) { return g.open.count() }

// KeepsSystem says whether a role looks after the system, and may see how the server is set up.
func KeepsSystem(role engine.KeyRole) bool { return keepers.Has(role) }
