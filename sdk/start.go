package kagzi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/mux"
	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// MaxBatch is the largest number of runs that StartMany starts in one call.
const MaxBatch = 1000

// ExternalIDReuse says what a start does when a run with its external id is there.
type ExternalIDReuse int

// The rules for external ids.
const (
	ReuseWhenEnded ExternalIDReuse = iota // an active run is returned; after its end the id is free again
	ReuseNever                            // a retained run is returned, ended or not
	ReuseReject                           // an active run makes the start fail with CONFLICT
)

// StartOptions say how a run is to be run. Every zero field means the default in brackets.
type StartOptions struct {
	ExternalID      string          // the application's own id, unique among active runs of the namespace (none)
	ExternalIDReuse ExternalIDReuse // what to do when a run with that id is there (ReuseWhenEnded)
	Queue           string          // ("default")
	// such as "2.4.1", of A-Z a-z 0-9 . _ : / -, which the run shows and its code can read with
	// Info; it decides nothing (none)
	Version string
	// RequestID names this one call: repeated with the same id it returns the same run, for good (a fresh UUIDv7,
	// which makes the SDK's own repetitions safe).
	RequestID string

	// of the steps that have no policy of their own, and of the run itself (3 attempts for steps, no retry of the run)
	Retry            *Retry
	StepTimeout      time.Duration // of one attempt of one step (600 s)
	HeartbeatTimeout time.Duration // lease without contact, longer than the server's (the server's)
	ExecutionTimeout time.Duration // of the whole run, from StartAt on (none)
	Deadline         time.Time     // the earlier of this and ExecutionTimeout holds (none)

	StartAt  time.Time     // not before (now)
	Delay    time.Duration // in place of StartAt: so long from when the server takes the start
	Priority int           // -100 to 100, higher first within a queue, until one has been due for a minute (0)

	Tags map[string]string // searchable (none)
	// only a worker with all of these among its capabilities and labels; an empty value is met by any (none)
	Requirements   map[string]string
	ConcurrencyKey string // runs of this type with the same key: ConcurrencyLimit at a time (none)
	// (1 when there is a key); where runs name other limits for one key, each goes by its own
	ConcurrencyLimit int

	OnFailure      string // workflow type that is started when the run fails or times out (none)
	OnFailureQueue string // (the run's own queue)
}

// Start starts a run of a workflow type. When it returns, the run is on the server's disk. Starts
// that a client is asked for at the same time go to the server together; each has its own answer,
// and its own end by ctx.
func Start[In any](ctx context.Context, c *Client, workflowType string, in In, opts StartOptions) (*Run, error) {
	req, err := startRequest(c, workflowType, in, opts)
	if err != nil {
		return nil, err
	}
	own := mux.OwnMetadata(ctx)
	ctx, parent, span := c.traceStart(ctx, "start "+workflowType, attribute.String("kagzi.workflow_type", workflowType))
	resp, err := c.starts.Start(ctx, parent, own, req)
	endCall(ctx, span, err)
	if err != nil {
		return c.startedBefore(ctx, req, opts.RequestID, callError(ctx, err))
	}
	return startedRun(c, req, resp), nil
}

// StartMany starts one run for each input, at most MaxBatch and 4 MiB in all, in one durable
// commit. The options hold for all; each, if given, may change them for the i-th, for instance its
// ExternalID. The runs stand in the order of the inputs. One refused start fails alone: its run is
// nil, and the error joins a *StartError for each.
func StartMany[In any](ctx context.Context, c *Client, workflowType string, ins []In, opts StartOptions,
	each ...func(i int, o *StartOptions)) ([]*Run, error) {
	switch {
	case len(ins) == 0:
		return nil, nil
	case len(ins) > MaxBatch:
		return nil, fmt.Errorf("kagzi: %d runs in one call, at most %d", len(ins), MaxBatch)
	}
	batch := &kagziv1.StartWorkflowsRequest{Requests: make([]*kagziv1.StartWorkflowRequest, len(ins))}
	requestIDs := make([]string, len(ins)) // the caller's own
	for i, in := range ins {
		o := opts.clone()
		if len(ins) > 1 && o.RequestID != "" {
			o.RequestID = fmt.Sprintf("%s-%d", o.RequestID, i)
		}
		for _, change := range each {
			change(i, &o)
		}
		requestIDs[i] = o.RequestID
		req, err := startRequest(c, workflowType, in, o)
		if err != nil {
			return nil, &StartError{Index: i, Err: err}
		}
		batch.Requests[i] = req
	}
	ctx, span := c.traceCall(ctx, "start "+workflowType, attribute.String("kagzi.workflow_type", workflowType),
		attribute.Int("kagzi.runs", len(ins)))
	resp, err := c.workflows.StartWorkflows(ctx, batch)
	endCall(ctx, span, err)
	if err != nil {
		return nil, callError(ctx, err)
	}
	runs := make([]*Run, len(ins))
	var errs []error
	for i, r := range resp.GetResults() {
		if d := r.GetError(); d != nil {
			refusal := statusError(convert.ItemStatus(r.GetStatusCode(), d))
			if runs[i], err = c.startedBefore(ctx, batch.Requests[i], requestIDs[i], refusal); err != nil {
				errs = append(errs, &StartError{Index: i, Err: err})
			}
			continue
		}
		runs[i] = startedRun(c, batch.Requests[i], r.GetStarted())
	}
	return runs, errors.Join(errs...)
}

// startedRun is the handle on what a start has come to.
func startedRun(c *Client, req *kagziv1.StartWorkflowRequest, resp *kagziv1.StartWorkflowResponse) *Run {
	r := &Run{c: c, id: resp.GetRunId(), exists: resp.GetAlreadyExists()}
	if c.options.Codec != nil && !r.exists {
		r.start = startDigest(req.GetWorkflowType(), req.GetExternalId(), req.GetInput().GetData())
	}
	return r
}

// StartError is the refusal of one of many starts.
type StartError struct {
	Index int // of the input
	Err   error
}

func (e *StartError) Error() string { return fmt.Sprintf("start %d: %v", e.Index, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// clone is options of which nothing is shared with o.
func (o StartOptions) clone() StartOptions {
	o.Tags, o.Requirements = maps.Clone(o.Tags), maps.Clone(o.Requirements)
	if o.Retry != nil {
		retry := *o.Retry
		retry.NonRetryable = slices.Clone(retry.NonRetryable)
		o.Retry = &retry
	}
	return o
}

func startRequest[In any](c *Client, workflowType string, in In,
	o StartOptions) (*kagziv1.StartWorkflowRequest, error) {
	input, err := encode(c.options.Codec, in, inputInfo(workflowType, o.ExternalID))
	if err != nil {
		return nil, fmt.Errorf("kagzi: input of workflow type %s: %w", workflowType, err)
	}
	warnLarge(c.options.Logger, "input", input, "type", workflowType)
	if o.RequestID, err = requestID(o.RequestID); err != nil {
		return nil, err
	}
	request, err := newStart(c.options.Namespace, workflowType, input, o, time.Now())
	if err != nil {
		return nil, fmt.Errorf("kagzi: start of workflow type %s: %w", workflowType, err)
	}
	return request, nil
}

// newStart is the start of a run as it goes to the server. Its errors name options that say nothing
// sensible, which the server cannot see.
func newStart(namespace, workflowType string, input *kagziv1.Payload, o StartOptions,
	now time.Time) (*kagziv1.StartWorkflowRequest, error) {
	if err := o.checkText(workflowType); err != nil {
		return nil, err
	}
	switch {
	case o.Delay < 0:
		return nil, fmt.Errorf("option Delay is %v, want 0 or more", o.Delay)
	case o.Delay > 0 && !o.StartAt.IsZero():
		return nil, errors.New("options Delay and StartAt are both set, want one of them")
	case o.Retry != nil:
		if err := o.Retry.check(); err != nil {
			return nil, err
		}
	}
	req := &kagziv1.StartWorkflowRequest{
		Namespace:          namespace,
		ExternalId:         o.ExternalID,
		ExternalIdReuse:    kagziv1.ExternalIdReuse(o.ExternalIDReuse),
		TaskQueue:          cmp.Or(o.Queue, "default"),
		WorkflowType:       workflowType,
		Input:              input,
		Version:            o.Version,
		RequestId:          o.RequestID,
		OnFailureWorkflow:  o.OnFailure,
		OnFailureTaskQueue: o.OnFailureQueue,
		// the caller's own maps may change before a start that shares a call is sent
		Tags:             maps.Clone(o.Tags),
		Requirements:     maps.Clone(o.Requirements),
		ConcurrencyKey:   o.ConcurrencyKey,
		ConcurrencyLimit: convert.Narrow(o.ConcurrencyLimit),
		DeadlineAt:       convert.Timestamp(o.Deadline),
		StartAt:          convert.Timestamp(o.StartAt),
	}
	if o.Retry != nil {
		req.RetryPolicy = o.Retry.policy()
	}
	req.Timeouts = timeouts(o.StepTimeout, o.HeartbeatTimeout, o.ExecutionTimeout)
	if o.Delay > 0 {
		req.StartAt, req.StartIn = timestamppb.New(now.Add(o.Delay)), durationpb.New(o.Delay)
	}
	if o.Priority != 0 {
		priority := convert.Narrow(o.Priority)
		req.Priority = &priority
	}
	return req, nil
}

// checkText names what cannot be sent. gRPC itself does not say what it was, and in a session it
// would take the other runs of the worker along.
func (o *StartOptions) checkText(workflowType string) error {
	if !utf8.ValidString(workflowType) {
		return fmt.Errorf("workflow type %.300q, want UTF-8", workflowType)
	}
	for name, text := range map[string]string{
		"ExternalID": o.ExternalID, "Queue": o.Queue, "Version": o.Version, "RequestID": o.RequestID,
		"ConcurrencyKey": o.ConcurrencyKey,
		"OnFailure":      o.OnFailure, "OnFailureQueue": o.OnFailureQueue,
	} {
		if !utf8.ValidString(text) {
			return fmt.Errorf("option %s is %.300q, want UTF-8", name, text)
		}
	}
	return cmp.Or(checkLabelText("option Tags", o.Tags), checkLabelText("option Requirements", o.Requirements))
}

// requestID is the caller's own id of a call, or a fresh one: a call that is repeated has no second effect.
func requestID(own string) (string, error) {
	if own != "" {
		return own, nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("kagzi: request id: %w", err)
	}
	return id.String(), nil
}

func timeouts(step, heartbeat, execution time.Duration) *kagziv1.TimeoutConfig {
	if step == 0 && heartbeat == 0 && execution == 0 {
		return nil
	}
	return &kagziv1.TimeoutConfig{
		StartToCloseTimeoutMs: convert.WholeMs(step), HeartbeatTimeoutMs: convert.WholeMs(heartbeat),
		ExecutionTimeoutMs: convert.WholeMs(execution),
	}
}

// Calls that an application repeats by a RequestID. A server knows a repetition by its bytes, and a
// codec that encrypts makes others of the same input each time, so that the server takes it for a
// call with other content. Only who has the codec can tell: this file does.

// madeBefore is the id of the run or schedule that an earlier call with the same RequestID has
// made, when the server refuses this one because its content is not the same. It is "" when the
// refusal stands: without a codec the same content has the same bytes, and an id of the SDK's own
// is repeated with the very bytes. Another holder of the external id or of the name is
// ALREADY_EXISTS to gRPC, and this is not.
func (c *Client) madeBefore(subject, requestID string, refusal error) string {
	e, refused := errors.AsType[*Error](refusal)
	if c.options.Codec == nil || requestID == "" || !refused || e.Code != CodeConflict ||
		status.Code(e) != codes.FailedPrecondition || e.Subject != subject {
		return ""
	}
	return e.SubjectID
}

// startedBefore is the run that this very start has made before; else the refusal. That another
// start has made the run, whose external id this one found, nobody can see any more: it counts as
// made by this one.
func (c *Client) startedBefore(ctx context.Context, req *kagziv1.StartWorkflowRequest, requestID string,
	refusal error) (*Run, error) {
	id := c.madeBefore("run", requestID, refusal)
	if id == "" {
		return nil, refusal
	}
	d, err := c.Get(ctx, id)
	if err != nil {
		return nil, unread(err, refusal)
	}
	info := inputInfo(req.GetWorkflowType(), req.GetExternalId())
	if d.WorkflowType != req.GetWorkflowType() || d.Queue != req.GetTaskQueue() ||
		d.ExternalID != req.GetExternalId() ||
		d.RetriedFromRunID != "" || // no start has made that
		!sameContent(c.options.Codec, d.input, req.GetInput(), info) {
		return nil, refusal
	}
	// of what is stored: signals are bound to it
	return &Run{c: c, id: id, start: startDigest(d.WorkflowType, d.ExternalID, d.input.GetData())}, nil
}

// retriedBefore is the run that this very retry with an Input has made before; else the refusal.
func (r *Run) retriedBefore(ctx context.Context, req *kagziv1.RetryWorkflowRequest, requestID string,
	refusal error) (*Run, error) {
	id := r.c.madeBefore("run", requestID, refusal)
	if id == "" || req.GetInput() == nil {
		return nil, refusal
	}
	again, err := r.c.Get(ctx, id)
	if err != nil {
		return nil, unread(err, refusal)
	}
	first, err := r.Describe(ctx)
	if err != nil {
		return nil, unread(err, refusal)
	}
	if again.RetriedFromRunID != r.id ||
		// it was asked for without an Input, and may have kept results
		bytes.Equal(again.input.GetData(), first.input.GetData()) ||
		!sameContent(r.c.options.Codec, again.input, req.GetInput(), inputInfo(first.WorkflowType, first.ExternalID)) {
		return nil, refusal
	}
	return r.c.Run(id), nil
}

// scheduledBefore is the schedule that this very call has made before; else the refusal.
func (c *Client) scheduledBefore(ctx context.Context, req *kagziv1.CreateWorkflowScheduleRequest, requestID string,
	refusal error) (*Schedule, error) {
	id := c.madeBefore("schedule", requestID, refusal)
	if id == "" {
		return nil, refusal
	}
	d, err := c.Schedule(id).Describe(ctx)
	if err != nil {
		return nil, unread(err, refusal)
	}
	if d.Name != req.GetName() || d.WorkflowType != req.GetWorkflowType() || d.Queue != req.GetTaskQueue() ||
		d.Cron != req.GetCronExpr() ||
		d.TimeZone != req.GetTimeZone() || !sameContent(
		c.options.Codec, d.input, req.GetInput(), inputInfo(d.WorkflowType, "")) {
		return nil, refusal
	}
	return c.Schedule(id), nil
}

// unread is the error of a call whose refusal could not be looked into. A caller who may learn more
// by repeating it is not told of a conflict, which would be final.
func unread(err, refusal error) error {
	if _, refused := errors.AsType[*Error](err); !refused || convert.Transient(err) {
		return err
	}
	return refusal
}

// sameContent says that both payloads hold the same once they are decoded. Of what cannot be decoded nobody can say so.
func sameContent(c Codec, stored, wanted *kagziv1.Payload, info PayloadInfo) bool {
	a, err := unpack(c, stored, info)
	if err != nil {
		return false
	}
	b, err := unpack(c, wanted, info)
	return err == nil && bytes.Equal(a, b)
}
