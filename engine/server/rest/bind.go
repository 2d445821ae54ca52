package rest

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
)

// bindPath sets the fields in the path. One that the body has too must be the same there.
func bindPath(m protoreflect.Message, r *route, values []string) error {
	for _, s := range r.segments {
		if s.field == nil {
			continue
		}
		at, field := within(m, s.field)
		name := nameOf(s.field)
		if !utf8.ValidString(values[0]) {
			return engine.Invalid(name, "is not valid UTF-8 in the path")
		}
		if at.Has(field) && at.Get(field).String() != values[0] {
			return engine.Invalid(name, "differs between path and body")
		}
		at.Set(field, protoreflect.ValueOfString(values[0]))
		values = values[1:]
	}
	return nil
}

// within returns the message that holds the last of the fields; it makes those on the way.
func within(m protoreflect.Message, path []protoreflect.FieldDescriptor) (protoreflect.Message,
	protoreflect.FieldDescriptor) {
	for _, field := range path[:len(path)-1] {
		m = m.Mutable(field).Message()
	}
	return m, path[len(path)-1]
}

func nameOf(path []protoreflect.FieldDescriptor) string {
	names := make([]string, len(path))
	for i, field := range path {
		names[i] = string(field.Name())
	}
	return strings.Join(names, ".")
}

// bindQuery sets the fields in the query: by name, with dots for fields within fields, NAME[KEY]
// for a map, and several times for a list. The fields of a page need no "page." before them.
func bindQuery(m protoreflect.Message, r *route, raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return engine.Invalid("query", "cannot be read: %s", err)
	}
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names) // so that of several errors always the same is told
	for _, name := range names {
		if err := bindParameter(m, r, name, query[name]); err != nil {
			return err
		}
	}
	return nil
}

func bindParameter(m protoreflect.Message, r *route, name string, values []string) error {
	label := cutName(name)
	base, key, isEntry := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	path := fieldPath(m.Descriptor(), base)
	if path == nil {
		path = fieldPath(m.Descriptor(), "page."+base)
	}
	if path == nil {
		return engine.Invalid(label, "%s has no such parameter; see /openapi.json", r.method.Name())
	}
	for _, s := range r.segments {
		if s.field != nil && nameOf(s.field) == nameOf(path) {
			return engine.Invalid(label, "is in the path, and cannot be in the query")
		}
	}
	for _, value := range values {
		if !utf8.ValidString(value) || !utf8.ValidString(key) {
			return engine.Invalid(label, "is not valid UTF-8")
		}
	}
	at, field := within(m, path)
	switch {
	case isEntry != field.IsMap():
		if field.IsMap() {
			return engine.Invalid(label, "want %s[KEY]=VALUE", label)
		}
		return engine.Invalid(label, "has no entries")
	case !field.IsList() && len(values) > 1:
		return engine.Invalid(label, "is there %d times; want it once", len(values))
	case field.IsMap():
		if field.MapValue().Kind() != protoreflect.StringKind {
			return engine.Invalid(label, "cannot be given in the query")
		}
		at.Mutable(field).Map().Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(values[0]))
		return nil
	case !field.IsList() && at.Has(field):
		return engine.Invalid(label, "is there under two names; want it once")
	}
	for _, text := range values {
		value, err := parse(field, at, text)
		if err != nil {
			return engine.Invalid(label, "%s", err)
		}
		if field.IsList() {
			at.Mutable(field).List().Append(value)
		} else {
			at.Set(field, value)
		}
	}
	return nil
}

// cutName shortens the name of a parameter for an error.
func cutName(name string) string { return strings.ToValidUTF8(name[:min(len(name), 100)], "?") }

// parse reads a value from a query.
func parse(field protoreflect.FieldDescriptor, in protoreflect.Message, text string) (v protoreflect.Value, err error) {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text), nil
	case protoreflect.BoolKind:
		if text != "true" && text != "false" {
			return v, fmt.Errorf("want true or false, not %q", text[:min(len(text), 40)])
		}
		return protoreflect.ValueOfBool(text == "true"), nil
	case protoreflect.Int32Kind:
		n, err := strconv.ParseInt(text, 10, 32)
		return protoreflect.ValueOfInt32(int32(n)), wantNumber(err)
	case protoreflect.Int64Kind:
		n, err := strconv.ParseInt(text, 10, 64)
		return protoreflect.ValueOfInt64(n), wantNumber(err)
	case protoreflect.EnumKind:
		if known := field.Enum().Values().ByName(protoreflect.Name(text)); known != nil {
			return protoreflect.ValueOfEnum(known.Number()), nil
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return v, fmt.Errorf("want a name such as %s", field.Enum().Values().Get(1).Name())
		}
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n)), nil
	case protoreflect.MessageKind:
		var example string
		switch field.Message().FullName() {
		case "google.protobuf.Timestamp":
			example = "2026-11-20T12:00:00Z"
		case "google.protobuf.Duration":
			example = "30s or 0.5s"
		default:
			return v, fmt.Errorf("cannot be given in the query; give its fields, such as %s.%s", field.Name(),
				field.Message().Fields().Get(0).Name())
		}
		one := in.NewField(field).Message()
		if field.IsList() {
			one = in.Mutable(field).List().NewElement().Message()
		}
		if err := protojson.Unmarshal([]byte(strconv.Quote(text)), one.Interface()); err != nil {
			return v, fmt.Errorf("want %s, not %q", example, text[:min(len(text), 40)])
		}
		return protoreflect.ValueOfMessage(one), nil
	}
	return v, fmt.Errorf("cannot be given in the query")
}

func wantNumber(err error) error {
	if err != nil {
		return fmt.Errorf("want a whole number within its range")
	}
	return nil
}

// idempotencyKey is the header with the request id of a call.
const idempotencyKey = "Idempotency-Key"

// bindKey sets the request id of a call, or the id of a signal, from the header. Calls without one
// have the same effect when they are repeated, except for a batch, whose starts have ids each.
func bindKey(m protoreflect.Message, r *route, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	key := keys[0]
	switch {
	case len(keys) > 1:
		return engine.Invalid(idempotencyKey, "is there %d times; want it once", len(keys))
	case key == "" || len(key) > engine.MaxRequestID:
		return engine.Invalid(idempotencyKey, "want 1 to %d bytes, not %d", engine.MaxRequestID, len(key))
	case !utf8.ValidString(key):
		return engine.Invalid(idempotencyKey, "is not valid UTF-8")
	}
	fields := m.Descriptor().Fields()
	field := fields.ByName("request_id")
	if field == nil {
		field = fields.ByName("signal_id")
	}
	switch {
	case field != nil && m.Has(field) && m.Get(field).String() != key:
		return engine.Invalid(idempotencyKey, "differs from %s in the request", field.Name())
	case field != nil:
		m.Set(field, protoreflect.ValueOfString(key))
	case r.method.Name() == "StartWorkflows":
		return engine.Invalid(idempotencyKey, "is for one run; give each of the requests its own request_id")
	}
	return nil
}

// checkSize refuses a request that is too large as a message.
func checkSize(m proto.Message) error {
	if n := proto.Size(m); n > engine.MaxMessage {
		return engine.TooLarge("body", "is a message of %d bytes, more than the %d that are allowed", n,
			engine.MaxMessage)
	}
	return nil
}
