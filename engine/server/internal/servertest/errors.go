// Package servertest holds stores and helpers for the tests of the server's packages.
package servertest

import (
	"errors"
	"testing"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// DetailOf returns the ErrorDetail of an error.
func DetailOf(t *testing.T, err error) *kagziv1.ErrorDetail {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok {
		t.Fatalf("%v is no status", err)
	}
	for _, d := range st.Details() {
		if detail, ok := d.(*kagziv1.ErrorDetail); ok {
			return detail
		}
	}
	t.Fatalf("%v carries no ErrorDetail", err)
	return nil
}

// FieldOf returns the field that an error names.
func FieldOf(err error) string {
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return e.Field
	}
	return ""
}

// AnID is a valid id.
const AnID = "0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b"

// EachMethod calls f with every method of the API.
func EachMethod(f func(service protoreflect.ServiceDescriptor, method protoreflect.MethodDescriptor)) {
	protoregistry.GlobalFiles.RangeFilesByPackage("kagzi.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				f(service, service.Methods().Get(j))
			}
		}
		return true
	})
}
