package kagzi

import (
	"bytes"
	"context"
	"errors"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Calls that an application repeats by a RequestID. A server knows a repetition by its bytes, and a codec that encrypts makes others of the same
// input each time, so that the server takes it for a call with other content. Only who has the codec can tell: this file does.

// madeBefore is the id of the run or schedule that an earlier call with the same RequestID has made, when the server refuses this one because its
// content is not the same. It is "" when the refusal stands: without a codec the same content has the same bytes, and an id of the SDK's own
// is repeated with the very bytes. Another holder of the external id or of the name is ALREADY_EXISTS to gRPC, and this is not.
func (c *Client) madeBefore(subject, requestID string, refusal error) string {
	e, refused := errors.AsType[*Error](refusal)
	if c.options.Codec == nil || requestID == "" || !refused || e.Code != CodeConflict || status.Code(e) != codes.FailedPrecondition || e.Subject != subject {
		return ""
	}
	return e.SubjectID
}

// startedBefore is the run that this very start has made before; else the refusal. That another start has made the run, whose external id
// this one found, nobody can see any more: it counts as made by this one.
func (c *Client) startedBefore(ctx context.Context, req *kagziv1.StartWorkflowRequest, requestID string, refusal error) (*Run, error) {
	id := c.madeBefore("run", requestID, refusal)
	if id == "" {
		return nil, refusal
	}
	d, err := c.Get(ctx, id)
	if err != nil {
		return nil, unread(err, refusal)
	}
	info := inputInfo(req.GetWorkflowType(), req.GetExternalId())
	if d.WorkflowType != req.GetWorkflowType() || d.Queue != req.GetTaskQueue() || d.ExternalID != req.GetExternalId() ||
		d.RetriedFromRunID != "" || // no start has made that
		!sameContent(c.options.Codec, d.input, req.GetInput(), info) {
		return nil, refusal
	}
	return &Run{c: c, id: id, start: startDigest(d.WorkflowType, d.ExternalID, d.input.GetData())}, nil // of what is stored: signals are bound to it
}

// retriedBefore is the run that this very retry with an Input has made before; else the refusal.
func (r *Run) retriedBefore(ctx context.Context, req *kagziv1.RetryWorkflowRequest, requestID string, refusal error) (*Run, error) {
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
		bytes.Equal(again.input.GetData(), first.input.GetData()) || // it was asked for without an Input, and may have kept results
		!sameContent(r.c.options.Codec, again.input, req.GetInput(), inputInfo(first.WorkflowType, first.ExternalID)) {
		return nil, refusal
	}
	return r.c.Run(id), nil
}

// scheduledBefore is the schedule that this very call has made before; else the refusal.
func (c *Client) scheduledBefore(ctx context.Context, req *kagziv1.CreateWorkflowScheduleRequest, requestID string, refusal error) (*Schedule, error) {
	id := c.madeBefore("schedule", requestID, refusal)
	if id == "" {
		return nil, refusal
	}
	d, err := c.Schedule(id).Describe(ctx)
	if err != nil {
		return nil, unread(err, refusal)
	}
	if d.Name != req.GetName() || d.WorkflowType != req.GetWorkflowType() || d.Queue != req.GetTaskQueue() || d.Cron != req.GetCronExpr() ||
		d.TimeZone != req.GetTimeZone() || !sameContent(c.options.Codec, d.input, req.GetInput(), inputInfo(d.WorkflowType, "")) {
		return nil, refusal
	}
	return c.Schedule(id), nil
}

// unread is the error of a call whose refusal could not be looked into. A caller who may learn more by repeating it is not told of a conflict,
// which would be final.
func unread(err, refusal error) error {
	if _, refused := errors.AsType[*Error](err); !refused || transient(err) {
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
