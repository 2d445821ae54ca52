// Package rest serves the API as HTTP with JSON. A request becomes the message of its method, and
// the method's handler is called in this process, with the same checks of keys, roles and limits
// as over gRPC.
//
//   - gate.go: checks of every request, also of those to other handlers: its host, its origin and
//     its type. Gate also says who calls, and limits streams.
//   - rest.go: one call. route.go finds its method; bind.go and json.go make its request.
//   - stream.go: streams of a server, as server-sent events or as bytes.
//   - door.go: the checks for another protocol over POST. hooks.go: deliveries of webhooks.
//   - problem.go: errors, as RFC 9457 has them.
package rest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/limit"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	maxBody = engine.MaxMessage * 3 / 2 // bytes: payloads are longer in base64

	// A body has bodyTime plus the time that it needs at slowest bytes per second.
	bodyTime = 10 * time.Second
	slowest  = 64 << 10

	// writeTime is how long one write of an answer may take.
	writeTime = 30 * time.Second
)

// Media types of requests.
const (
	jsonType = "application/json"
	zipType  = "application/zip"
)

// Types are the media types that the API's writes may have.
var Types = []string{jsonType, zipType}

// Server is the server whose API is served.
type Server interface {
	grpc.ClientConnInterface
	// Authenticate checks a call's key before its request is read, and returns the key's id.
	Authenticate(ctx context.Context, method string) (key string, err error)
	// Keyless reports whether calls need no key.
	Keyless(ctx context.Context) bool
}

// API serves the methods of the contract under /v1/. Serve it behind a Gate, which says who calls.
type API struct {
	server  Server
	gate    *Gate
	routes  table
	errors  *wire.Errors
	reading limit.InFlight // bytes of bodies that are being read or decoded
}

// New returns the API of a server.
func New(server Server, gate *Gate, log *slog.Logger) (*API, error) {
	routes, err := newTable()
	return &API{server: server, gate: gate, routes: routes, errors: &wire.Errors{Log: log, Now: time.Now}}, err
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := a.serve(w, r); err != nil {
		writeProblem(w, a.errors, err)
	}
}

// serve answers a request, or returns an error before it has answered.
func (a *API) serve(w http.ResponseWriter, r *http.Request) error {
	one, values, allowed := a.routes.find(r.Method, r.URL.EscapedPath())
	switch {
	case one == nil && len(allowed) == 0:
		return refuse(http.StatusNotFound, engine.KindNotFound, "the API has no such path; see /openapi.json")
	case one == nil:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return refuse(http.StatusMethodNotAllowed, engine.KindUnsupported,
			"this path takes "+strings.Join(allowed, " or "))
	}
	kind, isUpload := jsonType, isBytes(one.method.Input())
	if isUpload {
		kind = zipType
	}
	if one.hasBody() && !accepted(r, []string{kind}) {
		return errType(kind)
	}
	caller, err := a.server.Authenticate(r.Context(), one.full)
	if err != nil {
		return err
	}
	if isUpload {
		return a.upload(w, r, one)
	}
	request, err := a.request(w, r, one, values)
	if err != nil {
		return err
	}
	if one.method.IsStreamingServer() {
		return a.stream(w, r, one, request, caller)
	}
	setWriteDeadline(w, time.Time{}) // a long poll may take its time; the write below gets its own
	answer := one.output.New().Interface()
	if err := a.server.Invoke(r.Context(), one.full, request, answer); err != nil {
		return err
	}
	text, err := encode(answer)
	if err != nil {
		return err
	}
	if next := nextPage(r.URL, answer); next != "" {
		w.Header().Set("Link", "<"+next+`>; rel="next"`)
	}
	w.Header().Set("Content-Type", "application/json")
	write(w, http.StatusOK, append(text, '\n'))
	return nil
}

// request returns the message of a request.
func (a *API) request(w http.ResponseWriter, r *http.Request, one *route, values []string) (proto.Message, error) {
	message := one.input.New()
	m := message.Interface()
	if one.hasBody() {
		if r.URL.RawQuery != "" {
			return nil, engine.Invalid("query", "%s takes its fields in the body", one.method.Name())
		}
		body, release, err := a.body(w, r)
		if err != nil {
			return nil, err
		}
		defer release()
		if err := decode(body, m); err != nil {
			return nil, err
		}
		if err := checkSize(m); err != nil {
			return nil, err
		}
	} else {
		if r.ContentLength != 0 {
			return nil, engine.Invalid("body", "%s takes no body", r.Method)
		}
		if err := bindQuery(message, one, r.URL.RawQuery); err != nil {
			return nil, err
		}
	}
	if err := bindPath(message, one, values); err != nil {
		return nil, err
	}
	return m, bindKey(message, one, r.Header.Values(idempotencyKey))
}

// body reads a body whole. Call release when it is no longer needed.
func (a *API) body(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	size := r.ContentLength
	switch {
	case size > maxBody:
		return nil, nil, errTooLong
	case size < 0:
		size = maxBody
	}
	if !a.reading.Acquire(r.Context(), int(size)) {
		return nil, nil, r.Context().Err()
	}
	release = func() { a.reading.Release(int(size)) }
	setReadDeadline(w, time.Now().Add(bodyTime+time.Duration(size/slowest)*time.Second))
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		release()
		return nil, nil, bodyError(err)
	}
	return body, release, nil
}

var errTooLong = tooLong(maxBody)

func tooLong(most int64) error {
	return engine.TooLarge("body", "is longer than the %d bytes that are allowed", most)
}

// bodyError returns the error for a body that could not be read.
func bodyError(err error) error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLong(e.Limit)
	}
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		return refuse(http.StatusRequestTimeout, engine.KindInvalid, "body: did not arrive in time; send it again")
	}
	return engine.Invalid("body", "could not be read; send it again")
}

// nextPage returns the address of the next page of a list, relative to that of the request; empty if
// there is none.
func nextPage(from *url.URL, answer proto.Message) string {
	list, ok := answer.(interface{ GetPage() *kagziv1.PageInfo })
	if !ok || list.GetPage().GetNextPageToken() == "" {
		return ""
	}
	query := from.Query()
	for _, name := range []string{"page.page_token", "page.pageToken", "pageToken", "last", "page.last"} {
		query.Del(name)
	}
	query.Set("page_token", list.GetPage().GetNextPageToken())
	return "?" + query.Encode()
}

// isBytes reports whether a message is a piece of a file.
func isBytes(d protoreflect.MessageDescriptor) bool {
	data := d.Fields().ByName("data")
	return data != nil && data.Kind() == protoreflect.BytesKind && d.FullName() != payloadName
}

// write answers with a text.
func write(w http.ResponseWriter, code int, text []byte) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	setWriteDeadline(w, time.Now().Add(writeTime+time.Duration(len(text)/slowest)*time.Second))
	w.WriteHeader(code)
	_, _ = w.Write(text) // the client has gone
}

// setWriteDeadline and setReadDeadline change the deadline of a connection, if it has any: a
// recorder in a test has none.
func setWriteDeadline(w http.ResponseWriter, at time.Time) {
	_ = http.NewResponseController(w).SetWriteDeadline(at)
}

func setReadDeadline(w http.ResponseWriter, at time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(at)
}
