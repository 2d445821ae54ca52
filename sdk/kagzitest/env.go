// Package kagzitest tests workflows on the real engine. Server, store and worker run in the test's
// own process, with a private database, in a bubble of testing/synctest. The clock of the bubble
// stands still while code runs, and jumps to the next timer when nothing does. So a workflow that
// sleeps for 30 days is tested in milliseconds:
//
//	func TestOrder(t *testing.T) {
//		kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
//			kagzi.Handle(env.Worker, "order", Order)
//			kagzitest.ReplaceStep(env, "charge", func(ctx context.Context) (Charge, error) { return Charge{ID: "test"}, nil })
//			env.Start()
//			run, err := kagzi.Start(t.Context(), env.Client, "order", OrderInput{Total: 5}, kagzi.StartOptions{})
//			…
//			receipt, err := kagzi.Result[Receipt](t.Context(), run)
//			…
//		})
//	}
//
// The rules of testing/synctest apply. The clock starts at midnight UTC on 2000-01-01. t.Run and
// t.Parallel are not allowed inside. Time does not advance while code waits for the network outside
// of the bubble. A test that still waits after 30 years of test time fails, and its log says what the
// open runs wait for; the other tests of the package run on.
package kagzitest

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/backends/sqlite/sqlitetest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/coordinator"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/internal/seam"
)

// forever is longer than any test.
const forever = 100 * 365 * 24 * time.Hour

// lifetime limits the test time: three times the longest sleep.
const lifetime = 30 * 365 * 24 * time.Hour

// endLimit is how long a test that was given up may take to return.
const endLimit = 24 * time.Hour

// codeLimit is how long code that ignores its context may run on after the test.
const codeLimit = 24 * time.Hour

// buffer is how much of a connection may be under way in each direction, in bytes. Every connection
// takes it whole, and gRPC writes at most 32 KiB at a time.
const buffer = 64 << 10

const namespace = "default"

// Env is a server with a client and a worker.
type Env struct {
	// Client starts, signals and reads runs. Time passes while kagzi.Result and Run.Wait wait.
	Client *kagzi.Client
	// Worker serves the queue "default". Register workflows with kagzi.Handle, then call Start.
	Worker *kagzi.Worker

	t       *testing.T
	store   engine.Store
	ends    *ends
	address *bufconn.Listener
	stop    []func() // in the order of starting
	started bool
	gaveUp  chan struct{} // closed when the test has waited for its lifetime

	mu       sync.Mutex
	replaced map[string]seam.Step
	wanted   map[string]bool // names of steps that were ever replaced
	ran      map[string]bool // names of steps whose code ran, replaced or not
}

// Suspension says what the worker does with runs that are parked.
type Suspension int

const (
	// AsInProduction keeps parked runs in memory for up to 10 minutes, and replays others.
	AsInProduction Suspension = iota
	// AlwaysSuspend ends the code whenever its run is parked, so that each wait is followed by a replay.
	AlwaysSuspend
	// NeverSuspend keeps all parked runs in memory, so that nothing is ever replayed.
	NeverSuspend
)

// Run calls test in a bubble with a new Env, which it closes when test returns. With a Suspension, the
// worker does that with parked runs; a workflow must come to the same history in each.
func Run(t *testing.T, test func(t *testing.T, env *Env), suspension ...Suspension) {
	t.Helper()
	c := noTimers
	for _, c.suspension = range suspension {
	}
	run(t, c, test)
}

// config configures the server of an Env.
type config struct {
	heartbeat, lease, keepalive time.Duration
	suspension                  Suspension
	keeps                       int // parked runs that the worker keeps in memory; 0: as suspension says
	// wraps the store that the server uses; nil for none
	store func(engine.Store) engine.Store
	open  func() engine.Store // the store; nil for a new SQLite database
}

// noTimers is the configuration of Run: no timer of the server fires during a test.
var noTimers = config{heartbeat: forever, lease: forever, keepalive: forever}

func run(t *testing.T, c config, test func(t *testing.T, env *Env)) {
	t.Helper()
	path := ""
	if c.open == nil {
		path = sqlitetest.Fresh(t, sqlite.Migrate)
	}
	bubbled(t, func(t *testing.T) {
		env := newEnv(t, c, path)
		defer env.close()
		env.limit(func() { test(t, env) })
	})
}

func newEnv(t *testing.T, c config, path string) *Env {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	var (
		store engine.Store
		err   error
	)
	if c.open != nil {
		store = c.open()
	} else if store, err = sqlite.Open(t.Context(), path, engine.OpenOptions{Log: log}); err != nil {
		t.Fatalf("kagzitest: %v", err)
	}
	gaveUp := make(chan struct{})
	e := &Env{t: t, store: store, ends: newEnds(store, gaveUp), address: bufconn.Listen(buffer), gaveUp: gaveUp,
		replaced: map[string]seam.Step{}, wanted: map[string]bool{}, ran: map[string]bool{}}
	e.serve(log, c)
	e.Client, err = kagzi.NewClient(kagzi.ClientOptions{
		Profile: kagzi.NoProfile, Address: "passthrough:///kagzitest", Namespace: namespace,
		DialOptions: e.dialOptions(),
	})
	if err != nil {
		t.Fatalf("kagzitest: %v", err)
	}
	e.Worker = kagzi.NewWorker(kagzi.WorkerOptions{
		Profile: kagzi.NoProfile, Address: "passthrough:///kagzitest", Namespace: namespace, Queue: "default",
		Logger:        log,
		HandleSignals: []os.Signal{}, DialOptions: e.dialOptions(),
	})
	switch {
	case c.keeps > 0:
		seam.Keep(e.Worker, c.keeps, forever)
	case c.suspension == AlwaysSuspend:
		seam.Keep(e.Worker, -1, 0)
	case c.suspension == NeverSuspend:
		seam.Keep(e.Worker, engine.MaxConcurrent, forever)
	}
	seam.ReplaceSteps(e.Worker, e.replacement)
	seam.AwaitEnds(e.Client, e.ends.await)
	return e
}

// dialOptions connect to the server in this process, without keepalive.
func (e *Env) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return e.address.DialContext(ctx)
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: forever}),
	}
}

// serve starts the parts of the server.
func (e *Env) serve(log *slog.Logger, c config) {
	store := e.store
	if c.store != nil {
		store = c.store(store)
	}
	matcher := matching.New(store, log)
	if c.suspension == NeverSuspend || c.keeps > 0 {
		matcher.KeepFor(forever)
	}
	srv := server.New(store, matcher, server.Options{
		Log: log, Version: "kagzitest", HeartbeatInterval: c.heartbeat, WorkerLease: c.lease, Keepalive: c.keepalive,
		AutoNamespaces: true})
	coord := coordinator.New(store, coordinator.Options{
		Interval: c.heartbeat, HeartbeatInterval: c.heartbeat, WorkerLease: c.lease, Log: log})
	e.part(func(ctx context.Context) error {
		return store.Listen(ctx, func(r engine.Notification) {
			matcher.Notify(r)
			srv.Notify(r)
			coord.Notify(r)
			e.ends.notify(r)
		}, outcomes{srv, e.ends})
	})
	e.part(coord.Run)
	e.part(matcher.Run)
	e.part(func(ctx context.Context) error { return srv.Run(ctx, e.address) })
}

// part runs a part of the server until close.
func (e *Env) part(run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			e.t.Errorf("kagzitest: the server stopped: %v", err)
		}
	}()
	e.stop = append(e.stop, func() { cancel(); <-ended })
}

// Start starts the worker and waits until it is registered. Call kagzi.Handle before.
func (e *Env) Start() {
	e.t.Helper()
	if e.started {
		e.t.Fatal("kagzitest: Start was called before")
	}
	e.started = true
	ended := make(chan struct{})
	e.part(func(ctx context.Context) error {
		defer close(ended)
		err := e.Worker.Run(ctx)
		if err != nil && ctx.Err() == nil {
			e.t.Errorf("kagzitest: the worker ended: %v", err)
		}
		return nil
	})
	select {
	case <-e.Worker.Ready():
	case <-ended:
		e.t.FailNow()
	case <-e.t.Context().Done():
	}
}

// Pass advances the clock by d and waits until all work that is due by then is done.
func (e *Env) Pass(d time.Duration) {
	e.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	e.endIfGivenUp()
}

// Settle waits until all current work is done. The clock does not advance.
func (e *Env) Settle() { synctest.Wait() }

// close stops the parts in reverse order, the worker first. No code may remain in the bubble, whose
// clock stops afterwards.
func (e *Env) close() {
	e.logUnused()
	for i := len(e.stop) - 1; i >= 0; i-- {
		e.stop[i]()
	}
	if !seam.CodeEnds(e.Worker, codeLimit) {
		e.t.Errorf(
			"kagzitest: step or workflow code still runs %v after its context ended: it must return before",
			codeLimit)
	}
	if err := e.Client.Close(); err != nil && !e.givenUp() {
		e.t.Errorf("kagzitest: %v", err)
	}
	if err := e.store.Close(); err != nil {
		e.t.Errorf("kagzitest: %v", err)
	}
}

// Intercept adds interceptors to the worker, as kagzi.WorkerOptions.Interceptors does. Call it before
// Start.
func (e *Env) Intercept(interceptors ...kagzi.WorkerInterceptor) {
	if e.started {
		e.t.Fatal("kagzitest: Intercept: the worker runs already; call Intercept before Start")
	}
	seam.Intercept(e.Worker, interceptors)
}

// ReplaceStep makes every step with a name, in all workflows, run fn instead of its own code. For
// repeated steps (name:2, …), name is the one in the code. fn must return the step's result type; a
// nil fn restores the step's own code. If no step of the name has run by the end of the test, the
// test's log says so and names the step that comes nearest.
func ReplaceStep[T any](e *Env, name string, fn func(ctx context.Context) (T, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if fn == nil {
		delete(e.replaced, name)
		return
	}
	e.wanted[name] = true
	e.replaced[name] = func(ctx context.Context) (any, error) { return fn(ctx) }
}

// ReplaceDo is ReplaceStep for a step that the code runs with kagzi.Do.
func ReplaceDo(e *Env, name string, fn func(ctx context.Context) error) {
	if fn == nil {
		ReplaceStep[any](e, name, nil)
		return
	}
	ReplaceStep(e, name, func(ctx context.Context) (any, error) { return nil, fn(ctx) })
}

func (e *Env) replacement(name string) seam.Step {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ran[name] = true
	return e.replaced[name]
}
