package kagzitest

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// RunAmongFaults is Run with a server that can lose workers, on a store that the given function wraps.
func RunAmongFaults(t *testing.T, heartbeat, lease time.Duration, store func(engine.Store) engine.Store,
	test func(t *testing.T, env *Env)) {
	t.Helper()
	run(t, config{heartbeat: heartbeat, lease: lease, keepalive: 30 * time.Second, store: store}, test)
}

// Store returns the server's store, without injected faults.
func (e *Env) Store() engine.Store { return e.store }

// Dial connects to the server.
func (e *Env) Dial(ctx context.Context) (net.Conn, error) { return e.address.DialContext(ctx) }
