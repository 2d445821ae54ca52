package server

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAHeartbeatSaysWhatBecameOfTheRunsOfLostLeases(t *testing.T) {
	cancelled, deleted := engine.Lease{RunID: someID(1), Token: engine.NewToken()}, engine.Lease{RunID: someID(2), Token: engine.NewToken()}
	b := &books{beat: engine.Beat{Lost: []engine.Lease{cancelled, deleted}}, runs: []engine.Run{{ID: cancelled.RunID, Status: engine.RunCancelled}}}
	answer, err := door(b).heartbeat(t.Context(), &kagziv1.HeartbeatRequest{WorkerId: "w"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []*kagziv1.Lease{
		{RunId: cancelled.RunID.String(), LeaseToken: cancelled.Token.Wire(), RunStatus: kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED},
		{RunId: deleted.RunID.String(), LeaseToken: deleted.Token.Wire()},
	}
	for i, l := range answer.Lost {
		if len(answer.Lost) != len(want) || l.String() != want[i].String() {
			t.Fatalf("lost = %v, want %v", answer.Lost, want)
		}
	}
	if len(answer.Lost) == 0 {
		t.Fatal("no lease is lost, want two")
	}
}
