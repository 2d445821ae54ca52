package wire

import (
	"context"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// NameText is a client interceptor for requests with text that is not valid UTF-8. gRPC fails these
// with INTERNAL and does not name the field. NameText returns INVALID_ARGUMENT with the field's
// name, as a server would.
func NameText(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	err := invoke(ctx, method, request, answer, conn, opts...)
	if status.Code(err) != codes.Internal || !strings.Contains(status.Convert(err).Message(), "invalid UTF-8") {
		return err
	}
	m, ok := request.(proto.Message)
	if !ok {
		return err
	}
	field := brokenText(m.ProtoReflect())
	if field == "" {
		return err // the answer, not the request, has the invalid text
	}
	st := status.New(codes.InvalidArgument, field+": is not valid UTF-8")
	if named, failed := st.WithDetails(&kagziv1.ErrorDetail{
		Code: kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, Message: st.Message(), NonRetryable: true,
		Metadata: map[string]string{"field": field},
	}); failed == nil {
		st = named
	}
	return st.Err()
}

// brokenText returns the path of a field with invalid UTF-8, in a map that of the map itself; "" if
// there is none.
func brokenText(m protoreflect.Message) (path string) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(field.Name())
		inside := func(one protoreflect.FieldDescriptor, v protoreflect.Value) {
			switch one.Kind() {
			case protoreflect.StringKind:
				if !utf8.ValidString(v.String()) {
					path = name
				}
			case protoreflect.MessageKind:
				if inner := brokenText(v.Message()); inner != "" {
					path = name + "." + inner
				}
			}
		}
		switch {
		case field.IsMap():
			v.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				inside(field.MapKey(), key.Value())
				inside(field.MapValue(), value)
				if path != "" {
					path = name
				}
				return path == ""
			})
		case field.IsList():
			for i := 0; i < v.List().Len() && path == ""; i++ {
				inside(field, v.List().Get(i))
			}
		default:
			inside(field, v)
		}
		return path == ""
	})
	return path
}
