package kagzi

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestMessagesOfGRPCAreExplained(t *testing.T) {
	for _, c := range []struct {
		code      codes.Code
		raw, want string
	}{
		{codes.Unavailable,
			`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`,
			"kagzi: UNAVAILABLE: no server answers: dial tcp 127.0.0.1:1: connect: connection refused; check that a server runs there (kagzi server) and check the address"},
		{codes.Unavailable,
			`connection error: desc = "transport: authentication handshake failed: tls: first record does not look like a TLS handshake"`,
			"kagzi: UNAVAILABLE: no encrypted connection to the server: tls: first record does not look like a TLS handshake; check the TLS settings and the certificates of both sides"},
		{codes.Unavailable, `connection error: desc = "error reading server preface: EOF"`,
			"kagzi: UNAVAILABLE: the address does not answer as a Kagzi server without TLS: EOF; if that lasts, check the address, and turn on TLS if the server wants it"},
		{codes.Unavailable,
			`connection error: desc = "error reading server preface: raw-read tcp 127.0.0.1:2->127.0.0.1:1: use of closed network connection"`,
			"kagzi: UNAVAILABLE: the address accepts connections but does not answer: the server hangs, or it is not a Kagzi server"},
		{codes.Unavailable, "name resolver error: produced zero addresses",
			"kagzi: UNAVAILABLE: cannot resolve the server's name: produced zero addresses; check the address"},
		{codes.Unavailable, "error reading from server: EOF",
			"kagzi: UNAVAILABLE: the server gave no answer: error reading from server: EOF"},
		{codes.Canceled, "grpc: the client connection is closing", "kagzi: CANCELLED: the client is closed"},
		{codes.ResourceExhausted, "trying to send message larger than max (10109000 vs. 8454144)",
			"kagzi: RESOURCE_EXHAUSTED: the call is larger than a server accepts: (10109000 vs. 8454144); send less in one call"},
		{codes.Internal, "grpc: error while marshaling: string field contains invalid UTF-8",
			"kagzi: INTERNAL: the call cannot be sent: string field contains invalid UTF-8; names, ids and texts must be UTF-8"},
		{codes.Unimplemented, "unknown service x",
			"kagzi: INTERNAL: the server does not offer this: unknown service x; it may be older than this program"},
		{codes.NotFound, "Error while dialing: x", "kagzi: NOT_FOUND: Error while dialing: x"},
	} {
		raw := status.New(c.code, c.raw)
		err := callError(t.Context(), raw.Err())
		if err.Error() != c.want {
			t.Errorf("%s: %q, want %q", c.raw, err, c.want)
		}
		if seen, ok := status.FromError(err); !ok || seen.Code() != c.code || seen.Message() != c.raw {
			t.Errorf("%s: gRPC sees %v", c.raw, seen)
		}
	}
}

func TestAnUnreachableServerIsExplained(t *testing.T) {
	address := unheard(t)
	var log bytes.Buffer
	c, err := NewClient(ClientOptions{Profile: NoProfile, Address: address,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	warned := make(chan struct{})
	c.awaits.Log = slog.New(&hearing{slog.NewTextHandler(&log, nil), warned})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	go func() { <-warned; cancel() }()
	if _, err := Result[int](ctx, c.Run("r")); !errors.Is(err, context.Canceled) {
		t.Errorf("Result: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, "UNAVAILABLE: no server answers: dial tcp "+address) ||
		strings.Contains(text, "rpc error") {
		t.Errorf("log: %s", text)
	}
}

// unheard returns an address that refuses connections during the test: a connection occupies its
// port, so nobody can listen on it.
func unheard(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	held, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close(); listener.Close() })
	address := held.LocalAddr().String()
	if taken, err := net.Listen("tcp", address); err == nil {
		taken.Close()
		t.Fatalf("%s is free for anybody to listen on", address)
	}
	return address
}

// hearing is a handler that reports its first record.
type hearing struct {
	slog.Handler
	heard chan struct{}
}

func (h *hearing) Handle(ctx context.Context, r slog.Record) error {
	defer func() {
		if h.heard != nil {
			close(h.heard)
			h.heard = nil
		}
	}()
	return h.Handler.Handle(ctx, r)
}

// counted is a handler that reports its n-th record.
type counted struct {
	slog.Handler
	n       atomic.Int32
	reached func()
}

func (h *counted) Handle(ctx context.Context, r slog.Record) error {
	defer func() {
		if h.n.Add(-1) == 0 {
			h.reached()
		}
	}()
	return h.Handler.Handle(ctx, r)
}

func TestSessionAttemptsAreLoggedWithTheirNumber(t *testing.T) {
	address := unheard(t)
	var log bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := &counted{Handler: slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}), reached: cancel}
	h.n.Store(2)
	w := NewWorker(WorkerOptions{Profile: NoProfile, Address: address, Queue: "q", Logger: slog.New(h)})
	Handle(w, "t", func(Context, int) (int, error) { return 0, nil })
	if err := w.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was given up", err)
	}
	if text := log.String(); !strings.Contains(text, " attempt=1 retry_within=") ||
		!strings.Contains(text, " attempt=2 retry_within=") {
		t.Errorf("log: %s", text)
	}
}
