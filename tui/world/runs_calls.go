package world

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// GetWorkflow is one run with its payloads.
func (w *World) GetWorkflow(ctx context.Context, request *kagziv1.GetWorkflowRequest, _ ...grpc.CallOption) (*kagziv1.GetWorkflowResponse, error) {
	return call(w, ctx, "WorkflowService/GetWorkflow", func() (*kagziv1.GetWorkflowResponse, error) {
		r, err := w.runOf(request)
		if err != nil {
			return nil, err
		}
		return &kagziv1.GetWorkflowResponse{Workflow: r.show()}, nil
	})
}

// GetWorkflowByExternalId is the newest run with that id, ended or not.
func (w *World) GetWorkflowByExternalId(ctx context.Context, request *kagziv1.GetWorkflowByExternalIdRequest, _ ...grpc.CallOption) (*kagziv1.GetWorkflowByExternalIdResponse, error) {
	return call(w, ctx, "WorkflowService/GetWorkflowByExternalId", func() (*kagziv1.GetWorkflowByExternalIdResponse, error) {
		namespace, err := namespaceOf(request.Namespace)
		if err := first(err, checkName("external_id", request.ExternalId)); err != nil {
			return nil, err
		}
		r := w.byExternalID[namespace+"\x00"+request.ExternalId]
		if r == nil {
			return nil, notFound("run", request.ExternalId, fmt.Sprintf("no run with external id %q in this namespace", request.ExternalId))
		}
		return &kagziv1.GetWorkflowByExternalIdResponse{Workflow: r.show()}, nil
	})
}

// ListWorkflows is the runs that a filter selects, newest first, without their payloads.
func (w *World) ListWorkflows(ctx context.Context, request *kagziv1.ListWorkflowsRequest, _ ...grpc.CallOption) (*kagziv1.ListWorkflowsResponse, error) {
	return call(w, ctx, "WorkflowService/ListWorkflows", func() (*kagziv1.ListWorkflowsResponse, error) {
		f, err := filterOf(request)
		if err != nil {
			return nil, err
		}
		runs, page, err := pageOf(request, request.Page, w.runListing(f))
		return &kagziv1.ListWorkflowsResponse{Workflows: runs, Page: page}, err
	})
}

// ListSteps is all attempts of a run's steps, in the order in which they began.
func (w *World) ListSteps(ctx context.Context, request *kagziv1.ListStepsRequest, _ ...grpc.CallOption) (*kagziv1.ListStepsResponse, error) {
	return call(w, ctx, "AdminService/ListSteps", func() (*kagziv1.ListStepsResponse, error) {
		r, err := w.runOf(request)
		if err := first(err, checkOptionalName("step_name", request.GetStepName())); err != nil {
			return nil, err
		}
		list := inOrder(r.steps)
		steps, page, err := pageOf(request, request.Page, listing[*kagziv1.Step]{
			n: len(list), key: func(i int) string { return fmt.Sprintf("%010d/%06d", list[i].Sequence, list[i].AttemptNumber) },
			keep: func(i int) bool { return request.GetStepName() == "" || list[i].Name == request.GetStepName() },
			show: func(i int) *kagziv1.Step { return proto.CloneOf(list[i].Step) },
		})
		return &kagziv1.ListStepsResponse{Steps: steps, Page: page}, err
	})
}

// inOrder is the steps by sequence and attempt.
func inOrder(steps []*step) []*step {
	list := slices.Clone(steps)
	slices.SortFunc(list, func(a, b *step) int {
		if a.Sequence != b.Sequence {
			return int(a.Sequence - b.Sequence)
		}
		return int(a.AttemptNumber - b.AttemptNumber)
	})
	return list
}

// ListWorkflowTypes is the types that have runs, by name.
func (w *World) ListWorkflowTypes(ctx context.Context, request *kagziv1.ListWorkflowTypesRequest, _ ...grpc.CallOption) (*kagziv1.ListWorkflowTypesResponse, error) {
	return call(w, ctx, "AdminService/ListWorkflowTypes", func() (*kagziv1.ListWorkflowTypesResponse, error) {
		namespace, err := namespaceOf(request.Namespace)
		if err != nil {
			return nil, err
		}
		types := map[string]*kagziv1.WorkflowTypeInfo{}
		for i := range w.runCount() {
			f := w.runFacts(i, false)
			if f.namespace != namespace {
				continue
			}
			t := types[f.kind]
			if t == nil {
				t = &kagziv1.WorkflowTypeInfo{WorkflowType: f.kind}
				types[f.kind] = t
			}
			t.TotalRuns++
			if !ended(f.status) {
				t.ActiveRuns++
			}
			if !slices.Contains(t.TaskQueues, f.queue) {
				t.TaskQueues = append(t.TaskQueues, f.queue)
				slices.Sort(t.TaskQueues)
			}
		}
		names := sortedKeys(types)
		list, page, err := pageOf(request, request.Page, listing[*kagziv1.WorkflowTypeInfo]{
			n: len(names), key: func(i int) string { return names[i] }, show: func(i int) *kagziv1.WorkflowTypeInfo { return types[names[i]] },
		})
		return &kagziv1.ListWorkflowTypesResponse{WorkflowTypes: list, Page: page}, err
	})
}

// WaitWorkflow waits, in our time, until the run has ended or the wait is over, and returns it either way.
func (w *World) WaitWorkflow(ctx context.Context, request *kagziv1.WaitWorkflowRequest, _ ...grpc.CallOption) (*kagziv1.WaitWorkflowResponse, error) {
	wait := maxWait
	if request.Wait != nil {
		wait = request.Wait.AsDuration()
	}
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	for over := false; ; {
		var bell chan struct{}
		response, err := call(w, ctx, "WorkflowService/WaitWorkflow", func() (*kagziv1.WaitWorkflowResponse, error) {
			bell = w.news.bell
			r, err := w.runOf(request)
			switch {
			case err != nil:
				return nil, err
			case wait < 0 || wait > maxWait:
				return nil, invalid("wait", "must be between 0 and %s, got %s", maxWait, wait)
			}
			return &kagziv1.WaitWorkflowResponse{Workflow: r.show(), Finished: ended(r.Status)}, nil
		})
		if err != nil || response.Finished || over {
			return response, err
		}
		select {
		case <-bell:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			return nil, toStatus(ctx.Err())
		}
	}
}

// ExportWorkflow is not to be had here.
func (w *World) ExportWorkflow(ctx context.Context, _ *kagziv1.ExportWorkflowRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.Capsule], error) {
	return call(w, ctx, "WorkflowService/ExportWorkflow", func() (grpc.ServerStreamingClient[kagziv1.Capsule], error) {
		return nil, errNoCapsules
	})
}

// ImportWorkflow is not to be had here.
func (w *World) ImportWorkflow(ctx context.Context, _ ...grpc.CallOption) (grpc.ClientStreamingClient[kagziv1.Capsule, kagziv1.ImportWorkflowResponse], error) {
	return call(w, ctx, "WorkflowService/ImportWorkflow", func() (grpc.ClientStreamingClient[kagziv1.Capsule, kagziv1.ImportWorkflowResponse], error) {
		return nil, errNoCapsules
	})
}

var errNoCapsules = unsupported("the demo world has no capsules")
