package openapi

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/routes"
)

func TestTheProgramHoldsTheDescriptionInTheRepository(t *testing.T) {
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := JSON()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v: openapi.json.gz differs from openapi.json: go generate ./proto", err)
	}
}

func TestTheDescriptionHasEveryRouteAndNoLooseEnd(t *testing.T) {
	text, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		OpenAPI    string
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct{ Schemas, Responses, Parameters map[string]any }
	}
	if err := json.Unmarshal(text, &d); err != nil || d.OpenAPI != "3.1.0" {
		t.Fatalf("OpenAPI %q, %v", d.OpenAPI, err)
	}
	n := 0
	for _, at := range d.Paths {
		n += len(at)
	}
	if n != len(routes.All) {
		t.Errorf("%d operations, want the %d routes", n, len(routes.All))
	}
	for _, r := range routes.All {
		r.Path = strings.Replace(r.Path, "{child.", "{", 1) // names with dots are no parameters there
		if id := d.Paths[r.Path][strings.ToLower(r.Verb)].OperationID; !strings.HasSuffix(r.Method, "/"+id) || id == "" {
			t.Errorf("%s %s is %q, want %s", r.Verb, r.Path, id, r.Method)
		}
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			if to, ok := v["$ref"].(string); ok {
				_, kind, _ := strings.Cut(to, "#/components/")
				kind, name, _ := strings.Cut(kind, "/")
				if map[string]map[string]any{"schemas": d.Components.Schemas, "responses": d.Components.Responses,
					"parameters": d.Components.Parameters}[kind][name] == nil {
					t.Errorf("%s leads nowhere", to)
				}
			}
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(tree)
}

func TestTheDescriptionHasTheFieldsOfToday(t *testing.T) {
	text, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for name, schema := range d.Components.Schemas {
		message, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("kagzi.v1." + name))
		if err != nil || name == "Payload" {
			continue // Payload and Problem are HTTP's own
		}
		compared++
		fields := message.Descriptor().Fields()
		for i := range fields.Len() {
			if schema.Properties[fields.Get(i).JSONName()] == nil {
				t.Errorf("%s lacks %s: go generate ./proto", name, fields.Get(i).JSONName())
			}
		}
		if len(schema.Properties) != fields.Len() {
			t.Errorf("%s has %d fields, want %d: go generate ./proto", name, len(schema.Properties), fields.Len())
		}
	}
	if compared < 100 {
		t.Errorf("%d messages were compared: the contract was not found", compared)
	}
}
