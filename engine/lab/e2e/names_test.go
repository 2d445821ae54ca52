package e2e

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/proto"
	_ "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// rpcs returns the names of all calls of the API.
func rpcs(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	protoregistry.GlobalFiles.RangeFilesByPackage("kagzi.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				names[string(methods.Get(j).Name())] = true
			}
		}
		return true
	})
	if len(names) < 75 {
		t.Fatalf("%d calls of the API, want all", len(names))
	}
	return names
}

func TestEachCallIsNamedAfterItsStoreMethod(t *testing.T) {
	t.Parallel()
	store := reflect.TypeFor[engine.Store]()
	has := func(method string) bool { _, ok := store.MethodByName(method); return ok }
	calls, same := rpcs(t), 0
	for call := range calls {
		method, renamed := proto.StoreMethods[call]
		reason, own := proto.OwnNames[call]
		switch {
		case renamed && own:
			t.Errorf("%s stands in both tables of proto/names.go", call)
		case renamed && method == proto.EngineName(call):
			t.Errorf("%s has the name of its store method: take it out of proto.StoreMethods", call)
		case renamed && !has(method):
			t.Errorf("%s: engine.Store has no method %s; see proto.StoreMethods", call, method)
		case own && reason == "":
			t.Errorf("%s: want a reason in proto.OwnNames", call)
		case !renamed && !own && !has(proto.StoreMethod(call)):
			t.Errorf("engine.Store has no method %s: add %s to a table of proto/names.go",
				proto.StoreMethod(call), call)
		case !renamed && !own:
			same++
		}
	}
	for call := range proto.StoreMethods {
		if !calls[call] {
			t.Errorf("the API has no call %s; see proto.StoreMethods", call)
		}
	}
	for call := range proto.OwnNames {
		if !calls[call] {
			t.Errorf("the API has no call %s; see proto.OwnNames", call)
		}
	}
	t.Logf("%d of %d calls have the name of their store method", same, len(calls))
}
