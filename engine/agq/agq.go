// Package agq serves AGQ's protocol: workers (AGW) register, pop and report jobs over RESP, the protocol
// of Redis, and clients (AGX) submit plans and actions. It is one more door of the server: everything that
// it does is a call of the API, made in this process and with the caller's key.
//
// # How it maps
//
//   - A plan is a run of type agq.plan, which starts in nine years, so it keeps the plan and is never due.
//   - An action is a set of runs of type agq.job in the queue agq:ready, one for each input, made in one
//     commit. Their tags name action and plan; their input holds the plan, the requirements its commands.
//   - A pop is a claim. The job's work is its step "job": it begins with the pop, and its time-out, its
//     retries and its attempts are the job's. A report completes or fails the step, and the run with it.
//   - stdout and stderr are the inputs of running steps of these names until the status is there. A lost
//     lease interrupts them, as it does the step "job".
//   - A worker is a worker of the same id. The lease, its token and its worker are in the store alone, so a
//     report counts on every server, after a restart, and on another connection of the worker.
//
// # Files
//
//   - agq.go: Door, its connections and its limits. resp.go, reply.go: the protocol.
//   - conn.go: one connection; hello.go: what clients of Redis send first; commands.go: the table.
//   - identity.go: which worker a connection speaks for. worker.go, pop.go: the workers that pop.
//   - fence.go: what a worker's older connections may no longer say.
//   - report.go, update.go: reports of jobs. keyspace.go: keys, as a view of runs and workers.
//   - verify.go: an operator asks what a worker's tool says.
//   - plan.go: what a plan may be. plans.go, actions.go, jobs.go, lists.go: the commands of clients.
package agq

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	maxConnections = 10_000
	keepAlive      = 15 * time.Second // of TCP: between probes of an idle connection
	strangerTime   = 30 * time.Second // a connection has that long to show a key
	writeTime      = 30 * time.Second // for one write
	stopTime       = 5 * time.Second  // for the last answers when the server stops

	// Interval is how often a worker is told to send a heartbeat, and Lease how long it keeps its jobs
	// without one.
	Interval = 30 * time.Second
	Lease    = 3 * Interval
)

// Names in Kagzi.
const (
	readyQueue = "agq:ready"
	plansQueue = "agq:plans"
	jobType    = engine.JobType
	planType   = "agq.plan"
	jobStep    = "job"

	toolPrefix = "tool:"  // of the capabilities of workers and the requirements of jobs
	unitPrefix = "unit:"  // of capabilities
	anyTool    = "tool:*" // the capability of a worker that never named tools

	tagAction = "agq.action"
	tagPlan   = "agq.plan"
	tagPlace  = "agq.place" // of a job in its action, from 1
	tagJobs   = "agq.jobs"  // how many the action has
	tagTasks  = "agq.tasks"
	tagAbout  = "agq.description"
)

// Server is the server whose API is served.
type Server interface {
	grpc.ClientConnInterface
	Authenticate(ctx context.Context, method string) (key string, err error)
	Keyless(ctx context.Context) bool
	Claim(ctx context.Context, who server.Identity, run engine.ID) (server.Claim, error)
	WorkerOf(ctx context.Context, who server.Identity) (engine.Worker, []engine.Held, error)
	PIDOf(ctx context.Context, who server.Identity) (int, error)
}

// Options configures a Door.
type Options struct {
	Log *slog.Logger
	TLS *tls.Config // nil: plaintext
	Now func() time.Time
	// Shared says that other servers may use the same store: a worker's connection there fences the ones here.
	Shared bool
	Verify bool // operators may have workers run their tools (WORKER.VERIFY)
}

// Door serves AGQ's protocol for one server.
type Door struct {
	server  Server
	runs    kagziv1.WorkflowServiceClient
	work    kagziv1.WorkerServiceClient
	admin   kagziv1.AdminServiceClient
	log     *slog.Logger
	tls     *tls.Config
	now     func() time.Time
	shared  bool
	verify  bool
	beat    time.Duration // see beatEvery
	writing time.Duration // see writeTime
	stop    chan struct{} // closed when pops are answered nil and connections end
	numbers atomic.Int64

	mu      sync.Mutex
	conns   map[*conn]struct{}
	workers map[server.Identity]*worker
	open    sync.WaitGroup
}

// New returns the door of a server.
func New(s Server, o Options) *Door {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Door{
		server: s, runs: kagziv1.NewWorkflowServiceClient(s), work: kagziv1.NewWorkerServiceClient(s),
		admin: kagziv1.NewAdminServiceClient(s), log: o.Log, tls: o.TLS, now: o.Now,
		shared: o.Shared, verify: o.Verify, beat: beatEvery, writing: writeTime, stop: make(chan struct{}),
		conns: map[*conn]struct{}{}, workers: map[server.Identity]*worker{},
	}
}

// Serve serves connections of l until ctx ends. Then it answers every pop that waits with nil and closes
// the connections. It closes l.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	stopped := context.AfterFunc(ctx, func() {
		close(d.stop)
		_ = l.Close()
		d.endAll()
	})
	defer stopped()
	defer func() { _ = l.Close() }()
	for {
		raw, err := l.Accept()
		switch {
		case err == nil:
			d.accept(raw)
			continue
		case ctx.Err() != nil:
			d.wait()
			return nil
		case !isTemporary(err):
			d.wait()
			return err
		}
		select { // too many open files: others may close theirs
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func isTemporary(err error) bool {
	var one net.Error
	return errors.As(err, &one) && !errors.Is(err, net.ErrClosed)
}

// accept starts to serve a connection, or refuses it.
func (d *Door) accept(raw net.Conn) {
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: keepAlive, Interval: keepAlive / 3, Count: 3})
	}
	if d.tls != nil {
		raw = tls.Server(raw, d.tls)
	}
	c := newConn(d, raw)
	d.mu.Lock()
	full, stopping := len(d.conns) >= maxConnections, d.stopping()
	if !full && !stopping {
		d.conns[c] = struct{}{}
		d.open.Add(1)
	}
	d.mu.Unlock()
	if full || stopping {
		if full && d.tls == nil {
			_ = raw.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = raw.Write([]byte("-ERR max number of clients reached\r\n"))
		}
		_ = raw.Close()
		return
	}
	go func() {
		defer d.open.Done()
		c.serve()
		d.mu.Lock()
		delete(d.conns, c)
		d.mu.Unlock()
	}()
}

func (d *Door) stopping() bool {
	select {
	case <-d.stop:
		return true
	default:
		return false
	}
}

// endAll ends every connection after what it has to say.
func (d *Door) endAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		go c.finish()
	}
}

// wait waits for the ends of the connections, which it breaks after stopTime.
func (d *Door) wait() {
	hard := time.AfterFunc(stopTime, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for c := range d.conns {
			_ = c.raw.Close()
		}
	})
	defer hard.Stop()
	d.open.Wait()
}

// Connections returns how many connections are open, and how many workers pop on them.
func (d *Door) Connections() (connections, workers int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns), len(d.workers)
}
