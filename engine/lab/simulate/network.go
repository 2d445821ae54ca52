package simulate

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/engine/lab/host"
)

// network connects clients and workers to the servers. A connection breaks when its server dies.
type network struct {
	mu        sync.Mutex
	listeners []*bufconn.Listener // by server; nil: it is down
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

// pick returns a server that is up; they take turns.
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

// connect opens a connection to a server that is up.
func (n *network) connect(ctx context.Context) (net.Conn, int, error) {
	server, l := n.pick()
	if l == nil {
		return nil, 0, host.ErrUnreachable
	}
	conn, err := l.DialContext(ctx)
	return conn, server, err
}
