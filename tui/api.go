// Package tui owns what people see of Kagzi in a terminal: the command line and the screens. It speaks gRPC only
// and holds no rule of the engine. This file is the door: the calls that the terminal needs, and how to connect.
package tui

import (
	"context"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// API is every call that the terminal makes. The generated clients fill it; tests fill it by hand.
type API interface {
	StartWorkflow(context.Context, *kagziv1.StartWorkflowRequest, ...grpc.CallOption) (*kagziv1.StartWorkflowResponse, error)
	StartWorkflows(context.Context, *kagziv1.StartWorkflowsRequest, ...grpc.CallOption) (*kagziv1.StartWorkflowsResponse, error)
	GetWorkflow(context.Context, *kagziv1.GetWorkflowRequest, ...grpc.CallOption) (*kagziv1.GetWorkflowResponse, error)
	GetWorkflowByExternalId(context.Context, *kagziv1.GetWorkflowByExternalIdRequest, ...grpc.CallOption) (*kagziv1.GetWorkflowByExternalIdResponse, error)
	ListWorkflows(context.Context, *kagziv1.ListWorkflowsRequest, ...grpc.CallOption) (*kagziv1.ListWorkflowsResponse, error)
	WaitWorkflow(context.Context, *kagziv1.WaitWorkflowRequest, ...grpc.CallOption) (*kagziv1.WaitWorkflowResponse, error)
	WatchWorkflow(context.Context, *kagziv1.WatchWorkflowRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent], error)
	CancelWorkflow(context.Context, *kagziv1.CancelWorkflowRequest, ...grpc.CallOption) (*kagziv1.CancelWorkflowResponse, error)
	TerminateWorkflow(context.Context, *kagziv1.TerminateWorkflowRequest, ...grpc.CallOption) (*kagziv1.TerminateWorkflowResponse, error)

	ListSteps(context.Context, *kagziv1.ListStepsRequest, ...grpc.CallOption) (*kagziv1.ListStepsResponse, error)
	ListWorkers(context.Context, *kagziv1.ListWorkersRequest, ...grpc.CallOption) (*kagziv1.ListWorkersResponse, error)
	GetWorker(context.Context, *kagziv1.GetWorkerRequest, ...grpc.CallOption) (*kagziv1.GetWorkerResponse, error)
	DrainWorker(context.Context, *kagziv1.DrainWorkerRequest, ...grpc.CallOption) (*kagziv1.DrainWorkerResponse, error)
	ForceOfflineWorker(context.Context, *kagziv1.ForceOfflineWorkerRequest, ...grpc.CallOption) (*kagziv1.ForceOfflineWorkerResponse, error)
	GetQueueDepth(context.Context, *kagziv1.GetQueueDepthRequest, ...grpc.CallOption) (*kagziv1.GetQueueDepthResponse, error)
	ListWorkflowTypes(context.Context, *kagziv1.ListWorkflowTypesRequest, ...grpc.CallOption) (*kagziv1.ListWorkflowTypesResponse, error)
	GetServerInfo(context.Context, *kagziv1.GetServerInfoRequest, ...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error)

	ListNamespaces(context.Context, *kagziv1.ListNamespacesRequest, ...grpc.CallOption) (*kagziv1.ListNamespacesResponse, error)
}

// Conn is a connection to a server, usable by any number of goroutines. Close it once.
type Conn struct {
	API
	conn *grpc.ClientConn
}

// Close ends the connection; calls in flight fail with CANCELLED.
func (c *Conn) Close() error { return c.conn.Close() }

// clients joins the generated clients into one API.
type clients struct {
	kagziv1.WorkflowServiceClient
	kagziv1.AdminServiceClient
	kagziv1.NamespaceServiceClient
}
