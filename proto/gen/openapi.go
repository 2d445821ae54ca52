package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// object is an object of JSON; its keys are written in order.
type object = map[string]any

// document collects the description of the API.
type document struct {
	paths   object
	schemas object
	tags    []any
}

// writeOpenAPI writes the description of the API over HTTP as OpenAPI 3.1, and compressed for the
// program.
func writeOpenAPI(root string, files linker.Files) error {
	d := &document{paths: object{}, schemas: object{}}
	for _, file := range files {
		for i := range file.Services().Len() {
			if err := d.addService(file.Services().Get(i)); err != nil {
				return err
			}
		}
	}
	d.addOwnSchemas()
	text, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{"title": "Kagzi", "version": "v1", "contact": object{"url": "https://github.com/kagzi/kagzi"},
			"description": "Durable workflows over HTTP with JSON. The guide's chapter on HTTP says how to use it."},
		"servers":  []any{object{"url": "/", "description": "this server"}},
		"security": []any{object{"key": []any{}}, object{"certificate": []any{}}, object{}},
		"tags":     d.tags,
		"paths":    d.paths,
		"components": object{
			"schemas": d.schemas,
			"securitySchemes": object{
				"key":         object{"type": "http", "scheme": "bearer", "description": "the secret of an API key"},
				"certificate": object{"type": "mutualTLS", "description": "a certificate whose common name is a key's name"},
			},
			"responses": object{"Problem": object{"description": "an error (RFC 9457)", "content": object{
				"application/problem+json": object{"schema": reference("Problem")}}}},
			"parameters": object{"IdempotencyKey": object{"name": "Idempotency-Key", "in": "header",
				"description": "makes the call happen once, however often it is sent",
				"schema":      object{"type": "string", "minLength": 1, "maxLength": 64}}},
		},
	}, "", " ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	path := filepath.Join(root, "openapi", "openapi.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := zip.Write(text); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return os.WriteFile(path+".gz", packed.Bytes(), 0o644)
}

func reference(schema string) object { return object{"$ref": "#/components/schemas/" + schema} }

// comment returns the comment of a declaration on one line, without its end of line comment's mark.
func comment(d protoreflect.Descriptor) string {
	at := d.ParentFile().SourceLocations().ByDescriptor(d)
	return strings.Join(strings.Fields(at.LeadingComments+" "+at.TrailingComments), " ")
}

// firstSentence returns the beginning of a text, for lists.
var firstSentence = regexp.MustCompile(`^.*?[.:;](?: |$)`)

// words splits a name at its capitals.
var words = regexp.MustCompile(`([a-z])([A-Z])`)

func (d *document) addService(service protoreflect.ServiceDescriptor) error {
	d.tags = append(d.tags, object{"name": string(service.Name()), "description": comment(service)})
	for i := range service.Methods().Len() {
		method := service.Methods().Get(i)
		r, ok, err := routeOf(method)
		if err != nil || !ok {
			return err
		}
		path := inPath.ReplaceAllString(r.path, "{$2}")
		at, ok := d.paths[path].(object)
		if !ok {
			at = object{}
			d.paths[path] = at
		}
		at[strings.ToLower(r.verb)] = d.operation(method, r)
	}
	return nil
}

// inPath finds the fields of a path: the whole, the messages before the last name, and that.
var inPath = regexp.MustCompile(`\{((?:\w+\.)*)(\w+)\}`)

func (d *document) operation(method protoreflect.MethodDescriptor, r route) object {
	about := comment(method)
	summary := strings.TrimRight(firstSentence.FindString(about), ".:; ")
	if summary == "" {
		summary = words.ReplaceAllString(string(method.Name()), "$1 $2")
		about = summary + "."
	}
	parameters := []any{}
	taken := map[string]bool{}
	for _, match := range inPath.FindAllStringSubmatch(r.path, -1) {
		taken[match[1]+match[2]] = true
		parameters = append(parameters, object{"name": match[2], "in": "path", "required": true,
			"schema": object{"type": "string"}})
	}
	operation := object{"operationId": string(method.Name()), "summary": summary, "description": about,
		"tags": []any{string(method.Parent().Name())}}
	fields := method.Input().Fields()
	upload := isFile(method.Input())
	if r.verb == "GET" || r.verb == "DELETE" || upload {
		parameters = d.query(parameters, method.Input(), "", taken)
	} else {
		operation["requestBody"] = object{"required": true, "content": object{
			"application/json": object{"schema": d.message(method.Input())}}}
	}
	if upload {
		operation["requestBody"] = object{"required": true, "content": object{
			"application/zip": object{"schema": object{"type": "string", "format": "binary"}}}}
	}
	if fields.ByName("request_id") != nil || fields.ByName("signal_id") != nil {
		parameters = append(parameters, object{"$ref": "#/components/parameters/IdempotencyKey"})
	}
	if len(parameters) > 0 {
		operation["parameters"] = parameters
	}
	kind, what := "application/json", "the answer"
	var schema object
	switch {
	case isFile(method.Output()):
		kind, what, schema = "application/octet-stream", "a file", object{"type": "string", "format": "binary"}
		if method.Output().Name() == "Capsule" {
			kind = "application/zip"
		}
	case method.IsStreamingServer():
		kind, what = "text/event-stream", "server-sent events; the data of each is "+string(method.Output().Name())
		schema = object{"type": "string", "contentMediaType": "application/json",
			"contentSchema": d.message(method.Output())}
	default:
		schema = d.message(method.Output())
	}
	operation["responses"] = object{"200": object{"description": what, "content": object{kind: object{"schema": schema}}},
		"default": object{"$ref": "#/components/responses/Problem"}}
	return operation
}

// isFile reports whether a message is a piece of a file.
func isFile(m protoreflect.MessageDescriptor) bool {
	data := m.Fields().ByName("data")
	return data != nil && data.Kind() == protoreflect.BytesKind
}

// query appends the fields of a message as parameters. The fields of a page stand by themselves.
func (d *document) query(list []any, m protoreflect.MessageDescriptor, below string, taken map[string]bool) []any {
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		name := below + string(field.Name())
		switch {
		case taken[name] || field.Kind() == protoreflect.BytesKind:
			continue
		case field.Message() != nil && field.Message().Name() == "PageRequest":
			list = d.query(list, field.Message(), "", taken)
			continue
		}
		one := object{"name": name, "in": "query", "schema": d.value(field)}
		if text := comment(field); text != "" {
			one["description"] = text
		}
		if field.IsMap() {
			one["style"], one["explode"] = "deepObject", true
		}
		list = append(list, one)
	}
	return list
}

// message returns a reference to the schema of a message, which it adds.
func (d *document) message(m protoreflect.MessageDescriptor) object {
	name := strings.TrimPrefix(string(m.FullName()), "kagzi.v1.")
	if _, known := d.schemas[name]; known || name == "Payload" {
		return reference(name)
	}
	properties := object{}
	schema := object{"type": "object", "properties": properties}
	d.schemas[name] = schema
	if text := comment(m); text != "" {
		schema["description"] = text
	}
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		property := d.value(field)
		if text := comment(field); text != "" {
			property["description"] = text
		}
		properties[field.JSONName()] = property
	}
	return reference(name)
}

// value returns the schema of a field.
func (d *document) value(field protoreflect.FieldDescriptor) object {
	switch {
	case field.IsMap():
		return object{"type": "object", "additionalProperties": d.one(field.MapValue())}
	case field.IsList():
		return object{"type": "array", "items": d.one(field)}
	}
	return d.one(field)
}

// one returns the schema of a single value of a field.
func (d *document) one(field protoreflect.FieldDescriptor) object {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return object{"type": "boolean"}
	case protoreflect.Int32Kind:
		return object{"type": "integer", "format": "int32"}
	case protoreflect.Int64Kind, protoreflect.Uint64Kind:
		return object{"type": []any{"string", "integer"}, "format": "int64"}
	case protoreflect.DoubleKind:
		return object{"type": "number", "format": "double"}
	case protoreflect.BytesKind:
		return object{"type": "string", "contentEncoding": "base64"}
	case protoreflect.EnumKind:
		names := []any{}
		for i := range field.Enum().Values().Len() {
			names = append(names, string(field.Enum().Values().Get(i).Name()))
		}
		return object{"type": "string", "enum": names}
	case protoreflect.MessageKind:
		switch field.Message().FullName() {
		case "google.protobuf.Timestamp":
			return object{"type": "string", "format": "date-time"}
		case "google.protobuf.Duration":
			return object{"type": "string", "pattern": `^-?[0-9]+(\.[0-9]{1,9})?s$`}
		}
		return d.message(field.Message())
	}
	return object{"type": "string"}
}

// addOwnSchemas adds what the .proto files do not say.
func (d *document) addOwnSchemas() {
	d.schemas["Payload"] = object{"type": "object", "description": "Data of users: json, kept digit for digit, or base64.",
		"properties": object{
			"json":     object{"description": "any JSON"},
			"base64":   object{"type": "string", "contentEncoding": "base64"},
			"metadata": object{"type": "object", "additionalProperties": object{"type": "string"}},
		},
		"oneOf": []any{object{"required": []any{"json"}}, object{"required": []any{"base64"}}},
	}
	d.schemas["Problem"] = object{"type": "object", "description": "An error (RFC 9457). Its type is about:blank.",
		"properties": object{
			"title":      object{"type": "string", "description": "of the status"},
			"status":     object{"type": "integer"},
			"detail":     object{"type": "string", "description": "what is wrong, and what to do"},
			"grpcStatus": object{"type": "string", "description": "of the same call over gRPC, such as NOT_FOUND"},
			"error":      reference("ErrorDetail"),
		},
		"required": []any{"title", "status", "detail", "grpcStatus", "error"},
	}
}
