// Package host simulates the machines of clients and workers in tests: their connections break, go
// silent one or both ways, stall, or cannot be made.
package host

import (
	"context"
	"errors"
	"net"
	"sync"
)

// ErrUnreachable is the error of connections that cannot be made, that were open in a silence, or
// that were closed during a stall.
var ErrUnreachable = errors.New("no server answers")

// Connect opens a connection and returns the server's number; ErrUnreachable if there is no server.
type Connect func(ctx context.Context) (conn net.Conn, server int, err error)

// Host is one machine.
type Host struct {
	connect Connect

	mu      sync.Mutex
	dead    bool
	silent  chan struct{} // closed when the silence ends; nil: no silence
	lost    Way           // what the silence drops
	stalled chan struct{} // closed when the stall ends; nil: no stall
	lines   map[*line]struct{}
}

// Way is the direction that a silence drops.
type Way int

const (
	Both Way = iota // everything
	Sent            // what the machine sends
	Come            // what the machine receives
)

// New returns a machine that reaches servers through connect.
func New(connect Connect) *Host { return &Host{connect: connect, lines: map[*line]struct{}{}} }

// Dial is the dialer for a gRPC client on this machine.
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
		_ = conn.Close() // nobody would see the error
		return nil, ErrUnreachable
	}
	l := &line{Conn: conn, host: h, server: server, writing: make(chan struct{}, 1), closed: make(chan struct{})}
	h.lines[l] = struct{}{}
	return l, nil
}

// Cut breaks the connections to the servers that match.
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
		_ = l.Close() // the line breaks either way
	}
}

// All matches every server.
func All(int) bool { return true }

// Die cuts the machine off for good.
func (h *Host) Die() {
	h.mu.Lock()
	h.dead = true
	h.mu.Unlock()
	h.Speak()
	h.Cut(All)
	h.Flow()
}

// Hush drops everything in one or both directions: no connection breaks, and none can be made. It
// reports whether the machine was not silent before.
func (h *Host) Hush(lost Way) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silent != nil {
		return false
	}
	h.silent, h.lost = make(chan struct{}), lost
	return true
}

// Speak ends a silence. Connections that were open during it break.
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

// Stall holds up both directions until Flow, as a slow line does: nothing is lost and no connection
// breaks. It reports whether there was no stall before.
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
		go func() { _, _ = l.Write(nil) }() // sends what was held up; if the line breaks, its user gets the error
	}
}

// quiet returns the current silence and the direction that it drops; nil if there is none.
func (h *Host) quiet() (chan struct{}, Way) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.silent, h.lost
}

// stall returns the current stall; nil if there is none.
func (h *Host) stall() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stalled
}

// line is a connection from a machine to a server.
type line struct {
	net.Conn
	host   *Host
	server int

	writing chan struct{} // lock of writers; waiting for a mutex would stop a bubble's time
	held    []byte        // bytes for the server that a stall holds up
	once    sync.Once
	closed  chan struct{}
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if err != nil {
		return n, err
	}
	// gRPC closes a connection that it cannot write to, and then waits for its reader.
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
