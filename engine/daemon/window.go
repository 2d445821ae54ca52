package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/parts"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server"
)

// Window is a database served to this process alone: it opens no port and calls need no key. Close
// it.
type Window struct {
	Database engine.Description

	listener *bufconn.Listener
	parts    *parts.Parts
	store    engine.Store
}

// windowBuffer is the buffer size of an in-process connection.
const windowBuffer = 256 << 10

// Look opens a window on the SQLite database at url, read-only: every call that would change
// something is refused. Another process may serve the database meanwhile.
func Look(ctx context.Context, url, version string, b Backends) (*Window, error) {
	url = safeURL(url)
	w, err := open(ctx, url, version, b, true)
	return w, ifNoDatabase(ctx, b, url, err)
}

// Open opens a window on the database at url, to create keys where no server runs or nobody has a
// key. An empty url is the database of a server without flags. The database is opened as by a
// server, with its schema updated; only one process can have an SQLite database. Nothing happens on
// its own: no schedule fires and no worker is set offline. A missing database is created only with
// create, because a mistyped name must not look like a database without keys.
func Open(ctx context.Context, url string, create bool, version string, b Backends) (*Window, error) {
	if url == "" {
		var err error
		if url, err = ownDatabase(ctx, b, create); err != nil {
			return nil, err
		}
	}
	if url = safeURL(url); create {
		if err := makeOwnFolder(url); err != nil {
			return nil, err
		}
	}
	if !create {
		if s, err := b.Status(ctx, url); err == nil && s.Missing {
			// if there is no status, opening it reports why
			return nil, unserved(url, &s)
		}
	}
	return open(ctx, url, version, b, false)
}

// ownDatabase returns the database of this machine's settings, or of its service; create also creates its directory.
func ownDatabase(ctx context.Context, b Backends, create bool) (url string, err error) {
	flags := pflag.NewFlagSet("db", pflag.ContinueOnError)
	register(flags, databaseSettings)
	c, _, err := resolve(flags, databaseSettings, system())
	if err != nil {
		return "", err
	}
	if _, err := c.orService(ctx, b.Service); err != nil {
		return "", err
	}
	if create {
		return c.privateDatabase()
	}
	url, _, err = c.database()
	return url, err
}

func open(ctx context.Context, url, version string, b Backends, readOnly bool) (*Window, error) {
	log := slog.New(slog.DiscardHandler) // the terminal is not ours
	store, err := b.Open(ctx, url, engine.OpenOptions{ReadOnly: readOnly, Log: log})
	if err != nil {
		return nil, coded(ctx, err)
	}
	if !readOnly {
		err = setHolder(store, "for a command")
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return Over(ctx, store, version)
}

// Over opens a window on a store, and closes the store with it or on an error. With a store in memory
// it shows what is imported into it.
func Over(ctx context.Context, store engine.Store, version string) (*Window, error) {
	log := slog.New(slog.DiscardHandler)
	description, err := store.Describe(ctx)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	w := &Window{Database: description, listener: bufconn.Listen(windowBuffer), parts: parts.New(), store: store}
	srv := server.New(store, matching.New(store, log),
		server.Options{Log: log, Version: version, DrainTimeout: time.Second, Trusted: true, Beside: true})
	w.parts.Start("server", func(ctx context.Context) error { return srv.Run(ctx, besideListener{w.listener}) })
	w.parts.Start("notifications", func(ctx context.Context) error { return store.Listen(ctx, srv.Notify, srv) })
	return w, nil
}

// besideListener sets the address of its callers for the audit log.
type besideListener struct{ net.Listener }

func (l besideListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return besideConn{conn}, nil
}

type besideConn struct{ net.Conn }

func (besideConn) RemoteAddr() net.Addr { return besideAddr{} }

// besideAddr is the address of a caller that opened the database directly.
type besideAddr struct{}

func (besideAddr) Network() string { return "pipe" }

func (besideAddr) String() string { return "beside the database" }

// Dial connects to the window.
func (w *Window) Dial(ctx context.Context) (net.Conn, error) { return w.listener.DialContext(ctx) }

// Close ends the connections and releases the database.
func (w *Window) Close() error { return errors.Join(w.parts.Stop(), w.store.Close()) }
