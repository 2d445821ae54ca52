// Package resttest calls the API over HTTP as if it were a connection of gRPC, so that tests of the
// API can run over both.
package resttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/routes"
)

// Conn calls a server over HTTP. Streams send one request.
type Conn struct {
	URL     string       // "http://127.0.0.1:50052"
	Secret  string       // of an API key; empty: that in the outgoing metadata
	Empty   string       // for empty fields in the path; without it such calls are ErrUnsaid
	Handler http.Handler // if set, called in this process instead of URL
}

var _ grpc.ClientConnInterface = Conn{}

// ErrUnsaid is the error for a request that JSON cannot say, or a method that HTTP does not serve.
var ErrUnsaid = errors.New("HTTP cannot say this")

// Invoke makes a unary call.
func (c Conn) Invoke(ctx context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	answer, err := c.send(ctx, method, request.(proto.Message))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return read(text, reply.(proto.Message))
}

// send makes a request and returns its answer, or the error that it tells.
func (c Conn) send(ctx context.Context, method string, m proto.Message) (*http.Response, error) {
	request, err := c.request(ctx, method, m)
	if err != nil {
		return nil, err
	}
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		request.Header["Authorization"] = md.Get("authorization")
	}
	if c.Secret != "" {
		request.Header.Set("Authorization", "Bearer "+c.Secret)
	}
	client := http.DefaultClient
	if c.Handler != nil {
		client = &http.Client{Transport: inProcess{c.Handler}}
	}
	answer, err := client.Do(request)
	switch {
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	case err != nil:
		return nil, fmt.Errorf("%s: %w", request.URL, err)
	case answer.StatusCode == http.StatusOK:
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if kind := answer.Header.Get("Content-Type"); kind != "application/problem+json" {
		return nil, fmt.Errorf("%s is answered with %d as %s: %s", request.URL, answer.StatusCode, kind, text)
	}
	return nil, problem(answer.StatusCode, text)
}

// problem returns the error that a problem tells.
func problem(code int, text []byte) error {
	var p struct {
		Title, Detail, GRPCStatus string
		Status                    int
		Error                     json.RawMessage
	}
	if err := json.Unmarshal(text, &p); err != nil || p.Status != code || p.Title == "" && code != 499 {
		return fmt.Errorf("the answer with %d is no problem: %v %s", code, err, text)
	}
	var grpcCode codes.Code
	if err := grpcCode.UnmarshalJSON([]byte(`"` + p.GRPCStatus + `"`)); err != nil {
		return err
	}
	detail := &kagziv1.ErrorDetail{}
	if err := protojson.Unmarshal(p.Error, detail); err != nil {
		return err
	}
	st, err := status.New(grpcCode, p.Detail).WithDetails(detail)
	if err != nil {
		return err
	}
	return st.Err()
}

// request returns the HTTP request of a call.
func (c Conn) request(ctx context.Context, method string, m proto.Message) (*http.Request, error) {
	var route *routes.Route
	for i := range routes.All {
		if routes.All[i].Method == method {
			route = &routes.All[i]
		}
	}
	if route == nil {
		return nil, ErrUnsaid
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, ErrUnsaid // a time out of range, or text that is not UTF-8
	}
	var fields map[string]any
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	if err := reader.Decode(&fields); err != nil {
		return nil, err
	}
	payloads(fields, m.ProtoReflect().Descriptor(), func(p map[string]any) {
		p["base64"] = p["data"]
		if p["base64"] == nil {
			p["base64"] = ""
		}
		delete(p, "data")
	})
	path, err := c.fill(route.Path, fields)
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	var body []byte
	kind := "application/json"
	switch data := fields["data"]; {
	case m.ProtoReflect().Descriptor().Name() == "Capsule":
		kind = "application/zip"
		encoded, _ := data.(string)
		if body, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, err
		}
		delete(fields, "data")
		addQuery(query, "", fields)
	case route.Verb == "POST" || route.Verb == "PATCH":
		if body, err = json.Marshal(fields); err != nil {
			return nil, err
		}
	default:
		addQuery(query, "", fields)
	}
	address := c.URL + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	if len(address) > 8<<10 {
		return nil, ErrUnsaid // the server refuses such headers before it reads them
	}
	request, err := http.NewRequestWithContext(ctx, route.Verb, address, bytes.NewReader(body))
	if err == nil && body != nil {
		request.Header.Set("Content-Type", kind)
	}
	return request, err
}

// fill puts fields into a path, and removes them.
func (c Conn) fill(path string, fields map[string]any) (string, error) {
	before, rest, found := strings.Cut(path, "{")
	if !found {
		return path, nil
	}
	name, after, _ := strings.Cut(rest, "}")
	at := fields
	parts := strings.Split(name, ".")
	for _, part := range parts[:len(parts)-1] {
		inner, ok := at[part].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[part] = inner
		}
		at = inner
	}
	value, _ := at[parts[len(parts)-1]].(string)
	if value == "" {
		value = c.Empty
	}
	if value == "" {
		return "", ErrUnsaid // a path has no empty part
	}
	delete(at, parts[len(parts)-1])
	after, err := c.fill(after, fields)
	return before + url.PathEscape(value) + after, err
}

// addQuery adds fields with their names below a name.
func addQuery(query url.Values, below string, fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case map[string]any:
			if below == "" && (name == "tags" || name == "keep") { // maps
				for key, one := range value {
					query.Add(name+"["+key+"]", fmt.Sprint(one))
				}
				continue
			}
			addQuery(query, below+name+".", value)
		case []any:
			for _, one := range value {
				query.Add(below+name, fmt.Sprint(one))
			}
		default:
			query.Add(below+name, fmt.Sprint(value))
		}
	}
}

// payloads calls f with each payload in a message's JSON.
func payloads(fields map[string]any, d protoreflect.MessageDescriptor, f func(map[string]any)) {
	if d.FullName() == "kagzi.v1.Payload" {
		f(fields)
		return
	}
	for name, value := range fields {
		field := d.Fields().ByTextName(name)
		if field == nil {
			field = d.Fields().ByJSONName(name)
		}
		if field == nil || field.Message() == nil || field.IsMap() {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, one := range list {
			if one, ok := one.(map[string]any); ok {
				payloads(one, field.Message(), f)
			}
		}
	}
}

// read reads an answer.
func read(text []byte, into proto.Message) error {
	var fields map[string]any
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	if err := reader.Decode(&fields); err != nil {
		return fmt.Errorf("the answer is not JSON: %w: %s", err, text)
	}
	payloads(fields, into.ProtoReflect().Descriptor(), func(p map[string]any) {
		p["data"] = p["base64"]
		if data, ok := p["json"]; ok {
			plain, _ := json.Marshal(data)
			p["data"] = base64.StdEncoding.EncodeToString(plain)
		}
		delete(p, "json")
		delete(p, "base64")
	})
	plain, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	proto.Reset(into)
	if err := protojson.Unmarshal(plain, into); err != nil {
		return fmt.Errorf("the answer is no %s: %w: %s", into.ProtoReflect().Descriptor().Name(), err, text)
	}
	return nil
}

// NewStream begins a call that is made with its first message.
func (c Conn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string,
	_ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &stream{conn: c, ctx: ctx, method: method}, nil
}

type stream struct {
	conn    Conn
	ctx     context.Context
	method  string
	answer  *http.Response
	lines   *bufio.Reader
	sendErr error
}

func (s *stream) SendMsg(m any) error {
	s.answer, s.sendErr = s.conn.send(s.ctx, s.method, m.(proto.Message))
	return nil // RecvMsg tells an error
}

func (s *stream) RecvMsg(m any) error {
	if s.sendErr != nil {
		return s.sendErr
	}
	if s.answer == nil {
		return errors.New("nothing was sent")
	}
	into := m.(proto.Message)
	if s.lines == nil {
		s.lines = bufio.NewReader(s.answer.Body)
	}
	if s.answer.Header.Get("Content-Type") != "text/event-stream" {
		text, err := io.ReadAll(s.lines)
		s.answer.Body.Close()
		if err != nil {
			return err
		}
		data := into.ProtoReflect().Descriptor().Fields().ByName("data")
		switch {
		case len(text) == 0:
			return io.EOF
		case data == nil:
			return read(text, into)
		}
		into.ProtoReflect().Set(data, protoreflect.ValueOfBytes(text))
		return nil
	}
	kind, text := "", ""
	for {
		line, err := s.lines.ReadString('\n')
		switch {
		case s.ctx.Err() != nil:
			return status.FromContextError(s.ctx.Err()).Err()
		case err != nil:
			return fmt.Errorf("the stream broke: %w", err)
		}
		line = strings.TrimSuffix(line, "\n")
		if value, ok := strings.CutPrefix(line, "event: "); ok {
			kind = value
		} else if value, ok := strings.CutPrefix(line, "data: "); ok {
			text = value
		}
		if line != "" || text == "" {
			continue
		}
		switch kind {
		case "end":
			return io.EOF
		case "problem":
			var p struct{ Status int }
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				return err
			}
			return problem(p.Status, []byte(text))
		}
		return read([]byte(text), into)
	}
}

func (s *stream) CloseSend() error             { return nil }
func (s *stream) Header() (metadata.MD, error) { return nil, nil }
func (s *stream) Trailer() metadata.MD         { return nil }
func (s *stream) Context() context.Context     { return s.ctx }
