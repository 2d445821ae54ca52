package server

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const canary = "a canary that sings"

// plant puts a payload that holds the canary wherever a message has a place for one.
func plant(m protoreflect.Message, depth int) (payloads int) {
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		if field.Message() == nil || field.IsMap() || depth == 0 {
			continue
		}
		inner := m.NewField(field)
		if field.IsList() {
			inner = m.Mutable(field)
			inner.List().AppendMutable()
			inner.List().AppendMutable()
		}
		for _, one := range elements(field, inner) {
			if p, ok := one.Interface().(*kagziv1.Payload); ok {
				p.Data, p.Metadata = []byte(canary), map[string]string{"note": canary}
				payloads++
				continue
			}
			payloads += plant(one, depth-1)
		}
		m.Set(field, inner)
	}
	return payloads
}

func elements(field protoreflect.FieldDescriptor, v protoreflect.Value) (list []protoreflect.Message) {
	if !field.IsList() {
		return []protoreflect.Message{v.Message()}
	}
	for i := range v.List().Len() {
		list = append(list, v.List().Get(i).Message())
	}
	return list
}

func TestAViewerIsShownNoPayload(t *testing.T) {
	viewer := &auth.Key{APIKey: engine.APIKey{Role: engine.RoleViewer}}
	total := 0
	servertest.EachMethod(func(service protoreflect.ServiceDescriptor, m protoreflect.MethodDescriptor) {
		name := "/" + string(service.FullName()) + "/" + string(m.Name())
		rule := auth.Permissions[name]
		if !rule.Roles.Has(engine.RoleViewer) {
			return
		}
		answer := newOutput(m)
		total += plant(answer.ProtoReflect(), 6)
		before := proto.Clone(answer)
		shown, _ := auth.ShownTo(viewer, &auth.Method{Rule: rule}, answer).(proto.Message)
		if text := prototext.Format(shown); strings.Contains(text, canary) {
			t.Errorf("%s shows a viewer %s", name, text)
		}
		if !proto.Equal(answer, before) {
			t.Errorf("%s: the answer itself was changed, which others may be shown too", name)
		}
		if whole := auth.ShownTo(&auth.Key{APIKey: engine.APIKey{Role: engine.RoleClient}}, &auth.Method{Rule: rule},
			answer); whole != any(answer) {
			t.Errorf("%s: a client is shown another message", name)
		}
	})
	if total < 20 {
		t.Errorf("%d payloads in all answers: they were not found", total)
	}
	shown := wire.WithoutPayloads(&kagziv1.Workflow{
		RunId: "r", Input: &kagziv1.Payload{Data: []byte("12345")}}).(*kagziv1.Workflow)
	if shown.RunId != "r" || shown.Input.Metadata[wire.RedactedBytes] != "5" || shown.Output != nil {
		t.Errorf("a viewer sees %v, want the run with the size of its input", shown)
	}
}
