// Package wire converts messages of the API to types of package engine and back, and engine errors
// to gRPC errors. It has no state and uses no store.
//
// Functions that read a message are named XOf and validate it (convert.go, start.go, register.go,
// filter.go). Functions that make a message are named XTo (encode*.go). page.go and cursor.go
// handle pages of lists. errors.go has the table of error codes. codec.go has the codec that lets
// malformed messages reach the interceptors. redact.go removes payloads from messages.
package wire

import (
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// PayloadOf reads a payload; nil is the empty one.
func PayloadOf(p *kagziv1.Payload) engine.Payload {
	if p == nil {
		return engine.Payload{}
	}
	return engine.Payload{Data: p.Data, Metadata: p.Metadata}
}

// FailureOf reads a failure. Text that is too long is cut, not refused, because reporting a failure
// must not fail.
func FailureOf(e *kagziv1.ErrorDetail) (engine.Failure, error) {
	if e == nil {
		return engine.Failure{}, engine.Invalid("error", "must be set")
	}
	if _, known := kagziv1.ErrorCode_name[int32(e.Code)]; !known {
		return engine.Failure{}, engine.Invalid("error.code", "has the unknown value %d", e.Code)
	}
	if e.RetryAfterMs < 0 {
		return engine.Failure{}, engine.Invalid("error.retry_after_ms", "must not be negative, got %d", e.RetryAfterMs)
	}
	return engine.Failure{
		Code: engine.FailureCode(e.Code), Type: e.Type, Message: e.Message, Stack: e.Stack,
		NonRetryable: e.NonRetryable, RetryAfterMS: e.RetryAfterMs, Subject: e.Subject, SubjectID: e.SubjectId,
		Metadata: e.Metadata,
	}.Clean(), nil
}

// RetryPolicyOf reads a retry policy; nil for nil.
func RetryPolicyOf(p *kagziv1.RetryPolicy) *engine.RetryPolicy {
	if p == nil {
		return nil
	}
	return &engine.RetryPolicy{
		MaximumAttempts: int(p.MaximumAttempts), InitialIntervalMS: p.InitialIntervalMs,
		Coefficient:       p.BackoffCoefficient,
		MaximumIntervalMS: p.MaximumIntervalMs, Jitter: p.Jitter, NonRetryable: p.NonRetryableErrors,
	}
}

// Milliseconds returns n milliseconds. A number that would overflow becomes a duration that every
// check refuses.
func Milliseconds(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(max(n, -most), most)) * time.Millisecond
}

// TimeoutsOf reads timeouts; 0 if not set.
func TimeoutsOf(t *kagziv1.TimeoutConfig) engine.Timeouts {
	return engine.Timeouts{
		StartToClose: Milliseconds(t.GetStartToCloseTimeoutMs()),
		Heartbeat:    Milliseconds(t.GetHeartbeatTimeoutMs()),
		Execution:    Milliseconds(t.GetExecutionTimeoutMs()),
	}
}

// TimeOf reads a time; nil is the zero time.
func TimeOf(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if err := t.CheckValid(); err != nil || t.Seconds < 0 {
		return time.Time{}, engine.Invalid(field, "must be a time from 1970 to the year 9999")
	}
	return engine.Micros(t.AsTime()), nil
}

// DurationOf reads a duration; nil is 0.
func DurationOf(field string, d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if err := d.CheckValid(); err != nil {
		return 0, engine.Invalid(field, "is not a valid duration")
	}
	return d.AsDuration(), nil
}

// DelayOf reads a duration between MinDelay and MaxDelay; nil is 0.
func DelayOf(field string, d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	length, err := DurationOf(field, d)
	if err != nil {
		return 0, err
	}
	return length, engine.CheckDelay(field, length)
}

// Within returns err with outer as a prefix of its field, for a message inside the request.
func Within(outer string, err error) error {
	e, ok := errors.AsType[*engine.Error](err)
	if !ok || e.Field == "" {
		return err
	}
	inner := *e
	inner.Field, inner.Message = outer+"."+e.Field, outer+"."+e.Message
	return &inner
}

// NamespaceOf reads a namespace; empty means "default".
func NamespaceOf(name string) (string, error) {
	if name == "" {
		return engine.DefaultNamespace, nil
	}
	return name, engine.CheckNamespace("namespace", name)
}

// IDOf reads an id that must be set.
func IDOf(field, s string) (engine.ID, error) {
	id, err := engine.ParseID(s)
	if err != nil || id.IsZero() {
		return engine.ID{}, engine.Invalid(field, "must be a UUID, got %q", Cut(s))
	}
	return id, nil
}

// OptionalIDOf is IDOf for a field that may be empty.
func OptionalIDOf(field, s string) (engine.ID, error) {
	if s == "" {
		return engine.ID{}, nil
	}
	return IDOf(field, s)
}

// Cut shortens sent text that an error quotes. The result is valid UTF-8, or the answer could not
// be sent.
func Cut(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "")
	}
	return s
}

// RunOf reads the namespace and the run id of a request.
func RunOf(r interface {
	GetNamespace() string
	GetRunId() string
}) (string, engine.ID, error) {
	namespace, err := NamespaceOf(r.GetNamespace())
	if err != nil {
		return "", engine.ID{}, err
	}
	id, err := IDOf("run_id", r.GetRunId())
	return namespace, id, err
}

// OrDefault returns the name, or "default" for the empty one.
func OrDefault(name string) string {
	if name == "" {
		return "default"
	}
	return name
}

// WaitOf reads how long a call may wait; nil is most.
func WaitOf(d *durationpb.Duration, most time.Duration) (time.Duration, error) {
	if d == nil {
		return most, nil
	}
	wait, err := DurationOf("wait", d)
	if err != nil {
		return 0, err
	}
	if wait < 0 || wait > engine.MaxPollWait {
		return 0, engine.Invalid("wait", "must be between 0 and %s, got %s", engine.MaxPollWait, wait)
	}
	return wait, nil
}

// Dedupe removes duplicates and keeps the order.
func Dedupe(names []string) []string {
	var kept []string
	for _, name := range names {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// FitTrace returns a trace context if it is valid to store; otherwise it is dropped, because it is
// only a hint.
func FitTrace(text string) string {
	if len(text) > 64 || engine.CheckOptionalName("traceparent", text) != nil {
		return ""
	}
	return text
}
