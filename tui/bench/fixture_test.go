package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/profile"
)

// oneAnswer is a server on which every run has already ended in the same way.
type oneAnswer struct {
	kagziv1.UnimplementedWorkflowServiceServer
	run *kagziv1.Workflow
}

func (s *oneAnswer) StartWorkflow(context.Context,
	*kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowResponse, error) {
	return &kagziv1.StartWorkflowResponse{RunId: s.run.GetRunId()}, nil
}

func (s *oneAnswer) StartWorkflows(_ context.Context,
	r *kagziv1.StartWorkflowsRequest) (*kagziv1.StartWorkflowsResponse, error) {
	answer := &kagziv1.StartWorkflowsResponse{}
	for range r.GetRequests() {
		answer.Results = append(answer.Results, &kagziv1.StartWorkflowsResponse_Result{
			Started: &kagziv1.StartWorkflowResponse{RunId: s.run.GetRunId()},
		})
	}
	return answer, nil
}

func (s *oneAnswer) WaitWorkflow(context.Context, *kagziv1.WaitWorkflowRequest) (*kagziv1.WaitWorkflowResponse, error) {
	return &kagziv1.WaitWorkflowResponse{Workflow: s.run, Finished: true}, nil
}

// fixtureOn serves a run that ended with a status and an output, and returns a fixture connected to
// it.
func fixtureOn(t *testing.T, status kagziv1.WorkflowStatus, output any) *fixture {
	t.Helper()
	data, err := json.Marshal(output)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	kagziv1.RegisterWorkflowServiceServer(server, &oneAnswer{run: &kagziv1.Workflow{
		RunId: "019a0000-0000-7000-8000-000000000000", Status: status, Output: &kagziv1.Payload{Data: data},
	}})
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	r, err := newFixture([]place{{address: listener.Addr().String()}}, "",
		workerSpec{namespace: "default", queue: "q", slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.close() })
	return r
}

func TestAWrongResultFailsEveryWorkload(t *testing.T) {
	const (
		completed = kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED
		failed    = kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED
	)
	for _, c := range []struct {
		name     string
		status   kagziv1.WorkflowStatus
		output   any
		workload string
		says     string
	}{
		{"a wrong result of W1", completed, -1, "W1", "returned -1"},
		{"a failed run of W2", failed, nil, "W2", "failed"},
		{"a wrong result of W3", completed, -1, "W3", "returned -1"},
		{"a wrong result of W4", completed, -1, "W4", "returned -1"},
		{"a wrong checksum of W5", completed, 1, "W5", "returned 1"},
		{"a sleeper of W7 that was too early", completed, -5, "W7", "too early"},
		{"a wrong sum of W8", completed, paceOf{Total: 1, Executed: paceLeast}, "W8", "add up to 1"},
		{"a run of W8 that changed hands", completed, paceOf{Total: job{7, paceLeast}.total(), Executed: 3}, "W8",
			"moved to another execution"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := choose(c.workload)
			if err != nil {
				t.Fatal(err)
			}
			p := w[0].plan(options{scale: 0.0001})
			if _, err = w[0].measure(t.Context(), fixtureOn(t, c.status, c.output), p); err == nil ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("error = %v, want one that says %q", err, c.says)
			}
		})
	}
}

func TestABacklogIsCheckedRunByRun(t *testing.T) {
	r := fixtureOn(t, kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, 1)
	runs, err := startAll(t.Context(), r, emptyType, make([]int, 2500))
	if err != nil || len(runs) != 2500 || runs[2499] == nil {
		t.Fatalf("startAll = %d runs, %v, want 2500", len(runs), err)
	}
	wrong := errors.New("wrong")
	err = collect(t.Context(), runs[:10], func(i int, _ *kagzi.RunDetails, _ int) error {
		if i == 3 {
			return wrong
		}
		return nil
	})
	if !errors.Is(err, wrong) {
		t.Errorf("collect = %v, want the error of the fourth run", err)
	}
}

func TestAServerThatWasNamedAndDoesNotAnswerIsUnavailable(t *testing.T) {
	_, err := findTarget(t.Context(), options{said: profile.Profile{Address: unheard(t)}})
	var exit *exitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitUnavailable {
		t.Errorf("error = %v, want exit code %d", err, exitUnavailable)
	}
}

// unheard returns an address that refuses connections during the test: a client connection occupies
// the port, so that nobody can listen on it.
func unheard(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	held, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close(); listener.Close() })
	address := held.LocalAddr().String()
	if taken, err := net.Listen("tcp", address); err == nil {
		taken.Close()
		t.Fatalf("%s is free for anybody to listen on", address)
	}
	return address
}
