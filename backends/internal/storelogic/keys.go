package storelogic

import (
	"fmt"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// CreateKey makes a key. If the same key with the same id exists, it returns that one.
func CreateKey(tx Tx, p engine.CreateKeyParams) (engine.APIKey, error) {
	u := begin(tx, p.Now)
	k := p.Key
	k.CreatedAt, k.ExpiresAt = u.now, engine.Micros(k.ExpiresAt)
	k.LastUsedAt, k.RevokedAt = time.Time{}, time.Time{}
	known, err := tx.APIKey(k.ID)
	switch {
	case err != nil:
		return engine.APIKey{}, err
	case known == nil:
	case sameKey(known, &k):
		return *known, nil
	default:
		return engine.APIKey{}, keyExists("there is another key with the id "+k.ID.String(), k.ID)
	}
	if err := u.roomForKey(&k); err != nil {
		return engine.APIKey{}, err
	}
	if err := tx.InsertAPIKey(&k); err != nil {
		return engine.APIKey{}, err
	}
	tx.Notify(engine.Notification{Kind: engine.NotifyKeys})
	return k, u.audit(p.By, p.AuditID, "CreateKey", onKey(&k), "", keyDetail(&k))
}

// roomForKey returns an error if the key may not be added to those that exist.
func (u *unitOfWork) roomForKey(k *engine.APIKey) error {
	other, err := u.tx.APIKeyNamed(k.Name)
	if err != nil {
		return err
	}
	if other != nil {
		return keyExists("the name "+k.Name+" is taken by key "+other.ID.String()+
			"; revoke that one first, or choose another name", other.ID)
	}
	all, _, err := u.tx.CountAPIKeys()
	switch {
	case err != nil:
		return err
	case all == 0 && !opensAll(k):
		return &engine.Error{Kind: engine.KindPrecondition, Subject: "key",
			Message: "the first key must be an admin key for all namespaces, because every call needs a key once one exists; make that one first"}
	case all >= engine.MaxKeys:
		return &engine.Error{Kind: engine.KindPrecondition, Subject: "key",
			Message: fmt.Sprintf("there are %d keys, and no more are allowed; revoke some first", all)}
	}
	return nil
}

// RevokeKey revokes a key.
func RevokeKey(tx Tx, p engine.RevokeKeyParams) (engine.APIKey, error) {
	u := begin(tx, p.Now)
	k, err := tx.APIKey(p.ID)
	switch {
	case err != nil:
		return engine.APIKey{}, err
	case k == nil:
		return engine.APIKey{}, engine.KeyNotFound(p.ID)
	case !k.RevokedAt.IsZero():
		return *k, nil
	}
	if opensAll(k) && k.ExpiresAt.IsZero() {
		all, lasting, err := tx.CountAPIKeys()
		if err != nil {
			return engine.APIKey{}, err
		}
		if lasting == 1 && all > 1 {
			return engine.APIKey{}, &engine.Error{
				Kind: engine.KindPrecondition, Subject: "key", SubjectID: k.ID.String(),
				Message: "key " + k.Name +
					" is the last admin key for all namespaces that does not expire; without it nobody could make another key; " +
					"make another such key first, or revoke all other keys before this one"}
		}
	}
	k.RevokedAt = u.now
	if err := tx.RevokeAPIKey(k.ID, k.RevokedAt); err != nil {
		return engine.APIKey{}, err
	}
	tx.Notify(engine.Notification{Kind: engine.NotifyKeys})
	return *k, u.audit(p.By, p.AuditID, "RevokeKey", onKey(k), "", keyDetail(k))
}

// sameKey compares everything that is set when a key is made, except the time.
func sameKey(a, b *engine.APIKey) bool {
	return a.Name == b.Name && a.Role == b.Role && slices.Equal(a.Namespaces, b.Namespaces) &&
		slices.Equal(a.Queues, b.Queues) &&
		slices.Equal(a.Types, b.Types) && slices.Equal(a.WorkerIDs, b.WorkerIDs) && a.Hash == b.Hash &&
		a.ExpiresAt.Equal(b.ExpiresAt)
}

// opensAll says whether the key is an admin key for all namespaces.
func opensAll(k *engine.APIKey) bool { return k.Role == engine.RoleAdmin && len(k.Namespaces) == 0 }

func keyExists(message string, id engine.ID) error {
	return &engine.Error{Kind: engine.KindExists, Subject: "key", SubjectID: id.String(), Message: message}
}

func keyDetail(k *engine.APIKey) string { return k.Role.String() + " " + k.Name }
