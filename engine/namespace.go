package engine

import "time"

// DefaultNamespace is what a request means that names none. It is there before anything has used it, although no store then has it.
const DefaultNamespace = "default"

// Namespace is an isolation boundary of runs, workers and schedules.
type Namespace struct {
	Name        string
	ID          ID
	DisplayName string
	Description string
	Enabled     bool // otherwise nothing starts, is claimed or fires; what a worker holds may finish
	CreatedAt   time.Time
	UpdatedAt   time.Time

	Retention    time.Duration               // of ended runs; 0: the server's setting
	Keep         map[RunStatus]time.Duration // by outcome, goes before Retention
	FailureQueue string                      // where runs of the global failure handler go when no ONLINE worker serves it
}

// RetentionOf is how long runs that ended so are kept; otherwise is the server's setting.
func (n *Namespace) RetentionOf(s RunStatus, otherwise time.Duration) time.Duration {
	if d, ok := n.Keep[s]; ok {
		return d
	}
	if n.Retention > 0 {
		return n.Retention
	}
	return otherwise
}

// NamespaceDisabled is the answer to what a disabled namespace does not allow.
func NamespaceDisabled(name string) error {
	return &Error{Kind: KindPrecondition, Subject: "namespace", SubjectID: name,
		Message: "namespace " + name + " is disabled: enable it with `kagzi namespace enable " + name + "`"}
}

// NamespaceNotFound is the answer for a namespace that nothing has ever used.
func NamespaceNotFound(name string) error {
	return &Error{Kind: KindNotFound, Subject: "namespace", SubjectID: name, Message: "no namespace " + name}
}
