// Package kagzitest tests workflows on the real engine: the server, the store and a worker run in
// the test's own process on a private database, in a bubble of testing/synctest. Time stands still
// while anything is at work, and jumps to the next moment at which something is due when nothing
// is. A workflow that sleeps for 30 days is tested in milliseconds:
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
// The rules of a bubble hold (see testing/synctest): it begins at midnight UTC of 2000-01-01, t.Run
// and t.Parallel are not for its inside, and what waits for the network outside keeps time from
// passing until it is answered. A test that still waits when 30 years have gone by is ended, and
// told what its open runs wait for.
package kagzitest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
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

// forever is longer than any test: what is done once in it is never done.
const forever = 100 * 365 * 24 * time.Hour

// lifetime is how long a test may last by the clock of its bubble: three times the longest sleep.
const lifetime = 30 * 365 * 24 * time.Hour

// patience is how long code that does not heed its context may take to end after the test.
const patience = 24 * time.Hour

const namespace = "default"

// Env is a server of its own, a client of it, and a worker.
type Env struct {
	// Client starts, signals and reads runs. kagzi.Result and Run.Wait let time pass.
	Client *kagzi.Client
	// Worker serves the queue "default". Give it workflows with kagzi.Handle, then call Start.
	Worker *kagzi.Worker

	t       *testing.T
	store   engine.Store
	ends    *ends
	address *bufconn.Listener
	stop    []func() // in the order of their making
	started bool

	mu       sync.Mutex
	replaced map[string]seam.Step
}

// Run runs test in a bubble with an Env, which is gone when test returns.
func Run(t *testing.T, test func(t *testing.T, env *Env)) {
	t.Helper()
	run(t, calm, test)
}

// climate is what the server of an Env lives in.
type climate struct {
	heartbeat, lease, keepalive time.Duration
	// what the server has in the place of its store; nil: that itself
	store func(engine.Store) engine.Store
}

// calm is that of Run: nothing that the server does by the clock alone happens within forever.
var calm = climate{heartbeat: forever, lease: forever, keepalive: forever}

func run(t *testing.T, c climate, test func(t *testing.T, env *Env)) {
	t.Helper()
	path := sqlitetest.Fresh(t, sqlite.Migrate)
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(t, c, path)
		defer env.close()
		test(t, env)
	})
}

func newEnv(t *testing.T, c climate, path string) *Env {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	store, err := sqlite.Open(t.Context(), path, engine.OpenOptions{Log: log})
	if err != nil {
		t.Fatalf("kagzitest: %v", err)
	}
	e := &Env{t: t, store: store, ends: newEnds(store), address: bufconn.Listen(1 << 20),
		replaced: map[string]seam.Step{}}
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
	seam.ReplaceSteps(e.Worker, e.replacement)
	seam.AwaitEnds(e.Client, e.ends.await)
	guard := time.AfterFunc(lifetime, e.giveUp)
	e.stop = append(e.stop, func() { guard.Stop() })
	return e
}

// dialOptions lead to the server in this process, over a connection that is never looked after.
func (e *Env) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return e.address.DialContext(ctx)
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: forever}),
	}
}

// serve starts the parts of a server.
func (e *Env) serve(log *slog.Logger, c climate) {
	store := e.store
	if c.store != nil {
		store = c.store(store)
	}
	matcher := matching.New(store, log)
	door := server.New(store, matcher, server.Options{
		Log: log, Version: "kagzitest", HeartbeatInterval: c.heartbeat, WorkerLease: c.lease, Keepalive: c.keepalive})
	upkeep := coordinator.New(store, coordinator.Options{
		Interval: c.heartbeat, HeartbeatInterval: c.heartbeat, WorkerLease: c.lease, Log: log})
	e.part(func(ctx context.Context) error {
		return store.Listen(ctx, func(r engine.Notification) {
			matcher.Notify(r)
			door.Notify(r)
			upkeep.Notify(r)
			e.ends.ring(r)
		}, outcomes{door, e.ends})
	})
	e.part(upkeep.Run)
	e.part(matcher.Run)
	e.part(func(ctx context.Context) error { return door.Run(ctx, e.address) })
}

// part runs a part until close.
func (e *Env) part(run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			e.t.Errorf("kagzitest: a part of the server ended: %v", err)
		}
	}()
	e.stop = append(e.stop, func() { cancel(); <-ended })
}

// giveUp ends a test that waits for what does not come. In a bubble time would jump on without end otherwise.
func (e *Env) giveUp() {
	text := fmt.Sprintf("kagzitest: the test still waits after %d years", lifetime/(365*24*time.Hour))
	open, told := kagzi.ListOptions{Statuses: []kagzi.Status{
		kagzi.StatusPending, kagzi.StatusRunning, kagzi.StatusSleeping}}, 0
	for run, err := range e.Client.List(context.Background(), open) {
		if told++; err != nil || told > 10 {
			break
		}
		if why, err := e.Client.Run(run.RunID).Explain(context.Background()); err == nil {
			text += fmt.Sprintf("\n  run %s of type %s: %s", run.RunID, run.WorkflowType, why.Summary)
		}
	}
	debug.SetTraceback("all") // which shows where the test waits
	panic(text)
}

// Start lets the worker run. What it serves has been given to it before.
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

// Pass lets d go by and everything that is due within it be done.
func (e *Env) Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Settle waits until nothing is at work, without letting time pass.
func (e *Env) Settle() { synctest.Wait() }

// close stops the parts in the reverse of their order: the worker first. No code may be left in the
// bubble, whose time stands still afterwards.
func (e *Env) close() {
	for i := len(e.stop) - 1; i >= 0; i-- {
		e.stop[i]()
	}
	if !seam.CodeEnds(e.Worker, patience) {
		e.t.Errorf(
			"kagzitest: code of a step or a workflow goes on %v after the end of its context: have it end by then",
			patience)
	}
	if err := e.Client.Close(); err != nil {
		e.t.Errorf("kagzitest: %v", err)
	}
	if err := e.store.Close(); err != nil {
		e.t.Errorf("kagzitest: %v", err)
	}
}

// ReplaceStep has every step of that name, in whatever workflow, run fn instead of its own code.
// Steps that Kagzi numbers (name:2, …) go by the name that the code gave. The result's type has to
// be the step's; fn nil gives the step its own code back.
func ReplaceStep[T any](e *Env, name string, fn func(ctx context.Context) (T, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if fn == nil {
		delete(e.replaced, name)
		return
	}
	e.replaced[name] = func(ctx context.Context) (any, error) { return fn(ctx) }
}

func (e *Env) replacement(name string) seam.Step {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.replaced[name]
}
