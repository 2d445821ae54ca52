package rest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Messages are JSON as protobuf defines it, except for payloads: {"json": …} holds the data of a
// payload as it is, digit for digit, and {"base64": "…"} any other data. A payload is rewritten to
// and from protobuf's form, {"data": "BASE64"}, so that package protojson does the rest.
//
// A request is also checked for what package protojson accepts: names that occur twice within a
// payload, and deep nesting.

// maxDepth limits how deep objects and arrays may be nested in a request.
const maxDepth = 100

var payloadName = (*kagziv1.Payload)(nil).ProtoReflect().Descriptor().FullName()

// decode reads a message from a request's JSON.
func decode(body []byte, into proto.Message) error {
	if !utf8.Valid(body) {
		return engine.Invalid("body", "is not valid UTF-8")
	}
	if err := syntax(body); err != nil {
		return err
	}
	s := scanner{in: body, payload: (*scanner).readPayload}
	d := into.ProtoReflect().Descriptor()
	if s.space(); s.in[s.at] != '{' {
		return engine.Invalid("body", "want a JSON object with the fields of %s", d.Name())
	}
	if err := s.value(shape{message: d}); err != nil {
		return err
	}
	if err := protojson.Unmarshal(s.out, into); err != nil {
		return engine.Invalid("body", "%s", plainError(err))
	}
	return nil
}

// syntax returns an error unless the text is one JSON value.
func syntax(text []byte) error {
	var whole json.RawMessage
	err := json.Unmarshal(text, &whole)
	if err == nil {
		return nil
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return engine.Invalid("body", "is empty: want a JSON object, such as {}")
	}
	at := ""
	if e, ok := err.(*json.SyntaxError); ok {
		at = " at byte " + strconv.FormatInt(e.Offset, 10)
	}
	return engine.Invalid("body", "is not JSON%s: %s", at, err)
}

// plainError returns an error of package protojson without its prefix, which varies on purpose.
func plainError(err error) string {
	text := strings.TrimPrefix(err.Error(), "proto:")
	return strings.TrimLeft(text, "\u00a0 ")
}

// encode returns a message as JSON on one line.
func encode(m proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	s := scanner{in: text, payload: (*scanner).writePayload}
	if err := s.value(shape{message: m.ProtoReflect().Descriptor()}); err != nil {
		return nil, err
	}
	var line bytes.Buffer
	err = json.Compact(&line, s.out)
	return line.Bytes(), err
}

// shape is what a place in the text may hold. Its zero value is any JSON.
type shape struct {
	message protoreflect.MessageDescriptor
	many    bool // a list or a map of it
}

// shapeOf returns the shape of a field's value.
func shapeOf(field protoreflect.FieldDescriptor) shape {
	message := field.Message()
	if field.IsMap() {
		message = field.MapValue().Message()
	}
	if message == nil || strings.HasPrefix(string(message.FullName()), "google.") {
		return shape{}
	}
	return shape{message: message, many: field.IsMap() || field.IsList()}
}

// field returns the shape of a member of an object.
func (s shape) field(name string) shape {
	switch {
	case s.message == nil:
		return shape{}
	case s.many:
		return shape{message: s.message}
	}
	fields := s.message.Fields()
	field := fields.ByJSONName(name)
	if field == nil {
		field = fields.ByTextName(name)
	}
	if field == nil {
		return shape{} // package protojson refuses it
	}
	return shapeOf(field)
}

// scanner copies valid JSON from in to out and rewrites its payloads.
type scanner struct {
	in, out []byte
	at      int
	depth   int
	path    []string
	payload func(*scanner) error // rewrites the payload at s.at
}

func (s *scanner) space() {
	for strings.IndexByte(" \t\r\n", s.in[s.at]) >= 0 {
		s.at++
	}
}

// copied appends the input from a place on.
func (s *scanner) copied(from int) { s.out = append(s.out, s.in[from:s.at]...) }

// refuse returns an error about the current place.
func (s *scanner) refuse(format string, args ...any) error {
	place := strings.Join(s.path, ".")
	if place == "" {
		place = "body"
	}
	return engine.Invalid(place, format, args...)
}

// value copies one value.
func (s *scanner) value(of shape) error {
	s.space()
	from := s.at
	switch c := s.in[s.at]; {
	case of.message != nil && !of.many && of.message.FullName() == payloadName && c != 'n':
		return s.nested(s.payload)
	case c == '{':
		return s.nested(func(s *scanner) error {
			s.out = append(s.out, '{')
			err := s.members(func(name string, raw []byte) error {
				if len(s.out) > 0 && s.out[len(s.out)-1] != '{' {
					s.out = append(s.out, ',')
				}
				s.out = append(append(s.out, raw...), ':')
				return s.value(of.field(name))
			})
			s.out = append(s.out, '}')
			return err
		})
	case c == '[':
		return s.nested(func(s *scanner) error { return s.elements(shape{message: of.message}) })
	case c == '"':
		s.text()
	default:
		for s.at < len(s.in) && strings.IndexByte(",]} \t\r\n", s.in[s.at]) < 0 {
			s.at++
		}
	}
	s.copied(from)
	return nil
}

// nested copies an object or array one level deeper.
func (s *scanner) nested(copy func(*scanner) error) error {
	if s.depth++; s.depth > maxDepth {
		return s.refuse("is nested deeper than %d levels", maxDepth)
	}
	defer func() { s.depth-- }()
	return copy(s)
}

// members calls each for the members of an object, with the scanner at the member's value. raw is
// the name as it is written.
func (s *scanner) members(each func(name string, raw []byte) error) error {
	s.at++ // {
	seen := map[string]bool{}
	for s.space(); s.in[s.at] != '}'; s.space() {
		from := s.at
		name := s.text()
		raw := s.in[from:s.at]
		if seen[name] {
			return s.refuse("the name %s occurs twice", raw[:min(len(raw), 100)])
		}
		seen[name] = true
		s.space()
		s.at++ // :
		s.space()
		s.path = append(s.path, name)
		if err := each(name, raw); err != nil {
			return err
		}
		s.path = s.path[:len(s.path)-1]
		if s.space(); s.in[s.at] == ',' {
			s.at++
		}
	}
	s.at++ // }
	return nil
}

// elements copies an array.
func (s *scanner) elements(of shape) error {
	s.out = append(s.out, '[')
	s.at++
	for s.space(); s.in[s.at] != ']'; s.space() {
		if err := s.value(of); err != nil {
			return err
		}
		if s.space(); s.in[s.at] == ',' {
			s.out = append(s.out, ',')
			s.at++
		}
	}
	s.out = append(s.out, ']')
	s.at++
	return nil
}

// text skips a string and returns it.
func (s *scanner) text() string {
	from, escaped := s.at, false
	for s.at++; s.in[s.at] != '"'; s.at++ {
		if s.in[s.at] == '\\' {
			escaped = true
			s.at++
		}
	}
	s.at++
	if !escaped {
		return string(s.in[from+1 : s.at-1])
	}
	var plain string
	_ = json.Unmarshal(s.in[from:s.at], &plain) // it is valid
	return plain
}

// raw skips a value and returns it as it is written; nested values are checked.
func (s *scanner) raw() ([]byte, error) {
	from, out := s.at, len(s.out)
	err := s.value(shape{})
	s.out = s.out[:out]
	return s.in[from:s.at], err
}

// readPayload copies a payload in protobuf's form.
func (s *scanner) readPayload() error {
	const want = `want a payload: {"json": …} or {"base64": "…"}`
	if s.in[s.at] != '{' {
		return s.refuse(want)
	}
	var data, metadata []byte
	err := s.members(func(name string, _ []byte) error {
		value, err := s.raw()
		switch {
		case err != nil:
			return err
		case name == "metadata":
			metadata = value
			return nil
		case name != "json" && name != "base64":
			return s.refuse("is no member of a payload: " + want)
		case data != nil:
			return s.refuse("a payload has json or base64, not both")
		case name == "json":
			data = []byte(`"` + base64.StdEncoding.EncodeToString(value) + `"`)
		case value[0] != '"':
			return s.refuse("want a string in base64")
		default:
			data = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	if data == nil {
		return s.refuse(want)
	}
	s.out = append(append(s.out, `{"data":`...), data...)
	if metadata != nil {
		s.out = append(append(s.out, `,"metadata":`...), metadata...)
	}
	s.out = append(s.out, '}')
	return nil
}

// writePayload copies a payload from protobuf's form.
func (s *scanner) writePayload() error {
	var encoded, metadata []byte
	err := s.members(func(name string, _ []byte) (err error) {
		if name == "data" {
			encoded, err = s.raw()
		} else {
			metadata, err = s.raw()
		}
		return err
	})
	if err != nil {
		return err
	}
	if encoded == nil {
		encoded = []byte(`""`)
	}
	data, err := base64.StdEncoding.DecodeString(string(encoded[1 : len(encoded)-1]))
	if err != nil {
		return err
	}
	if isJSON(data, metadata) {
		s.out = append(append(s.out, `{"json":`...), data...)
	} else {
		s.out = append(append(s.out, `{"base64":`...), encoded...)
	}
	if metadata != nil {
		s.out = append(append(s.out, `,"metadata":`...), metadata...)
	}
	s.out = append(s.out, '}')
	return nil
}

// isJSON reports whether a payload's data is JSON that a request may hold too, and is meant as such.
func isJSON(data, metadata []byte) bool {
	var meta map[string]string
	if metadata != nil && json.Unmarshal(metadata, &meta) != nil || meta["encoding"] != "" {
		return false
	}
	if kind := meta["content-type"]; kind != "" {
		if kind, _, err := mime.ParseMediaType(kind); err != nil || kind != "application/json" {
			return false
		}
	}
	if !utf8.Valid(data) || !json.Valid(data) {
		return false
	}
	s := scanner{in: data}
	_, err := s.raw()
	return err == nil
}
