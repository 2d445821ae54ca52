package auth

import (
	"context"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// A delivery to a hook has no key. Its signature gives it the rights of a client's key for the hook's
// namespace.

// WithHook returns a context for the calls of a delivery whose signature was verified.
func WithHook(ctx context.Context, h *engine.Hook) context.Context {
	return WithCaller(ctx, &Key{APIKey: engine.APIKey{ID: h.ID, Name: "hook " + h.Name, Role: engine.RoleClient,
		Namespaces: []string{h.Namespace}}})
}

const (
	hookRefusalEvery   = time.Minute // between two records of the same hook
	hookRefusalsKept   = 1024        // hooks whose last record is remembered; further ones share one
	hookRefusalsQueued = 64          // records that wait to be written; further ones are dropped
)

// hookRefusals limits how many rows refused deliveries can add to the database.
type hookRefusals struct {
	mu     sync.Mutex
	last   map[engine.ID]time.Time // when a refusal was last recorded, by the monotonic clock
	events chan engine.AuditEvent
}

// admit says whether to record a refusal of the hook.
func (r *hookRefusals) admit(id engine.ID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.last[id]; !known && len(r.last) >= hookRefusalsKept {
		for old, at := range r.last {
			if now.Sub(at) >= hookRefusalEvery {
				delete(r.last, old)
			}
		}
		if len(r.last) >= hookRefusalsKept {
			id = engine.ID{}
		}
	}
	if at, known := r.last[id]; known && now.Sub(at) < hookRefusalEvery {
		return false
	}
	if r.last == nil {
		r.last = map[engine.ID]time.Time{}
	}
	r.last[id] = now
	return true
}

// RefuseDelivery returns the error for a delivery to an unknown hook (nil) or with a wrong signature,
// which is the same for both. Like a wrong key, it is delayed for an address that has had too many.
// Refusals of a hook are recorded in the audit log once a minute, by recordHookRefusals, so that the
// answer does not wait for the database only if the hook exists.
func (g *Guard) RefuseDelivery(ctx context.Context, h *engine.Hook) error {
	if h != nil && g.hooks.admit(h.ID, time.Now()) {
		event := engine.AuditEvent{Actor: ActorOf(ctx), Method: "Deliver", Namespace: h.Namespace, Subject: "hook",
			SubjectID: h.ID.String(), Outcome: "UNAUTHENTICATED",
			Detail: h.Name + ": no secret of the hook made the signature; more such deliveries within a minute " +
				"are not recorded"}
		event.Actor.Name = "unknown"
		select {
		case g.hooks.events <- event:
		default:
		}
	}
	g.failures.delay(ctx, hostOf(ctx))
	return &engine.Error{Kind: engine.KindNoKey, Subject: "hook",
		Message: "no hook has this address, or the delivery is not signed with a secret of it; " +
			"compare the URL, the secret and the kind of signature with those of the sender"}
}

// recordHookRefusals writes refused deliveries to the audit log until ctx ends.
func (g *Guard) recordHookRefusals(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-g.hooks.events:
			event.At = g.store.Now()
			event.ID = engine.NewID(event.At)
			record, missed := g.refused.admit(time.Now())
			g.tellMissed(missed)
			if !record {
				continue
			}
			if err := g.store.NoteRefusal(ctx, event); err != nil {
				g.log.Warn("refused delivery could not be written to the audit log", "hook", event.SubjectID,
					"error", err)
			}
		}
	}
}
