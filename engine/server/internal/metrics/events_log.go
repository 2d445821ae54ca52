package metrics

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	maxEventValue      = 1 << 10 // bytes; longer is cut with engine.CutMark
	maxEventAttributes = 32
	hidden             = "(hidden)"
)

// Handler returns a handler that passes records to next, and keeps those of level INFO and above
// even if next has a higher level.
func (e *Events) Handler(next slog.Handler) slog.Handler {
	return &eventHandler{events: e, next: next}
}

// eventHandler is a slog.Handler that also writes to Events.
type eventHandler struct {
	events     *Events
	next       slog.Handler
	attributes []*kagziv1.EventAttribute // of WithAttrs; immutable
	prefix     string                    // the open groups, each followed by a dot
}

func (h *eventHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.next.Enabled(ctx, level)
}

func (h *eventHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo && h.events.admit(r.Level, r.Message) {
		attributes := slices.Clone(h.attributes)
		r.Attrs(func(a slog.Attr) bool {
			attributes = appendAttribute(attributes, h.prefix, a)
			return true
		})
		at := r.Time
		if at.IsZero() || h.events.Clock != nil {
			at = h.events.now()
		}
		h.events.keep(at, r.Level, r.Message, attributes)
	}
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

func (h *eventHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	with := *h
	with.next = h.next.WithAttrs(attributes)
	with.attributes = slices.Clone(h.attributes)
	for _, a := range attributes {
		with.attributes = appendAttribute(with.attributes, h.prefix, a)
	}
	return &with
}

func (h *eventHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	with := *h
	with.next = h.next.WithGroup(name)
	with.prefix += name + "."
	return &with
}

// appendAttribute adds an attribute; those of a group get its name and a dot as a prefix.
func appendAttribute(to []*kagziv1.EventAttribute, prefix string, a slog.Attr) []*kagziv1.EventAttribute {
	value := a.Value.Resolve()
	switch {
	case a.Equal(slog.Attr{}) || len(to) >= maxEventAttributes:
		return to
	case value.Kind() == slog.KindGroup:
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, member := range value.Group() {
			to = appendAttribute(to, prefix, member)
		}
		return to
	}
	text := hidden
	if !secret(a.Key) {
		text = valueOf(value)
	}
	return append(to, &kagziv1.EventAttribute{Key: fitValue(prefix + a.Key), Value: text})
}

// secret says whether to hide the value of an attribute with this name.
func secret(key string) bool {
	key = strings.ToLower(key)
	return strings.Contains(key, "password") || strings.Contains(key, "secret") || strings.HasSuffix(key, "token") ||
		strings.HasSuffix(key, "api_key")
}

// passwords matches passwords in URLs, after the user's name.
var passwords = regexp.MustCompile(`(://[^\s/?#:@]*):[^\s/?#]*@`)

// valueOf returns a value as text, without passwords in URLs. Users' text is not escaped; programs
// that show it have to do that.
func valueOf(v slog.Value) string {
	v = v.Resolve()
	text := ""
	switch v.Kind() {
	case slog.KindTime:
		if !v.Time().IsZero() {
			text = v.Time().UTC().Format(time.RFC3339Nano)
		}
	default:
		text = v.String()
	}
	if strings.Contains(text, "://") {
		text = passwords.ReplaceAllString(text, "$1:"+hidden+"@")
	}
	return fitValue(text)
}

// fitValue returns text as valid UTF-8 of at most maxEventValue bytes.
func fitValue(text string) string {
	if len(text) <= maxEventValue {
		return strings.ToValidUTF8(text, "\ufffd")
	}
	return strings.ToValidUTF8(text[:maxEventValue-len(engine.CutMark)], "") + engine.CutMark
}
