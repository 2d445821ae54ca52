package session

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kagzi/kagzi/engine/server/internal/limit"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestEveryPayloadThatACallBringsIsCounted(t *testing.T) {
	payload := (*kagziv1.Payload)(nil).ProtoReflect().Descriptor()
	// fill sets every payload of a message to 1 MiB and returns how many there are.
	var fill func(m protoreflect.Message) int
	fill = func(m protoreflect.Message) (n int) {
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			switch f := fields.Get(i); {
			case f.ContainingOneof() != nil && m.WhichOneof(f.ContainingOneof()) != nil: // one of them is set
			case f.Message() == nil || f.IsMap() ||
				f.Message().ParentFile().Package() != payload.ParentFile().Package():
			case f.Message() == payload:
				m.Set(f, protoreflect.ValueOf(servertest.PayloadOf(1<<20).ProtoReflect()))
				n++
			case f.IsList():
				n += fill(m.Mutable(f).List().AppendMutable().Message())
			case f.Message() != m.Descriptor():
				n += fill(m.Mutable(f).Message())
			}
		}
		return n
	}
	protoregistry.GlobalFiles.RangeFilesByPackage(
		payload.ParentFile().Package(), func(file protoreflect.FileDescriptor) bool {
			for i := range file.Services().Len() {
				methods := file.Services().Get(i).Methods()
				for j := range methods.Len() {
					method := methods.Get(j)
					kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
					if err != nil {
						t.Fatal(err)
					}
					if method.Name() == "Session" {
						operations := method.Input().Oneofs().ByName("operation").Fields()
						for k := range operations.Len() {
							request := kind.New()
							n := fill(request.Mutable(operations.Get(k)).Message())
							if got := bytesOf(request.Interface().(*kagziv1.SessionRequest)); got != n<<20 {
								t.Errorf("operation %s: %d bytes are counted of %d payloads of 1 MiB",
									operations.Get(k).Name(), got, n)
							}
						}
					} else if request := kind.New(); !method.IsStreamingClient() {
						if n, got := fill(request), limit.PayloadBytes(request.Interface()); got != n<<20 {
							t.Errorf("%s: %d bytes are counted of %d payloads of 1 MiB", method.Name(), got, n)
						}
					}
				}
			}
			return true
		})
}
