package server

import (
	"strings"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that lenientCodec wraps
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
)

// lenientCodec lets a message that cannot be decoded (a string that is no UTF-8, a broken field) through with a mark on it, because
// gRPC would answer INTERNAL before any interceptor sees the call. The interceptors find the mark and answer INVALID_ARGUMENT.
type lenientCodec struct{}

var protoCodec = encoding.GetCodecV2("proto")

func (lenientCodec) Name() string { return "proto" }

func (lenientCodec) Marshal(v any) (mem.BufferSlice, error) { return protoCodec.Marshal(v) }

func (lenientCodec) Unmarshal(data mem.BufferSlice, v any) error {
	err := protoCodec.Unmarshal(data, v)
	message, ok := v.(proto.Message)
	if err == nil || !ok {
		return err
	}
	proto.Reset(message)
	mark := protowire.AppendTag(nil, malformedField, protowire.BytesType)
	message.ProtoReflect().SetUnknown(protowire.AppendString(mark, err.Error()))
	return nil
}

// malformedField is a number that no message of ours has.
const malformedField = 536_870_911

// checkWellFormed refuses a message that bears the mark of lenientCodec, naming the field where the decoder did.
func checkWellFormed(v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return nil
	}
	number, _, n := protowire.ConsumeTag(message.ProtoReflect().GetUnknown())
	if n < 0 || number != malformedField {
		return nil
	}
	text, m := protowire.ConsumeString(message.ProtoReflect().GetUnknown()[n:])
	if m < 0 {
		text = "malformed message"
	}
	field := "request"
	if before, ok := strings.CutSuffix(text, " contains invalid UTF-8"); ok {
		field = before[strings.LastIndexByte(before, '.')+1:]
		return engine.Invalid(field, "is not valid UTF-8")
	}
	return engine.Invalid(field, "cannot be decoded")
}
