// Package tui is Kagzi's terminal client: the command line and the screens. It talks to the server
// only through gRPC and contains no engine logic. This file declares the calls that the terminal
// needs and the connection.
package tui

import (
	"context"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// API lists every call that the terminal makes. The generated clients implement it; tests use
// fakes.
type API interface {
	StartWorkflow(context.Context, *kagziv1.StartWorkflowRequest,
		...grpc.CallOption) (*kagziv1.StartWorkflowResponse, error)
	StartWorkflows(context.Context, *kagziv1.StartWorkflowsRequest,
		...grpc.CallOption) (*kagziv1.StartWorkflowsResponse, error)
	GetWorkflow(context.Context, *kagziv1.GetWorkflowRequest, ...grpc.CallOption) (*kagziv1.GetWorkflowResponse, error)
	GetWorkflowByExternalId(context.Context, *kagziv1.GetWorkflowByExternalIdRequest,
		...grpc.CallOption) (*kagziv1.GetWorkflowByExternalIdResponse, error)
	ListWorkflows(context.Context, *kagziv1.ListWorkflowsRequest,
		...grpc.CallOption) (*kagziv1.ListWorkflowsResponse, error)
	WaitWorkflow(context.Context, *kagziv1.WaitWorkflowRequest,
		...grpc.CallOption) (*kagziv1.WaitWorkflowResponse, error)
	WatchWorkflow(context.Context, *kagziv1.WatchWorkflowRequest,
		...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent], error)
	CancelWorkflow(context.Context, *kagziv1.CancelWorkflowRequest,
		...grpc.CallOption) (*kagziv1.CancelWorkflowResponse, error)
	TerminateWorkflow(context.Context, *kagziv1.TerminateWorkflowRequest,
		...grpc.CallOption) (*kagziv1.TerminateWorkflowResponse, error)
	BulkWorkflows(context.Context, *kagziv1.BulkWorkflowsRequest,
		...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.BulkWorkflowsProgress], error)
	PauseWorkflow(context.Context, *kagziv1.PauseWorkflowRequest,
		...grpc.CallOption) (*kagziv1.PauseWorkflowResponse, error)
	ResumeWorkflow(context.Context, *kagziv1.ResumeWorkflowRequest,
		...grpc.CallOption) (*kagziv1.ResumeWorkflowResponse, error)
	RetryWorkflow(context.Context, *kagziv1.RetryWorkflowRequest,
		...grpc.CallOption) (*kagziv1.RetryWorkflowResponse, error)
	OverrideStep(context.Context, *kagziv1.OverrideStepRequest,
		...grpc.CallOption) (*kagziv1.OverrideStepResponse, error)
	ExplainWorkflow(context.Context, *kagziv1.ExplainWorkflowRequest,
		...grpc.CallOption) (*kagziv1.ExplainWorkflowResponse, error)
	ExportWorkflow(context.Context, *kagziv1.ExportWorkflowRequest,
		...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.Capsule], error)
	ImportWorkflow(context.Context, ...grpc.CallOption) (grpc.ClientStreamingClient[kagziv1.Capsule,
		kagziv1.ImportWorkflowResponse], error)
	SignalWorkflow(context.Context, *kagziv1.SignalWorkflowRequest,
		...grpc.CallOption) (*kagziv1.SignalWorkflowResponse, error)
	ListSignals(context.Context, *kagziv1.ListSignalsRequest, ...grpc.CallOption) (*kagziv1.ListSignalsResponse, error)
	PinWorkflow(context.Context, *kagziv1.PinWorkflowRequest, ...grpc.CallOption) (*kagziv1.PinWorkflowResponse, error)

	CreateWorkflowSchedule(context.Context, *kagziv1.CreateWorkflowScheduleRequest,
		...grpc.CallOption) (*kagziv1.CreateWorkflowScheduleResponse, error)
	GetWorkflowSchedule(context.Context, *kagziv1.GetWorkflowScheduleRequest,
		...grpc.CallOption) (*kagziv1.GetWorkflowScheduleResponse, error)
	ListWorkflowSchedules(context.Context, *kagziv1.ListWorkflowSchedulesRequest,
		...grpc.CallOption) (*kagziv1.ListWorkflowSchedulesResponse, error)
	UpdateWorkflowSchedule(context.Context, *kagziv1.UpdateWorkflowScheduleRequest,
		...grpc.CallOption) (*kagziv1.UpdateWorkflowScheduleResponse, error)
	DeleteWorkflowSchedule(context.Context, *kagziv1.DeleteWorkflowScheduleRequest,
		...grpc.CallOption) (*kagziv1.DeleteWorkflowScheduleResponse, error)
	TriggerWorkflowSchedule(context.Context, *kagziv1.TriggerWorkflowScheduleRequest,
		...grpc.CallOption) (*kagziv1.TriggerWorkflowScheduleResponse, error)
	BackfillWorkflowSchedule(context.Context, *kagziv1.BackfillWorkflowScheduleRequest,
		...grpc.CallOption) (*kagziv1.BackfillWorkflowScheduleResponse, error)
	PauseWorkflowSchedule(context.Context, *kagziv1.PauseWorkflowScheduleRequest,
		...grpc.CallOption) (*kagziv1.PauseWorkflowScheduleResponse, error)
	ResumeWorkflowSchedule(context.Context, *kagziv1.ResumeWorkflowScheduleRequest,
		...grpc.CallOption) (*kagziv1.ResumeWorkflowScheduleResponse, error)
	ListScheduleRuns(context.Context, *kagziv1.ListScheduleRunsRequest,
		...grpc.CallOption) (*kagziv1.ListScheduleRunsResponse, error)
	PreviewSchedule(context.Context, *kagziv1.PreviewScheduleRequest,
		...grpc.CallOption) (*kagziv1.PreviewScheduleResponse, error)

	ListSteps(context.Context, *kagziv1.ListStepsRequest, ...grpc.CallOption) (*kagziv1.ListStepsResponse, error)
	GetStep(context.Context, *kagziv1.GetStepRequest, ...grpc.CallOption) (*kagziv1.GetStepResponse, error)
	ListWorkers(context.Context, *kagziv1.ListWorkersRequest, ...grpc.CallOption) (*kagziv1.ListWorkersResponse, error)
	MatchWorkers(context.Context, *kagziv1.MatchWorkersRequest,
		...grpc.CallOption) (*kagziv1.MatchWorkersResponse, error)
	GetWorker(context.Context, *kagziv1.GetWorkerRequest, ...grpc.CallOption) (*kagziv1.GetWorkerResponse, error)
	DrainWorker(context.Context, *kagziv1.DrainWorkerRequest, ...grpc.CallOption) (*kagziv1.DrainWorkerResponse, error)
	ForceOfflineWorker(context.Context, *kagziv1.ForceOfflineWorkerRequest,
		...grpc.CallOption) (*kagziv1.ForceOfflineWorkerResponse, error)
	GetQueueDepth(context.Context, *kagziv1.GetQueueDepthRequest,
		...grpc.CallOption) (*kagziv1.GetQueueDepthResponse, error)
	ListWorkflowTypes(context.Context, *kagziv1.ListWorkflowTypesRequest,
		...grpc.CallOption) (*kagziv1.ListWorkflowTypesResponse, error)
	GetServerInfo(context.Context, *kagziv1.GetServerInfoRequest,
		...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error)
	HealthCheck(context.Context, *kagziv1.HealthCheckRequest, ...grpc.CallOption) (*kagziv1.HealthCheckResponse, error)
	GetStats(context.Context, *kagziv1.GetStatsRequest, ...grpc.CallOption) (*kagziv1.GetStatsResponse, error)
	GetActivity(context.Context, *kagziv1.GetActivityRequest, ...grpc.CallOption) (*kagziv1.GetActivityResponse, error)
	Watch(context.Context, *kagziv1.WatchRequest,
		...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchEvent], error)
	WatchEvents(context.Context, *kagziv1.WatchEventsRequest,
		...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.ServerEvent], error)
	ListAuditEvents(context.Context, *kagziv1.ListAuditEventsRequest,
		...grpc.CallOption) (*kagziv1.ListAuditEventsResponse, error)
	CreateKey(context.Context, *kagziv1.CreateKeyRequest, ...grpc.CallOption) (*kagziv1.CreateKeyResponse, error)
	ListKeys(context.Context, *kagziv1.ListKeysRequest, ...grpc.CallOption) (*kagziv1.ListKeysResponse, error)
	RevokeKey(context.Context, *kagziv1.RevokeKeyRequest, ...grpc.CallOption) (*kagziv1.RevokeKeyResponse, error)
	CreateHook(context.Context, *kagziv1.CreateHookRequest, ...grpc.CallOption) (*kagziv1.CreateHookResponse, error)
	GetHook(context.Context, *kagziv1.GetHookRequest, ...grpc.CallOption) (*kagziv1.GetHookResponse, error)
	ListHooks(context.Context, *kagziv1.ListHooksRequest, ...grpc.CallOption) (*kagziv1.ListHooksResponse, error)
	RotateHook(context.Context, *kagziv1.RotateHookRequest, ...grpc.CallOption) (*kagziv1.RotateHookResponse, error)
	DeleteHook(context.Context, *kagziv1.DeleteHookRequest, ...grpc.CallOption) (*kagziv1.DeleteHookResponse, error)
	WhoAmI(context.Context, *kagziv1.WhoAmIRequest, ...grpc.CallOption) (*kagziv1.WhoAmIResponse, error)
	Backup(context.Context, *kagziv1.BackupRequest,
		...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.BackupChunk], error)

	CreateNamespace(context.Context, *kagziv1.CreateNamespaceRequest,
		...grpc.CallOption) (*kagziv1.CreateNamespaceResponse, error)
	GetNamespace(context.Context, *kagziv1.GetNamespaceRequest,
		...grpc.CallOption) (*kagziv1.GetNamespaceResponse, error)
	ListNamespaces(context.Context, *kagziv1.ListNamespacesRequest,
		...grpc.CallOption) (*kagziv1.ListNamespacesResponse, error)
	UpdateNamespace(context.Context, *kagziv1.UpdateNamespaceRequest,
		...grpc.CallOption) (*kagziv1.UpdateNamespaceResponse, error)
	EnableNamespace(context.Context, *kagziv1.EnableNamespaceRequest,
		...grpc.CallOption) (*kagziv1.EnableNamespaceResponse, error)
	DisableNamespace(context.Context, *kagziv1.DisableNamespaceRequest,
		...grpc.CallOption) (*kagziv1.DisableNamespaceResponse, error)
	DeleteNamespace(context.Context, *kagziv1.DeleteNamespaceRequest,
		...grpc.CallOption) (*kagziv1.DeleteNamespaceResponse, error)
}

// Conn is a connection to a server. Any number of goroutines may use it. Close it once.
type Conn struct {
	API
	conn *grpc.ClientConn
}

// Close ends the connection; open calls fail with CANCELLED.
func (c *Conn) Close() error { return c.conn.Close() }

// clients combines the generated clients into one API.
type clients struct {
	kagziv1.WorkflowServiceClient
	kagziv1.WorkflowScheduleServiceClient
	kagziv1.AdminServiceClient
	kagziv1.NamespaceServiceClient
}
