package kagzi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

// MaxBatch is the most runs that one call of StartMany can start.
const MaxBatch = 1000

// ExternalIDReuse selects what Start does when a run has the same external id.
type ExternalIDReuse int

// Rules for external ids.
const (
	ReuseWhenEnded ExternalIDReuse = iota // return an active run; after its end the id is free
	ReuseNever                            // return any retained run, ended or not
	ReuseReject                           // fail with CONFLICT if a run is active
)

// ConcurrencyScope selects when a run counts for the limit of its ConcurrencyKey. Runs of one key
// share its places even if their scopes differ: each run counts by its own.
type ConcurrencyScope int

// Scopes of concurrency keys.
const (
	// ScopeSlot counts a run while a worker holds it: a run that sleeps or waits has no place.
	ScopeSlot ConcurrencyScope = iota
	// ScopeOpen counts a run from its first claim to its end: sleeps, signals, children, retries and
	// pauses included. A run that continues as new under the same type and key keeps its place; a
	// retry of an ended run takes its turn. A child that would need a place of the key of which its
	// parent has one is refused, unless it is abandoned. Servers before this option count as
	// ScopeSlot.
	ScopeOpen
)

func (s ConcurrencyScope) wire() kagziv1.ConcurrencyScope {
	if s <= ScopeSlot { // the server rejects unknown values
		return kagziv1.ConcurrencyScope(s)
	}
	return kagziv1.ConcurrencyScope(s + 1)
}

func scopeOf(s kagziv1.ConcurrencyScope) ConcurrencyScope { return ConcurrencyScope(max(s, 1) - 1) }

// StartOptions configures a run. A field that is zero has the default in brackets.
type StartOptions struct {
	ExternalID      string          // the application's own id, unique among active runs of the namespace (none)
	ExternalIDReuse ExternalIDReuse // what to do if a run with that id exists (ReuseWhenEnded)
	Queue           string          // ("default")
	// Version of the code, such as "2.4.1", from A-Z a-z 0-9 . _ : / -. It is shown and returned by
	// Info, but does not select workers (none).
	Version string
	// RequestID identifies the call: repeating it always returns the same run (a new UUIDv7, so the
	// SDK can safely repeat its own calls).
	RequestID string

	// StepRetry applies to steps without their own policy (3 attempts).
	StepRetry *Retry
	// RunRetry applies to the run itself: when its function has failed, it is called again, and steps
	// that failed for good run again. Servers before 2026-11-28 do not know it (not retried).
	RunRetry *Retry
	// Retry stands in for each of StepRetry and RunRetry that is not set. As one policy for both, 3
	// attempts of it let the code of a step run 9 times (none).
	//
	// Deprecated: use StepRetry and RunRetry.
	Retry            *Retry
	StepTimeout      time.Duration // of one attempt of a step (600 s)
	HeartbeatTimeout time.Duration // lease between heartbeats, if longer than the server's (the server's)
	ExecutionTimeout time.Duration // of the whole run, from StartAt (none)
	Deadline         time.Time     // the earlier of this and ExecutionTimeout applies (none)

	StartAt  time.Time     // earliest start (now)
	Delay    time.Duration // start delay by the server's clock, instead of StartAt (none)
	Priority int           // -100 to 100, higher first within a queue; one run in eight goes by age (0)

	Tags map[string]string // searchable (none)
	// Requirements are labels or capabilities that a worker must have to claim the run; an empty
	// value matches any (none).
	Requirements   map[string]string
	ConcurrencyKey string // at most ConcurrencyLimit runs of this type and key at a time (none)
	// ConcurrencyLimit is the limit for ConcurrencyKey (1). If runs of one key have different
	// limits, each run applies its own.
	ConcurrencyLimit int
	ConcurrencyScope ConcurrencyScope // when the run counts for ConcurrencyKey (ScopeSlot)

	OnFailure      string // workflow type started when the run fails or times out (none)
	OnFailureQueue string // (the run's own queue)
}

// Start starts a run of a workflow type. When it returns, the run is on the server's disk.
// Concurrent calls on one client share a request; each still has its own answer and ends with its
// own ctx.
//
// Called with the ctx of a step, by a client with the worker's address and namespace, it records the
// run and step as the new run's parent. That says where the run comes from; the parent does not wait
// for it or end it. A step that starts runs is recorded as RUNNING first, which is one more write.
// Child starts runs that the workflow waits for.
func Start[In any](ctx context.Context, c *Client, workflowType string, in In, opts StartOptions) (*Run, error) {
	req, err := startRequest(c, workflowType, in, opts)
	if err != nil {
		return nil, err
	}
	if err := c.setParent(ctx, req); err != nil {
		return nil, err
	}
	own := mux.OwnMetadata(ctx)
	ctx, parent, span := c.traceStart(ctx, "start "+workflowType, attribute.String("kagzi.workflow_type", workflowType))
	var resp *kagziv1.StartWorkflowResponse
	err = c.intercept(ctx, "StartWorkflow", req, func(ctx context.Context) (err error) {
		resp, err = c.starts.Start(ctx, parent, own || mux.OwnMetadata(ctx, traceparent), req)
		return err
	})
	endCall(ctx, span, err)
	if err != nil {
		return c.startedBefore(ctx, req, opts.RequestID, callError(ctx, err))
	}
	return startedRun(c, req, resp), nil
}

// StartMany starts a run for each input, at most MaxBatch runs and 4 MiB, in one durable commit.
// opts applies to all; each, if not nil, may change the options of the i-th, such as its
// ExternalID. Runs are returned in the order of the inputs. If the server refuses a start, its run
// is nil and the other runs still start; the error joins a *StartError for each refusal.
func StartMany[In any](ctx context.Context, c *Client, workflowType string, ins []In, opts StartOptions,
	each ...func(i int, o *StartOptions)) ([]*Run, error) {
	switch {
	case len(ins) == 0:
		return nil, nil
	case len(ins) > MaxBatch:
		return nil, fmt.Errorf("kagzi: %d runs in one call are more than the limit of %d", len(ins), MaxBatch)
	}
	batch := &kagziv1.StartWorkflowsRequest{Requests: make([]*kagziv1.StartWorkflowRequest, len(ins))}
	requestIDs := make([]string, len(ins)) // given by the caller
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
	if err := c.setParent(ctx, batch.Requests...); err != nil {
		return nil, err
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

// startedRun returns a handle to the run in the answer to a start.
func startedRun(c *Client, req *kagziv1.StartWorkflowRequest, resp *kagziv1.StartWorkflowResponse) *Run {
	r := &Run{c: c, id: resp.GetRunId(), exists: resp.GetAlreadyExists(),
		otherInput: resp.GetOtherInput() && c.options.Codec == nil}
	if c.options.Codec != nil && !r.exists {
		r.start = startDigest(req.GetWorkflowType(), req.GetExternalId(), req.GetInput().GetData())
	}
	return r
}

// StartError is the refusal of one start of StartMany.
type StartError struct {
	Index int // index of the input
	Err   error
}

func (e *StartError) Error() string { return fmt.Sprintf("start %d: %v", e.Index, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// clone returns options that share nothing with o.
func (o StartOptions) clone() StartOptions {
	o.Tags, o.Requirements = maps.Clone(o.Tags), maps.Clone(o.Requirements)
	o.StepRetry, o.RunRetry, o.Retry = o.StepRetry.clone(), o.RunRetry.clone(), o.Retry.clone()
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

// newStart builds the request that starts a run. It rejects options that the server cannot check.
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
	}
	if err := checkPolicies(o.StepRetry, o.RunRetry, o.Retry); err != nil {
		return nil, err
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
		// the caller may change its maps before the shared request is sent
		Tags:             maps.Clone(o.Tags),
		Requirements:     maps.Clone(o.Requirements),
		ConcurrencyKey:   o.ConcurrencyKey,
		ConcurrencyLimit: convert.Narrow(o.ConcurrencyLimit),
		ConcurrencyScope: o.ConcurrencyScope.wire(),
		DeadlineAt:       convert.Timestamp(o.Deadline),
		StartAt:          convert.Timestamp(o.StartAt),
	}
	req.RetryPolicy, req.RunRetryPolicy = policies(o.StepRetry, o.RunRetry, o.Retry)
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

// checkText rejects text that cannot be sent. gRPC does not name the field, and in a session its
// error would affect other runs of the worker.
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

// requestID returns the caller's own id of a call, or a new one.
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

// The rest of this file handles calls that an application repeats with the same RequestID. The
// server compares bytes, but a codec that encrypts returns other bytes each time. So the server
// sees other content and refuses; only the client, which has the codec, can compare the inputs.

// madeBefore returns the id of the run or schedule that an earlier call with the same RequestID
// created, if the server refuses this one because its content differs. It returns "" if the refusal
// stands: a call without a codec, or one with an id of the SDK, has the same bytes. Conflicts about
// an external id or a name have another gRPC status, ALREADY_EXISTS.
func (c *Client) madeBefore(subject, requestID string, refusal error) string {
	e, refused := errors.AsType[*Error](refusal)
	if c.options.Codec == nil || requestID == "" || !refused || e.Code != CodeConflict ||
		status.Code(e) != codes.FailedPrecondition || e.Subject != subject {
		return ""
	}
	return e.SubjectID
}

// startedBefore returns the run that an earlier call of this start created, else the refusal. A run
// that another start created and this one found by external id cannot be told apart, and counts as
// its own.
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
		d.RetriedFromRunID != "" || // created by a retry, not by a start
		!sameContent(c.options.Codec, d.input, req.GetInput(), info) {
		return nil, refusal
	}
	// the digest of the stored input: signals are bound to it
	return &Run{c: c, id: id, start: startDigest(d.WorkflowType, d.ExternalID, d.input.GetData())}, nil
}

// retriedBefore returns the run that an earlier call of this retry created, else the refusal.
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
		// that call had no Input and may have kept results
		bytes.Equal(again.input.GetData(), first.input.GetData()) ||
		!sameContent(r.c.options.Codec, again.input, req.GetInput(), inputInfo(first.WorkflowType, first.ExternalID)) {
		return nil, refusal
	}
	return r.c.Run(id), nil
}

// scheduledBefore returns the schedule that an earlier call created, else the refusal.
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

// unread returns the error for a call whose refusal could not be checked: a temporary error rather
// than a conflict, which would be final.
func unread(err, refusal error) error {
	if _, refused := errors.AsType[*Error](err); !refused || convert.Transient(err) {
		return err
	}
	return refusal
}

// sameContent reports whether two payloads decode to the same bytes; false if one cannot be
// decoded.
func sameContent(c Codec, stored, wanted *kagziv1.Payload, info PayloadInfo) bool {
	a, err := unpack(c, stored, info)
	if err != nil {
		return false
	}
	b, err := unpack(c, wanted, info)
	return err == nil && bytes.Equal(a, b)
}
