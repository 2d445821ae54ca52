package auth

import (
	"log/slog"

	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

// newTestGuard returns a guard over a store, which logs nothing.
func newTestGuard(store Store) *Guard {
	log := slog.New(slog.DiscardHandler)
	return New(store, log, &wire.Errors{Log: log, Now: store.Now}, false, false)
}
