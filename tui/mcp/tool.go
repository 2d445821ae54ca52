package mcp

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// tool is a method of the API as agents see it.
type tool struct {
	name, about string
	arguments   string // fields of the request, separated by spaces; those with a ! must be given
	method      method
	roles       []kagziv1.KeyRole // that may call the method

	writes      bool // changes something
	destructive bool // what it does cannot be undone, or repeats effects
	idempotent  bool // the same call again has no further effect
}

// method is a unary method of the API.
type method struct {
	input protoreflect.MessageType
	call  func(context.Context, tui.API, proto.Message) (proto.Message, error)
}

func over[I, O proto.Message](call func(tui.API, context.Context, I, ...grpc.CallOption) (O, error)) method {
	var request I
	return method{input: request.ProtoReflect().Type(),
		call: func(ctx context.Context, api tui.API, m proto.Message) (proto.Message, error) {
			return call(api, ctx, m.(I))
		}}
}

// Names of arguments that are no fields: how long a page is and where it begins.
const (
	cursor = "cursor"
	limit  = "limit"
)

const (
	defaultLimit = 20
	maxLimit     = 100
)

// texts describe arguments that their names and types do not explain.
var texts = map[string]string{
	"namespace":  "default: the connection's",
	"step_name":  "only its attempts",
	cursor:       "next_cursor of the answer before",
	"request_id": "1 to 64 bytes",
	"reason":     "for the audit log",
	"priority":   "-100 to 100, higher first",
}

// pages reports whether the method returns a list in pages.
func (t *tool) pages() bool { return t.method.input.Descriptor().Fields().ByName("page") != nil }

// described returns the tool as it is listed.
func (t *tool) described() *sdk.Tool {
	var properties render.Object
	required := []string{}
	for _, name := range strings.Fields(t.arguments) {
		name, must := strings.CutSuffix(name, "!")
		if must {
			required = append(required, name)
		}
		field := t.method.input.Descriptor().Fields().ByName(protoreflect.Name(name))
		properties = append(properties, render.Field{Name: name, Value: described(schemaOf(field), texts[name])})
	}
	if t.pages() {
		properties = append(properties, render.Field{Name: limit, Value: render.Object{{Name: "type", Value: "integer"},
			{Name: "default", Value: defaultLimit}, {Name: "maximum", Value: maxLimit}}})
	}
	if !t.writes {
		properties = append(properties, render.Field{Name: cursor,
			Value: described(render.Object{{Name: "type", Value: "string"}}, texts[cursor])})
	}
	closed := false
	notes := &sdk.ToolAnnotations{ReadOnlyHint: !t.writes, IdempotentHint: t.idempotent || !t.writes,
		OpenWorldHint: &closed}
	if t.writes {
		notes.DestructiveHint = &t.destructive
	}
	return &sdk.Tool{Name: t.name, Description: t.about, Annotations: notes, InputSchema: render.Object{
		{Name: "type", Value: "object"}, {Name: "properties", Value: properties}, {Name: "required", Value: required},
		{Name: "additionalProperties", Value: false}}}
}

func described(schema render.Object, text string) render.Object {
	if text == "" {
		return schema
	}
	return append(schema, render.Field{Name: "description", Value: text})
}

// schemaOf returns the JSON schema of a field's value.
func schemaOf(field protoreflect.FieldDescriptor) render.Object {
	kind := func(name string) render.Object { return render.Object{{Name: "type", Value: name}} }
	switch {
	case field.IsMap():
		return append(kind("object"), render.Field{Name: "additionalProperties", Value: kind("string")})
	case field.IsList():
		return append(kind("array"), render.Field{Name: "items", Value: schemaOfOne(field)})
	}
	return schemaOfOne(field)
}

func schemaOfOne(field protoreflect.FieldDescriptor) render.Object {
	kind := func(name string) render.Object { return render.Object{{Name: "type", Value: name}} }
	switch field.Kind() {
	case protoreflect.BoolKind:
		return kind("boolean")
	case protoreflect.Int32Kind:
		return kind("integer")
	case protoreflect.EnumKind:
		return append(kind("string"), render.Field{Name: "enum", Value: words(field.Enum())})
	case protoreflect.MessageKind:
		switch field.Message().FullName() {
		case "google.protobuf.Timestamp":
			return described(kind("string"), "2026-11-20T12:00:00Z")
		case "google.protobuf.Duration":
			return described(kind("string"), "such as 90s or 2h")
		}
		return render.Object{} // a payload: any JSON
	}
	return kind("string")
}

// words returns the values of an enum as people write them, without the unspecified one.
func words(e protoreflect.EnumDescriptor) (list []string) {
	for i := range e.Values().Len() {
		if n := e.Values().Get(i).Number(); n != 0 {
			list = append(list, render.Enum(e, n).(string))
		}
	}
	return list
}

// call answers a call of the tool.
func (s *server) call(ctx context.Context, t *tool, r *sdk.CallToolRequest) *sdk.CallToolResult {
	ctx, cancel := context.WithTimeout(as(ctx, r.ClientInfo(), r.GetExtra()), callTime)
	defer cancel()
	text, err := s.answer(ctx, t, r.Params.Arguments)
	if err != nil {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: errorText(err)}}}
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

func (s *server) answer(ctx context.Context, t *tool, arguments []byte) (string, error) {
	request, offset, err := t.request(arguments, s.Namespace)
	if err != nil {
		return "", err
	}
	answer, err := t.method.call(ctx, s.API, request)
	if err != nil {
		return "", err
	}
	if !t.pages() {
		return cut(documentOf(answer, 0), offset)
	}
	list := answer.ProtoReflect()
	whole, fits := page(list, -1)
	if fits < 0 {
		return whole, nil
	}
	// A page of that length has the cursor of what was left out.
	setPageSize(request, fits)
	if answer, err = t.method.call(ctx, s.API, request); err != nil {
		return "", err
	}
	whole, _ = page(answer.ProtoReflect(), fits)
	return whole, nil
}

// names returns the names of the arguments.
func (t *tool) names() []string {
	names := strings.Fields(strings.ReplaceAll(t.arguments, "!", ""))
	if t.pages() {
		names = append(names, limit)
	}
	if !t.writes {
		names = append(names, cursor)
	}
	return names
}
