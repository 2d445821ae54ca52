// Package e2e runs the whole server in one process for tests: a store, matching, the coordinator
// and the gRPC server, with short timeouts. Its own tests are those that need all of them.
package e2e

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/coordinator"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server"
)

// Options configure a Server. The zero value works: heartbeats every 200 ms, a lease of 600 ms, the
// server's warnings in the test's log.
type Options struct {
	Server      server.Options
	Coordinator coordinator.Options // lease and interval are the server's
	Address     string              // default: a free port of this machine
	Pipe        *bufconn.Listener   // if set, the server is reached only through it
	// Wrap, if set, wraps the store, for tests that count or disturb its calls.
	Wrap func(engine.Store) engine.Store
	// ExplicitNamespaces makes namespaces as the server's default does: only when they are created.
	ExplicitNamespaces bool
}

// Server is a running server.
type Server struct {
	Conn    grpc.ClientConnInterface
	Address string // host:port
	Store   engine.Store

	pipe   *bufconn.Listener
	secret string         // of the key that Conn sends; empty: none
	api    *server.Server // to serve it over HTTP
	web    *Server        // the same over HTTP; nil: not served
	clock  *clock
	notify func(engine.Notification) // notifies every part
	stop   context.CancelFunc
	group  sync.WaitGroup
	over   sync.Once
	tb     testing.TB
}

// New starts a server on a store. Stop, or the end of the test, stops the server and closes the
// store.
func New(tb testing.TB, store engine.Store, o Options) *Server {
	tb.Helper()
	if o.Server.HeartbeatInterval == 0 {
		o.Server.HeartbeatInterval = 200 * time.Millisecond
	}
	if o.Server.WorkerLease == 0 {
		o.Server.WorkerLease = 3 * o.Server.HeartbeatInterval
	}
	if o.Server.DrainTimeout == 0 {
		o.Server.DrainTimeout = 5 * time.Second
	}
	o.Coordinator.HeartbeatInterval, o.Coordinator.WorkerLease = o.Server.HeartbeatInterval, o.Server.WorkerLease
	if o.Coordinator.Interval == 0 {
		o.Coordinator.Interval = o.Server.HeartbeatInterval
	}
	log := slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	if o.Server.Log == nil {
		o.Server.Log = log
	}
	if o.Coordinator.Log == nil {
		o.Coordinator.Log = log
	}
	l := o.listen(tb)
	s := &Server{Address: l.Addr().String(), pipe: o.Pipe, clock: &clock{Store: store}, tb: tb}
	s.Store = s.clock
	if o.Wrap != nil {
		s.Store = o.Wrap(s.Store)
	}
	s.run(l, o)
	s.Conn = s.Dial()
	tb.Cleanup(s.Stop)
	return s
}

func (o *Options) listen(tb testing.TB) net.Listener {
	tb.Helper()
	if o.Pipe != nil {
		return o.Pipe
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// run starts the parts; each ends with the context.
func (s *Server) run(l net.Listener, o Options) {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	matcher := matching.New(s.Store, o.Server.Log)
	o.Server.AutoNamespaces = !o.ExplicitNamespaces
	api := server.New(s.Store, matcher, o.Server)
	s.api = api
	upkeep := coordinator.New(s.Store, o.Coordinator)

	behind, stopBehind := context.WithCancel(context.Background())
	part := func(name string, ctx context.Context, run func(context.Context) error) {
		s.group.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				s.tb.Errorf("%s ended: %v", name, err)
			}
		})
	}
	s.notify = func(r engine.Notification) {
		matcher.Notify(r)
		api.Notify(r)
		upkeep.Notify(r)
	}
	part("the listener", behind, func(ctx context.Context) error { return s.Store.Listen(ctx, s.notify, api) })
	part("the coordinator", behind, upkeep.Run)
	part("matching", behind, matcher.Run)
	part("the server", ctx, func(ctx context.Context) error {
		defer stopBehind() // the parts that answer calls outlive the calls
		return api.Run(ctx, l)
	})
}

// Dial opens a separate connection to the server. It is closed at the end of the test.
func (s *Server) Dial() *grpc.ClientConn {
	s.tb.Helper()
	return s.dial(s.tb, grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(engine.MaxMessage+64<<10), grpc.MaxCallSendMsgSize(64<<20)))
}

func (s *Server) dial(tb testing.TB, o ...grpc.DialOption) *grpc.ClientConn {
	tb.Helper()
	address := s.Address
	if s.pipe != nil {
		address = "passthrough:" + address
		o = append(o, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return s.pipe.DialContext(ctx)
		}))
	}
	conn, err := grpc.NewClient(address, append(o, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return conn
}

// Stop stops the server gracefully and closes its store. It may be called again.
func (s *Server) Stop() {
	s.over.Do(func() {
		s.stop()
		s.group.Wait()
		if err := s.Store.Close(); err != nil {
			s.tb.Errorf("close the store: %v", err)
		}
	})
}

// Jump moves the server's clock forward and notifies all parts; the coordinator reacts as often as
// its interval allows.
func (s *Server) Jump(d time.Duration) {
	s.clock.ahead.Add(int64(d))
	s.notify(engine.Notification{Kind: engine.NotifyAll})
}

// clock is a store whose time can be moved forward.
type clock struct {
	engine.Store
	ahead atomic.Int64
}

func (c *clock) Now() time.Time { return c.Store.Now().Add(time.Duration(c.ahead.Load())) }
