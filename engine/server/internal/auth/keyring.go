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
	// keyringAge is how long a keyset is valid, from the start of its reading, if notifications may
	// be lost. So a revoked key is refused after 5 s at most.
	keyringAge = 4 * time.Second
	// keyringTime limits one reading. It is less than keyringAge, so that a new keyset is not
	// expired at once. While the database is only slow, calls wait and are not refused.
	keyringTime = 3 * time.Second
	maxRevoked  = 1000 // revoked keys kept in memory
)

// Key is a key in this server's memory.
type Key struct {
	engine.APIKey
	used    atomic.Int64 // when its use was last recorded, in seconds since 1970; 0: never
	refused atomic.Int64 // when a call with it was last recorded as refused, in the same unit
	held    heldLeases
	session *session // by which it is used; nil: by its own secret or certificate
}

// actor returns the name of the key in the audit log, with the session by which it is used.
func (k *Key) actor() string {
	name := k.Name + " (" + k.ID.String() + ")"
	if k.session != nil {
		name += " session " + k.session.ID.String()
	}
	return name
}

// ReachesAll says whether the key is for all namespaces, including future ones.
func (k *Key) ReachesAll() bool { return k.Role == engine.RoleAdmin && len(k.Namespaces) == 0 }

// keyset holds the keys that were not revoked at one reading. It is immutable.
type keyset struct {
	byID   map[engine.ID]*Key
	byName map[string]*Key
	mark   uint64    // keyring.mark when the reading began
	change uint64    // keyring.change when the reading began
	readAt time.Time // when the reading began, by the monotonic clock
}

// empty says whether the database has no keys, so that no call needs one.
func (r *keyset) empty() bool { return len(r.byID) == 0 }

// admits says whether a call with this key (nil: without one) would be accepted now.
func (r *keyset) admits(key *Key, now time.Time) bool {
	if key == nil {
		return r.empty()
	}
	known := r.byID[key.ID]
	return known != nil && known.ValidAt(now)
}

// keyStore is the part of a store that the keyring reads.
type keyStore interface {
	Keyring(context.Context) ([]engine.APIKey, error)
	ListKeys(context.Context, engine.Page) ([]engine.APIKey, engine.PageInfo, error)
	Describe(context.Context) (engine.Description, error)
}

// keyring caches the keys of the database. A call reads them again only if the cache may be out of
// date.
//
// If the database does not answer, calls are refused as UNAVAILABLE once the cache is too old: they
// need the same database anyway, and an outage must not extend the life of a revoked key. Open
// streams stay open until the database answers again. Only requests for metrics are still accepted
// with the keys as last read; see getOrLast.
type keyring struct {
	store   keyStore
	mark    atomic.Uint64 // grows when the keys may have changed
	change  atomic.Uint64 // grows when the keys have changed: older keysets are no longer valid
	sure    atomic.Bool   // no notification is ever lost
	current atomic.Pointer[keyset]

	mu      sync.Mutex
	reading *keyReading        // the current reading; nil: none
	revoked map[engine.ID]*Key // keys known to be revoked, so that the error can say so
}

// keyReading is one reading of the keys, shared by all calls that need it.
type keyReading struct {
	mark uint64
	done chan struct{}
	err  error
}

// changed records that the keys have changed.
func (k *keyring) changed() {
	k.change.Add(1)
	k.mark.Add(1)
}

// doubt records that the keys may have changed, because notifications were lost.
func (k *keyring) doubt() { k.mark.Add(1) }

// get returns a keyset that is no older than keyringAge and not older than any change that this
// server knew of at the call.
func (k *keyring) get(ctx context.Context) (*keyset, error) { return k.read(ctx, keyringAge) }

// read is get with another age; 0: only known changes matter.
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

// getOrLast is get but, while the database does not answer, returns the last keyset. It is for
// metrics, which must be readable during an outage of the database, even if no key was ever made.
//
// Use it only for reading about this server, never for calls that read or change runs. Such a call
// could wait for the database and get through when it returns, with a key that was revoked on
// another server meanwhile. With getOrLast, a revoked key can at most read the metrics of a server
// that is cut off from its database for longer than keyringAge. If the database returns between the
// two reads, that includes the names of queues.
//
// Each call tries to read the keys, so the first one after the outage uses the database's keys. If
// this server knows of a change since the last reading, getOrLast returns the error, as does a
// server that could never read the keys.
func (k *keyring) getOrLast(ctx context.Context) (*keyset, error) {
	r, err := k.get(ctx)
	if err != errKeysAway { // other errors are no outage
		return r, err
	}
	if r = k.current.Load(); r == nil || r.change != k.change.Load() {
		return nil, err
	}
	return r, nil
}

// share reads the keys, or waits for a reading that is in progress.
func (k *keyring) share(ctx context.Context, mark uint64) error {
	k.mu.Lock()
	r, ours := k.reading, false
	if r == nil {
		r, ours = &keyReading{mark: k.mark.Load(), done: make(chan struct{})}, true
		k.reading = r
	}
	k.mu.Unlock()
	if ours {
		defer func() { // also after a panic, because others wait for it
			k.mu.Lock()
			k.reading = nil
			k.mu.Unlock()
			close(r.done)
		}()
		r.err = errKeysUnread // in case the store panics
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

// load reads the keys from the store. It does not use a caller's context, because other callers
// wait for it too.
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

// begin reads what is needed only once: whether notifications can be lost and, if the database has
// keys, which were revoked lately.
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

// remember stores as revoked the keys that are in before and not in after.
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

// wasRevoked returns a key that is known to be revoked, or nil.
func (k *keyring) wasRevoked(id engine.ID) *Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.revoked[id]
}

var (
	errKeysUnread = &engine.Error{Kind: engine.KindUnavailable,
		Message: "the API keys could not be read from the database; try again"}
	// errKeysAway does not mention keys, because perhaps no key was ever made.
	errKeysAway = &engine.Error{Kind: engine.KindUnavailable,
		Message: "the database does not answer; the call was not carried out"}
)

// keysUnread returns the error for callers when reading the keys has failed.
func keysUnread(err error) error {
	if engine.KindOf(err) == engine.KindUnavailable || errors.Is(err, context.DeadlineExceeded) {
		return errKeysAway
	}
	return errKeysUnread
}
