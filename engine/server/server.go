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
	"net"
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
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Options of a Server. The zero value works.
type Options struct {
	Log               *slog.Logger     // default: none
	Version           string           // of the program, for GetServerInfo
	HeartbeatInterval time.Duration    // told to workers; default 10 s
	WorkerLease       time.Duration    // how long a worker that is not heard from keeps its runs; default 30 s
	PollTimeout       time.Duration    // of a long poll that names none; default 60 s
	DrainTimeout      time.Duration    // how long Run goes on with calls under way after its context ended; default 25 s
	AllowUnleased     bool             // accept writes without a lease token, from clients that know none
	Keepalive         time.Duration    // how long a connection may be silent before it is asked for life; default 30 s
	Tracer            trace.Tracer     // gets a span for each unary call; default none
	Events            *Events          // where WatchEvents reads; default its own
	Facts             func() []Fact    // what GetServerInfo tells besides, in an order to be shown; it must not wait; default nothing
	TLS               *tls.Config      // default: plaintext
	Trusted           bool             // no call needs a key: the server is reached from within this process only
	Clock             func() time.Time // measures how long things take and when they are counted; default time.Now
	Past              *Past            // of the server that this one goes on for; default none
	Beside            bool             // the store is looked at beside its server, if it has one: what only a server can tell is not told
	NeedKey           bool             // calls need a key also while there is none: other machines can reach the server
	NamespaceRate     int              // runs and signals that clients may add to one namespace in a second; default no limit
	Warnings          []string         // what GetServerInfo tells an operator at every look; default nothing
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
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Keepalive <= 0 {
		o.Keepalive = 30 * time.Second
	}
	if o.Events == nil {
		o.Events = &Events{}
	}
	return o
}

// Server serves the API over one store.
type Server struct {
	kagziv1.UnimplementedWorkflowServiceServer
	kagziv1.UnimplementedWorkerServiceServer
	kagziv1.UnimplementedAdminServiceServer
	kagziv1.UnimplementedNamespaceServiceServer
	kagziv1.UnimplementedWorkflowScheduleServiceServer

	store      engine.Store
	dispatcher *matching.Dispatcher
	options    Options
	log        *slog.Logger
	started    time.Time

	runBells runBells // of every change of a run
	waiters  waiters  // for its end
	fresh    fresh    // runs that need no look before waiting for their end
	hub      hub      // of every change in a namespace
	doorway  doorway
	sessions sessions
	crew     crew // of their operations
	cargo    cargo
	events   *Events
	activity activity
	counters counters
	origin   rates // when the counters stood at zero
	stats    statsCache
	meters   meters
	reading  cached[Reading]
	// namespaces is held while one is read, changed and written back.
	namespaces  sync.Mutex
	imports     chan struct{} // has room for one: a capsule is unpacked in memory
	registering chan struct{} // has room for registeredAtOnce
	untold      untold
	clock       steadiness
	stopping    chan struct{} // closed when long polls and streams are to end

	keys      keyring
	visits    visits
	uses      uses
	strangers strangers
	refused   refusalNotes
	quotas    quotas

	methods     methods
	connections atomic.Int32 // that are open
	grpc        *grpc.Server
}

// New makes a server. Give it every ring of the store, and serve it with Run.
func New(store engine.Store, dispatcher *matching.Dispatcher, options Options) *Server {
	options = options.withDefaults()
	s := &Server{
		store: store, dispatcher: dispatcher, options: options, log: options.Log, started: store.Now(), events: options.Events,
		imports: make(chan struct{}, 1), registering: make(chan struct{}, registeredAtOnce), stopping: make(chan struct{}),
	}
	s.hub.store, s.hub.log = store, options.Log
	s.quotas.perSecond = options.NamespaceRate
	s.stats.places = make(chan struct{}, statsAtOnce)
	s.keys.store = store
	s.visits.bell, s.uses.bell = make(chan struct{}, 1), make(chan struct{}, 1)
	s.activity.clock = options.Clock
	s.activity.begin(s.activity.now())
	s.origin = s.counters.read(options.Clock())
	s.grpc = grpc.NewServer(
		grpc.ForceServerCodecV2(lenientCodec{}),
		grpc.MaxRecvMsgSize(engine.MaxMessage),
		grpc.MaxSendMsgSize(engine.MaxMessage+64<<10),
		grpc.MaxConcurrentStreams(1000),
		grpc.MaxHeaderListSize(16<<10),
		grpc.ConnectionTimeout(10*time.Second),
		grpc.ReadBufferSize(4<<10),
		grpc.InTapHandle(s.tap),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: options.Keepalive, Timeout: 10 * time.Second}),
		grpc.Creds(countedHandshake{transport(options.TLS), &s.connections}),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
	)
	kagziv1.RegisterWorkflowServiceServer(s.grpc, s)
	kagziv1.RegisterWorkerServiceServer(s.grpc, s)
	kagziv1.RegisterAdminServiceServer(s.grpc, s)
	kagziv1.RegisterNamespaceServiceServer(s.grpc, s)
	kagziv1.RegisterWorkflowScheduleServiceServer(s.grpc, s)
	healthpb.RegisterHealthServer(s.grpc, &health{server: s})
	reflection.Register(s.grpc)
	s.methods = methodsOf(s.grpc)
	options.Past.resume(s)
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
	s.events.note(slog.LevelInfo, "server started", slog.String("version", s.options.Version))
	defer s.watchKeys()()
	defer s.crew.dismiss()
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

// watchKeys does what keys need in the background, until it is told to stop, for which it waits.
func (s *Server) watchKeys() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	if !s.options.Trusted {
		group.Go(func() { s.watchVisits(ctx) })
		group.Go(func() { s.noteUses(ctx) })
	}
	return func() {
		cancel()
		group.Wait()
		s.tellMissed(s.refused.left())
	}
}

// Ring passes a hint of the store on to who waits for it. It does not block.
func (s *Server) Ring(r engine.Ring) {
	if r.Kind == engine.RingAside { // no hint that anything may have changed
		s.countAside(r.Aside)
		return
	}
	s.meters.rings[r.Kind].Add(1)
	s.hub.ring(r)
	switch r.Kind {
	case engine.RingRun:
		s.runBells.ring(r.ID)
	case engine.RingEnd:
		s.fresh.drop(r.ID)
		s.waiters.ring(r.ID, r.Ending)
	case engine.RingWorker:
		if !r.Registered { // its session was told with the welcome
			s.sessions.ring(r.Name)
		}
	case engine.RingKeys:
		s.keysChanged()
	case engine.RingAll:
		s.keys.doubt()
		ring(s.visits.bell)
		s.runBells.ringAll()
		s.fresh.dropAll()
		s.waiters.ringAll()
		s.sessions.ringAll()
	}
}

// keysChanged has the keys read again before the next call, and visits looked at.
func (s *Server) keysChanged() {
	s.keys.changed()
	ring(s.visits.bell)
}

// now is the time by which facts are written down.
func (s *Server) now() time.Time { return s.store.Now() }
