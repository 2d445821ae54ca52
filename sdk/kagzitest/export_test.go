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

// RunKeeping is Run with a worker that keeps so many parked runs in memory.
func RunKeeping(t *testing.T, runs int, test func(t *testing.T, env *Env)) {
	t.Helper()
	c := noTimers
	c.keeps = runs
	run(t, c, test)
}

// RunInMemory is Run with a store that the given function makes, in the bubble.
func RunInMemory(t *testing.T, open func() engine.Store, test func(t *testing.T, env *Env)) {
	t.Helper()
	c := noTimers
	c.open = open
	run(t, c, test)
}

// Store returns the server's store, without injected faults.
func (e *Env) Store() engine.Store { return e.store }

// Dial connects to the server.
func (e *Env) Dial(ctx context.Context) (net.Conn, error) { return e.address.DialContext(ctx) }
