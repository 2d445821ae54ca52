package rest

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kagzi/kagzi/proto/routes"
)

// route is the HTTP route of a method.
type route struct {
	full          string // "/kagzi.v1.WorkflowService/GetWorkflow"
	verb          string
	segments      []segment
	action        string // "cancel" of "{run_id}:cancel"; empty: none
	method        protoreflect.MethodDescriptor
	input, output protoreflect.MessageType
}

// segment is a part of a path between slashes: a text, or the value of a field.
type segment struct {
	text  string
	field []protoreflect.FieldDescriptor // from the request to a field within it
}

// table holds the routes, the most specific first.
type table []*route

// newTable returns the routes of the contract.
func newTable() (table, error) {
	var all table
	for _, r := range routes.All {
		one, err := newRoute(r)
		if err != nil {
			return nil, fmt.Errorf("route of %s: %w", r.Method, err)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b *route) int {
		return cmp.Or(-cmp.Compare(a.action, b.action), cmp.Compare(a.fields(), b.fields()))
	})
	return all, nil
}

func newRoute(from routes.Route) (*route, error) {
	name := strings.ReplaceAll(strings.TrimPrefix(from.Method, "/"), "/", ".")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, err
	}
	r := &route{full: from.Method, verb: from.Verb, method: d.(protoreflect.MethodDescriptor)}
	if r.input, err = protoregistry.GlobalTypes.FindMessageByName(r.method.Input().FullName()); err != nil {
		return nil, err
	}
	if r.output, err = protoregistry.GlobalTypes.FindMessageByName(r.method.Output().FullName()); err != nil {
		return nil, err
	}
	path, action, _ := strings.Cut(from.Path, ":")
	r.action = action
	for _, text := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		name, variable := strings.CutPrefix(strings.TrimSuffix(text, "}"), "{")
		if !variable {
			r.segments = append(r.segments, segment{text: text})
			continue
		}
		field := fieldPath(r.method.Input(), name)
		if field == nil {
			return nil, fmt.Errorf("%s has no field %s", r.method.Input().Name(), name)
		}
		r.segments = append(r.segments, segment{field: field})
	}
	return r, nil
}

// fieldPath returns the fields of a dotted name, in the message and below; nil if there is none.
func fieldPath(in protoreflect.MessageDescriptor, name string) (path []protoreflect.FieldDescriptor) {
	for part := range strings.SplitSeq(name, ".") {
		if in == nil {
			return nil
		}
		field := in.Fields().ByTextName(part)
		if field == nil {
			field = in.Fields().ByJSONName(part)
		}
		if field == nil {
			return nil
		}
		path, in = append(path, field), field.Message()
		if field.IsMap() || field.IsList() {
			in = nil
		}
	}
	return path
}

// fields returns how many fields are in the route's path.
func (r *route) fields() (n int) {
	for _, s := range r.segments {
		if s.field != nil {
			n++
		}
	}
	return n
}

// hasBody reports whether the request is in the body.
func (r *route) hasBody() bool { return r.verb == "POST" || r.verb == "PATCH" }

// match returns the values of the fields in an escaped path; false if the path is not the route's.
// Only a colon that is not escaped begins an action, so that ids may hold any character.
func (r *route) match(path string) (values []string, ok bool) {
	if r.action != "" {
		stem, ok := strings.CutSuffix(path, ":"+r.action)
		if !ok {
			return nil, false
		}
		path = stem
	}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(parts) != len(r.segments) {
		return nil, false
	}
	for i, s := range r.segments {
		part, err := url.PathUnescape(parts[i])
		if err != nil || part == "" || s.field == nil && part != s.text {
			return nil, false
		}
		if s.field != nil {
			values = append(values, part)
		}
	}
	return values, true
}

// find returns the route of a request with the values in its path. Without one it returns the
// methods that the path has; none if there is no such path.
func (t table) find(verb, path string) (r *route, values []string, allowed []string) {
	last := path[strings.LastIndexByte(path, '/')+1:]
	for _, r := range t {
		values, ok := r.match(path)
		if !ok {
			continue
		}
		if r.verb == verb || verb == "HEAD" && r.verb == "GET" && !r.method.IsStreamingServer() {
			return r, values, nil
		}
		if r.action != "" || !strings.Contains(last, ":") {
			allowed = append(allowed, r.verb)
		}
	}
	slices.Sort(allowed)
	return nil, nil, slices.Compact(allowed)
}
