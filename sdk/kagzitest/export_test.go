package kagzitest

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// RunAmongFaults is Run with a server whose workers can be lost, on the store that the other one is made into.
func RunAmongFaults(t *testing.T, heartbeat, lease time.Duration, store func(engine.Store) engine.Store,
	test func(t *testing.T, env *Env)) {
	t.Helper()
	run(t, climate{heartbeat: heartbeat, lease: lease, keepalive: 30 * time.Second, store: store}, test)
}

// Store is the server's store as no fault meets it.
func (e *Env) Store() engine.Store { return e.store }

// Dial connects to the server.
func (e *Env) Dial(ctx context.Context) (net.Conn, error) { return e.address.DialContext(ctx) }
