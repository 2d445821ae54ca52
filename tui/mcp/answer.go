package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

const (
	// budget is how long an answer may be, in tokens. A token is taken for three bytes of JSON, of
	// which tokenizers make 3 to 4.
	budget        = 5000
	bytesPerToken = 3
	maxText       = budget * bytesPerToken // in bytes

	// clip limits a text in a list, in bytes.
	clip = 300
)

// documentOf returns a message for an agent: its fields that are set, under their proto names and in
// order. What a payload holds is a string under "recorded", so that nothing in it can be taken for a
// part of the answer. With max > 0, longer texts are cut to that many bytes.
func documentOf(m proto.Message, max int) any {
	if p, ok := m.(*kagziv1.Payload); ok {
		return payloadOf(p, max)
	}
	r := m.ProtoReflect()
	if r.Descriptor().ParentFile().Package() == "google.protobuf" {
		return render.Document(m) // a time or a duration
	}
	object := render.Object{}
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); r.Has(field) {
			object = append(object, render.Field{Name: string(field.Name()), Value: fieldOf(r.Get(field), field, max)})
		}
	}
	return object
}

func fieldOf(v protoreflect.Value, field protoreflect.FieldDescriptor, max int) any {
	switch {
	case field.IsMap():
		object := render.Object{}
		v.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
			object = append(object, render.Field{Name: key.String(), Value: oneOf(v, field.MapValue(), max)})
			return true
		})
		slices.SortFunc(object, func(a, b render.Field) int { return strings.Compare(a.Name, b.Name) })
		return object
	case field.IsList():
		list := make([]any, v.List().Len())
		for i := range list {
			list[i] = oneOf(v.List().Get(i), field, max)
		}
		return list
	}
	return oneOf(v, field, max)
}

func oneOf(v protoreflect.Value, field protoreflect.FieldDescriptor, max int) any {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return documentOf(v.Message().Interface(), max)
	case protoreflect.EnumKind:
		return render.Enum(field.Enum(), v.Enum())
	case protoreflect.StringKind:
		return clipped(v.String(), max)
	case protoreflect.BytesKind:
		return base64.StdEncoding.EncodeToString(v.Bytes())
	}
	return v.Interface()
}

// payloadOf quotes what a payload holds, or says what it is.
func payloadOf(p *kagziv1.Payload, max int) render.Object {
	if text, ok := render.Encrypted(p); ok {
		return render.Object{{Name: "encrypted", Value: text}}
	}
	if withheld := p.GetMetadata()["kagzi-redacted-bytes"]; withheld != "" {
		return render.Object{{Name: "withheld", Value: "the key's role does not see payloads"},
			{Name: "bytes", Value: withheld}}
	}
	if render.IsJSON(p) || len(p.GetData()) == 0 {
		return render.Object{{Name: "recorded", Value: clipped(string(p.GetData()), max)}}
	}
	return render.Object{{Name: "base64", Value: clipped(base64.StdEncoding.EncodeToString(p.GetData()), max)},
		{Name: "content_type", Value: clipped(p.GetMetadata()["content-type"], clip)}}
}

// clipped cuts a text; 0: not at all.
func clipped(text string, max int) string {
	if max == 0 || len(text) <= max {
		return text
	}
	end := runeAt(text, max)
	return text[:end] + fmt.Sprintf("… (%d more bytes)", len(text)-end)
}

// runeAt returns the last beginning of a character up to an offset.
func runeAt(text string, offset int) int {
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	return offset
}

// page writes a list. If it does not fit, fits says how many of its entries do, at least one;
// otherwise it is -1. With most >= 0 only so many entries are written, and it fits.
func page(answer protoreflect.Message, most int) (text string, fits int) {
	whole := render.Object{}
	var entries protoreflect.List
	var listed protoreflect.FieldDescriptor
	next := ""
	fields := answer.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.Name() == "page":
			next = answer.Get(field).Message().Interface().(*kagziv1.PageInfo).GetNextPageToken()
		case field.IsList() && field.Kind() == protoreflect.MessageKind:
			listed, entries = field, answer.Get(field).List()
		case answer.Has(field):
			whole = append(whole, render.Field{Name: string(field.Name()),
				Value: fieldOf(answer.Get(field), field, clip)})
		}
	}
	written := []json.RawMessage{}
	size := len(jsonOf(whole)) + len(listed.Name()) + len(next) + 40 // of names and brackets
	for i := range entries.Len() {
		if i == most {
			break
		}
		one := jsonOf(oneOf(entries.Get(i), listed, clip))
		if size += len(one) + 1; most < 0 && i > 0 && size > maxText {
			return "", i
		}
		written = append(written, json.RawMessage(one))
	}
	whole = append(whole, render.Field{Name: string(listed.Name()), Value: written})
	if next != "" {
		whole = append(whole, render.Field{Name: "next_" + cursor, Value: next})
	}
	return jsonOf(whole), -1
}

// cut writes a document from an offset on. If it is too long, or begins within it, the piece is a
// quoted text with the cursor of the next one.
func cut(document any, offset int) (string, error) {
	whole := jsonOf(document)
	if offset == 0 && len(whole) <= maxText {
		return whole, nil
	}
	if offset >= len(whole) {
		return "", &argumentError{cursor, "is behind the answer's end"}
	}
	offset = runeAt(whole, offset)
	for size := maxText - 200; ; size = size * 3 / 4 { // quoting makes it longer
		end := runeAt(whole, min(offset+size, len(whole)))
		piece := render.Object{{Name: "part", Value: fmt.Sprintf("bytes %d to %d of %d of the answer in JSON", offset,
			end, len(whole))}, {Name: "text", Value: whole[offset:end]}}
		if end < len(whole) {
			piece = append(piece, render.Field{Name: "next_" + cursor, Value: strconv.Itoa(end)})
		}
		if text := jsonOf(piece); len(text) <= maxText {
			return text, nil
		}
	}
}

// jsonOf writes a document on one line. Characters that could hide or turn text are escaped.
func jsonOf(document any) string {
	text, err := render.JSON(document, "")
	if err != nil {
		panic(err) // documents hold only what JSON has
	}
	return string(text)
}

// errorText returns an error for an agent: what went wrong and with which argument.
func errorText(err error) string {
	code, message, field := codes.InvalidArgument, err.Error(), ""
	if own, ok := errors.AsType[*argumentError](err); ok {
		field = own.name
	} else if st := status.Convert(err); st != nil {
		code, message = st.Code(), st.Message()
		for _, detail := range st.Details() {
			if d, ok := detail.(*kagziv1.ErrorDetail); ok {
				field = d.GetMetadata()["field"]
			}
		}
	}
	e := render.Object{{Name: "code", Value: code.String()}, {Name: "message", Value: clipped(message, maxText/8)}}
	if field != "" {
		e = append(e, render.Field{Name: "argument", Value: field})
	}
	return jsonOf(render.Object{{Name: "error", Value: e}})
}
