package kagzi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
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

// WorkerOptions says what a worker is. Every zero field means the default in brackets, where the
// profile is one of kagzi.toml: see package profile for the file, and for the environment variables
// of all that a profile holds.
type WorkerOptions struct {
	Profile   string   // (KAGZI_PROFILE, else the one that the file names); NoProfile for none
	Address   string   // of the server, host:port (KAGZI_ADDRESS, else the profile's, else 127.0.0.1:50051)
	Namespace string   // (KAGZI_NAMESPACE, else the profile's, else "default")
	Queue     string   // ("default")
	Queues    []string // further queues, in order of preference (none)

	MaxConcurrent int            // runs in hand at once (100)
	TypeLimits    map[string]int // runs of a workflow type at once, over all workers of the queue (no limit)
	QueueLimit    int            // runs at once, over all workers of the queue (no limit)

	// WorkerID is of letters, digits, '-' and '_', at most 64 (chosen by the server). While another
	// worker has it the server refuses this one, and Run returns. One that was killed has it until
	// it counts as lost, within 42 s at defaults, or until kagzi worker offline takes it off.
	WorkerID     string
	Version      string            // of the application (none)
	Labels       map[string]string // for people and for requirements of runs (none)
	Capabilities map[string]string // likewise: "tool:jq" to "1.7" (none)

	// DrainTimeout is how long a stopping worker lets its runs go on before it hands them back;
	// less than 0 is no time at all (300 s).
	DrainTimeout time.Duration
	// HandleSignals are the signals that make Run drain; a second one makes it hand its runs back at once. An empty
	// list that is not nil means none (SIGTERM and SIGINT).
	HandleSignals []os.Signal

	Logger *slog.Logger // (slog.Default())
	Codec  Codec        // (none)
	// TracerProvider gets a span for each stay of a run on the worker, and in it one for each
	// attempt of a step that is made; the step's context carries it (otel.GetTracerProvider(),
	// which records nothing until it is configured).
	TracerProvider trace.TracerProvider
	// APIKey is what the server knows the worker by (KAGZI_API_KEY or the file of
	// KAGZI_API_KEY_FILE, else the profile's, else none). It is not sent to another machine in the
	// clear: that is an error.
	APIKey      string
	TLS         *tls.Config       // (KAGZI_TLS, KAGZI_TLS_CA, …, else the profile's, else no TLS)
	DialOptions []grpc.DialOption // added to the SDK's own, and stronger where both set the same (none)
}

func (o WorkerOptions) withDefaults() WorkerOptions {
	if o.Queue == "" {
		o.Queue = "default"
	}
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = 100
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
	// They are read again for each session, when the caller may have changed its own for the next worker.
	o.Queues, o.TypeLimits = slices.Clone(o.Queues), maps.Clone(o.TypeLimits)
	o.Labels, o.Capabilities = maps.Clone(o.Labels), maps.Clone(o.Capabilities)
	return o
}

// Worker runs workflow functions for a server.
type Worker struct {
	options  WorkerOptions
	log      *slog.Logger
	instance string
	handlers map[string]handler
	tracer   trace.Tracer
	replaced func(name string) seam.Step // code that a test has put in the place of steps; nil otherwise

	conn     *grpc.ClientConn
	workers  kagziv1.WorkerServiceClient
	session  *session.Session
	lease    lease.Clock
	counters stats.Counters
	code     sync.WaitGroup // goroutines that run the author's code

	ready     chan struct{} // closed when first registered
	readyOnce sync.Once
	drainReq  chan struct{} // capacity 1: the server asks to drain
	unknown   chan struct{} // capacity 1: the server refused a heartbeat

	mu         sync.Mutex
	started    bool
	id         string
	executions map[string]*execution // by run id
	// closed when the last heartbeat is answered, or can no longer be; nil: there was none
	lastBeat chan struct{}
	draining bool
	parting  bool          // goodbye is said: the end of the stream is no loss
	leaving  chan struct{} // closed when draining begins
	emptied  chan struct{} // closed when draining and nothing is in hand
}

type handler func(ctx Context, e *execution) (*kagziv1.Payload, error)

// init lets package kagzitest reach into workers and clients.
func init() {
	seam.ReplaceSteps = func(worker any, replaced func(name string) seam.Step) { worker.(*Worker).replaced = replaced }
	seam.CodeEnds = func(worker any, limit time.Duration) bool { return worker.(*Worker).codeEnds(limit) }
	seam.AwaitEnds = func(client any, await func(ctx context.Context, runID string)) { client.(*Client).await = await }
}

// NewWorker makes a worker; give it its workflows with Handle, then Run it.
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
		leaving:    make(chan struct{}),
		emptied:    make(chan struct{}),
	}
	return w
}

// Handle makes the worker run fn for runs of a workflow type. Input and output travel as JSON. It panics when the
// type's name is malformed or taken, or when the worker runs already.
//
// fn has to be deterministic: given the same input and the same results of steps it makes the same calls. Time, luck
// and the world outside come in through steps, Now, Random and NewUUID.
func Handle[In, Out any](w *Worker, workflowType string, fn func(ctx Context, in In) (Out, error)) {
	if fn == nil {
		panic("kagzi: Handle: no function for workflow type " + workflowType)
	}
	w.handle(workflowType, typed(w, workflowType, fn))
}

// typed takes the types off a workflow function.
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

// ID is the worker's id, chosen by the server unless WorkerOptions.WorkerID names one; "" before
// the first registration.
func (w *Worker) ID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.id
}

// Active is how many runs the worker has in hand now, each of which takes a slot of MaxConcurrent;
// runs that are parked are in nobody's hands.
func (w *Worker) Active() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.executions)
}

// Ready is closed when the worker has first registered and can be given runs.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// ErrNoHandlers is returned by Run of a worker without workflows.
var ErrNoHandlers = errors.New("kagzi: no workflow registered: call Handle before Run")

// Run works until ctx ends, a signal arrives, or an operator drains the worker; then it takes
// nothing new, lets what it holds go on for DrainTimeout, hands back what is left, deregisters and
// returns. It keeps trying to reach a server that is away, also at the start. It returns nil after
// an orderly end; an error when the server refuses the worker, at first or because its key was
// revoked since (the reason is an *Error), when runs had to be handed back unfinished, and when the
// options, the environment and the profile do not say how to reach a server. It can be called once.
//
// In a program that was started with the argument -kagzi-check, which is taken out of os.Args
// before main begins, or with KAGZI_CHECK=1 in its environment, Run registers nothing and works on
// nothing: it replays the open runs of the worker's types and queues against this build, writes a
// line to stdout for each that diverges, and returns a *CheckError if there are any. The program
// must then exit with a code other than 0, as with log.Fatal.
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
	endServing()
	<-served
	for _, e := range w.all() {
		e.over(errReleased)
	}
	w.awaitCode()
	return errors.Join(refused, err)
}

// locate fills in which server is meant, and how it lets the worker in.
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

// checkText names what no hello could say: gRPC would not send it, however often it is tried.
func (o *WorkerOptions) checkText() error {
	type text struct{ name, text string }
	texts := []text{{"Namespace", o.Namespace}, {"Queue", o.Queue}, {"WorkerID", o.WorkerID}, {"Version", o.Version}}
	for i, queue := range o.Queues {
		texts = append(texts, text{fmt.Sprintf("Queues[%d]", i), queue})
	}
	for _, option := range texts {
		if !utf8.ValidString(option.text) {
			return fmt.Errorf("%s is %.300q, want UTF-8", option.name, option.text)
		}
	}
	return cmp.Or(checkLabelText("Labels", o.Labels), checkLabelText("Capabilities", o.Capabilities))
}

// checkLabelText names the first label that cannot be sent.
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

// checkLimits names options that limit nothing.
func (w *Worker) checkLimits() error {
	o := w.options
	switch {
	case o.MaxConcurrent < 0:
		return fmt.Errorf("MaxConcurrent is %d, want at least 1, or 0 for the default", o.MaxConcurrent)
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

// hello is the registration that each stream begins with.
func (w *Worker) hello() *kagziv1.RegisterRequest {
	o := w.options
	hostname, _ := os.Hostname() // "" is a hostname like another
	r := &kagziv1.RegisterRequest{
		Namespace:     o.Namespace,
		TaskQueue:     o.Queue,
		TaskQueues:    o.Queues,
		WorkflowTypes: slices.Sorted(maps.Keys(w.handlers)),
		Hostname:      convert.CleanText(hostname, maxName),
		Pid:           int32(os.Getpid()),
		Version:       o.Version,
		Labels:        o.Labels,
		Capabilities:  o.Capabilities,
		Platform:      runtime.GOOS + "-" + runtime.GOARCH,
		MaxConcurrent: convert.Narrow(o.MaxConcurrent),
		WorkerId:      w.ID(),
		InstanceId:    w.instance,
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
