package e2e

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

func TestAnUnknownNamespaceIsNotFoundWithTheNearestName(t *testing.T) {
	explicit := patient
	explicit.ExplicitNamespaces = true
	eachServer(t, explicit, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		fine(s.namespaces().CreateNamespace(ctx, &kagziv1.CreateNamespaceRequest{Namespace: "orders"}))(t)
		calls := map[string]func(namespace string) error{
			"StartWorkflow": func(n string) error {
				_, err := s.workflows().StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{Namespace: n, WorkflowType: "t"})
				return err
			},
			"StartWorkflows": func(n string) error {
				_, err := s.workflows().StartWorkflows(ctx, &kagziv1.StartWorkflowsRequest{
					Requests: []*kagziv1.StartWorkflowRequest{{WorkflowType: "t"}, {Namespace: n, WorkflowType: "t"}}})
				return err
			},
			"ListWorkflows": func(n string) error {
				_, err := s.workflows().ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{Namespace: n})
				return err
			},
			"BulkWorkflows": func(n string) error {
				stream, err := s.workflows().BulkWorkflows(ctx, &kagziv1.BulkWorkflowsRequest{
					Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: &kagziv1.ListWorkflowsRequest{Namespace: n}})
				if err == nil {
					_, err = stream.Recv()
				}
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			},
			"CreateWorkflowSchedule": func(n string) error {
				_, err := s.schedules().CreateWorkflowSchedule(ctx, &kagziv1.CreateWorkflowScheduleRequest{
					Namespace: n, WorkflowType: "t", CronExpr: "@daily"})
				return err
			},
			"Register": func(n string) error {
				_, err := s.workers().Register(ctx, &kagziv1.RegisterRequest{Namespace: n,
					TaskQueues: []string{"q"}, WorkflowTypes: []string{"t"}})
				return err
			},
			"UpdateNamespace": func(n string) error {
				_, err := s.namespaces().UpdateNamespace(ctx, &kagziv1.UpdateNamespaceRequest{Namespace: n})
				return err
			},
		}
		for name, call := range calls {
			err := call("oders")
			if status.Code(err) != codes.NotFound ||
				!strings.Contains(err.Error(), "no namespace oders (did you mean orders?): create it with `kagzi namespace create oders`") {
				t.Errorf("%s in an unknown namespace: %v", name, err)
			}
			for _, there := range []string{"orders", "default", ""} {
				if err := call(there); err != nil && (there != "" || name != "UpdateNamespace") {
					t.Errorf("%s in %q: %v", name, there, err)
				}
			}
		}
		if err := calls["StartWorkflow"]("something-else"); status.Code(err) != codes.NotFound ||
			strings.Contains(err.Error(), "did you mean") {
			t.Errorf("a name like no other: %v", err)
		}
		if err := calls["StartWorkflow"]("Bad Name"); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a malformed name: %v", err)
		}
		list := fine(s.namespaces().ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{}))(t).Namespaces
		if len(list) != 2 {
			t.Errorf("namespaces %v, want default and orders", list)
		}
	})
}

func TestAWorkerOfAnUnknownNamespaceEndsWithTheError(t *testing.T) {
	explicit := patient
	explicit.ExplicitNamespaces = true
	eachServer(t, explicit, func(t *testing.T, s *Server) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		w := kagzi.NewWorker(kagzi.WorkerOptions{
			Profile: kagzi.NoProfile, Address: s.Address, Namespace: "oders"})
		kagzi.Handle(w, "t", func(kagzi.Context, int) (int, error) { return 0, nil })
		if err := w.Run(ctx); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "no namespace oders") {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestUnleasedWorkersMakeNamespacesByTheirFirstUse(t *testing.T) {
	explicit := patient
	explicit.ExplicitNamespaces, explicit.Server.AllowUnleased = true, true
	eachServer(t, explicit, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		fine(s.workflows().StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{Namespace: "oders", WorkflowType: "t"}))(t)
		fine(s.namespaces().GetNamespace(ctx, &kagziv1.GetNamespaceRequest{Namespace: "oders"}))(t)
	})
}
