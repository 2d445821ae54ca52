package tui

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// runsServer is a server of any version: it acts on every run of a bulk filter, as one that does not know
// queries would, and refuses a missing filter.
type runsServer struct {
	kagziv1.UnimplementedWorkflowServiceServer
	kagziv1.UnimplementedAdminServiceServer
	features []string

	mu    sync.Mutex
	calls []string
}

func (s *runsServer) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *runsServer) GetServerInfo(context.Context, *kagziv1.GetServerInfoRequest) (*kagziv1.GetServerInfoResponse,
	error) {
	return &kagziv1.GetServerInfoResponse{Version: "0.3.0", SupportedFeatures: s.features}, nil
}

func (s *runsServer) ListWorkflows(context.Context, *kagziv1.ListWorkflowsRequest) (*kagziv1.ListWorkflowsResponse,
	error) {
	s.note("list")
	return &kagziv1.ListWorkflowsResponse{}, nil
}

func (s *runsServer) BulkWorkflows(r *kagziv1.BulkWorkflowsRequest,
	_ kagziv1.WorkflowService_BulkWorkflowsServer) error {
	if r.Filter == nil {
		return status.Error(codes.InvalidArgument, "filter: must be set")
	}
	s.note("bulk")
	return nil
}

func (s *runsServer) reach(t *testing.T) *Conn {
	server := grpc.NewServer()
	kagziv1.RegisterWorkflowServiceServer(server, s)
	kagziv1.RegisterAdminServiceServer(server, s)
	return dial(t, DialOptions{Address: serveOn(t, server)})
}

// bulk starts a bulk change and returns how it ends.
func bulk(t *testing.T, conn *Conn, filter *kagziv1.ListWorkflowsRequest) error {
	stream, err := conn.BulkWorkflows(t.Context(), &kagziv1.BulkWorkflowsRequest{Filter: filter})
	if err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func TestAServerThatWouldIgnoreAQueryIsNotAsked(t *testing.T) {
	old := &runsServer{features: []string{"bulk"}}
	conn := old.reach(t)
	selected := &kagziv1.ListWorkflowsRequest{Query: "not type = a"}
	_, listed := conn.ListWorkflows(t.Context(), selected)
	for call, err := range map[string]error{"list": listed, "bulk": bulk(t, conn, selected)} {
		var refused *OldServerError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "version 0.3.0) does not know filters with or") {
			t.Errorf("%s: %v", call, err)
		}
	}
	if len(old.calls) > 0 {
		t.Errorf("it was asked to %v", old.calls)
	}
	if _, err := conn.ListWorkflows(t.Context(), &kagziv1.ListWorkflowsRequest{}); err != nil ||
		bulk(t, conn, &kagziv1.ListWorkflowsRequest{WorkerId: new("w")}) != nil || len(old.calls) != 2 {
		t.Errorf("without a query: %v, asked to %v", err, old.calls)
	}
}

// A call may reach another server than the question did.
func TestABulkChangeByAQueryIsRefusedByAServerThatIgnoresQueries(t *testing.T) {
	s := &runsServer{features: []string{query.Feature}}
	conn := s.reach(t)
	selected := &kagziv1.ListWorkflowsRequest{Query: "not type = a"}
	if err := bulk(t, conn, selected); status.Code(err) != codes.InvalidArgument || len(s.calls) > 0 {
		t.Errorf("the change ends with %v after %v", err, s.calls)
	}
	if _, err := conn.ListWorkflows(t.Context(), selected); err != nil {
		t.Error(err)
	}
}
