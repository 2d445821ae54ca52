// Package host is the machines that clients and workers of tests run on: their connections break, fall silent, or cannot be made.
package host

import (
	"context"
	"errors"
	"net"
	"sync"
)

// ErrUnreachable is of connections that cannot be made, and of those that were open in a silence.
var ErrUnreachable = errors.New("no server answers")

// Connect makes a connection, and says to which server; ErrUnreachable when there is none.
type Connect func(ctx context.Context) (conn net.Conn, server int, err error)

// Host is one machine.
type Host struct {
	connect Connect

	mu     sync.Mutex
	dead   bool
	silent chan struct{} // closed when it is heard again; nil: it is heard
	lines  map[*line]struct{}
}

// New is a machine that reaches servers by connect.
func New(connect Connect) *Host { return &Host{connect: connect, lines: map[*line]struct{}{}} }

// Dial is the dialer of a gRPC client there.
func (h *Host) Dial(ctx context.Context, _ string) (net.Conn, error) {
	if silent := h.quiet(); silent != nil {
		select {
		case <-silent:
		case <-ctx.Done():
		}
		return nil, ErrUnreachable
	}
	conn, server, err := h.connect(ctx)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		_ = conn.Close() // nobody is there to hear of an error
		return nil, ErrUnreachable
	}
	l := &line{Conn: conn, host: h, server: server}
	h.lines[l] = struct{}{}
	return l, nil
}

// Cut breaks the connections to the servers that are chosen.
func (h *Host) Cut(chosen func(server int) bool) {
	h.mu.Lock()
	var broken []*line
	for l := range h.lines {
		if chosen(l.server) {
			broken = append(broken, l)
		}
	}
	h.mu.Unlock()
	for _, l := range broken {
		_ = l.Close() // it is to break, however
	}
}

// All chooses every server.
func All(int) bool { return true }

// Die has the machine never reach anybody again.
func (h *Host) Die() {
	h.mu.Lock()
	h.dead = true
	h.mu.Unlock()
	h.Speak()
	h.Cut(All)
}

// Hush has nothing come through any more, either way, without a connection breaking. It says whether something did before.
func (h *Host) Hush() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silent != nil {
		return false
	}
	h.silent = make(chan struct{})
	return true
}

// Speak ends the silence; connections that were open in it break.
func (h *Host) Speak() {
	h.mu.Lock()
	silent := h.silent
	h.silent = nil
	h.mu.Unlock()
	if silent != nil {
		h.Cut(All)
		close(silent)
	}
}

// quiet is the present silence; nil when the machine is heard.
func (h *Host) quiet() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.silent
}

// line is one connection of a machine to a server.
type line struct {
	net.Conn
	host   *Host
	server int
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if silent := l.host.quiet(); silent != nil && err == nil {
		<-silent
		return 0, ErrUnreachable
	}
	return n, err
}

func (l *line) Write(b []byte) (int, error) {
	if l.host.quiet() != nil {
		return len(b), nil
	}
	return l.Conn.Write(b)
}

func (l *line) Close() error {
	l.host.mu.Lock()
	delete(l.host.lines, l)
	l.host.mu.Unlock()
	return l.Conn.Close()
}
