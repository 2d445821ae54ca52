package server

import (
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestChangesOfRunsAreEvents(t *testing.T) {
	ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 5}})
	for _, c := range []struct {
		end  engine.RunEnd
		do   func(*Server) error
		want string
	}{
		{engine.RunEnd{Status: engine.RunCancelled, Changed: true}, func(s *Server) error {
			_, err := s.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: servertest.AnID, Reason: "enough"})
			return err
		}, "INFO run cancelled run=" + servertest.AnID + " namespace=default by=local peer=10.0.0.7:5 reason=enough"},
		{engine.RunEnd{Status: engine.RunTerminated, Changed: true}, func(s *Server) error {
			_, err := s.TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{
				RunId: servertest.AnID, Namespace: "team"})
			return err
		}, "INFO run terminated run=" + servertest.AnID + " namespace=team by=local peer=10.0.0.7:5"},
		{engine.RunEnd{Status: engine.RunRunning, Changed: true, GraceUntil: servertest.Began}, func(s *Server) error {
			_, err := s.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{
				RunId: servertest.AnID, Grace: durationpb.New(1e9)})
			return err
		}, "INFO run to be cancelled run=" + servertest.AnID + " namespace=default by=local peer=10.0.0.7:5"},
		{engine.RunEnd{Status: engine.RunCancelled}, func(s *Server) error {
			_, err := s.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: servertest.AnID})
			return err
		}, ""},
	} {
		s := serverOver(&servertest.Books{End: c.end})
		if err := c.do(s); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(servertest.EventTexts(s.recorder.Events.Past(0, 9)), "\n"); got != c.want {
			t.Errorf("%+v is noted as %q, want %q", c.end, got, c.want)
		}
	}
}

func TestAFailedRunIsAnEventWithItsTypeAndQueue(t *testing.T) {
	id, err := engine.ParseID(servertest.AnID)
	if err != nil {
		t.Fatal(err)
	}
	b := &servertest.Books{Runs: []engine.Run{{ID: id, Type: "order", Queue: "q"}}}
	fail := func() []string {
		s := serverOver(b)
		_, err := s.workers.FailWorkflow(t.Context(),
			&kagziv1.FailWorkflowRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken,
				Error: &kagziv1.ErrorDetail{Message: "\nno money\nstack"}})
		if err != nil {
			t.Fatal(err)
		}
		return servertest.EventTexts(s.recorder.Events.Past(0, 9))
	}
	b.Verdict = engine.RunVerdict{Status: engine.RunFailed}
	if got, want := fail(), "WARN run failed run="+servertest.AnID+
		" namespace=default type=order queue=q error=no money"; !slices.Equal(got, []string{want}) {
		t.Errorf("noted %q, want %q", got, want)
	}
	b.Runs = nil // deleted already
	if got, want := fail(), "WARN run failed run="+servertest.AnID+
		" namespace=default error=no money"; !slices.Equal(got, []string{want}) {
		t.Errorf("noted %q, want %q", got, want)
	}
	for _, verdict := range []engine.RunVerdict{
		{Status: engine.RunCancelled}, {Status: engine.RunPending,
			Verdict: engine.Verdict{Retry: true, RetryAt: servertest.Began}},
	} {
		if b.Verdict = verdict; len(fail()) != 0 {
			t.Errorf("%+v is noted as a failure", verdict)
		}
	}
}

func TestChangesOfWorkersAreEvents(t *testing.T) {
	s := serverOver(&servertest.Books{})
	ctx := t.Context()
	for _, do := range []func() error{
		func() error {
			_, err := s.workers.Register(ctx, &kagziv1.RegisterRequest{
				WorkerId: "w", WorkflowTypes: []string{"t"}, TaskQueues: []string{"b"}, Hostname: "h", Version: "v"})
			return err
		},
		func() error {
			_, err := s.workers.Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: "w", Drain: true})
			return err
		},
		func() error {
			_, err := s.DrainWorker(ctx, &kagziv1.DrainWorkerRequest{WorkerId: "w"})
			return err
		},
		func() error {
			_, err := s.workers.Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: "w"})
			return err
		},
		func() error {
			_, err := s.ForceOfflineWorker(ctx, &kagziv1.ForceOfflineWorkerRequest{WorkerId: "w"})
			return err
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"INFO worker registered worker=w namespace=default queues=default b host=h version=v",
		"INFO worker draining worker=w by=local",
		"INFO worker draining worker=w by=local", "INFO worker left worker=w by=local runs_freed=2",
		"INFO worker forced offline worker=w by=local runs_freed=2",
	}
	if got := servertest.EventTexts(s.recorder.Events.Past(0, 9)); !slices.Equal(got, want) {
		t.Errorf("noted\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
