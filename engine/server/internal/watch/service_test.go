package watch

import (
	"log/slog"
	"time"

	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

// newTestWatch returns a Service over a store, which logs nothing, and what stops its server.
func newTestWatch(store Store) (s *Service, stop func()) {
	log := slog.New(slog.DiscardHandler)
	stopping := make(chan struct{})
	return New(store, log, &wire.Errors{Log: log, Now: time.Now}, stopping), func() { close(stopping) }
}
