// Package server is the gRPC door: it decodes, validates, calls one verb of the store, and encodes. What it keeps in memory is who
// waits for what; all of that can be lost.
//
// Most files are named after what is called. The rest, by subject:
//
//   - A worker's operations come over a stream (session.go, receive.go, calls.go, outbox.go) or as unary calls (worker.go); both lead to
//     the same functions (operations.go, waits.go, endings.go, register.go, heartbeat.go).
//   - Who waits: waiters for the end of a run (waiters.go, awaiting.go, fresh.go), those who watch all that happens to one (run_bells.go,
//     watch.go), and watchers of the lists of a namespace (hub.go, feed.go, watcher.go, watch_namespace.go).
//   - Who may: the key of a call (interceptors.go, caller.go, keyring.go), what it allows (permissions.go, scope.go, redact.go), streams
//     that end with it (visits.go), and those who have none (tap.go, strangers.go, refusals.go).
//   - The wire: convert.go reads it, encode.go writes it, errors.go has the table of refusals, page.go the pages of lists, cursor.go the
//     places where they begin and end.
//   - Capsules: export.go and capsule.go write one; import.go, capsule_read.go, capsule_convert.go and resettle.go take one in.
//   - What is counted and told: metrics.go and its like, methods.go, activity.go, stats.go, events.go, health.go, info.go.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/bundle"
	"github.com/kagzi/kagzi/engine/server/internal/limit"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/session"
	"github.com/kagzi/kagzi/engine/server/internal/watch"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Options of a Server. The zero value works.
type Options struct {
	Log               *slog.Logger    // default: none
	Version           string          // of the program, for GetServerInfo
	HeartbeatInterval time.Duration   // told to workers; default 10 s
	WorkerLease       time.Duration   // how long a worker that is not heard from keeps its runs; default 30 s
	PollTimeout       time.Duration   // of a long poll that names none; default 60 s
	DrainTimeout      time.Duration   // how long Run goes on with calls under way after its context ended; default 25 s
	AllowUnleased     bool            // accept writes without a lease token, from clients that know none
	Keepalive         time.Duration   // how long a connection may be silent before it is asked for life; default 30 s
	Tracer            trace.Tracer    // gets a span for each unary call; default none
	Events            *metrics.Events // where WatchEvents reads; default its own
	Facts             func() []Fact   // what GetServerInfo tells besides, in an order to be shown; it must not wait; default nothing
	TLS               *tls.Config     // default: plaintext
	Trusted           bool            // no call needs a key: the server is reached from within this process only
	Beside            bool            // the store is looked at beside its server, if it has one: what only a server can tell is not told
	NeedKey           bool            // calls need a key also while there is none: other machines can reach the server
	NamespaceRate     int             // runs and signals that clients may add to one namespace in a second; default no limit
	Warnings          []string        // what GetServerInfo tells an operator at every look; default nothing
	// Backup makes a copy of the database and opens it; Close deletes it. It is bounded by its caller's context. Default: none is made.
	Backup func(context.Context) (engine.Backup, io.ReadCloser, error)
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.HeartbeatInterval <= 0 {
		o.HeartbeatInterval = 10 * time.Second
	}
	if o.WorkerLease <= 0 {
		o.WorkerLease = 30 * time.Second
	}
	if o.PollTimeout <= 0 {
		o.PollTimeout = engine.MaxPollWait
	}
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = 25 * time.Second
	}
	if o.Keepalive <= 0 {
		o.Keepalive = 30 * time.Second
	}
	if o.Events == nil {
		o.Events = &metrics.Events{}
	}
	return o
}

// Server serves the API over one store.
type Server struct {
	kagziv1.UnimplementedWorkflowServiceServer
	kagziv1.UnimplementedAdminServiceServer
	kagziv1.UnimplementedNamespaceServiceServer
	kagziv1.UnimplementedWorkflowScheduleServiceServer
	metrics.Observer

	store      engine.Store
	dispatcher *matching.Matcher
	options    Options
	log        *slog.Logger
	errors     *wire.Errors
	starts     wire.StartReader
	started    time.Time

	watch    *watch.Service
	workers  *session.Service
	inFlight limit.InFlight
	recorder *metrics.Recorder
	readings *metrics.Readings
	// namespaces is held while one is read, changed and written back.
	namespaces sync.Mutex
	importer   *bundle.Importer
	stopping   chan struct{} // closed when long polls and streams are to end

	guard  *auth.Guard
	quotas limit.NamespaceRate

	methods     metrics.Methods
	connections atomic.Int32 // that are open
	grpc        *grpc.Server
}

// New makes a server. Give it every ring of the store, and serve it with Run.
func New(store engine.Store, dispatcher *matching.Matcher, options Options) *Server {
	options = options.withDefaults()
	s := &Server{
		store: store, dispatcher: dispatcher, options: options, log: options.Log, errors: &wire.Errors{Log: options.Log, Now: store.Now}, started: store.Now(),
		stopping: make(chan struct{}),
	}
	s.importer = bundle.NewImporter(store, s.stopping)
	s.starts = wire.StartReader{Now: s.now, Trace: s.traceOf}
	s.watch = watch.New(store, options.Log, s.errors, s.stopping)
	s.quotas.PerSecond = options.NamespaceRate
	s.recorder, s.readings = metrics.NewRecorder(options.Events, options.Log), metrics.NewReadings(store)
	s.Observer = s.recorder.Observer()
	s.guard = auth.New(store, options.Log, s.errors, options.Trusted, options.NeedKey)
	s.workers = session.New(session.Config{
		Store: store, Dispatcher: dispatcher, Log: options.Log, Errors: s.errors, Starts: &s.starts, Recorder: s.recorder, Guard: s.guard,
		InFlight: &s.inFlight, Stopping: s.stopping, HeartbeatInterval: options.HeartbeatInterval, WorkerLease: options.WorkerLease,
		PollTimeout: options.PollTimeout, AllowUnleased: options.AllowUnleased,
	})
	s.grpc = grpc.NewServer(
		grpc.ForceServerCodecV2(wire.Codec{}),
		grpc.MaxRecvMsgSize(engine.MaxMessage),
		grpc.MaxSendMsgSize(engine.MaxMessage+64<<10),
		grpc.MaxConcurrentStreams(1000),
		grpc.MaxHeaderListSize(16<<10),
		grpc.ConnectionTimeout(10*time.Second),
		grpc.ReadBufferSize(4<<10),
		grpc.InTapHandle(s.guard.Tap),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: options.Keepalive, Timeout: 10 * time.Second}),
		grpc.Creds(countedHandshake{transport(options.TLS), &s.connections}),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
	)
	kagziv1.RegisterWorkflowServiceServer(s.grpc, s)
	kagziv1.RegisterWorkerServiceServer(s.grpc, s.workers)
	kagziv1.RegisterAdminServiceServer(s.grpc, s)
	kagziv1.RegisterNamespaceServiceServer(s.grpc, s)
	kagziv1.RegisterWorkflowScheduleServiceServer(s.grpc, s)
	healthpb.RegisterHealthServer(s.grpc, &health{server: s})
	reflection.Register(s.grpc)
	s.methods = metrics.NewMethods(s.grpc)
	s.guard.Protect(slices.Collect(maps.Keys(s.methods)))
	return s
}

// How much may be on its way to the server, of one stream and of one connection, that has not been read. They stand still because gRPC
// feels for better ones with a ping for about every message, which costs more than the message.
const (
	streamWindow = 2 << 20
	connWindow   = 8 << 20
)

// transport is how connections are made safe; without a configuration they are not.
func transport(config *tls.Config) credentials.TransportCredentials {
	if config == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(config)
}

// Run serves on l until ctx ends. Then it ends long polls and streams, finishes the calls under way, and stops hard when that takes
// longer than DrainTimeout. It returns nil after a stop that was asked for.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	s.recorder.Events.Note(slog.LevelInfo, "server started", slog.String("version", s.options.Version))
	defer s.guard.Start()()
	defer s.workers.Close()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		close(s.stopping)
		hard := time.AfterFunc(s.options.DrainTimeout, s.grpc.Stop)
		defer hard.Stop()
		s.grpc.GracefulStop()
	}()
	err := s.grpc.Serve(l)
	if ctx.Err() == nil {
		return err // the listener broke
	}
	<-stopped
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Ring passes a hint of the store on to who waits for it. It does not block.
func (s *Server) Ring(r engine.Notification) {
	if !s.recorder.Notified(r) {
		return
	}
	s.watch.Ring(r)
	s.workers.Ring(r)
	switch r.Kind {
	case engine.NotifyKeys:
		s.guard.KeysChanged()
	case engine.NotifyAll:
		s.guard.KeysMayHaveChanged()
	}
}

// now is the time by which facts are written down.
func (s *Server) now() time.Time { return s.store.Now() }
