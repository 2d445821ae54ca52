// Package server is the gRPC server: its handlers decode a request, validate it, make one call of
// the store, and encode the answer. What it keeps in memory can be lost.
//
// The handlers are named after what is called: runs.go, start.go, lists.go, steer.go, repair.go,
// bulk.go, signals.go and capsules.go for WorkflowService; admin.go, audit.go, backup.go,
// health.go, info.go, keys.go, usage.go and watch.go for AdminService; namespaces.go; schedules.go
// and schedule_changes.go. interceptors.go surrounds every call, store.go says what is needed of
// the store, metrics.go what a server tells the process that runs it.
//
// The parts are internal packages, each over a small interface of the store:
//
//   - wire: messages, pages and errors, from and to the types of the engine.
//   - session: WorkerService, the sessions of workers and the same operations as unary calls.
//   - watch: calls that wait for the ends of runs, or watch runs and namespaces.
//   - auth: API keys, who may call what, and streams that end with their key. secret makes and
//     reads the secrets of keys.
//   - bundle: capsules, which are exported runs.
//   - metrics: counters, activity and events.
//   - limit: limits of namespaces, and of payload bytes in flight. async: helpers for goroutines.
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
	Log               *slog.Logger  // default: none
	Version           string        // of the program, for GetServerInfo
	HeartbeatInterval time.Duration // told to workers; default 10 s
	WorkerLease       time.Duration // how long a worker that is not heard from keeps its runs; default 30 s
	PollTimeout       time.Duration // of a long poll that names none; default 60 s
	// how long Run goes on with calls under way after its context ended; default 25 s
	DrainTimeout  time.Duration
	AllowUnleased bool            // accept writes without a lease token, from clients that know none
	Keepalive     time.Duration   // how long a connection may be silent before it is asked for life; default 30 s
	Tracer        trace.Tracer    // gets a span for each unary call; default none
	Events        *metrics.Events // where WatchEvents reads; default its own
	// what GetServerInfo tells besides, in an order to be shown; it must not wait; default nothing
	Facts   func() []Fact
	TLS     *tls.Config      // default: plaintext
	Trusted bool             // no call needs a key: the server is reached from within this process only
	Clock   func() time.Time // measures how long things take and when they are counted; default time.Now
	Past    *Past            // of the server that this one replaces; default none
	// the store is looked at beside its server, if it has one: what only a server can tell is not told
	Beside  bool
	NeedKey bool // calls need a key also while there is none: other machines can reach the server
	// runs and signals that clients may add to one namespace in a second; default no limit
	NamespaceRate int
	Warnings      []string // what GetServerInfo tells an operator at every look; default nothing
	// Backup makes a copy of the database and opens it; Close deletes it. It is bounded by its
	// caller's context. Default: none is made.
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
	log     *slog.Logger
	errors  *wire.Errors
	starts  wire.StartReader
	started time.Time

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

// New returns a server. Give it every notification of the store with Notify, and serve it with Run.
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
	s.guard = auth.New(store, options.Log, s.errors, options.Trusted, options.NeedKey)
	s.workers = session.New(session.Config{
		Store: store, Matcher: matcher, Log: options.Log, Errors: s.errors, Starts: &s.starts, Recorder: s.recorder,
		Guard:    s.guard,
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

// newGRPC returns the gRPC server, with no service registered.
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

// How much may be on its way to the server, of one stream and of one connection, that has not been
// read. They stand still because gRPC feels for better ones with a ping for about every message,
// which costs more than the message.
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

// Run serves on l until ctx ends. Then it ends long polls and streams, finishes the calls under
// way, and stops hard when that takes longer than DrainTimeout. It returns nil after a stop that
// was asked for.
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

// Notify passes a notification of the store on to the parts that wait for it. It does not block.
func (s *Server) Notify(r engine.Notification) {
	s.recorder.Notified(r.Kind)
	s.watch.Notify(r)
	s.workers.Notify(r)
	switch r.Kind {
	case engine.NotifyKeys:
		s.guard.KeysChanged()
	case engine.NotifyAll:
		s.guard.KeysMayHaveChanged()
	}
}

// RunEnded and SideEffects make the server engine.Outcomes of its store. They do not block.
func (s *Server) RunEnded(run engine.ID, e *engine.Ending) {
	s.recorder.Notified(engine.NotifyEnd)
	s.watch.RunEnded(run, e)
}

func (s *Server) SideEffects(e *engine.SideEffects) { s.recorder.CountSideEffects(e) }

// now is the time by which facts are written down.
func (s *Server) now() time.Time { return s.store.Now() }
