package kagzi

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/mux"
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"github.com/kagzi/kagzi/sdk/profile"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// ClientOptions says which server a client talks to. Every zero field means the default in
// brackets, where the profile is one of kagzi.toml: see package profile for the file, and for the
// environment variables of all that a profile holds.
type ClientOptions struct {
	Profile   string       // (KAGZI_PROFILE, else the one that the file names); NoProfile for none
	Address   string       // host:port (KAGZI_ADDRESS, else the profile's, else 127.0.0.1:50051)
	Namespace string       // (KAGZI_NAMESPACE, else the profile's, else "default")
	Logger    *slog.Logger // (slog.Default())
	Codec     Codec        // the workers' codec (none)
	// TracerProvider gets a span for each call that starts runs, whose trace their workers continue
	// (otel.GetTracerProvider(), which records nothing until it is configured; the caller's trace
	// is continued in any case).
	TracerProvider trace.TracerProvider
	// APIKey is what the server knows the caller by (KAGZI_API_KEY or the file of
	// KAGZI_API_KEY_FILE, else the profile's, else none). It is not sent to another machine in the
	// clear: that is an error.
	APIKey      string
	TLS         *tls.Config       // (KAGZI_TLS, KAGZI_TLS_CA, …, else the profile's, else no TLS)
	DialOptions []grpc.DialOption // added to the SDK's own, and stronger where both set the same (none)
}

// Client starts runs, looks at them and steers them. It may be used from many goroutines.
type Client struct {
	options   ClientOptions
	log       *slog.Logger
	conn      *grpc.ClientConn
	workflows kagziv1.WorkflowServiceClient
	schedules kagziv1.WorkflowScheduleServiceClient
	starts    *mux.Starts
	awaits    *mux.Awaits
	tracer    trace.Tracer
	await     func(ctx context.Context, runID string) // that a test waits with; nil otherwise
}

// NewClient makes a client. It does not wait for the server: the first call connects. Its errors
// are about the options, the environment and the profile.
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
		workflows: kagziv1.NewWorkflowServiceClient(conn), schedules: kagziv1.NewWorkflowScheduleServiceClient(conn)}
	c.starts = mux.NewStarts(c.workflows, MaxBatch)
	c.awaits = mux.NewAwaits(mux.AwaitOptions{Namespace: options.Namespace, Conn: conn, Log: c.log,
		Explain: func(err error) error { return statusError(status.Convert(err)) }})
	return c, nil
}

// Close ends the connection; calls under way fail.
func (c *Client) Close() error {
	err := c.conn.Close()
	c.awaits.Close()
	return err
}

// Conn is the client's connection, for calls of the API that the SDK has no function for.
func (c *Client) Conn() *grpc.ClientConn { return c.conn }

// Run is a handle on one run. Making one asks nothing of the server.
type Run struct {
	c      *Client
	id     string
	exists bool
	// PayloadInfo.Start, where it is known: of a run that was started by this client, and takes the signals of no other
	start string
}

// Run returns a handle on a run by its id.
func (c *Client) Run(runID string) *Run { return &Run{c: c, id: runID} }

// ID is the run's id, a UUIDv7.
func (r *Run) ID() string { return r.id }

// AlreadyExisted reports that the Start which returned the handle found a run with the same
// external id and started none.
func (r *Run) AlreadyExisted() bool { return r.exists }

// payloadInfo is what the client's codec is told of a result of a step, or of a signal.
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
			// its metadata may be forged
			return info, fmt.Errorf("kagzi: input of run %s, which says what its signals are bound to: %w", r.id, err)
		}
		info.Start = start
	}
	return info, nil
}

// Cancel makes the run CANCELLED at once: the context of its running step ends, and nothing its worker still writes
// counts. It is no error to cancel a cancelled run again; one that has ended otherwise is PRECONDITION_FAILED.
func (r *Run) Cancel(ctx context.Context, reason string) error {
	_, err := r.c.workflows.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, Reason: reason,
	})
	return callError(ctx, err)
}

// Terminate makes the run TERMINATED at once, whatever its worker does.
func (r *Run) Terminate(ctx context.Context, reason string) error {
	_, err := r.c.workflows.TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, Reason: reason,
	})
	return callError(ctx, err)
}

// Describe returns the run as it stands: one that continued as new is COMPLETED, with ContinuedAsRunID.
func (r *Run) Describe(ctx context.Context) (*RunDetails, error) { return r.c.Get(ctx, r.id) }

// waitSlice is how long one call of WaitWorkflow asks the server to wait.
const waitSlice = 50 * time.Second

// waitTries is after how many refusals in a row the pause before the next call does not grow any
// more: whoever waits is to hear of the end soon after an outage, however long that was.
const waitTries = 4

// Wait blocks until the run has ended, however, and returns it as it stands then. It lasts until
// ctx ends, over restarts of the server and cuts of the network; the run need not be known to have
// begun. Where a run continued as new, it goes on with the next, so that what it returns may have
// another RunID.
func (r *Run) Wait(ctx context.Context) (*RunDetails, error) {
	_, ended, err := r.end(ctx, true)
	if err != nil {
		return nil, err
	}
	return newRunDetails(r.c, ended.GetWorkflow()), nil
}

// end waits until the run, and all that it continues as, has ended, and returns the last of them.
// With whole, ended has all of it.
func (r *Run) end(ctx context.Context, whole bool) (last *Run, ended *kagziv1.AwaitWorkflowsResponse_Ended, err error) {
	for failures := 0; ; {
		ended, err := r.ending(ctx, whole)
		switch {
		case err == nil && ended == nil:
			failures = 0
			continue
		case err == nil && ended.GetContinuedAsRunId() == "":
			return r, ended, nil
		case err == nil:
			r, failures = r.c.Run(ended.GetContinuedAsRunId()), 0
			continue
		case ctx.Err() != nil:
			return nil, nil, context.Cause(ctx)
		case !convert.Transient(err):
			return nil, nil, callError(ctx, err)
		}
		failures++
		delay := transport.Backoff(min(failures, waitTries))
		r.c.log.Warn("waiting for a run: no server", "run", r.id, "error", statusError(status.Convert(err)),
			"attempt", failures,
			"next_attempt_in", delay.Round(time.Millisecond))
		if !transport.Sleep(ctx, delay) {
			return nil, nil, context.Cause(ctx)
		}
	}
}

// ending waits for the run's end together with the client's other waits, or by a call of its own
// where that cannot be. Nil: it has not ended yet.
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

// endedOf is an ended run as the answer to a wait.
func endedOf(w *kagziv1.Workflow) *kagziv1.AwaitWorkflowsResponse_Ended {
	return &kagziv1.AwaitWorkflowsResponse_Ended{
		Status: w.GetStatus(), Output: w.GetOutput(), Error: w.GetError(), ContinuedAsRunId: w.GetContinuedAsRunId(),
		Workflow: w,
	}
}

func (r *Run) wait(ctx context.Context) (*kagziv1.WaitWorkflowResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, waitSlice+10*time.Second)
	defer cancel()
	return r.c.workflows.WaitWorkflow(ctx, &kagziv1.WaitWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, Wait: durationpb.New(waitSlice),
	})
}

// Result waits for the run's end like Run.Wait, over all the runs that it continues as, and returns
// the output of the last. A run that ended without one is a *RunError.
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

// NoProfile in place of a profile's name leaves the environment and kagzi.toml unread: what the
// options leave open is the default, as for a test that has a server of its own.
const NoProfile = profile.Off
