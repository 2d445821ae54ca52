package auth

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/tap"

	"github.com/kagzi/kagzi/engine"
)

// maxUnauthenticatedReads limits the calls without a valid key that are read at a time, on all
// connections. What they send is kept until it is whole, for a refusal that says why, comes late
// where there are many, and is on record; whoever is past this number is refused at its headers.
const maxUnauthenticatedReads = 16

// readLimiter counts the calls without a valid key that are being read.
type readLimiter struct{ reading atomic.Int32 }

// Tap meets a call when only its headers have come. gRPC reads the whole message of a call before
// it asks anybody else, so without this callers without a key could have the server hold as much as
// they like.
//
// It goes by what is known of the keys at this moment and never waits: the connection stands still
// meanwhile. Whether the call may be made is decided where it is admitted.
func (g *Guard) Tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	method := g.methods[info.FullMethodName]
	keys := g.keys.current.Load()
	switch {
	case g.trusted || method == nil || method.Rule.Open:
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
