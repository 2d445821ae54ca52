package engine

// Payload is a user's data: kept and returned byte for byte, never looked into.
type Payload struct {
	Data     []byte
	Metadata map[string]string // hints for readers, such as content-type
}

// Size is what the payload counts against the limits: its data and its metadata, in bytes.
func (p Payload) Size() int {
	n := len(p.Data)
	for k, v := range p.Metadata {
		n += len(k) + len(v)
	}
	return n
}

// Equal says that both hold the same data and metadata; nil and empty are the same.
func (p Payload) Equal(q Payload) bool {
	if string(p.Data) != string(q.Data) || len(p.Metadata) != len(q.Metadata) {
		return false
	}
	for k, v := range p.Metadata {
		if w, ok := q.Metadata[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// FailureCode says what kind of failure was recorded. The numbers are those of ErrorCode on the wire.
type FailureCode int32

const (
	FailureUnspecified FailureCode = 0
	FailureTimeout     FailureCode = 8   // start_to_close or the run's own limit passed
	FailureCancelled   FailureCode = 100 // the run was cancelled or terminated
	FailureExhausted   FailureCode = 101 // a size or a count would pass its limit
	FailureLeaseLost   FailureCode = 102 // only as code reports it
	FailureCrashed     FailureCode = 103 // the worker was lost; only Kagzi itself records this one
)

// Failure is why a step or a run failed, as its code reported it.
type Failure struct {
	Code         FailureCode       `json:"code,omitempty"`
	Type         string            `json:"type,omitempty"` // the application's own, matched against RetryPolicy.NonRetryable
	Message      string            `json:"message,omitempty"`
	Stack        string            `json:"stack,omitempty"`
	NonRetryable bool              `json:"non_retryable,omitempty"`
	RetryAfterMS int64             `json:"retry_after_ms,omitempty"` // the code's own wish for the delay; 0: the policy decides
	Subject      string            `json:"subject,omitempty"`        // what it is about, in the code's own words
	SubjectID    string            `json:"subject_id,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
}

// Equal says that both report the same failure.
func (f Failure) Equal(g Failure) bool {
	return f.Code == g.Code && f.Type == g.Type && f.Message == g.Message && f.Stack == g.Stack &&
		f.NonRetryable == g.NonRetryable && f.RetryAfterMS == g.RetryAfterMS &&
		f.Subject == g.Subject && f.SubjectID == g.SubjectID &&
		Payload{Metadata: f.Metadata}.Equal(Payload{Metadata: g.Metadata})
}

// Size is what the failure counts against the run's limit, in bytes.
func (f Failure) Size() int {
	return len(f.Type) + len(f.Message) + len(f.Stack) + len(f.Subject) + len(f.SubjectID) + Payload{Metadata: f.Metadata}.Size()
}

// String is the code's name on the wire.
func (c FailureCode) String() string {
	names := [...]string{
		"UNSPECIFIED", "NOT_FOUND", "INVALID_ARGUMENT", "PRECONDITION_FAILED", "CONFLICT", "UNAUTHORIZED", "UNAVAILABLE", "INTERNAL", "TIMEOUT",
	}
	switch {
	case c >= 0 && int(c) < len(names):
		return "ERROR_CODE_" + names[c]
	case c == FailureCancelled:
		return "ERROR_CODE_CANCELLED"
	case c == FailureExhausted:
		return "ERROR_CODE_RESOURCE_EXHAUSTED"
	case c == FailureLeaseLost:
		return "ERROR_CODE_LEASE_LOST"
	case c == FailureCrashed:
		return "ERROR_CODE_CRASHED"
	}
	return "ERROR_CODE_UNSPECIFIED"
}
