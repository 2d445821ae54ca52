package simulate

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/test/bufconn"
)

// network is the way from clients and workers to the servers. A connection breaks when its server dies.
type network struct {
	mu        sync.Mutex
	listeners []*bufconn.Listener // of each server; nil: it is down
	next      int
}

func (n *network) listen(server int) *bufconn.Listener {
	l := bufconn.Listen(64 << 10)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[server] = l
	return l
}

func (n *network) down(server int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[server] = nil
}

// pick is a server that is up; they take turns.
func (n *network) pick() (int, *bufconn.Listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range n.listeners {
		n.next = (n.next + 1) % len(n.listeners)
		if l := n.listeners[n.next]; l != nil {
			return n.next, l
		}
	}
	return 0, nil
}

// host is a machine that clients or workers run on.
type host struct {
	network *network

	mu     sync.Mutex
	dead   bool
	silent chan struct{} // closed when it is heard again; nil: it is heard
	lines  map[*line]struct{}
}

func newHost(n *network) *host { return &host{network: n, lines: map[*line]struct{}{}} }

var errUnreachable = errors.New("no server answers")

func (h *host) dial(ctx context.Context, _ string) (net.Conn, error) {
	h.mu.Lock()
	silent, dead := h.silent, h.dead
	h.mu.Unlock()
	if silent != nil {
		select {
		case <-silent:
		case <-ctx.Done():
		}
		return nil, errUnreachable
	}
	server, l := h.network.pick()
	if l == nil || dead {
		return nil, errUnreachable
	}
	conn, err := l.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	c := &line{Conn: conn, host: h, server: server}
	h.mu.Lock()
	h.lines[c] = struct{}{}
	h.mu.Unlock()
	return c, nil
}

// cut breaks the connections that are to be broken.
func (h *host) cut(which func(*line) bool) {
	h.mu.Lock()
	var broken []*line
	for c := range h.lines {
		if which(c) {
			broken = append(broken, c)
		}
	}
	h.mu.Unlock()
	for _, c := range broken {
		c.Close()
	}
}

func all(*line) bool { return true }

// die has the host never reach anybody again.
func (h *host) die() {
	h.mu.Lock()
	h.dead = true
	h.mu.Unlock()
	h.speak()
	h.cut(all)
}

// hush has nothing come through any more, either way, without a connection breaking.
func (h *host) hush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silent == nil {
		h.silent = make(chan struct{})
	}
}

// speak ends the silence; connections that were open in it break.
func (h *host) speak() {
	h.mu.Lock()
	silent := h.silent
	h.silent = nil
	h.mu.Unlock()
	if silent != nil {
		h.cut(all)
		close(silent)
	}
}

// quiet is the present silence; nil when the host is heard.
func (h *host) quiet() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.silent
}

// line is one connection of a host to a server.
type line struct {
	net.Conn
	host   *host
	server int
}

func (c *line) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if silent := c.host.quiet(); silent != nil && err == nil {
		<-silent
		return 0, errUnreachable
	}
	return n, err
}

func (c *line) Write(b []byte) (int, error) {
	if c.host.quiet() != nil {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *line) Close() error {
	c.host.mu.Lock()
	delete(c.host.lines, c)
	c.host.mu.Unlock()
	return c.Conn.Close()
}
