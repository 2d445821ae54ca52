package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// defaultGrace is how long a run may clean up when it is cancelled, as for other clients of people.
const defaultGrace = 30 * time.Second

// argumentError is about one argument.
type argumentError struct{ name, text string }

func (e *argumentError) Error() string { return e.name + ": " + e.text }

// request returns the request that the arguments of a call make, and where a text that was cut goes
// on.
func (t *tool) request(arguments []byte, namespace string) (m proto.Message, offset int, err error) {
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(arguments)) > 0 {
		if err := json.Unmarshal(arguments, &given); err != nil {
			return nil, 0, &argumentError{"arguments", "want a JSON object"}
		}
	}
	message := t.method.input.New()
	fields := message.Descriptor().Fields()
	for _, name := range strings.Fields(t.arguments) {
		name, must := strings.CutSuffix(name, "!")
		text, ok := given[name]
		if !ok || string(text) == "null" {
			if must {
				return nil, 0, &argumentError{name, "is missing"}
			}
			continue
		}
		if err := set(message, fields.ByName(protoreflect.Name(name)), text); err != nil {
			return nil, 0, &argumentError{name, err.Error()}
		}
	}
	for _, name := range unknown(given, t.names()) {
		return nil, 0, &argumentError{name, "is unknown; " + t.name + " takes " + strings.Join(t.names(), ", ")}
	}
	if field := fields.ByName("namespace"); field != nil && message.Get(field).String() == "" {
		message.Set(field, protoreflect.ValueOfString(namespace))
	}
	m = message.Interface()
	if r, ok := m.(*kagziv1.CancelWorkflowRequest); ok && r.Grace == nil {
		r.Grace = durationpb.New(defaultGrace)
	}
	offset, err = t.readOn(m, given)
	return m, offset, err
}

// unknown returns the names that are not known, sorted.
func unknown(given map[string]json.RawMessage, known []string) (list []string) {
	for name := range given {
		if !slices.Contains(known, name) {
			list = append(list, strconv.QuoteToASCII(name[:min(len(name), 60)]))
		}
	}
	slices.Sort(list)
	return list
}

// readOn sets where the answer begins: the page of a list, or else the offset in a text.
func (t *tool) readOn(m proto.Message, given map[string]json.RawMessage) (offset int, err error) {
	from, size := "", defaultLimit
	if text, ok := given[cursor]; ok && json.Unmarshal(text, &from) != nil {
		return 0, &argumentError{cursor, "want a string"}
	}
	if text, ok := given[limit]; ok && (json.Unmarshal(text, &size) != nil || size < 1 || size > maxLimit) {
		return 0, &argumentError{limit, fmt.Sprintf("want a whole number from 1 to %d", maxLimit)}
	}
	if t.pages() {
		setPageSize(m, size)
		m.(interface{ GetPage() *kagziv1.PageRequest }).GetPage().PageToken = from
		return 0, nil
	}
	return offsetOf(from)
}

// offsetOf reads the cursor of a text.
func offsetOf(from string) (int, error) {
	if from == "" {
		return 0, nil
	}
	offset, err := strconv.Atoi(from)
	if err != nil || offset < 0 {
		return 0, &argumentError{cursor, "is none of this answer's"}
	}
	return offset, nil
}

func setPageSize(m proto.Message, size int) {
	r := m.ProtoReflect()
	page := r.Mutable(r.Descriptor().Fields().ByName("page")).Message().Interface().(*kagziv1.PageRequest)
	page.PageSize = int32(size)
}

// set sets a field to a value in JSON. The error says what is wanted.
func set(m protoreflect.Message, field protoreflect.FieldDescriptor, text json.RawMessage) error {
	switch {
	case field.IsMap():
		var entries map[string]string
		if json.Unmarshal(text, &entries) != nil {
			return errors.New("want an object of strings")
		}
		for key, value := range entries {
			m.Mutable(field).Map().Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(value))
		}
		return nil
	case field.IsList():
		var entries []json.RawMessage
		if json.Unmarshal(text, &entries) != nil {
			return errors.New("want a list")
		}
		for _, one := range entries {
			value, err := valueOf(field, one)
			if err != nil {
				return err
			}
			m.Mutable(field).List().Append(value)
		}
		return nil
	}
	value, err := valueOf(field, text)
	if err == nil {
		m.Set(field, value)
	}
	return err
}

func valueOf(field protoreflect.FieldDescriptor, text json.RawMessage) (none protoreflect.Value, err error) {
	var word string
	isText := json.Unmarshal(text, &word) == nil
	switch field.Kind() {
	case protoreflect.BoolKind:
		var is bool
		if json.Unmarshal(text, &is) != nil {
			return none, errors.New("want true or false")
		}
		return protoreflect.ValueOfBool(is), nil
	case protoreflect.Int32Kind:
		var n int32
		if json.Unmarshal(text, &n) != nil {
			return none, errors.New("want a whole number")
		}
		return protoreflect.ValueOfInt32(n), nil
	case protoreflect.EnumKind:
		for i := range field.Enum().Values().Len() {
			n := field.Enum().Values().Get(i).Number()
			if isText && n != 0 && render.Enum(field.Enum(), n) == strings.ToUpper(word) {
				return protoreflect.ValueOfEnum(n), nil
			}
		}
		return none, errors.New("want " + strings.Join(words(field.Enum()), " or "))
	case protoreflect.MessageKind:
		switch field.Message().FullName() {
		case "google.protobuf.Timestamp":
			at, err := time.Parse(time.RFC3339, word)
			if err != nil {
				return none, errors.New("want a time such as 2026-11-20T12:00:00Z")
			}
			return protoreflect.ValueOfMessage(timestamppb.New(at).ProtoReflect()), nil
		case "google.protobuf.Duration":
			d, err := time.ParseDuration(word)
			if err != nil {
				return none, errors.New("want a duration such as 90s or 2h")
			}
			return protoreflect.ValueOfMessage(durationpb.New(d).ProtoReflect()), nil
		}
		return protoreflect.ValueOfMessage((&kagziv1.Payload{Data: text,
			Metadata: map[string]string{"content-type": "application/json"}}).ProtoReflect()), nil
	}
	if !isText {
		return none, errors.New("want a string")
	}
	return protoreflect.ValueOfString(word), nil
}
