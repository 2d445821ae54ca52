package tui

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// OldServerError refuses a call by a query of runs, which the server would ignore: it would show or
// change every run.
type OldServerError struct{ Version string } // of the server; may be empty

func (e *OldServerError) Error() string {
	return "the server (version " + cmp.Or(e.Version, "unknown") + ") does not know filters with or, not, patterns and " +
		"the fields added since: upgrade it, or use only status, type, queue, created, tag.KEY, id, external_id, " +
		"search, schedule, parent and worker, joined by and"
}

// knowsQueries returns an OldServerError if the server would ignore the query of a request.
func (c clients) knowsQueries(ctx context.Context, r *kagziv1.ListWorkflowsRequest) error {
	if r.GetQuery() == "" {
		return nil
	}
	info, err := c.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
	if err == nil && !slices.Contains(info.GetSupportedFeatures(), query.Feature) {
		err = &OldServerError{Version: info.GetVersion()}
	}
	return err
}

// ListWorkflows asks the server first whether it knows queries, if the request has one.
func (c clients) ListWorkflows(ctx context.Context, r *kagziv1.ListWorkflowsRequest,
	options ...grpc.CallOption) (*kagziv1.ListWorkflowsResponse, error) {
	if err := c.knowsQueries(ctx, r); err != nil {
		return nil, err
	}
	return c.WorkflowServiceClient.ListWorkflows(ctx, r, options...)
}

// BulkWorkflows asks the server first whether it knows queries, if the filter has one. It sends such
// a filter as the selection, because the call may reach another server than the question: one that
// knows no queries refuses a request without a filter.
func (c clients) BulkWorkflows(ctx context.Context, r *kagziv1.BulkWorkflowsRequest,
	options ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.BulkWorkflowsProgress], error) {
	if r.GetFilter().GetQuery() != "" {
		if err := c.knowsQueries(ctx, r.GetFilter()); err != nil {
			return nil, err
		}
		r = proto.CloneOf(r)
		r.Filter, r.Selection = nil, r.Filter
	}
	return c.WorkflowServiceClient.BulkWorkflows(ctx, r, options...)
}
