package e2e

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/rest"
	"github.com/kagzi/kagzi/engine/server/rest/resttest"
)

// serveHTTP serves the API over HTTP on a free port until the end of the test, and returns its URL.
func (s *Server) serveHTTP(t testing.TB, o rest.GateOptions) string {
	t.Helper()
	o.Keyless, o.Log = s.api.Direct().Keyless, slog.New(slog.DiscardHandler)
	gate, err := rest.NewGate(o)
	if err != nil {
		t.Fatal(err)
	}
	api, err := rest.New(s.api.Direct(), gate, o.Log)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	calls, hooks := gate.Handler(api, rest.Types...), gate.Signed(rest.Hooks(s.api.Direct(), o.Log))
	h := rest.NewHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.EscapedPath(), engine.HookPath) {
			hooks.ServeHTTP(w, r)
			return
		}
		calls.ServeHTTP(w, r)
	}), o.Log)
	done := make(chan error, 1)
	go func() { done <- h.Serve(l) }()
	t.Cleanup(func() {
		h.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// overHTTP returns the server as the same caller sees it over HTTP.
func (s *Server) overHTTP(t testing.TB) *Server {
	t.Helper()
	if s.web != nil {
		return s.web
	}
	other := &Server{Address: s.Address, secret: s.secret, api: s.api, Store: s.Store, clock: s.clock,
		notify: s.notify, tb: t}
	other.Conn = resttest.Conn{URL: s.serveHTTP(t, rest.GateOptions{Loopback: true}), Secret: s.secret}
	s.web = other
	return other
}

// callEach makes a call over gRPC and over HTTP and returns the error of the first. It fails the test
// if the two differ in more than the store's state explains.
func (s *Server) callEach(t testing.TB, method protoreflect.MethodDescriptor, path string,
	request proto.Message) error {
	t.Helper()
	err := s.call(within(t, 20*time.Second), method, path, request)
	other := s.overHTTP(t).call(within(t, 20*time.Second), method, path, request)
	if errors.Is(other, resttest.ErrUnsaid) {
		return err
	}
	if _, ok := status.FromError(other); !ok {
		t.Errorf("%s over HTTP: %v", method.Name(), other)
	}
	if err != nil && (status.Code(err) != status.Code(other) ||
		fmt.Sprint(detailOf(err)) != fmt.Sprint(detailOf(other))) {
		t.Errorf("%s is refused with %v over gRPC, and %v over HTTP", method.Name(), err, other)
	}
	return err
}
