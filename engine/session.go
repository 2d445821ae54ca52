package engine

import "time"

const (
	// SessionIdle is how long a session lasts after its last use.
	SessionIdle = 24 * time.Hour
	// SessionLife is how long a session lasts at most.
	SessionLife = 14 * 24 * time.Hour
	// MaxKeySessions limits the sessions of one key; a new one ends the oldest.
	MaxKeySessions = 100
	// MaxSessionsPruned limits the expired sessions that a new one deletes.
	MaxSessionsPruned = 200
)

// Session lets a browser act for an API key without holding the key: it has a secret of its own. It
// has the role and the namespaces of its key, and is of no use once the key is revoked or has
// expired. The secret itself is not stored.
type Session struct {
	ID        ID
	KeyID     ID
	Hash      [32]byte // SHA-256 of the secret, as of APIKey
	CreatedAt time.Time
	UsedAt    time.Time // approximate, see NoteSessionUse; at first CreatedAt
	ExpiresAt time.Time // not valid from then on: SessionIdle after UsedAt, at most SessionLife after CreatedAt
}

// SessionExpiry returns when a session expires that was made and last used at these times.
func SessionExpiry(made, used time.Time) time.Time {
	idle, life := used.Add(SessionIdle), made.Add(SessionLife)
	if idle.Before(life) {
		return idle
	}
	return life
}

// SessionNotFound returns the error for a session that does not exist: it has ended, has expired or
// was never made.
func SessionNotFound(id ID) error {
	return &Error{Kind: KindNotFound, Subject: "session", SubjectID: id.String(), Message: "no session " + id.String()}
}
