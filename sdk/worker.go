package kagzi

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/lease"
	"github.com/kagzi/kagzi/sdk/internal/seam"
	"github.com/kagzi/kagzi/sdk/internal/session"
	"github.com/kagzi/kagzi/sdk/internal/stats"
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
)

// WorkerOptions configures a worker. A field that is zero has the default in brackets. "Profile"
// means the selected profile of kagzi.toml; package profile describes that file and the environment
// variables.
type WorkerOptions struct {
	Profile string // name of the profile (KAGZI_PROFILE, else the file's default); NoProfile for none
	// Address of the server, host:port, or of several, separated by commas: the first that answers
	// (KAGZI_ADDRESS, else the profile's, else 127.0.0.1:50051).
	Address   string
	Namespace string   // (KAGZI_NAMESPACE, else the profile's, else "default")
	Queue     string   // main queue ("default")
	Queues    []string // further queues, in order of preference (none)

	MaxConcurrent int            // most runs that this worker holds at once (100)
	TypeLimits    map[string]int // most RUNNING runs of a workflow type in the queue, over all workers (no limit)
	QueueLimit    int            // most RUNNING runs in the queue, over all workers (no limit)

	// WorkerID names the worker: letters, digits, '-' and '_', at most 64 (the server chooses a
	// UUID). While another worker has the same id, the server refuses this one and Run returns. The
	// id of a killed worker is free when it counts as lost, within 42 s by default, or after `kagzi
	// worker offline`.
	WorkerID string
	// Hostname is shown to operators, at most 255 bytes (that of the operating system).
	Hostname string
	Version  string            // of the application (none)
	Labels   map[string]string // shown to operators, and matched by Requirements of runs (none)
	// Capabilities are matched by Requirements of runs, like "tool:jq" with value "1.7": at most 1,024,
	// with keys of printable ASCII but = and , (none).
	Capabilities map[string]string

	// BuildID names the workflow code of this worker: up to 128 printable ASCII characters. If the code
	// of one build diverges from a run's history, the run goes to a worker of another (a hash of the
	// program).
	BuildID      string
	OnDivergence OnDivergence // what to do when no build matches a run's history (DivergencePause)
	// RemovedPatches are ids of Patched calls that are no longer in the code, while runs with their
	// answers may be open (none).
	RemovedPatches []string

	// Cache is how many parked runs the worker keeps in memory, each for at most 10 minutes; a negative
	// value means none (1000). Such a run goes on where it waits when it comes back to this worker,
	// which the server prefers. Others are replayed from their records. Code cannot tell the
	// difference, and what is dropped from memory ends as at any suspension.
	Cache int
	// CacheBytes limits what those runs hold: the bytes of their inputs and results, and 16 KiB each
	// (256 MiB).
	CacheBytes int64

	// DrainTimeout limits how long a stopping worker waits for its runs before it releases them to
	// other workers; a negative value means no wait (300 s).
	DrainTimeout time.Duration
	// HandleSignals makes Run drain on these signals; a second one releases the runs at once. An
	// empty non-nil slice means none (SIGTERM and SIGINT).
	HandleSignals []os.Signal

	Logger *slog.Logger // (slog.Default())
	Codec  Codec        // (none)
	// Interceptors wrap workflow functions and the code of steps, the first outermost (none).
	Interceptors []WorkerInterceptor
	// TracerProvider records a span for each activation of a run and, as its children, spans for
	// the attempts of steps; the context of a step carries its span (otel.GetTracerProvider(),
	// which records nothing until it is configured).
	TracerProvider trace.TracerProvider
	// APIKey authenticates the worker (KAGZI_API_KEY, the file of KAGZI_API_KEY_FILE, else the
	// profile's, else none). With a key, connecting to another machine without TLS is an error.
	APIKey      string
	TLS         *tls.Config       // (KAGZI_TLS, KAGZI_TLS_CA, …, else the profile's, else no TLS)
	DialOptions []grpc.DialOption // added to the SDK's own; they take precedence (none)
}

func (o WorkerOptions) withDefaults() WorkerOptions {
	if o.Queue == "" {
		o.Queue = "default"
	}
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = 100
	}
	if o.Cache == 0 {
		o.Cache = defaultCache
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 300 * time.Second
	}
	if o.HandleSignals == nil {
		o.HandleSignals = []os.Signal{syscall.SIGTERM, os.Interrupt}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.BuildID == "" {
		o.BuildID = ownBuild()
	}
	// The caller may change its own slices and maps; every session reads these again.
	o.RemovedPatches, o.Interceptors = slices.Clone(o.RemovedPatches), slices.Clone(o.Interceptors)
	o.Queues, o.TypeLimits = slices.Clone(o.Queues), maps.Clone(o.TypeLimits)
	o.Labels, o.Capabilities = maps.Clone(o.Labels), maps.Clone(o.Capabilities)
	return o
}

// Worker runs workflow functions for a server. NewWorker makes one.
type Worker struct {
	options  WorkerOptions
	log      *slog.Logger
	instance string
	handlers map[string]handler
	tracer   trace.Tracer
	replaced func(name string) seam.Step // the code that a test set for a step; nil outside tests

	conn     *grpc.ClientConn
	workers  kagziv1.WorkerServiceClient
	session  *session.Session
	lease    lease.Clock
	counters stats.Counters
	code     sync.WaitGroup // goroutines that run user code
	stacks   stacks

	ready     chan struct{} // closed when first registered
	readyOnce sync.Once
	drainReq  chan struct{} // capacity 1: the server asked the worker to drain
	unknown   chan struct{} // capacity 1: the server rejected a heartbeat
	order     atomic.Bool   // the server keeps the order of results
	resumes   atomic.Bool   // the server sends what happened to runs that the worker keeps in memory

	mu         sync.Mutex
	cache      cache
	started    bool
	id         string
	executions map[string]*execution // by run id
	// closed when the last heartbeat is answered or its stream is gone; nil before the first
	lastBeat chan struct{}
	draining bool
	parting  bool          // goodbye is sent; the end of the stream is expected
	leaving  chan struct{} // closed when draining begins
	emptied  chan struct{} // closed when draining and no run is held
}

type handler func(ctx Context, e *execution) (*kagziv1.Payload, error)

// init gives package kagzitest access to workers and clients.
func init() {
	seam.ReplaceSteps = func(worker any, replaced func(name string) seam.Step) { worker.(*Worker).replaced = replaced }
	seam.Intercept = func(worker, interceptors any) {
		w := worker.(*Worker)
		w.options.Interceptors = append(w.options.Interceptors, interceptors.([]WorkerInterceptor)...)
	}
	seam.Keep = func(worker any, runs int, limit time.Duration) {
		w := worker.(*Worker)
		w.options.Cache, w.options.CacheBytes, w.cache.time = runs, math.MaxInt64, limit
	}
	seam.CodeEnds = func(worker any, limit time.Duration) bool { return worker.(*Worker).codeEnds(limit) }
	seam.AwaitEnds = func(client any, await func(ctx context.Context, runID string)) { client.(*Client).await = await }
	seam.Replay = func(ctx context.Context, worker any, run *kagziv1.Workflow, steps []*kagziv1.Step) error {
		w := worker.(*Worker)
		return replayRecord(ctx, NewWorker(w.options), w.handlers[run.GetWorkflowType()], newRecord(run, steps))
	}
}

// NewWorker makes a worker. Register workflow functions with Handle, then call Run.
func NewWorker(options WorkerOptions) *Worker {
	options = options.withDefaults()
	w := &Worker{
		options:    options,
		log:        options.Logger,
		instance:   uuid.NewString(),
		handlers:   make(map[string]handler),
		tracer:     tracerOf(options.TracerProvider),
		session:    session.New(),
		ready:      make(chan struct{}),
		drainReq:   make(chan struct{}, 1),
		unknown:    make(chan struct{}, 1),
		executions: make(map[string]*execution),
		cache:      cache{runs: make(map[string]*list.Element), time: cacheTime},
		leaving:    make(chan struct{}),
		emptied:    make(chan struct{}),
	}
	return w
}

// Handle registers fn as the workflow function of a type. Inputs and outputs are encoded as JSON.
// Handle panics when the type's name is invalid or already registered, or when Run was called.
//
// fn must be deterministic: with the same input and the same step results it makes the same calls.
// See "Rules for workflow code" in the package documentation.
func Handle[In, Out any](w *Worker, workflowType string, fn func(ctx Context, in In) (Out, error)) {
	if fn == nil {
		panic("kagzi: Handle: no function for workflow type " + workflowType)
	}
	w.handle(workflowType, typed(w, workflowType, fn))
}

// typed wraps a workflow function in a handler, which decodes the input and encodes the output.
func typed[In, Out any](w *Worker, workflowType string, fn func(ctx Context, in In) (Out, error)) handler {
	return func(ctx Context, e *execution) (*kagziv1.Payload, error) {
		in, err := decode[In](e.inputCodec(), e.task.GetInput(), inputInfo(e.info.WorkflowType, e.info.ExternalID))
		if err != nil {
			return nil, &unreadable{what: "input of workflow type " + workflowType, err: err}
		}
		out, err := fn(ctx, *in)
		if err != nil {
			return nil, err
		}
		p, err := encode(w.options.Codec, out, PayloadInfo{Kind: PayloadOutput, RunID: e.info.RunID})
		if err != nil {
			return nil, fmt.Errorf("output of workflow type %s: %w", workflowType, err)
		}
		warnLarge(w.log, "output", p, "type", workflowType)
		return p, nil
	}
}

func (w *Worker) handle(workflowType string, h handler) {
	if err := checkName("workflow type", workflowType); err != nil {
		panic("kagzi: Handle: " + err.Error())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		panic("kagzi: Handle: the worker runs already")
	}
	if w.handlers[workflowType] != nil {
		panic("kagzi: Handle: workflow type " + workflowType + " has a function already")
	}
	w.handlers[workflowType] = h
}

// ID returns the worker's id: WorkerOptions.WorkerID, or the one that the server chose. It is ""
// before the first registration.
func (w *Worker) ID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.id
}

// keepsOrder reports whether the server records the order of results and takes reports of divergence.
func (w *Worker) keepsOrder() bool { return w.order.Load() }

// Active returns the number of runs that the worker holds now. Each takes one slot of
// MaxConcurrent; parked runs are not held.
func (w *Worker) Active() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.executions)
}

// Ready returns a channel that is closed when the worker has registered for the first time.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// ErrNoHandlers is returned by Run when no workflow function is registered.
var ErrNoHandlers = errors.New("kagzi: no workflow registered: call Handle before Run")

// Run registers the worker and runs workflows until ctx ends, a signal of HandleSignals arrives, or
// an operator drains the worker. It then claims no more runs, waits up to DrainTimeout for those
// that it holds, releases the rest, deregisters and returns. While the server is unreachable, even
// at the start, it keeps trying to connect. Run can be called once.
//
// Run returns nil after an orderly end. It returns an error when:
//
//   - the options, the environment or the profile are invalid, or no workflow is registered;
//   - the server refuses the worker, at the start or because its key was revoked (errors.As finds
//     the *Error);
//   - runs were released unfinished.
//
// If the program was started with the argument -kagzi-check (which is removed from os.Args before
// main begins) or with KAGZI_CHECK=1 in its environment, Run does not register and runs no steps.
// Instead it replays the open runs of the worker's types and queues against this build, prints a
// line for each that diverges, and returns a *CheckError if any does. The program must then exit
// with a code other than 0, as log.Fatal does.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.begin(); err != nil {
		return err
	}
	if err := w.locate(); err != nil {
		return err
	}
	if os.Getenv(checkVariable) == "1" {
		return w.check(ctx, os.Stdout)
	}
	conn, err := transport.Dial(w.options.Address, w.options.APIKey, w.options.TLS, w.options.DialOptions)
	if err != nil {
		return err
	}
	stopWatch := func() {}
	defer func() { stopWatch() }()
	defer conn.Close()
	w.conn, w.workers = conn, kagziv1.NewWorkerServiceClient(conn)

	signals := make(chan os.Signal, 2)
	if len(w.options.HandleSignals) > 0 {
		signal.Notify(signals, w.options.HandleSignals...)
		defer signal.Stop(signals)
	}
	serving, endServing := context.WithCancel(context.WithoutCancel(ctx))
	defer endServing()
	served := make(chan struct{})
	var refused error
	go func() {
		defer close(served)
		refused = w.serve(serving)
	}()

	select {
	case <-served:
	case <-ctx.Done():
		err = w.drain("context ended", signals, served)
	case s := <-signals:
		err = w.drain(s.String(), signals, served)
	case <-w.drainReq:
		err = w.drain("asked to by the server", signals, served)
	}
	stopWatch = w.watchEnd()
	endServing()
	<-served
	for _, e := range w.all() {
		e.over(errReleased)
	}
	w.dropKept()
	w.awaitCode()
	return errors.Join(refused, err)
}

// locate completes the address, namespace, key and TLS settings.
func (w *Worker) locate() error {
	o := &w.options
	to := transport.Endpoint{Profile: o.Profile, Address: o.Address, Namespace: o.Namespace, APIKey: o.APIKey,
		TLS: o.TLS}
	if err := to.Complete(w.log); err != nil {
		return err
	}
	o.Address, o.Namespace, o.APIKey, o.TLS = to.Address, to.Namespace, to.APIKey, to.TLS
	if err := o.checkText(); err != nil {
		return fmt.Errorf("kagzi: WorkerOptions: %w", err)
	}
	return nil
}

// checkText rejects text that gRPC could never send.
func (o *WorkerOptions) checkText() error {
	type text struct{ name, text string }
	texts := []text{{"Namespace", o.Namespace}, {"Queue", o.Queue}, {"WorkerID", o.WorkerID}, {"Version", o.Version},
		{"Hostname", o.Hostname}, {"BuildID", o.BuildID}}
	for i, queue := range o.Queues {
		texts = append(texts, text{fmt.Sprintf("Queues[%d]", i), queue})
	}
	for _, option := range texts {
		if !utf8.ValidString(option.text) {
			return fmt.Errorf("%s is %.300q, want UTF-8", option.name, option.text)
		}
	}
	if len(o.Hostname) > maxName {
		return fmt.Errorf("option Hostname has %d bytes, want at most %d", len(o.Hostname), maxName)
	}
	return cmp.Or(checkLabelText("Labels", o.Labels), checkLabelText("Capabilities", o.Capabilities))
}

// checkLabelText returns an error for the first label that is not UTF-8.
func checkLabelText(name string, labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if value := labels[key]; !utf8.ValidString(key) || !utf8.ValidString(value) {
			return fmt.Errorf("%s has %.300q: %.300q, want UTF-8", name, key, value)
		}
	}
	return nil
}

func (w *Worker) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.handlers) == 0 {
		return ErrNoHandlers
	}
	if w.started {
		return errors.New("kagzi: Run: the worker has run already")
	}
	if err := w.checkLimits(); err != nil {
		return fmt.Errorf("kagzi: WorkerOptions: %w", err)
	}
	w.started = true
	return nil
}

// checkLimits rejects limits that are out of range or name unknown types.
func (w *Worker) checkLimits() error {
	o := w.options
	switch {
	case o.MaxConcurrent < 0:
		return fmt.Errorf("MaxConcurrent is %d, want at least 1, or 0 for the default", o.MaxConcurrent)
	case o.Cache > maxCache:
		return fmt.Errorf("option Cache is %d, want at most %d", o.Cache, maxCache)
	case o.CacheBytes < 0:
		return fmt.Errorf("option CacheBytes is %d, want more than 0, or 0 for the default; a negative Cache keeps no runs",
			o.CacheBytes)
	case o.QueueLimit < 0:
		return fmt.Errorf("QueueLimit is %d, want at least 1, or 0 for no limit", o.QueueLimit)
	}
	for _, name := range slices.Sorted(maps.Keys(o.TypeLimits)) {
		switch limit := o.TypeLimits[name]; {
		case w.handlers[name] == nil:
			return fmt.Errorf("TypeLimits names %q, which is no workflow type of this worker; it has %s", name,
				strings.Join(slices.Sorted(maps.Keys(w.handlers)), ", "))
		case limit < 1:
			return fmt.Errorf("TypeLimits[%q] is %d, want at least 1; a type that is left out has no limit",
				name, limit)
		}
	}
	return nil
}

// hello returns the registration that starts each stream.
func (w *Worker) hello() *kagziv1.RegisterRequest {
	o := w.options
	hostname := o.Hostname
	if hostname == "" {
		hostname, _ = os.Hostname() // "" is accepted
		hostname = convert.CleanText(hostname, maxName)
	}
	r := &kagziv1.RegisterRequest{
		Namespace:     o.Namespace,
		TaskQueue:     o.Queue,
		TaskQueues:    o.Queues,
		WorkflowTypes: slices.Sorted(maps.Keys(w.handlers)),
		Hostname:      hostname,
		Pid:           int32(os.Getpid()),
		Version:       o.Version,
		Labels:        o.Labels,
		Capabilities:  withSDK(o.Capabilities),
		Platform:      runtime.GOOS + "-" + runtime.GOARCH,
		MaxConcurrent: convert.Narrow(o.MaxConcurrent),
		PausesRuns:    true,
		WorkerId:      w.ID(),
		InstanceId:    w.instance,
		KeepsRuns:     int32(w.keeps()),
		BuildId:       o.BuildID,
	}
	if r.WorkerId == "" {
		r.WorkerId = o.WorkerID
	}
	if o.QueueLimit > 0 {
		limit := convert.Narrow(o.QueueLimit)
		r.QueueConcurrencyLimit = &limit
	}
	for _, name := range slices.Sorted(maps.Keys(o.TypeLimits)) {
		r.WorkflowTypeConcurrency = append(r.WorkflowTypeConcurrency,
			&kagziv1.WorkflowTypeConcurrency{WorkflowType: name, MaxConcurrent: convert.Narrow(o.TypeLimits[name])})
	}
	return r
}
