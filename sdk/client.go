package kagzi

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/waiting"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/mux"
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"github.com/kagzi/kagzi/sdk/profile"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// ClientOptions configures a client. A field that is zero has the default in brackets. "Profile"
// means the selected profile of kagzi.toml; package profile describes that file and the environment
// variables.
type ClientOptions struct {
	Profile string // name of the profile (KAGZI_PROFILE, else the file's default); NoProfile for none
	// Address of the server, host:port, or of several, separated by commas: the first that answers
	// (KAGZI_ADDRESS, else the profile's, else 127.0.0.1:50051).
	Address   string
	Namespace string       // (KAGZI_NAMESPACE, else the profile's, else "default")
	Logger    *slog.Logger // (slog.Default())
	Codec     Codec        // the same as the workers' (none)
	// Interceptors wrap the client's calls, the first outermost (none). Calls that the application makes
	// with Conn go without them.
	Interceptors []ClientInterceptor
	// TracerProvider records a span for each call that starts runs; the spans of their workers
	// continue its trace. The trace of the caller's ctx is continued even when nothing is recorded
	// (otel.GetTracerProvider(), which records nothing until it is configured).
	TracerProvider trace.TracerProvider
	// APIKey authenticates the caller (KAGZI_API_KEY, the file of KAGZI_API_KEY_FILE, else the
	// profile's, else none). With a key, connecting to another machine without TLS is an error.
	APIKey      string
	TLS         *tls.Config       // (KAGZI_TLS, KAGZI_TLS_CA, …, else the profile's, else no TLS)
	DialOptions []grpc.DialOption // added to the SDK's own; they take precedence (none)
}

// Client starts, reads and controls runs and schedules. It is safe for concurrent use.
type Client struct {
	options   ClientOptions
	log       *slog.Logger
	conn      *grpc.ClientConn
	workflows kagziv1.WorkflowServiceClient         // within the interceptors
	schedules kagziv1.WorkflowScheduleServiceClient // within the interceptors
	admin     kagziv1.AdminServiceClient            // within the interceptors
	plain     kagziv1.WorkflowServiceClient         // without them
	starts    *mux.Starts
	awaits    *mux.Awaits
	tracer    trace.Tracer
	explained chan struct{}                           // a slot for each wait whose run is explained
	await     func(ctx context.Context, runID string) // how a test waits for a run's end; nil outside tests
}

// maxExplained limits the waits of a client that say what their run waits for. A client may wait for
// thousands of runs, whose explanations nobody would read.
const maxExplained = 8

// NewClient makes a client. It does not wait for the server; the first call connects. Errors are
// about the options, the environment or the profile.
func NewClient(options ClientOptions) (*Client, error) {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	to := transport.Endpoint{Profile: options.Profile, Address: options.Address, Namespace: options.Namespace,
		APIKey: options.APIKey, TLS: options.TLS}
	if err := to.Complete(options.Logger); err != nil {
		return nil, err
	}
	options.Address, options.Namespace, options.APIKey, options.TLS = to.Address, to.Namespace, to.APIKey, to.TLS
	conn, err := transport.Dial(options.Address, options.APIKey, options.TLS,
		append([]grpc.DialOption{transport.ReconnectSoon}, options.DialOptions...))
	if err != nil {
		return nil, err
	}
	c := &Client{options: options, log: options.Logger, conn: conn, tracer: tracerOf(options.TracerProvider),
		explained: make(chan struct{}, maxExplained), plain: kagziv1.NewWorkflowServiceClient(conn)}
	c.options.Interceptors = slices.Clone(options.Interceptors)
	intercepted := interceptedConn{conn, c}
	c.workflows = kagziv1.NewWorkflowServiceClient(intercepted)
	c.schedules = kagziv1.NewWorkflowScheduleServiceClient(intercepted)
	c.admin = kagziv1.NewAdminServiceClient(intercepted)
	c.starts = mux.NewStarts(c.plain, MaxBatch)
	c.awaits = mux.NewAwaits(mux.AwaitOptions{Namespace: options.Namespace, Conn: conn, Log: c.log,
		Explain: func(err error) error { return statusError(status.Convert(err)) }})
	return c, nil
}

// Close closes the connection. Calls in flight fail.
func (c *Client) Close() error {
	err := c.conn.Close()
	c.awaits.Close()
	return err
}

// Conn returns the client's gRPC connection, for API calls that the SDK does not wrap.
func (c *Client) Conn() *grpc.ClientConn { return c.conn }

// Run is a handle to one run. Making a handle does not call the server. The handle of a run that
// continued as new works as long as a run of its chain exists: after retention has deleted the first
// run, calls go to the newest.
type Run struct {
	c      *Client
	id     string
	exists bool
	// the run that existed has another input
	otherInput bool
	// PayloadInfo.Start if known: the run was started by this client and receives no signals of
	// another run
	start string
}

// Run returns a handle to the run with an id. The id may be shortened to its first characters, at
// least 8: calls fail with INVALID_ARGUMENT while several ids begin so.
func (c *Client) Run(runID string) *Run { return &Run{c: c, id: runID} }

// ID returns the run's id, a UUIDv7.
func (r *Run) ID() string { return r.id }

// AlreadyExisted reports whether the call that returned the handle found an existing run instead of
// making one: Start by its external id, Retry an active retry, Import by its RequestID.
func (r *Run) AlreadyExisted() bool { return r.exists }

// OtherInput reports whether the run that Start found by its external id has another input than the
// call asked for. With a Codec it is always false: encoded inputs may differ although the values are
// equal.
func (r *Run) OtherInput() bool { return r.otherInput }

// payloadInfo returns what the codec is told about a step result or a signal.
func (r *Run) payloadInfo(ctx context.Context, kind PayloadKind, step string) (PayloadInfo, error) {
	info := PayloadInfo{Kind: kind, Start: r.start, Step: step}
	if r.c.options.Codec == nil || r.start != "" {
		return info, nil
	}
	d, err := r.Describe(ctx)
	if err != nil {
		return info, err
	}
	info.Start = startDigest(d.WorkflowType, d.ExternalID, d.input.GetData())
	if start := startOfSignals(info.Start, d.input); kind == PayloadSignal && start != info.Start {
		if _, err := unpack(r.c.options.Codec, d.input, inputInfo(d.WorkflowType, d.ExternalID)); err != nil {
			// the metadata may be forged
			return info, fmt.Errorf("kagzi: input of run %s, which says what its signals are bound to: %w", r.id, err)
		}
		info.Start = start
	}
	return info, nil
}

// DefaultGrace is how long the code of a cancelled run may clean up, unless CancelGracefully says
// otherwise. The command line has the same default.
const DefaultGrace = 30 * time.Second

// Cancel asks the run's code to stop and clean up within DefaultGrace: see CancelGracefully, which
// takes another grace. Terminate ends a run at once.
func (r *Run) Cancel(ctx context.Context, reason string) error {
	return r.CancelGracefully(ctx, DefaultGrace, reason)
}

// Terminate makes the run TERMINATED at once, without letting it clean up. The context of its
// running step ends, and later writes of its worker are rejected.
func (r *Run) Terminate(ctx context.Context, reason string) error {
	_, err := r.c.workflows.TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, Reason: reason,
	})
	return callError(ctx, err)
}

// Describe returns the current state of the run. A run that continued as new is COMPLETED and has
// ContinuedAsRunID set.
func (r *Run) Describe(ctx context.Context) (*RunDetails, error) { return r.c.Get(ctx, r.id) }

// waitSlice limits how long one WaitWorkflow call waits on the server.
const waitSlice = 50 * time.Second

// waitTries stops the growth of the delay between calls after this many failures in a row, so that
// the end of a run is noticed soon after a long outage.
const waitTries = 4

// Wait blocks until the run has ended, in whatever status, and returns it. It returns early only
// when ctx ends: it survives server restarts and network failures. If the run continued as new,
// Wait follows it, so the result may have another RunID.
func (r *Run) Wait(ctx context.Context) (*RunDetails, error) {
	_, ended, err := r.end(ctx, true)
	if err != nil {
		return nil, err
	}
	return newRunDetails(r.c, ended.GetWorkflow()), nil
}

// end waits until the run and its continuations have ended and returns the last of them. With
// whole, ended carries all of its fields.
func (r *Run) end(ctx context.Context, whole bool) (last *Run, ended *kagziv1.AwaitWorkflowsResponse_Ended, err error) {
	err = r.c.intercept(ctx, "WaitWorkflow", &kagziv1.WaitWorkflowRequest{Namespace: r.c.options.Namespace, RunId: r.id},
		func(ctx context.Context) (err error) {
			last, ended, err = r.endOf(ctx, whole)
			return err
		})
	return last, ended, err
}

func (r *Run) endOf(ctx context.Context, whole bool) (*Run, *kagziv1.AwaitWorkflowsResponse_Ended, error) {
	stop := r.sayWhy(ctx)
	defer func() { stop() }()
	for failures := 0; ; {
		ended, err := r.ending(ctx, whole)
		switch {
		case err == nil && ended == nil:
			failures = 0
			continue
		case err == nil && ended.GetContinuedAsRunId() == "":
			return r, ended, nil
		case err == nil:
			stop()
			r, failures = r.c.Run(ended.GetContinuedAsRunId()), 0
			stop = r.sayWhy(ctx)
			continue
		case ctx.Err() != nil:
			return nil, nil, context.Cause(ctx)
		case !convert.Transient(err):
			return nil, nil, callError(ctx, err)
		}
		failures++
		delay := transport.Backoff(min(failures, waitTries))
		r.c.log.Warn("cannot wait for a run; retrying", "run", r.id, "error", statusError(status.Convert(err)),
			"attempt", failures,
			"next_attempt_in", delay.Round(time.Millisecond))
		if !transport.Sleep(ctx, delay) {
			return nil, nil, context.Cause(ctx)
		}
	}
}

// sayWhy logs what the run waits for, once it has been waited for a while, until stop. In a test the
// clock jumps, so nothing is said there.
func (r *Run) sayWhy(ctx context.Context) (stop func()) {
	if r.c.await != nil {
		return func() {}
	}
	return waiting.Report{API: r.c.plain, Namespace: r.c.options.Namespace, RunID: r.id, Slots: r.c.explained,
		Say: func(sentence string) {
			r.c.log.Info("waiting for a run", "run", r.id, "state", sentence)
		}}.Start(ctx)
}

// ending waits for the run's end over the client's shared stream, or with a call of its own if
// there is none. It returns nil when the run has not ended yet.
func (r *Run) ending(ctx context.Context, whole bool) (*kagziv1.AwaitWorkflowsResponse_Ended, error) {
	if r.c.await != nil {
		r.c.await(ctx, r.id)
	}
	ended, err := r.c.awaits.Await(ctx, r.id, whole)
	if err != mux.ErrAlone {
		if w := ended.GetWorkflow(); w != nil {
			return endedOf(w), err
		}
		return ended, err
	}
	resp, err := r.wait(ctx)
	if err != nil || !resp.GetFinished() {
		return nil, err
	}
	return endedOf(resp.GetWorkflow()), nil
}

// endedOf converts an ended run to the answer of a wait.
func endedOf(w *kagziv1.Workflow) *kagziv1.AwaitWorkflowsResponse_Ended {
	return &kagziv1.AwaitWorkflowsResponse_Ended{
		Status: w.GetStatus(), Output: w.GetOutput(), Error: w.GetError(), ContinuedAsRunId: w.GetContinuedAsRunId(),
		Workflow: w,
	}
}

func (r *Run) wait(ctx context.Context) (*kagziv1.WaitWorkflowResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, waitSlice+10*time.Second)
	defer cancel()
	return r.c.plain.WaitWorkflow(ctx, &kagziv1.WaitWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, Wait: durationpb.New(waitSlice),
	})
}

// Result waits for the run to end, as Run.Wait does, and returns its output. It returns a *RunError
// when the run ended without one.
func Result[Out any](ctx context.Context, run *Run) (Out, error) {
	var zero Out
	last, ended, err := run.end(ctx, false)
	if err != nil {
		return zero, err
	}
	if ended.GetStatus() != kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED {
		return zero, newRunError(last.id, statusOf(ended), ended.GetError())
	}
	return readOutput[Out](run.c.options.Codec, ended.GetOutput(), last.id)
}

// NoProfile as a profile's name ignores the environment and kagzi.toml: options that are not set
// have their built-in defaults. Tests with their own server use it.
const NoProfile = profile.Off
