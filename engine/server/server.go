// Package server implements the gRPC API. A handler decodes a request, validates it, calls the
// store once, and encodes the answer. The server's memory holds nothing that must survive a
// restart.
//
// # Files
//
//   - WorkflowService: runs.go, start.go, lists.go, steer.go (open runs), repair.go (retry,
//     override, explain), bulk.go, signals.go, capsules.go (export and import), watch.go.
//   - WorkflowScheduleService: schedules.go, schedule_changes.go. NamespaceService: namespaces.go.
//   - AdminService: admin.go (workers, queues), audit.go, backup.go, health.go, hooks.go, info.go,
//     keys.go, sessions.go, usage.go (statistics), watch.go. deliveries.go starts the runs of hooks.
//   - interceptors.go wraps every call with keys, limits, errors and logs; trace.go adds spans.
//   - early.go notifies pollers of a start before its commit.
//   - connections.go counts open connections; connections_linux.go reads from them without a buffer
//     for each idle one.
//   - direct.go calls the server from the same process, without a connection.
//   - store.go declares the parts of the store that the server needs.
//   - metrics.go exports what the server counts; past.go passes its counters and events on to a
//     server that replaces it.
//
// # Packages
//
// The parts are internal packages. Each needs a small interface of the store:
//
//   - wire: messages, pages and errors, to and from the types of package engine.
//   - session: WorkerService: sessions of workers, and the same operations as unary calls.
//   - watch: calls that wait for the end of runs, or watch runs and namespaces.
//   - auth: API keys, permissions, and streams that end with their key. secret makes and parses the
//     secrets of keys.
//   - bundle: capsules, which are exported runs.
//   - hook: signatures of deliveries to hooks.
//   - metrics: counters, activity and events.
//   - limit: limits of namespaces, and of payload bytes in flight.
//   - async: helpers for goroutines.
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

// Options configures a Server. The zero value works.
type Options struct {
	Log               *slog.Logger  // default: none
	Version           string        // of the program, for GetServerInfo
	HeartbeatInterval time.Duration // sent to workers; default 10 s
	WorkerLease       time.Duration // how long a worker that is not heard from keeps its runs; default 30 s
	PollTimeout       time.Duration // of a long poll that sets none; default 60 s
	// how long Run continues calls in progress after its context ended; default 25 s
	DrainTimeout  time.Duration
	AllowUnleased bool // accept writes without a lease token, from clients that know none
	// the first use of a namespace creates it; AllowUnleased implies it, as its clients expect it
	AutoNamespaces bool
	Keepalive      time.Duration   // how long a connection may be idle before the server pings it; default 30 s
	Tracer         trace.Tracer    // gets a span for each unary call; default none
	Events         *metrics.Events // read by WatchEvents; default: a new one
	// more facts for GetServerInfo, in the order to show them; must not block; default none
	Facts   func() []Fact
	TLS     *tls.Config      // default: plaintext
	Trusted bool             // no call needs a key: only this process can reach the server
	Clock   func() time.Time // for durations and for the time of counts; default time.Now
	Past    *Past            // of the server that this one replaces; default none
	// the store is only read, and another process may serve it: calls about a server's own state
	// are refused
	Beside  bool
	NeedKey bool // calls need a key even if no key exists: other machines can reach the server
	// runs and signals that clients may add to one namespace per second; default no limit
	NamespaceRate int
	Warnings      []string      // warnings for operators in every GetServerInfo; default none
	LogDropped    func() uint64 // how many lines of Log were dropped; must not block; default none
	// Backup makes a copy of the database and opens it; Close deletes it. The caller's context
	// limits it. Default: backups are refused.
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
	if o.Clock == nil {
		o.Clock = time.Now
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

	store   Store
	matcher *matching.Matcher
	options Options
	known   knownNamespaces
	log     *slog.Logger
	errors  *wire.Errors
	starts  wire.StartReader
	started time.Time

	watch    *watch.Service
	workers  *session.Service
	inFlight limit.InFlight
	recorder *metrics.Recorder
	readings *metrics.Readings
	// namespaces is held while a namespace is read, changed and written back.
	namespaces sync.Mutex
	importer   *bundle.Importer
	stopping   chan struct{} // closed when long polls and streams have to end

	guard  *auth.Guard
	quotas limit.NamespaceRate

	methods     metrics.Methods
	connections atomic.Int32 // open connections
	grpc        *grpc.Server
}

// New returns a server. Pass it every notification of the store with Notify, and serve it with Run.
func New(store Store, matcher *matching.Matcher, options Options) *Server {
	options = options.withDefaults()
	s := &Server{
		store: store, matcher: matcher, options: options, log: options.Log, started: store.Now(),
		stopping: make(chan struct{}),
		errors:   &wire.Errors{Log: options.Log, Now: store.Now},
	}
	s.importer = bundle.NewImporter(store, s.stopping)
	s.starts = wire.StartReader{Now: s.now, Uncertainty: store.Uncertainty, Trace: s.traceOf}
	s.watch = watch.New(store, options.Log, s.errors, s.stopping)
	s.quotas.PerSecond = options.NamespaceRate
	s.recorder, s.readings = metrics.NewRecorder(options.Events, options.Log, options.Clock), metrics.NewReadings(store)
	s.Observer = s.recorder.Observer()
	s.known = knownNamespaces{store: store, auto: options.AutoNamespaces || options.AllowUnleased}
	s.guard = auth.New(store, options.Log, s.errors, options.Trusted, options.NeedKey)
	exists := s.known.exists
	if s.known.auto {
		exists = nil
	}
	s.workers = session.New(session.Config{
		Store: store, Matcher: matcher, Log: options.Log, Errors: s.errors, Starts: &s.starts, Recorder: s.recorder,
		Guard: s.guard, Namespaces: exists,
		InFlight: &s.inFlight, Stopping: s.stopping, Clock: options.Clock, HeartbeatInterval: options.HeartbeatInterval,
		WorkerLease: options.WorkerLease,
		PollTimeout: options.PollTimeout, AllowUnleased: options.AllowUnleased,
	})
	s.grpc = s.newGRPC()
	kagziv1.RegisterWorkflowServiceServer(s.grpc, s)
	kagziv1.RegisterWorkerServiceServer(s.grpc, s.workers)
	kagziv1.RegisterAdminServiceServer(s.grpc, s)
	kagziv1.RegisterNamespaceServiceServer(s.grpc, s)
	kagziv1.RegisterWorkflowScheduleServiceServer(s.grpc, s)
	healthpb.RegisterHealthServer(s.grpc, &health{server: s})
	reflection.Register(s.grpc)
	s.methods = metrics.NewMethods(s.grpc)
	s.guard.Protect(slices.Collect(maps.Keys(s.methods)))
	options.Past.resume(s)
	return s
}

// newGRPC returns the gRPC server without services.
func (s *Server) newGRPC() *grpc.Server {
	return grpc.NewServer(
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
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: s.options.Keepalive, Timeout: 10 * time.Second}),
		grpc.Creds(countedHandshake{transport(s.options.TLS), &s.connections}),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
	)
}

// Flow control windows in bytes, for one stream and one connection. They are fixed, because gRPC
// sends a ping for about every message to adapt them, which costs more than the message.
const (
	streamWindow = 2 << 20
	connWindow   = 8 << 20
)

// transport returns the credentials of connections: TLS, or plaintext if config is nil.
func transport(config *tls.Config) credentials.TransportCredentials {
	if config == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(config)
}

// Run serves on l until ctx ends. Then it ends long polls and streams and finishes the calls in
// progress; after DrainTimeout it aborts them. It returns nil if ctx ended, or the error of the
// listener.
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
		return err // the listener failed
	}
	<-stopped
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Notify passes a notification of the store to the parts of the server. It does not block.
func (s *Server) Notify(r engine.Notification) {
	s.recorder.Notified(r.Kind)
	s.watch.Notify(r)
	s.workers.Notify(r)
	s.known.notify(r)
	switch r.Kind {
	case engine.NotifyKeys:
		s.guard.KeysChanged()
	case engine.NotifyAll:
		s.guard.KeysMayHaveChanged()
	}
}

// RunEnded and SideEffects implement engine.Outcomes. They do not block.
func (s *Server) RunEnded(run engine.ID, e *engine.Ending) {
	s.recorder.Notified(engine.NotifyEnd)
	s.watch.RunEnded(run, e)
}

func (s *Server) SideEffects(e *engine.SideEffects) { s.recorder.CountSideEffects(e) }

// now returns the store's time.
func (s *Server) now() time.Time { return s.store.Now() }
