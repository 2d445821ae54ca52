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

// Window is a database that is served to this process alone: no port is opened, and no call needs a key. Close it.
type Window struct {
	Database engine.Description

	listener *bufconn.Listener
	parts    *parts.Parts
	store    engine.Store
}

// windowBuffer is how much a connection within the process holds.
const windowBuffer = 256 << 10

// Look opens a window on the database at url, a file of SQLite, read-only: every call that would
// change something is refused, and another process may serve the database meanwhile.
func Look(ctx context.Context, url, version string, b Backends) (*Window, error) {
	w, err := open(ctx, url, version, b, true)
	return w, ifNoDatabase(ctx, b, url, err)
}

// Open opens a window on the database at url, through which keys are made where no server runs or
// nobody has a key to it. An empty url is the database that a server without flags would have. It
// is opened as by a server, and its schema brought up to date; SQLite lets only one process have
// it. Nothing happens in it by itself: no schedule fires and no worker is taken offline. One that
// is not there is made with create only: who mistypes a name and looks for keys must not read that
// there are none.
func Open(ctx context.Context, url string, create bool, version string, b Backends) (*Window, error) {
	if url == "" {
		var err error
		if url, err = ownDatabase(create); err != nil {
			return nil, err
		}
	}
	if !create {
		if s, err := b.Status(ctx, url); err == nil && s.Missing {
			// where the status could not be had, opening it says why
			return nil, unserved(url, &s)
		}
	}
	return open(ctx, url, version, b, false)
}

// ownDatabase is the database of this machine's settings, with create its directory made.
func ownDatabase(create bool) (url string, err error) {
	flags := pflag.NewFlagSet("db", pflag.ContinueOnError)
	register(flags, databaseSettings)
	c, _, err := resolve(flags, databaseSettings, system())
	if err != nil {
		return "", err
	}
	if create {
		return c.privateDatabase()
	}
	url, _, err = c.database()
	return url, err
}

func open(ctx context.Context, url, version string, b Backends, readOnly bool) (*Window, error) {
	log := slog.New(slog.DiscardHandler) // the terminal belongs to others
	store, err := b.Open(ctx, url, engine.OpenOptions{ReadOnly: readOnly, Log: log})
	if err != nil {
		return nil, coded(ctx, err)
	}
	if !readOnly {
		err = setHolder(store, "for a command")
	}
	description, failure := store.Describe(ctx)
	if err = errors.Join(err, failure); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	w := &Window{Database: description, listener: bufconn.Listen(windowBuffer), parts: parts.New(), store: store}
	srv := server.New(store, matching.New(store, log),
		server.Options{Log: log, Version: version, DrainTimeout: time.Second, Trusted: true, Beside: true})
	w.parts.Start("server", func(ctx context.Context) error { return srv.Run(ctx, besideListener{w.listener}) })
	w.parts.Start("bell", func(ctx context.Context) error { return store.Listen(ctx, srv.Notify, srv) })
	return w, nil
}

// besideListener names where its callers are, for the audit log.
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

// besideAddr is the address of who works on a database itself, without a server.
type besideAddr struct{}

func (besideAddr) Network() string { return "pipe" }

func (besideAddr) String() string { return "beside the database" }

// Dial makes a connection to the window.
func (w *Window) Dial(ctx context.Context) (net.Conn, error) { return w.listener.DialContext(ctx) }

// Close ends the connections and lets go of the database.
func (w *Window) Close() error { return errors.Join(w.parts.Stop(), w.store.Close()) }
