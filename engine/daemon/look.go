package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/dispatch"
	"github.com/kagzi/kagzi/engine/server"
)

// Window is a database that is served for looking only, to this process alone: no port is opened, and the database may be served by
// another process meanwhile. Close it.
type Window struct {
	Database engine.Description

	listener *bufconn.Listener
	parts    *parts
	store    engine.Store
}

// windowBuffer is how much a connection within the process holds.
const windowBuffer = 256 << 10

// Look opens a window on the database at url, a file of SQLite. Every call that would change something is refused.
func Look(ctx context.Context, url, version string, b Backends) (*Window, error) {
	log := slog.New(slog.DiscardHandler) // the terminal belongs to the screens
	store, err := b.Open(ctx, url, engine.OpenOptions{ReadOnly: true, Log: log})
	if err != nil {
		return nil, err
	}
	description, err := store.Describe(ctx)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	w := &Window{Database: description, listener: bufconn.Listen(windowBuffer), parts: newParts(), store: store}
	srv := server.New(store, dispatch.New(store, log), server.Options{Log: log, Version: version, DrainTimeout: time.Second})
	w.parts.start("server", func(ctx context.Context) error { return srv.Run(ctx, w.listener) })
	w.parts.start("bell", func(ctx context.Context) error { return store.Listen(ctx, srv.Ring) })
	return w, nil
}

// Dial makes a connection to the window.
func (w *Window) Dial(ctx context.Context) (net.Conn, error) { return w.listener.DialContext(ctx) }

// Close ends the connections and lets go of the database.
func (w *Window) Close() error { return errors.Join(w.parts.stop(), w.store.Close()) }
