package engine

import (
	"time"
)

// Actor is who asks for a change.
type Actor struct {
	Name string // a key's name and id, or "local" without authentication
	Peer string // where the call came from
}

// AuditEvent is a change made by a person or a key, written in the transaction that made it.
type AuditEvent struct {
	ID        ID // minted for the moment At
	At        time.Time
	Actor     Actor
	Method    string // the verb, as on the wire: "PauseWorkflow"
	Namespace string
	Subject   string // "run", "schedule", "namespace", "key"
	SubjectID string
	Outcome   string // "ok", or why it was refused
	Reason    string // as the actor gave it
	Detail    string // what the change was about, such as the step that was overridden
}

// AuditFilter selects audit events; every field that is set must hold.
type AuditFilter struct {
	Namespace string
	SubjectID string
}
