package render

import (
	"encoding/base64"
	"encoding/json"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Object is a document's mapping with a fixed order of fields. A document consists of Object,
// []any, string, bool, int64, uint64, float64, json.RawMessage (a payload, byte for byte) and nil.
type Object []Field

// Field is one entry of an Object.
type Field struct {
	Name  string
	Value any
}

// Document turns a message into the stable shape for programs. It has every field of the message,
// under its proto name and in proto order. Unset fields are null, [] or {}; times are RFC 3339 in
// UTC, durations like "1.5s", enum values without their prefix ("COMPLETED"), counts are numbers. A
// payload with a JSON content-type is that JSON; any other is {"base64": …, "metadata": {…}}.
func Document(m proto.Message) any {
	switch m := m.(type) {
	case *timestamppb.Timestamp:
		return m.AsTime().UTC().Format(time.RFC3339Nano)
	case *durationpb.Duration:
		return m.AsDuration().String()
	case *kagziv1.Payload:
		return payload(m)
	}
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	object := make(Object, 0, fields.Len())
	for i := range fields.Len() {
		f := fields.Get(i)
		object = append(object, Field{string(f.Name()), fieldValue(r, f)})
	}
	return object
}

// Documents is Document for a list.
func Documents[M proto.Message](messages []M) []any {
	list := make([]any, len(messages))
	for i, m := range messages {
		list[i] = Document(m)
	}
	return list
}

func fieldValue(r protoreflect.Message, f protoreflect.FieldDescriptor) any {
	switch {
	case f.IsMap():
		return mapValue(r.Get(f).Map(), f)
	case f.IsList():
		list := r.Get(f).List()
		values := make([]any, list.Len())
		for i := range values {
			values[i] = single(list.Get(i), f)
		}
		return values
	case f.HasPresence() && !r.Has(f):
		return nil
	}
	return single(r.Get(f), f)
}

func mapValue(m protoreflect.Map, f protoreflect.FieldDescriptor) Object {
	object := make(Object, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		object = append(object, Field{k.String(), single(v, f.MapValue())})
		return true
	})
	sort.Slice(object, func(i, j int) bool { return object[i].Name < object[j].Name })
	return object
}

func single(v protoreflect.Value, f protoreflect.FieldDescriptor) any {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return Document(v.Message().Interface())
	case protoreflect.EnumKind:
		return Enum(f.Enum(), v.Enum())
	case protoreflect.BytesKind:
		return base64.StdEncoding.EncodeToString(v.Bytes())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return v.Int()
	case protoreflect.FloatKind:
		return v.Float()
	}
	return v.Interface() // bool, string, int64, uint64, float64
}

// Enum drops the prefix that the values of an enum share with its UNSPECIFIED value.
func Enum(e protoreflect.EnumDescriptor, n protoreflect.EnumNumber) any {
	value := e.Values().ByNumber(n)
	if value == nil {
		return int64(n) // a value of a newer server
	}
	prefix := strings.TrimSuffix(string(e.Values().ByNumber(0).Name()), "UNSPECIFIED")
	return strings.TrimPrefix(string(value.Name()), prefix)
}

func payload(p *kagziv1.Payload) any {
	switch {
	case len(p.GetData()) == 0:
		return nil
	case IsJSON(p):
		return json.RawMessage(p.GetData())
	}
	metadata := make(Object, 0, len(p.GetMetadata()))
	for k, v := range p.GetMetadata() {
		metadata = append(metadata, Field{k, v})
	}
	sort.Slice(metadata, func(i, j int) bool { return metadata[i].Name < metadata[j].Name })
	return Object{{"base64", base64.StdEncoding.EncodeToString(p.GetData())}, {"metadata", metadata}}
}

// IsJSON reports whether a payload is declared as JSON, was not changed by a codec, and is valid
// JSON.
func IsJSON(p *kagziv1.Payload) bool {
	if p.GetMetadata()["encoding"] != "" || !jsonType(p.GetMetadata()["content-type"]) {
		return false
	}
	return utf8.Valid(p.GetData()) && json.Valid(p.GetData())
}

func jsonType(contentType string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	kind = strings.TrimSpace(kind)
	return kind == "" || kind == "application/json" || kind == "json" || strings.HasSuffix(kind, "+json")
}
