package server

import (
	"context"
	"testing"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// reluctant is a store that blocks each deregistration and then fails it.
type reluctant struct {
	servertest.StubStore
	asked chan struct{}
	let   chan struct{}
}

func (s reluctant) ForceOfflineWorker(context.Context, engine.OfflineWorkerParams) (engine.Deregistered, error) {
	s.asked <- struct{}{}
	<-s.let
	return engine.Deregistered{}, engine.ErrUnavailable
}

func (reluctant) Heartbeat(context.Context, engine.HeartbeatParams) (engine.Beat, error) {
	return engine.Beat{Status: engine.WorkerOnline}, nil
}

func TestASessionContinuesAfterAFailedGoodbye(t *testing.T) {
	store := reluctant{asked: make(chan struct{}), let: make(chan struct{})}
	_, conn := serve(t, store)
	stream, err := kagziv1.NewWorkerServiceClient(conn).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send := func(r *kagziv1.SessionRequest) {
		t.Helper()
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() *kagziv1.SessionResponse {
		t.Helper()
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	beat := func(seq int64) {
		t.Helper()
		send(&kagziv1.SessionRequest{Seq: seq, Operation: &kagziv1.SessionRequest_Heartbeat{
			Heartbeat: &kagziv1.HeartbeatRequest{}}})
		if r := receive(); r.Seq != seq || r.GetHeartbeat() == nil {
			t.Fatalf("heartbeat %d is answered with %v", seq, r)
		}
	}
	hello := &kagziv1.RegisterRequest{WorkflowTypes: []string{"t"}}
	send(&kagziv1.SessionRequest{Seq: 1, Operation: &kagziv1.SessionRequest_Hello{Hello: hello}})
	receive()
	send(&kagziv1.SessionRequest{Seq: 2, Operation: &kagziv1.SessionRequest_Goodbye{
		Goodbye: &kagziv1.DeregisterRequest{}}})
	<-store.asked
	beat(3) // while the goodbye is under way
	store.let <- struct{}{}
	if r := receive(); r.Seq != 2 || r.GetError() == nil {
		t.Fatalf("the goodbye is answered with %v, want its refusal", r)
	}
	beat(4)
}
