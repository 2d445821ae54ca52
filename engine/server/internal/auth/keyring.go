package auth

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	// keyringAge is how long what was read of the keys is believed, from the moment at which the
	// reading began, where a hint that they changed may be lost. So a key that was revoked opens
	// nothing 5 s later.
	keyringAge = 4 * time.Second
	// keyringTime is the limit of one reading, less than keyringAge, so that what was read is not
	// too old at once. A database that is only slow has calls wait, and does not have them refused.
	keyringTime = 3 * time.Second
	maxRevoked  = 1000 // that are remembered
)

// Key is a key as this server knows it.
type Key struct {
	engine.APIKey
	used    atomic.Int64 // when its use was last noted, in seconds since 1970; 0: never
	refused atomic.Int64 // when it was last noted that it was shown after its end, likewise
}

// actor is the key as the audit log names it.
func (k *Key) actor() string { return k.Name + " (" + k.ID.String() + ")" }

// ReachesAll says whether the key is for all namespaces, those included that do not exist yet.
func (k *Key) ReachesAll() bool { return k.Role == engine.RoleAdmin && len(k.Namespaces) == 0 }

// keyset is one reading of the keys that are not revoked. It never changes.
type keyset struct {
	byID   map[engine.ID]*Key
	byName map[string]*Key
	mark   uint64    // of the keyring, when it was read
	change uint64    // likewise
	readAt time.Time // by the monotonic clock, before it was read
}

// empty says that the database is without keys, so that no call needs one.
func (r *keyset) empty() bool { return len(r.byID) == 0 }

// admits says whether a call that this key let in, nil for none, would be let in now.
func (r *keyset) admits(key *Key, now time.Time) bool {
	if key == nil {
		return r.empty()
	}
	known := r.byID[key.ID]
	return known != nil && known.ValidAt(now)
}

// keyStore is what is read of the store for the keys.
type keyStore interface {
	Keyring(context.Context) ([]engine.APIKey, error)
	ListKeys(context.Context, engine.Page) ([]engine.APIKey, engine.PageInfo, error)
	Describe(context.Context) (engine.Description, error)
}

// keyring is the keys of the database, read when a call needs them and what is known may be old. A
// call finds them in memory otherwise.
//
// When the database cannot be asked, calls are refused as UNAVAILABLE once what is known is too
// old: they would need the same database anyway, and a key that was revoked must not live longer
// for its trouble. Streams that are open stay open until it can be asked again. Only who looks at
// the metrics goes on to be let in by what was last read; see getOrLast.
type keyring struct {
	store   keyStore
	mark    atomic.Uint64 // grows when the keys may have changed
	change  atomic.Uint64 // grows when they have: of what is read before that, nobody is let in any more
	sure    atomic.Bool   // no hint is ever lost
	current atomic.Pointer[keyset]

	mu      sync.Mutex
	reading *keyReading        // under way
	revoked map[engine.ID]*Key // keys that this server knows to be revoked, so that their holders can be told
}

// keyReading is one question to the store, shared by all who need its answer.
type keyReading struct {
	mark uint64
	done chan struct{}
	err  error
}

// changed notes that the keys are others now.
func (k *keyring) changed() {
	k.change.Add(1)
	k.mark.Add(1)
}

// doubt notes that the keys may be others now: hints were lost.
func (k *keyring) doubt() { k.mark.Add(1) }

// get is the keys as they stand: no older than keyringAge, and not from before a change that this
// server knew of when it was called.
func (k *keyring) get(ctx context.Context) (*keyset, error) { return k.read(ctx, keyringAge) }

// read is get with another age; 0 asks only that no known change is missed.
func (k *keyring) read(ctx context.Context, age time.Duration) (*keyset, error) {
	mark := k.mark.Load()
	for {
		if r := k.current.Load(); r != nil && r.mark >= mark &&
			(age == 0 || k.sure.Load() || time.Since(r.readAt) < age) {
			return r, nil
		}
		if err := k.share(ctx, mark); err != nil {
			return nil, err
		}
	}
}

// getOrLast is get and, while the database does not answer, the keys as they were last read: for
// what is asked for most when the database is away, which is whether it is away. Without it nobody
// could be told by the metrics, not even where no key was ever made.
//
// It is for reading about this server alone, and nothing that changes or reads runs may be let in
// by it. The database would refuse that during the outage, but a call that waits for the database
// would get through as it comes back, for a key that was revoked on another server meanwhile. So
// what such a key opens longer than keyringAge is the figures of a server that is cut off from its
// database, and with them the names of its queues at most, should the database come back in the
// very moment between the two questions. Each call asks for the keys again, so the first one after
// the outage goes by what the database says. What this server knows to have changed since it last
// read the keys it does not forget for the outage: then nobody is let in, as by a server that could
// never read them.
func (k *keyring) getOrLast(ctx context.Context) (*keyset, error) {
	r, err := k.get(ctx)
	if err != errKeysAway { // an answer that cannot be used is not an outage
		return r, err
	}
	if r = k.current.Load(); r == nil || r.change != k.change.Load() {
		return nil, err
	}
	return r, nil
}

// share reads the keys, or waits for who is reading them already if that reading is new enough.
func (k *keyring) share(ctx context.Context, mark uint64) error {
	k.mu.Lock()
	r, ours := k.reading, false
	if r == nil {
		r, ours = &keyReading{mark: k.mark.Load(), done: make(chan struct{})}, true
		k.reading = r
	}
	k.mu.Unlock()
	if ours {
		defer func() { // whatever becomes of it, others wait for it
			k.mu.Lock()
			k.reading = nil
			k.mu.Unlock()
			close(r.done)
		}()
		r.err = errKeysUnread // should the store panic
		r.err = k.load(r.mark)
		return r.err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.mark < mark {
		return nil // it may have missed a change: read again
	}
	return r.err
}

// load asks the store. It is not on the context of any caller, because others wait for it too.
func (k *keyring) load(mark uint64) error {
	ctx, cancel := context.WithTimeout(context.Background(), keyringTime)
	defer cancel()
	began, change := time.Now(), k.change.Load()
	keys, err := k.store.Keyring(ctx)
	if err != nil {
		return keysUnread(err)
	}
	before := k.current.Load()
	if before == nil {
		if err := k.begin(ctx, len(keys) > 0); err != nil {
			return keysUnread(err)
		}
		before = &keyset{}
	}
	r := &keyset{
		byID: make(map[engine.ID]*Key, len(keys)), byName: make(map[string]*Key, len(keys)), mark: mark, change: change,
		readAt: began,
	}
	for i := range keys {
		key := before.byID[keys[i].ID]
		if key == nil {
			key = &Key{APIKey: keys[i]}
		}
		r.byID[key.ID], r.byName[key.Name] = key, key
	}
	k.remember(before, r)
	k.current.Store(r)
	return nil
}

// begin asks what is asked once: whether hints can be lost and, where the database has keys, which
// were revoked of late.
func (k *keyring) begin(ctx context.Context, keyed bool) error {
	d, err := k.store.Describe(ctx)
	if err != nil {
		return err
	}
	k.sure.Store(d.Notifications == "in-process")
	if !keyed {
		return nil
	}
	keys, _, err := k.store.ListKeys(ctx, engine.Page{Limit: maxRevoked})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.revoked = map[engine.ID]*Key{}
	for i := range keys {
		if !keys[i].RevokedAt.IsZero() {
			k.revoked[keys[i].ID] = &Key{APIKey: keys[i]}
		}
	}
	return nil
}

// remember keeps the keys that are in a reading and not in the one after it.
func (k *keyring) remember(before, after *keyset) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, key := range before.byID {
		if after.byID[id] != nil {
			continue
		}
		if k.revoked == nil || len(k.revoked) >= maxRevoked {
			k.revoked = map[engine.ID]*Key{}
		}
		k.revoked[id] = key
	}
}

// wasRevoked is a key that is known to be revoked, nil when there is none.
func (k *keyring) wasRevoked(id engine.ID) *Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.revoked[id]
}

var (
	errKeysUnread = &engine.Error{Kind: engine.KindUnavailable,
		Message: "the API keys could not be read from the database; try again"}
	// errKeysAway says what is the matter, and not what this server wanted to know first: it may
	// well be that no key was ever made.
	errKeysAway = &engine.Error{Kind: engine.KindUnavailable,
		Message: "the database does not answer; the call was not carried out"}
)

// keysUnread is what callers are told when reading the keys has failed.
func keysUnread(err error) error {
	if engine.KindOf(err) == engine.KindUnavailable || errors.Is(err, context.DeadlineExceeded) {
		return errKeysAway
	}
	return errKeysUnread
}
