package auth

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/tap"

	"github.com/kagzi/kagzi/engine"
)

// maxUnauthenticatedReads limits the calls without a valid key that are read at the same time, on
// all connections. Their messages are read whole, so that the refusal can give its reason, be
// delayed and be recorded. Calls above this number are refused after their headers.
const maxUnauthenticatedReads = 16

// readLimiter counts the calls without a valid key whose messages are being read.
type readLimiter struct{ reading atomic.Int32 }

// Tap is called when only the headers of a call have arrived. gRPC reads the whole message of a
// call before it calls the interceptors, so without this limit callers without a key could fill the
// server's memory.
//
// It uses the keys in memory and never waits, because the connection is blocked meanwhile. Admit
// makes the real decision.
func (g *Guard) Tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	method := g.methods[info.FullMethodName]
	keys := g.keys.current.Load()
	switch {
	case g.trusted || method == nil || method.Rule.NoKey:
		return ctx, nil
	case keys == nil || keys.empty() && !g.needKey:
		return ctx, nil
	}
	key, err := g.shown(ctx, keys, info.Header["authorization"])
	if err == nil && key.ValidAt(g.store.Now()) {
		return ctx, nil
	}
	if g.reads.reading.Add(1) > maxUnauthenticatedReads {
		g.reads.reading.Add(-1)
		return nil, g.errors.Status(&engine.Error{Kind: engine.KindNoKey, Subject: "key",
			Message: "a valid API key is needed, and too many calls come without one; try again when you have a key"})
	}
	context.AfterFunc(ctx, func() { g.reads.reading.Add(-1) })
	return ctx, nil
}
