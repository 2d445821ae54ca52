package server

import (
	"errors"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// From the wire.

func payloadOf(p *kagziv1.Payload) engine.Payload {
	if p == nil {
		return engine.Payload{}
	}
	return engine.Payload{Data: p.Data, Metadata: p.Metadata}
}

// failureOf reads a failure, made fit to be stored: text that is too long is cut rather than refused, for the report of a failure
// must not fail.
func failureOf(e *kagziv1.ErrorDetail) (engine.Failure, error) {
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
		NonRetryable: e.NonRetryable, RetryAfterMS: e.RetryAfterMs, Subject: e.Subject, SubjectID: e.SubjectId, Metadata: e.Metadata,
	}.Clean(), nil
}

func retryPolicyOf(p *kagziv1.RetryPolicy) *engine.RetryPolicy {
	if p == nil {
		return nil
	}
	return &engine.RetryPolicy{
		MaximumAttempts: int(p.MaximumAttempts), InitialIntervalMS: p.InitialIntervalMs, Coefficient: p.BackoffCoefficient,
		MaximumIntervalMS: p.MaximumIntervalMs, Jitter: p.Jitter, NonRetryable: p.NonRetryableErrors,
	}
}

// milliseconds turns a count into a length of time; one that would overflow becomes one that every check refuses.
func milliseconds(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(max(n, -most), most)) * time.Millisecond
}

func timeoutsOf(t *kagziv1.TimeoutConfig) engine.Timeouts {
	return engine.Timeouts{
		StartToClose: milliseconds(t.GetStartToCloseTimeoutMs()),
		Heartbeat:    milliseconds(t.GetHeartbeatTimeoutMs()),
		Execution:    milliseconds(t.GetExecutionTimeoutMs()),
	}
}

// timeOf reads a moment; absent is the zero time.
func timeOf(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if err := t.CheckValid(); err != nil || t.Seconds < 0 {
		return time.Time{}, engine.Invalid(field, "must be a time from 1970 to the year 9999")
	}
	return engine.Micros(t.AsTime()), nil
}

// durationOf reads a length of time; absent is 0.
func durationOf(field string, d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if err := d.CheckValid(); err != nil {
		return 0, engine.Invalid(field, "is not a valid duration")
	}
	return d.AsDuration(), nil
}

// delayOf reads a length of time that has limits; absent is 0.
func delayOf(field string, d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	length, err := durationOf(field, d)
	if err != nil {
		return 0, err
	}
	return length, engine.CheckDelay(field, length)
}

// within is an error about a field of a message that is itself a field, or an entry, of the request.
func within(outer string, err error) error {
	e, ok := errors.AsType[*engine.Error](err)
	if !ok || e.Field == "" {
		return err
	}
	inner := *e
	inner.Field, inner.Message = outer+"."+e.Field, outer+"."+e.Message
	return &inner
}

func namespaceOf(name string) (string, error) {
	if name == "" {
		return engine.DefaultNamespace, nil
	}
	return name, engine.CheckNamespace("namespace", name)
}

func idOf(field, s string) (engine.ID, error) {
	id, err := engine.ParseID(s)
	if err != nil || id.IsZero() {
		return engine.ID{}, engine.Invalid(field, "must be a UUID, got %q", cut(s))
	}
	return id, nil
}

// optionalIDOf is idOf for a field that may be empty.
func optionalIDOf(field, s string) (engine.ID, error) {
	if s == "" {
		return engine.ID{}, nil
	}
	return idOf(field, s)
}

// cut keeps an echo of what was sent short, and text: an answer with half a character in it cannot be sent.
func cut(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "")
	}
	return s
}
