package rest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// fakeServer answers calls as a test says.
type fakeServer struct {
	invoke func(ctx context.Context, method string, request, reply proto.Message) error
	next   func(ctx context.Context, m proto.Message) error // the next message of a stream
	refuse error                                            // of every key
}

func (f *fakeServer) Invoke(ctx context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	return f.invoke(ctx, method, request.(proto.Message), reply.(proto.Message))
}

func (f *fakeServer) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string,
	_ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &fakeStream{f, ctx}, nil
}

func (f *fakeServer) Authenticate(context.Context, string) (string, error) { return "", f.refuse }

func (f *fakeServer) Keyless(context.Context) bool { return true }

type fakeStream struct {
	of  *fakeServer
	ctx context.Context
}

func (s *fakeStream) RecvMsg(m any) error        { return s.of.next(s.ctx, m.(proto.Message)) }
func (*fakeStream) SendMsg(any) error            { return nil }
func (*fakeStream) CloseSend() error             { return nil }
func (*fakeStream) Header() (metadata.MD, error) { return nil, nil }
func (*fakeStream) Trailer() metadata.MD         { return nil }
func (s *fakeStream) Context() context.Context   { return s.ctx }

// pipes is a listener whose connections are pipes, so that a test in a bubble can wait for their
// deadlines.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.over) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// dial opens a connection to the server.
func (p *pipes) dial() *client {
	near, far := net.Pipe()
	p.conns <- far
	return &client{near, bufio.NewReader(near)}
}

// servePipes serves the API of a fake server until the end of the test.
func servePipes(t *testing.T, f *fakeServer) *pipes {
	t.Helper()
	return serveBehindGate(t, f, func(api *API) http.Handler { return api })
}

// serveBehindGate serves what a test makes of the API until its end.
func serveBehindGate(t *testing.T, f *fakeServer, of func(*API) http.Handler) *pipes {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	gate, err := NewGate(GateOptions{Loopback: true, Keyless: f.Keyless, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	api, err := New(f, gate, log)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHTTPServer(gate.Handler(of(api), Types...), log)
	l := &pipes{conns: make(chan net.Conn), over: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- h.Serve(l) }()
	t.Cleanup(func() {
		h.Close()
		<-done
		time.Sleep(time.Second) // of the bubble: package http keeps a connection that it resets for half of that
	})
	return l
}

// client is the other end of a connection.
type client struct {
	net.Conn
	reader *bufio.Reader
}

// get asks for a path.
func (c *client) get(path string, headers ...string) {
	c.say("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n")
}

func (c *client) say(text string) { _, _ = io.WriteString(c, text) }

// answer reads the status line and the headers of an answer.
func (c *client) answer(t *testing.T) *http.Response {
	t.Helper()
	r, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// body reads the body of an answer whole.
func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return string(text) + fmt.Sprintf(" (%v)", err)
	}
	return string(text)
}
