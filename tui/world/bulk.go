package world

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// bulkReport is after how many runs the progress of a bulk change is told.
const bulkReport = 100

// BulkWorkflows changes every run that a filter selects, at once, and tells how it went step by step.
func (w *World) BulkWorkflows(ctx context.Context, request *kagziv1.BulkWorkflowsRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.BulkWorkflowsProgress], error) {
	return call(w, ctx, "WorkflowService/BulkWorkflows", func() (grpc.ServerStreamingClient[kagziv1.BulkWorkflowsProgress], error) {
		if request.Filter == nil {
			return nil, invalid("filter", `must be set; an empty one selects every run of the namespace "default"`)
		}
		if request.Limit < 0 {
			return nil, invalid("limit", "must not be negative, got %d", request.Limit)
		}
		f, err := filterOf(request.Filter)
		if err := first(checkReason(request.Reason), err); err != nil {
			return nil, err
		}
		change, err := w.bulkChange(request)
		if err != nil {
			return nil, err
		}
		reports := w.changeAll(w.selected(f, request.Limit), change)
		return open(w, ctx, func() (*kagziv1.BulkWorkflowsProgress, error) {
			if len(reports) == 0 {
				return nil, io.EOF
			}
			next := reports[0]
			reports = reports[1:]
			return next, nil
		}), nil
	})
}

// selected is the runs of a filter, newest first, at most limit of them when that is not 0.
func (w *World) selected(f *runFilter, limit int64) []*run {
	var list []*run
	for i := range w.runCount() {
		if limit > 0 && int64(len(list)) == limit {
			break
		}
		if f.matches(w.runFacts(i, f.id != "")) {
			list = append(list, w.runAt(i))
		}
	}
	return list
}

// bulkChange is what an action does to one run.
func (w *World) bulkChange(request *kagziv1.BulkWorkflowsRequest) (func(*run) (changed bool, err error), error) {
	switch request.Action {
	case kagziv1.BulkAction_BULK_ACTION_CANCEL:
		return func(r *run) (bool, error) {
			open := !ended(r.Status)
			return open, w.stop(r, cancelled, "CancelWorkflow", request.Reason)
		}, nil
	case kagziv1.BulkAction_BULK_ACTION_TERMINATE:
		return func(r *run) (bool, error) {
			open := !ended(r.Status)
			return open, w.stop(r, terminated, "TerminateWorkflow", request.Reason)
		}, nil
	case kagziv1.BulkAction_BULK_ACTION_RETRY:
		return func(r *run) (bool, error) {
			began := len(w.runs)
			_, err := w.retry(r, &kagziv1.RetryWorkflowRequest{RequestId: bulkRetryID(r), UnlessRetried: true, Reason: request.Reason})
			return len(w.runs) > began, err
		}, nil
	}
	return nil, invalid("action", "must be CANCEL, TERMINATE or RETRY, got %d", request.Action)
}

// changeAll changes runs one after another and returns what there is to tell of it. One that is refused does not stop the others.
func (w *World) changeAll(runs []*run, change func(*run) (bool, error)) []*kagziv1.BulkWorkflowsProgress {
	var reports []*kagziv1.BulkWorkflowsProgress
	p := &kagziv1.BulkWorkflowsProgress{Matched: int64(len(runs))}
	for i, r := range runs {
		if i%bulkReport == 0 {
			reports = append(reports, proto.CloneOf(p))
		}
		changed, err := change(r)
		if refused, ok := errors.AsType[*refusal](err); ok {
			p.Failed++
			p.LastError, p.LastRunId = refused.detail(), r.RunId
		} else {
			p.Done++
			if !changed {
				p.Unchanged++
			}
		}
	}
	return append(reports, p)
}
