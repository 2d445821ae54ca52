package server

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// taking is a store that takes starts and results of steps.
type taking struct{ starting }

func (taking) CompleteStep(_ context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	return engine.Step{ID: engine.NewID(p.Now), Name: p.Step.Name}, nil
}

func bytesOf(size int) *kagziv1.Payload { return &kagziv1.Payload{Data: make([]byte, size)} }

func (c *cargo) held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

func TestLargeCallsAreRefusedWhileTooManyAreUnderWay(t *testing.T) {
	s, conn := serve(t, taking{})
	api := kagziv1.NewWorkflowServiceClient(conn)
	start := func(size int) error {
		_, err := api.StartWorkflow(t.Context(), &kagziv1.StartWorkflowRequest{Namespace: "n", TaskQueue: "q", WorkflowType: "w", Input: bytesOf(size)})
		return err
	}
	others := maxCargo - 1<<20
	if !s.cargo.take(others) {
		t.Fatal("there is no room for the others")
	}
	if err := start(2<<20 - 100); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "128 MiB") {
		t.Errorf("a call too many is answered with %v, want UNAVAILABLE", err)
	}
	if _, err := api.StartWorkflows(t.Context(), &kagziv1.StartWorkflowsRequest{Requests: []*kagziv1.StartWorkflowRequest{
		{Namespace: "n", TaskQueue: "q", WorkflowType: "w", Input: bytesOf(1 << 20)}, {Namespace: "n", TaskQueue: "q", WorkflowType: "w", Input: bytesOf(1)},
	}}); status.Code(err) != codes.Unavailable {
		t.Errorf("a batch too many is answered with %v, want UNAVAILABLE", err)
	}
	for _, size := range []int{0, lightCargo, 1 << 20} {
		if err := start(size); err != nil {
			t.Errorf("a call of %d bytes, for which there is room: %v", size, err)
		}
	}
	s.cargo.give(others)
	if err := start(2<<20 - 100); err != nil {
		t.Errorf("a large call when the others are done: %v", err)
	}
	if left := s.cargo.held(); left != 0 {
		t.Errorf("%d bytes are counted in for good", left)
	}
}

func TestASessionWaitsWhileTooManyLargeCallsAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(taking{}, nil, Options{})
		in, answered := make(chan *kagziv1.SessionRequest), make(chan struct{}, 8)
		ctx, end := context.WithCancel(t.Context())
		w := &session{server: s, end: func(error) { end() }, bell: make(chan struct{}, 1), room: make(chan struct{}, maxUnanswered),
			held: map[engine.ID]holding{}, lines: map[string]line{}}
		w.out.room = w.room
		w.out.stream = func(*kagziv1.SessionResponse) error { answered <- struct{}{}; return nil }
		stream := &operations{ctx: ctx, in: in}
		w.next = func() { w.receive(ctx, context.WithoutCancel(ctx), stream) }
		go w.next()
		step := func(seq int64, size int) *kagziv1.SessionRequest {
			return &kagziv1.SessionRequest{Seq: seq, Operation: &kagziv1.SessionRequest_CompleteStep{CompleteStep: &kagziv1.CompleteStepRequest{
				RunId: engine.NewID(s.store.Now()).String(), LeaseToken: "00", StepId: "s", Output: bytesOf(size),
			}}}
		}
		count := func() int { synctest.Wait(); return len(answered) }

		s.cargo.take(maxCargo)
		in <- step(1, 100)
		if n := count(); n != 1 {
			t.Fatalf("%d answers to a small operation, want one", n)
		}
		in <- step(2, 1<<20)
		if n := count(); n != 1 {
			t.Fatalf("an operation too many is answered")
		}
		select {
		case in <- step(3, 100):
			t.Fatal("the next one is read before there is room for it")
		default:
		}
		s.cargo.give(maxCargo)
		in <- step(3, 100)
		if n := count(); n != 3 || s.cargo.held() != 0 {
			t.Fatalf("%d answers when there is room, want 3; %d bytes counted in, want none", n, s.cargo.held())
		}

		s.cargo.take(maxCargo)
		in <- step(4, 1<<20)
		synctest.Wait()
		end()
		s.cargo.give(maxCargo)
		if n := count(); n != 3 || s.cargo.held() != 0 {
			t.Errorf("%d answers when the session ends meanwhile, want 3; %d bytes counted in, want none", n, s.cargo.held())
		}
	})
}

// operations is the receiving end of a session.
type operations struct {
	kagziv1.WorkerService_SessionServer
	ctx context.Context
	in  chan *kagziv1.SessionRequest
}

func (o *operations) Recv() (*kagziv1.SessionRequest, error) {
	select {
	case r := <-o.in:
		return r, nil
	case <-o.ctx.Done():
		return nil, o.ctx.Err()
	}
}

func TestOneLargeCallAloneHasRoom(t *testing.T) {
	var c cargo
	if !c.take(2*maxCargo) || c.take(lightCargo+1) || !c.take(lightCargo) {
		t.Error("one call alone has room, and another beside it only if it is light")
	}
}
