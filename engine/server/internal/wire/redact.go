package wire

import (
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

var payloadName = (&kagziv1.Payload{}).ProtoReflect().Descriptor().FullName()

// WithoutPayloads returns a message whose payloads are replaced by their sizes. It copies a message
// that has payloads, because its owner may still use it.
func WithoutPayloads(m proto.Message) proto.Message {
	if !eachPayload(m.ProtoReflect(), func(*kagziv1.Payload) {}) {
		return m
	}
	m = proto.Clone(m)
	eachPayload(m.ProtoReflect(), func(p *kagziv1.Payload) {
		p.Data, p.Metadata = nil, map[string]string{RedactedBytes: strconv.Itoa(len(p.Data))}
	})
	return m
}

// eachPayload calls do for every payload of a message, at any depth. It returns false if there is
// none.
func eachPayload(m protoreflect.Message, do func(*kagziv1.Payload)) (found bool) {
	if m.Descriptor().FullName() == payloadName {
		do(m.Interface().(*kagziv1.Payload))
		return true
	}
	inner := func(m protoreflect.Message) {
		if eachPayload(m, do) {
			found = true
		}
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsMap():
			if field.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					inner(v.Message())
					return true
				})
			}
		case field.Message() == nil:
		case field.IsList():
			for i := range v.List().Len() {
				inner(v.List().Get(i).Message())
			}
		default:
			inner(v.Message())
		}
		return true
	})
	return found
}

// Metadata keys of a payload that was replaced.
const (
	RedactedBytes  = "kagzi-redacted-bytes"
	RedactedSHA256 = "kagzi-redacted-sha256"
)
