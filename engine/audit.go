package engine

import (
	"time"
)

// Actor says who requested a change.
type Actor struct {
	// a key's name and id, or "local" without authentication; ` via "NAME"` if an agent named itself
	Name string
	Peer string // address of the caller
}

// AuditEvent records a change requested by a person or a key. It is written in the transaction of
// the change.
type AuditEvent struct {
	ID        ID // minted for the moment At
	At        time.Time
	Actor     Actor
	Method    string // as on the wire: "PauseWorkflow"
	Namespace string
	Subject   string // "run", "schedule", "namespace", "key"
	SubjectID string
	Outcome   string // "ok", or why it was refused
	Reason    string // given by the actor
	Detail    string // more about the change, such as the name of an overridden step
}

// AuditFilter selects audit events. Every field that is set must match.
type AuditFilter struct {
	Namespace string
	SubjectID string
}
