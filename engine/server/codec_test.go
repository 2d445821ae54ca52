package server

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// rawCodec sends bytes as they are, as a client in another language might.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if raw, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
	}
	return encoding.GetCodecV2("proto").Marshal(v)
}
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if v, ok := v.(*[]byte); ok {
		*v = data.Materialize()
		return nil
	}
	return encoding.GetCodecV2("proto").Unmarshal(data, v)
}

// callRaw sends one message of raw bytes to a method, unary or stream.
func callRaw(ctx context.Context, conn *grpc.ClientConn, method protoreflect.MethodDescriptor, raw []byte) error {
	path := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, path,
		grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return err
	}
	if err := stream.SendMsg(raw); err == nil {
		_ = stream.CloseSend()
	}
	var answer []byte
	return stream.RecvMsg(&answer)
}

// eachText calls f with every place within a message where a string may stand: the path of fields
// to it.
func eachText(m protoreflect.MessageDescriptor, path []protoreflect.FieldDescriptor,
	f func(path []protoreflect.FieldDescriptor)) {
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		here := append(slices.Clip(path), field)
		switch {
		case field.Kind() == protoreflect.StringKind:
			f(here)
		case field.Message() != nil && !slices.ContainsFunc(path, func(p protoreflect.FieldDescriptor) bool {
			return p.FullName() == field.FullName()
		}):
			eachText(field.Message(), here, f)
		}
	}
}

// wireText is the bytes of a message that has nothing but this text, at the end of the path.
func wireText(path []protoreflect.FieldDescriptor, text string) []byte {
	inner := []byte(text)
	for _, field := range slices.Backward(path) {
		inner = protowire.AppendBytes(protowire.AppendTag(nil, field.Number(), protowire.BytesType), inner)
	}
	return inner
}

func TestTextThatIsNotUTF8IsRefusedByField(t *testing.T) {
	_, conn := serve(t, servertest.StubStore{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tried := 0
	servertest.EachMethod(func(service protoreflect.ServiceDescriptor, method protoreflect.MethodDescriptor) {
		if slices.Contains(later, string(service.Name())+"/"+string(method.Name())) {
			return
		}
		eachText(method.Input(), nil, func(path []protoreflect.FieldDescriptor) {
			tried++
			err := callRaw(ctx, conn, method, wireText(path, "a\xffb"))
			names := make([]string, len(path))
			for i, field := range path {
				names[i] = string(field.Name())
			}
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s %s: %v, want INVALID_ARGUMENT", method.Name(), strings.Join(names, "."), err)
				return
			}
			want := strings.Join(names, ".")
			if n := len(path); n > 1 && path[n-2].IsMap() {
				want = strings.Join(names[:n-1], ".")
			}
			if got := servertest.DetailOf(t, err).Metadata["field"]; got != want {
				t.Errorf("%s %s: the answer names the field %q", method.Name(), strings.Join(names, "."), got)
			}
		})
	})
	if tried < 100 {
		t.Errorf("%d fields of text were tried: the contract was not found", tried)
	}
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	_, conn := serve(t, servertest.StubStore{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	servertest.EachMethod(func(service protoreflect.ServiceDescriptor, method protoreflect.MethodDescriptor) {
		if slices.Contains(later, string(service.Name())+"/"+string(method.Name())) {
			return
		}
		for _, raw := range []string{"\x00", "\xff", "\x0a\x7f", "\x07\x01", strings.Repeat("\x0b", 20_000)} {
			if err := callRaw(ctx, conn, method, []byte(raw)); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s of %.10q: %v, want INVALID_ARGUMENT", method.Name(), raw, err)
			}
		}
	})
}

func TestAMessageOverItsLimitIsRefusedBySize(t *testing.T) {
	_, conn := serve(t, servertest.StubStore{})
	servertest.EachMethod(func(service protoreflect.ServiceDescriptor, method protoreflect.MethodDescriptor) {
		if method.Name() != "GetWorkflow" {
			return
		}
		err := callRaw(t.Context(), conn, method, make([]byte, 9<<20))
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("9 MiB: %v, want RESOURCE_EXHAUSTED", err)
		}
	})
}

func TestAMarkOfTheCodecCannotBeForged(t *testing.T) {
	mark := protowire.AppendTag(nil, wire.MalformedField, protowire.BytesType)
	mark = protowire.AppendString(mark, "anything")
	_, conn := serve(t, servertest.StubStore{})
	servertest.EachMethod(func(service protoreflect.ServiceDescriptor, method protoreflect.MethodDescriptor) {
		if method.Name() != "GetWorkflow" {
			return
		}
		// A client that sends the mark only causes its own call to be refused.
		if err := callRaw(t.Context(), conn, method, mark); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a forged mark: %v, want INVALID_ARGUMENT", err)
		}
	})
}

func TestTheCodecKeepsFieldsThatItDoesNotKnow(t *testing.T) {
	raw := protowire.AppendVarint(protowire.AppendTag(nil, 9999, protowire.VarintType), 7)
	_, conn := serve(t, servertest.StubStore{})
	servertest.EachMethod(func(service protoreflect.ServiceDescriptor, method protoreflect.MethodDescriptor) {
		if method.Name() != "GetServerInfo" {
			return
		}
		if err := callRaw(t.Context(), conn, method, raw); err != nil {
			t.Errorf("a field of a newer client: %v, want it ignored", err)
		}
	})
}

func TestAMessageHasItsLimitAtItsEdge(t *testing.T) {
	_, conn := serve(t, servertest.StubStore{})
	start := kagziv1.File_kagzi_v1_workflow_proto.Services().ByName("WorkflowService").Methods().ByName("StartWorkflow")
	for size, words := range map[int]string{engine.MaxMessage: "input", engine.MaxMessage + 1: "larger than max"} {
		message := proto.Size(&kagziv1.StartWorkflowRequest{
			WorkflowType: "t", Input: &kagziv1.Payload{Data: make([]byte, size)}})
		raw, err := proto.Marshal(&kagziv1.StartWorkflowRequest{
			WorkflowType: "t", Input: &kagziv1.Payload{Data: make([]byte, 2*size-message)}})
		if err != nil || len(raw) != size {
			t.Fatalf("%d bytes, %v, want %d", len(raw), err, size)
		}
		if err := callRaw(t.Context(), conn, start, raw); status.Code(err) != codes.ResourceExhausted ||
			!strings.Contains(err.Error(), words) {
			t.Errorf("a message of %d bytes is answered with %v, want RESOURCE_EXHAUSTED and %q", size, err, words)
		}
	}
}
