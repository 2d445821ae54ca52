package engine

import (
	"context"
	"time"
)

// Keys are the API keys, and who was refused. Every verb that changes one sends NotifyKeys.
type Keys interface {
	// CreateKey makes a key. A name that a key has which is not revoked is ErrExists. While there is no key at all, revoked ones
	// aside, only an admin's for all namespaces can be made, because the first one locks everybody else out: ErrPrecondition. So is a
	// key too many (MaxKeys that are not revoked). Names of namespaces need not be in use.
	CreateKey(ctx context.Context, p CreateKeyParams) (APIKey, error)
	// RevokeKey makes a key worthless for good; one that is revoked stays as it is and is returned. KeyNotFound. The last key that is
	// neither revoked nor ever expires of an admin for all namespaces is ErrPrecondition as long as other keys are not revoked: nobody could
	// make another. When the last key of all is revoked the database is without keys again.
	RevokeKey(ctx context.Context, p RevokeKeyParams) (APIKey, error)
	// Keyring is every key that is not revoked, by ID.
	Keyring(ctx context.Context) ([]APIKey, error)
	// ListKeys is all keys, newest first, by ID.
	ListKeys(ctx context.Context, p Page) ([]APIKey, PageInfo, error)
	// NoteKeyUse moves LastUsedAt of keys forward, never back; keys that are not there are left out. It notifies nothing.
	NoteKeyUse(ctx context.Context, uses []KeyUse) error
	// NoteRefusal writes an audit event that no verb writes: of a change that was refused before any verb of this store was asked. It may be
	// repeated with the same ID.
	NoteRefusal(ctx context.Context, e AuditEvent) error
}

// CreateKeyParams says what to make. The audit event has Subject "key", the key's id, and as Detail its role and name.
type CreateKeyParams struct {
	Key     APIKey // with ID and Hash, which the caller minted; CreatedAt is Now
	By      Actor
	AuditID ID
	Now     time.Time
}

// RevokeKeyParams names a key.
type RevokeKeyParams struct {
	ID      ID
	By      Actor
	AuditID ID
	Now     time.Time
}

// KeyUse is that a key was used.
type KeyUse struct {
	ID ID
	At time.Time
}
