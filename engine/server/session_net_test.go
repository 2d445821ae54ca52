package server

import (
	"io"
	"testing"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestASessionThatIsOverIsGivenNothingAndForgotten(t *testing.T) {
	s, conn := serve(t, &servertest.Books{})
	stream, err := kagziv1.NewWorkerServiceClient(conn).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for seq, r := range []*kagziv1.SessionRequest{
		{Operation: &kagziv1.SessionRequest_Hello{
			Hello: &kagziv1.RegisterRequest{WorkerId: "w", TaskQueue: "q", WorkflowTypes: []string{"t"}}}},
		{Operation: &kagziv1.SessionRequest_Credit{Credit: &kagziv1.Credit{Tasks: 1}}},
	} {
		r.Seq = int64(seq + 1)
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if !waitedFor(s.matcher) || s.workers.Sessions() != 1 {
		t.Fatalf("it has no place, or is unknown: %d sessions", s.workers.Sessions())
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Fatalf("a session whose worker hung up ends with %v", err)
	}
	if waitedFor(s.matcher) || s.workers.Sessions() != 0 {
		t.Errorf("runs are claimed for it, or it is still known: %d sessions", s.workers.Sessions())
	}
}

// waitedFor says whether a worker waits for a run of queue q and type t.
func waitedFor(d *matching.Matcher) bool {
	return d.Waits(&engine.StartRun{Run: engine.Run{
		ID: servertest.SomeID(9), Namespace: "default", Queue: "q", Type: "t"}})
}
