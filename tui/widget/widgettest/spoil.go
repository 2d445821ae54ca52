package widgettest

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Spoil returns a connection in whose answers every field that users can write holds text.
func Spoil(conn grpc.ClientConnInterface, text string) grpc.ClientConnInterface {
	return &spoiledLine{conn, spoiler{text: text}}
}

// spoiledLine is a connection that spoils the answers.
type spoiledLine struct {
	grpc.ClientConnInterface
	spoiler spoiler
}

func (c *spoiledLine) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	if err := c.ClientConnInterface.Invoke(ctx, method, request, reply, options...); err != nil {
		return err
	}
	c.spoiler.message(reply.(proto.Message).ProtoReflect())
	return nil
}

func (c *spoiledLine) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, options...)
	return &spoiledStream{stream, c.spoiler}, err
}

// spoiledStream is a stream over such a connection.
type spoiledStream struct {
	grpc.ClientStream
	spoiler spoiler
}

func (s *spoiledStream) SendMsg(request any) error {
	if r, ok := request.(*kagziv1.WatchEventsRequest); ok {
		r.Tail = 12 // the rest would only say the same
	}
	return s.ClientStream.SendMsg(request)
}

func (s *spoiledStream) RecvMsg(into any) error {
	if err := s.ClientStream.RecvMsg(into); err != nil {
		return err
	}
	s.spoiler.message(into.(proto.Message).ProtoReflect())
	return nil
}

// spoiler writes its text into messages.
type spoiler struct{ text string }

// kept lists fields that servers create, or check so strictly that nothing can hide in them.
var kept = map[protoreflect.Name]bool{
	"run_id": true, "schedule_id": true, "worker_id": true, "step_id": true, "parent_run_id": true, "namespace": true,
	"next_page_token": true, "page_token": true,
	"retried_from_run_id": true, "failed_run_id": true, "continued_as_run_id": true, "continued_from_run_id": true,
	"parent_step_id": true, "workflows_by_status": true,
	"cron_expr": true, "session_id": true, "new_run_id": true,
}

// longestName is the server's limit for names; longFields lists fields that may be longer.
const longestName = 255

var longFields = map[protoreflect.Name]bool{
	"message": true, "stack": true, "value": true, "note": true, "description": true, "sentence": true, "reason": true,
	"detail": true}

// value returns the spoiled value. The original follows the text, so that different values stay
// different.
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

// payload returns raw text, or a document with the text in it, depending on the original.
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
