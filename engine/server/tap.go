package server

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/tap"

	"github.com/kagzi/kagzi/engine"
)

// maxUnknown is how many calls without a valid key are read at a time, on all connections. What they send is kept until it is whole, for a
// refusal that says why, comes late where there are many, and is on record; whoever is past this number is refused at its headers.
const maxUnknown = 16

// doorway counts the calls without a valid key that are being read.
type doorway struct{ reading atomic.Int32 }

// tap meets a call when only its headers have come. gRPC reads the whole message of a call before it asks anybody else, so without this
// strangers could have the server hold as much as they like.
//
// It goes by what is known of the keys at this moment and never waits: the connection stands still meanwhile. Whether the call may be made is
// decided where it is admitted.
func (s *Server) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	method := s.guarded[info.FullMethodName]
	keys := s.keys.current.Load()
	switch {
	case s.options.Trusted || method == nil || method.rule.open:
		return ctx, nil
	case keys == nil || keys.empty() && !s.options.NeedKey:
		return ctx, nil
	}
	key, err := s.shown(ctx, keys, info.Header["authorization"])
	if err == nil && key.ValidAt(s.now()) {
		return ctx, nil
	}
	if s.doorway.reading.Add(1) > maxUnknown {
		s.doorway.reading.Add(-1)
		return nil, s.errors.Status(&engine.Error{Kind: engine.KindNoKey, Subject: "key",
			Message: "a valid API key is needed, and too many calls come without one; try again when you have a key"})
	}
	context.AfterFunc(ctx, func() { s.doorway.reading.Add(-1) })
	return ctx, nil
}
