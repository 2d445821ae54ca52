package wire

import (
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/wire"
)

// Codec marks messages that cannot be decoded (text that is not UTF-8, a malformed field) instead
// of returning an error, because gRPC would answer INTERNAL before any interceptor sees the call.
// The interceptors find the mark and answer INVALID_ARGUMENT. An operation of a session keeps its
// number, so that the session can answer it and continue.
type Codec struct{ wire.Codec }

func (l Codec) Unmarshal(data mem.BufferSlice, v any) error {
	if u, ok := v.(*Undecoded); ok {
		u.Raw = wire.Whole(data)
		return nil
	}
	err := l.Codec.Unmarshal(data, v)
	message, ok := v.(proto.Message)
	if err == nil || !ok {
		return err
	}
	proto.Reset(message)
	mark := protowire.AppendTag(nil, MalformedField, protowire.BytesType)
	raw := data.Materialize()
	field := brokenText(message.ProtoReflect().Descriptor(), raw)
	if operation, ok := message.(*kagziv1.SessionRequest); ok && field != "" {
		operation.Seq = seqOf(raw)
	}
	message.ProtoReflect().SetUnknown(protowire.AppendString(mark, field))
	return nil
}

// Undecoded is an operation of a session before it is decoded.
type Undecoded struct{ Raw mem.Buffer }

// Decode decodes the operation; call it once. If decoding fails but the operation has a number, it
// is returned with a mark, so that the session can answer it.
func (u *Undecoded) Decode() (*kagziv1.SessionRequest, error) {
	defer u.Raw.Free()
	request := new(kagziv1.SessionRequest)
	err := (Codec{}).Unmarshal(mem.BufferSlice{u.Raw}, request)
	if err == nil && len(request.Batch) > 0 && (request.Seq != 0 || request.Operation != nil) {
		err = engine.Invalid("batch", "must come without seq and operation: put the operation into the batch")
	}
	if err != nil {
		return nil, err
	}
	if request.Seq > 0 {
		return request, nil
	}
	return request, CheckWellFormed(request)
}

// brokenText returns the path of the first field whose text is not UTF-8; empty if there is none.
// The recursion ends because no message of the API contains itself.
func brokenText(m protoreflect.MessageDescriptor, raw []byte) string {
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return ""
		}
		size := protowire.ConsumeFieldValue(number, kind, raw[n:])
		if size < 0 {
			return ""
		}
		value, rest := raw[n:n+size], raw[n+size:]
		raw = rest
		field := m.Fields().ByNumber(number)
		if field == nil || kind != protowire.BytesType {
			continue
		}
		content, _ := protowire.ConsumeBytes(value)
		name := string(field.Name())
		switch {
		case field.Kind() == protoreflect.StringKind && !utf8.Valid(content):
			return name
		case field.Message() == nil:
		case field.IsMap():
			if brokenText(field.Message(), content) != "" {
				return name
			}
		default:
			if inner := brokenText(field.Message(), content); inner != "" {
				return name + "." + inner
			}
		}
	}
	return ""
}

// seqOf returns the number of an operation from its bytes; 0 if it has none.
func seqOf(raw []byte) (seq int64) {
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeField(raw)
		if n < 0 {
			return 0
		}
		if number == 1 && kind == protowire.VarintType {
			_, _, tag := protowire.ConsumeTag(raw)
			value, _ := protowire.ConsumeVarint(raw[tag:])
			seq = int64(value)
		}
		raw = raw[n:]
	}
	return seq
}

// MalformedField is a field number that no message of the API has. It marks malformed messages.
const MalformedField = 536_870_911

// CheckWellFormed returns an error for a message with the mark of Codec. It names the field if its
// text is not UTF-8.
func CheckWellFormed(v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return nil
	}
	number, _, n := protowire.ConsumeTag(message.ProtoReflect().GetUnknown())
	if n < 0 || number != MalformedField {
		return nil
	}
	field, m := protowire.ConsumeString(message.ProtoReflect().GetUnknown()[n:])
	if m < 0 || field == "" {
		return engine.Invalid("request", "cannot be decoded")
	}
	return engine.Invalid(field, "is not valid UTF-8")
}

// CheckOperation returns an error for an operation that could not be decoded or is not set.
func CheckOperation(r *kagziv1.SessionRequest) error {
	if r.Operation != nil {
		return nil
	}
	if err := CheckWellFormed(r); err != nil {
		return err
	}
	if len(r.ProtoReflect().GetUnknown()) > 0 {
		return ErrUnsupported
	}
	return engine.Invalid("operation", "must be set")
}
