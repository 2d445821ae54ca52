package server

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/limit"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// taking is a store that takes starts and results of steps.
type taking struct{ starting }

func (taking) CompleteStep(_ context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	return engine.Step{ID: engine.NewID(p.Now), Name: p.Step.Name}, nil
}

func (taking) Heartbeat(context.Context, engine.HeartbeatParams) (engine.Beat, error) {
	return engine.Beat{Status: engine.WorkerOnline}, nil
}

func TestLargeCallsAreRefusedWhileTooManyAreUnderWay(t *testing.T) {
	s, conn := serve(t, taking{})
	api := kagziv1.NewWorkflowServiceClient(conn)
	start := func(size int) error {
		_, err := api.StartWorkflow(t.Context(),
			&kagziv1.StartWorkflowRequest{Namespace: "n", TaskQueue: "q", WorkflowType: "w",
				Input: servertest.PayloadOf(size)})
		return err
	}
	others := limit.MaxBytes - 1<<20
	if !s.inFlight.TryAcquire(others) {
		t.Fatal("there is no room for the others")
	}
	if err := start(2<<20 - 100); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "128 MiB") {
		t.Errorf("a call too many is answered with %v, want UNAVAILABLE", err)
	}
	if _, err := api.StartWorkflows(t.Context(),
		&kagziv1.StartWorkflowsRequest{Requests: []*kagziv1.StartWorkflowRequest{
			{Namespace: "n", TaskQueue: "q", WorkflowType: "w", Input: servertest.PayloadOf(1 << 20)},
			{Namespace: "n", TaskQueue: "q", WorkflowType: "w", Input: servertest.PayloadOf(1)},
		}}); status.Code(err) != codes.Unavailable {
		t.Errorf("a batch too many is answered with %v, want UNAVAILABLE", err)
	}
	for _, size := range []int{0, limit.MinBytes, 1 << 20} {
		if err := start(size); err != nil {
			t.Errorf("a call of %d bytes, for which there is room: %v", size, err)
		}
	}
	s.inFlight.Release(others)
	if err := start(2<<20 - 100); err != nil {
		t.Errorf("a large call when the others are done: %v", err)
	}
	if left := s.inFlight.Held(); left != 0 {
		t.Errorf("%d bytes are counted in for good", left)
	}
}
