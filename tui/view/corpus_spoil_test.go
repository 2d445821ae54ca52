package view

import (
	"context"
	"reflect"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/world"
)

// spoiled is a world whose every answer has been through spoil.
type spoiled struct {
	kagziv1.WorkflowServiceClient
	kagziv1.WorkflowScheduleServiceClient
	kagziv1.AdminServiceClient
	kagziv1.NamespaceServiceClient
}

// spoil makes an API of a world in whose answers all that users may have written says text.
func spoil(w *world.World, text string) tui.API {
	c := &wire{world: reflect.ValueOf(w), spoiler: spoiler{text: text}}
	return spoiled{kagziv1.NewWorkflowServiceClient(c), kagziv1.NewWorkflowScheduleServiceClient(c), kagziv1.NewAdminServiceClient(c), kagziv1.NewNamespaceServiceClient(c)}
}

// wire is a connection to a world: it finds the method of a call by its name.
type wire struct {
	world   reflect.Value
	spoiler spoiler
}

func (c *wire) call(ctx context.Context, method string, request any) (reflect.Value, error) {
	name := method[strings.LastIndexByte(method, '/')+1:]
	if r, ok := request.(*kagziv1.WatchEventsRequest); ok {
		r.Tail = 12 // the rest would only say the same
	}
	out := c.world.MethodByName(name).Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(request)})
	err, _ := out[1].Interface().(error)
	return out[0], err
}

func (c *wire) Invoke(ctx context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	answer, err := c.call(ctx, method, request)
	if err != nil {
		return err
	}
	c.spoiler.into(reply.(proto.Message), answer.Interface().(proto.Message))
	return nil
}

func (c *wire) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &wireStream{wire: c, ctx: ctx, method: method}, nil
}

// wireStream is a stream of a wire. It begins with its one request.
type wireStream struct {
	wire   *wire
	ctx    context.Context
	method string
	stream reflect.Value
}

func (s *wireStream) SendMsg(request any) (err error) {
	s.stream, err = s.wire.call(s.ctx, s.method, request)
	return err
}

func (s *wireStream) RecvMsg(into any) error {
	out := s.stream.MethodByName("Recv").Call(nil)
	if err, _ := out[1].Interface().(error); err != nil {
		return err
	}
	s.wire.spoiler.into(into.(proto.Message), out[0].Interface().(proto.Message))
	return nil
}

func (s *wireStream) Header() (metadata.MD, error) { return metadata.MD{}, nil }
func (s *wireStream) Trailer() metadata.MD         { return metadata.MD{} }
func (s *wireStream) CloseSend() error             { return nil }
func (s *wireStream) Context() context.Context     { return s.ctx }

// spoiler writes its text into messages.
type spoiler struct{ text string }

// into copies a message and spoils the copy.
func (s spoiler) into(to, from proto.Message) {
	proto.Reset(to)
	proto.Merge(to, from)
	s.message(to.ProtoReflect())
}

// kept are fields that servers make, or check so strictly that nothing can hide in them.
var kept = map[protoreflect.Name]bool{
	"run_id": true, "schedule_id": true, "worker_id": true, "step_id": true, "parent_run_id": true, "namespace": true, "next_page_token": true, "page_token": true,
	"retried_from_run_id": true, "failed_run_id": true, "continued_as_run_id": true, "continued_from_run_id": true, "parent_step_id": true, "workflows_by_status": true,
	"cron_expr": true, "session_id": true, "new_run_id": true,
}

// longestName is how long a server lets names be; longFields are those that may hold more.
const longestName = 255

var longFields = map[protoreflect.Name]bool{"message": true, "stack": true, "value": true, "note": true, "description": true, "sentence": true, "reason": true, "detail": true}

// value is what a text becomes. What it was stays behind it, so that things that differ still do.
func (s spoiler) value(name protoreflect.Name, was string) string {
	switch {
	case len(s.text) <= longestName:
		return s.text + was
	case longFields[name]:
		return s.text
	}
	return s.text[:longestName] + was
}

func (s spoiler) message(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if kept[f.Name()] {
			return true
		}
		switch {
		case f.IsMap():
			s.mapping(m, f, v.Map())
		case f.IsList():
			s.list(f, v.List())
		case f.Kind() == protoreflect.MessageKind:
			s.message(v.Message())
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(s.value(f.Name(), v.String())))
		case f.Kind() == protoreflect.BytesKind:
			m.Set(f, protoreflect.ValueOfBytes(s.payload(v.Bytes())))
		}
		return true
	})
}

// payload is raw text, or a document with the text in it, by what it was.
func (s spoiler) payload(was []byte) []byte {
	if len(was)%2 == 0 {
		return []byte(s.text)
	}
	return []byte(`{"` + s.text + `":["` + s.text + `",1]}`)
}

func (s spoiler) list(f protoreflect.FieldDescriptor, l protoreflect.List) {
	for i := range l.Len() {
		switch f.Kind() {
		case protoreflect.MessageKind:
			s.message(l.Get(i).Message())
		case protoreflect.StringKind:
			l.Set(i, protoreflect.ValueOfString(s.value(f.Name(), l.Get(i).String())))
		}
	}
}

func (s spoiler) mapping(m protoreflect.Message, f protoreflect.FieldDescriptor, old protoreflect.Map) {
	changed := m.NewField(f).Map()
	old.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		if k.String() == "content-type" { // decides how a payload is read
			changed.Set(k, v)
			return true
		}
		if f.MapValue().Kind() == protoreflect.StringKind {
			v = protoreflect.ValueOfString(s.value(f.Name(), v.String()))
		}
		changed.Set(protoreflect.ValueOfString(s.value(f.Name(), k.String())).MapKey(), v)
		return true
	})
	m.Set(f, protoreflect.ValueOfMap(changed))
}
