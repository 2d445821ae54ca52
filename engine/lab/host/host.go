// Package host is the machines that clients and workers of tests run on: their connections break,
// fall silent one way or both, stand still, or cannot be made.
package host

import (
	"context"
	"errors"
	"net"
	"sync"
)

// ErrUnreachable is of connections that cannot be made, and of those that were open in a silence or closed in a stall.
var ErrUnreachable = errors.New("no server answers")

// Connect makes a connection, and says to which server; ErrUnreachable when there is none.
type Connect func(ctx context.Context) (conn net.Conn, server int, err error)

// Host is one machine.
type Host struct {
	connect Connect

	mu      sync.Mutex
	dead    bool
	silent  chan struct{} // closed when it is heard again; nil: it is heard
	lost    Way           // in the silence
	stalled chan struct{} // closed when what was held up goes on; nil: nothing is held up
	lines   map[*line]struct{}
}

// Way is what a silence swallows.
type Way int

const (
	Both Way = iota // everything
	Sent            // what the machine sends: it hears, and is not heard
	Come            // what it is sent: it is heard, and hears nothing
)

// New is a machine that reaches servers by connect.
func New(connect Connect) *Host { return &Host{connect: connect, lines: map[*line]struct{}{}} }

// Dial is the dialer of a gRPC client there.
func (h *Host) Dial(ctx context.Context, _ string) (net.Conn, error) {
	if silent, _ := h.quiet(); silent != nil {
		select {
		case <-silent:
		case <-ctx.Done():
		}
		return nil, ErrUnreachable
	}
	if stalled := h.stall(); stalled != nil {
		select {
		case <-stalled:
		case <-ctx.Done():
			return nil, ErrUnreachable
		}
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
	l := &line{Conn: conn, host: h, server: server, writing: make(chan struct{}, 1), closed: make(chan struct{})}
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
	h.Flow()
}

// Hush has nothing come through any more that way, without a connection breaking, and none be made.
// It says whether everything did before.
func (h *Host) Hush(lost Way) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silent != nil {
		return false
	}
	h.silent, h.lost = make(chan struct{}), lost
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

// Stall holds up what goes either way, and Flow lets it go on: nothing is lost, and no connection
// breaks for it, as on a line that stood still. It says whether nothing was held up before.
func (h *Host) Stall() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stalled != nil {
		return false
	}
	h.stalled = make(chan struct{})
	return true
}

// Flow ends a stall.
func (h *Host) Flow() {
	h.mu.Lock()
	stalled := h.stalled
	h.stalled = nil
	var open []*line
	for l := range h.lines {
		open = append(open, l)
	}
	h.mu.Unlock()
	if stalled == nil {
		return
	}
	close(stalled)
	for _, l := range open {
		go func() { _, _ = l.Write(nil) }() // sends what was held up; where the line breaks, its user is told
	}
}

// quiet is the present silence, and what it swallows; nil when there is none.
func (h *Host) quiet() (chan struct{}, Way) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.silent, h.lost
}

// stall is the present stall; nil when there is none.
func (h *Host) stall() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stalled
}

// line is one connection of a machine to a server.
type line struct {
	net.Conn
	host   *Host
	server int

	writing chan struct{} // of who writes; a mutex would keep the time of a bubble from passing
	held    []byte        // what a stall has kept from the server
	once    sync.Once
	closed  chan struct{}
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if err != nil {
		return n, err
	}
	// gRPC closes a connection that it cannot write to, and waits for its reader then.
	if silent, lost := l.host.quiet(); silent != nil && lost != Sent {
		select {
		case <-silent:
		case <-l.closed:
		}
		return 0, ErrUnreachable
	}
	if stalled := l.host.stall(); stalled != nil {
		select {
		case <-stalled:
		case <-l.closed:
			return 0, ErrUnreachable
		}
	}
	return n, nil
}

func (l *line) Write(b []byte) (int, error) {
	if silent, lost := l.host.quiet(); silent != nil && lost != Come {
		return len(b), nil
	}
	l.writing <- struct{}{}
	defer func() { <-l.writing }()
	if l.host.stall() != nil {
		l.held = append(l.held, b...)
		return len(b), nil
	}
	if len(l.held) > 0 {
		held := l.held
		l.held = nil
		if _, err := l.Conn.Write(held); err != nil {
			return 0, err
		}
	}
	if len(b) == 0 {
		return 0, nil
	}
	return l.Conn.Write(b)
}

func (l *line) Close() error {
	l.once.Do(func() { close(l.closed) })
	l.host.mu.Lock()
	delete(l.host.lines, l)
	l.host.mu.Unlock()
	return l.Conn.Close()
}
