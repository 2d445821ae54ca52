package world

import (
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// The limits of a server that a terminal can run into.
const (
	maxName      = 255
	maxWorkerID  = 64
	maxRequestID = 64
	maxLabels    = 32
	maxLabelKey  = 63
	maxPayload   = 2 << 20
	maxReason    = 1024
	maxBatch     = 1000
	maxPage      = 1000
	usualPage    = 50
	maxTypes     = 256
	maxPriority  = 100
	maxCatchup   = 100_000
	usualCatchup = 100
	minDelay     = time.Millisecond
	maxDelay     = 10 * 365 * 24 * time.Hour
	maxWait      = time.Minute
)

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkName(field, name string) error {
	if name == "" {
		return invalid(field, "must not be empty")
	}
	return checkOptionalName(field, name)
}

func checkOptionalName(field, name string) error {
	if len(name) > maxName {
		return invalid(field, "is %d bytes long, at most %d are allowed", len(name), maxName)
	}
	for i, r := range name {
		if !nameByte(name[i]) {
			return invalid(field, "may hold only letters, digits and . _ : / - (found %q)", r)
		}
	}
	return nil
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._:/-", c) >= 0
}

func checkNamespace(name string) error {
	if name == "" || len(name) > 63 {
		return invalid("namespace", "must have 1 to 63 characters, got %d", len(name))
	}
	for i, r := range name {
		if c := name[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return invalid("namespace", "may hold only lower-case letters, digits and hyphens (found %q)", r)
		}
	}
	return nil
}

// namespaceOf is the namespace that a request names; empty means "default".
func namespaceOf(name string) (string, error) {
	if name == "" {
		return defaultNamespace, nil
	}
	return name, checkNamespace(name)
}

func checkWorkerID(id string) error {
	if id == "" || len(id) > maxWorkerID {
		return invalid("worker_id", "Invalid worker_id: must have 1 to %d characters, got %d", maxWorkerID, len(id))
	}
	for i, r := range id {
		if c := id[i]; !nameByte(c) || strings.IndexByte(".:/", c) >= 0 {
			return invalid("worker_id", "Invalid worker_id: may hold only letters, digits, '-' and '_' (found %q)", r)
		}
	}
	return nil
}

func checkID(field, id string) error {
	if !isID(id) {
		return invalid(field, "must be a UUID, got %q", cut(id))
	}
	return nil
}

func checkOptionalID(field, id string) error {
	if id == "" {
		return nil
	}
	return checkID(field, id)
}

func checkText(field, text string, limit int) error {
	switch {
	case len(text) > limit:
		return invalid(field, "is %d bytes long, at most %d are allowed", len(text), limit)
	case !utf8.ValidString(text):
		return invalid(field, "is not valid UTF-8")
	case strings.IndexByte(text, 0) >= 0:
		return invalid(field, "must not hold a NUL character")
	}
	return nil
}

func checkReason(reason string) error { return checkText("reason", reason, maxReason) }

func checkRequestID(id string) error {
	if len(id) > maxRequestID {
		return invalid("request_id", "is %d bytes long, at most %d are allowed", len(id), maxRequestID)
	}
	return checkOptionalName("request_id", id)
}

func checkLabels(field string, labels map[string]string) error {
	if len(labels) > maxLabels {
		return invalid(field, "has %d entries, at most %d are allowed", len(labels), maxLabels)
	}
	for _, key := range sortedKeys(labels) {
		if len(key) > maxLabelKey {
			return invalid(field, "has a key of %d bytes, at most %d are allowed", len(key), maxLabelKey)
		}
		if err := first(checkName(field, key), checkText(field, labels[key], maxName)); err != nil {
			return err
		}
	}
	return nil
}

func checkPayload(field string, p *kagziv1.Payload) error {
	n := len(p.GetData())
	for k, v := range p.GetMetadata() {
		n += len(k) + len(v)
	}
	if n > maxPayload {
		return tooLarge(field, "has %d bytes, at most %d are allowed", n, maxPayload)
	}
	return nil
}

func checkRetryPolicy(p *kagziv1.RetryPolicy) error {
	switch {
	case p == nil:
		return nil
	case p.MaximumAttempts < -1 || p.MaximumAttempts > 10_000:
		return invalid("retry_policy.maximum_attempts", "must be -1 (without end), 0 (the default) or 1 to 10000, got %d", p.MaximumAttempts)
	case p.InitialIntervalMs < 0:
		return invalid("retry_policy.initial_interval_ms", "must be between 0 and 10 years, got %d", p.InitialIntervalMs)
	case p.MaximumIntervalMs < 0:
		return invalid("retry_policy.maximum_interval_ms", "must be between 0 and 10 years, got %d", p.MaximumIntervalMs)
	case p.BackoffCoefficient != 0 && !(p.BackoffCoefficient >= 1):
		return invalid("retry_policy.backoff_coefficient", "must be 0 (the default) or 1 to 1e9, got %v", p.BackoffCoefficient)
	}
	return nil
}

// timeOf reads a moment; absent is the zero time.
func timeOf(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t != nil && (t.CheckValid() != nil || t.Seconds < 0) {
		return time.Time{}, invalid(field, "is not a valid time after 1970")
	}
	return micros(moment(t)), nil
}

// delayOf reads a length of time that has limits; absent is 0.
func delayOf(field string, d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if d.CheckValid() != nil {
		return 0, invalid(field, "is not a valid duration")
	}
	if n := d.AsDuration(); n < minDelay || n > maxDelay {
		return 0, invalid(field, "must be between 1 ms and 10 years, got %s", n)
	}
	return d.AsDuration(), nil
}

// cut keeps an echo of what was sent short.
func cut(s string) string {
	if len(s) > 64 {
		return s[:64]
	}
	return s
}
