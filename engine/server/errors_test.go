package server

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAnEchoThatIsCutIsTextStill(t *testing.T) {
	_, conn := serve(t, servertest.StubStore{})
	_, err := kagziv1.NewAdminServiceClient(conn).HealthCheck(
		t.Context(), &kagziv1.HealthCheckRequest{Service: proto.String(strings.Repeat("é", 64))})
	if detail := servertest.DetailOf(t, err); status.Code(err) != codes.NotFound ||
		detail.SubjectId != strings.Repeat("é", 32) {
		t.Errorf("a service that is not there is answered with %v, %+v", err, detail)
	}
	_, err = kagziv1.NewAdminServiceClient(conn).HealthCheck(
		t.Context(), &kagziv1.HealthCheckRequest{Service: proto.String("x" + strings.Repeat("é", 64))})
	if detail := servertest.DetailOf(t, err); status.Code(err) != codes.NotFound ||
		detail.SubjectId != "x"+strings.Repeat("é", 31) {
		t.Errorf("a service that is not there is answered with %v, %+v", err, detail)
	}
}

func TestAnUnknownErrorKeepsItsTextInside(t *testing.T) {
	_, conn := serve(t, servertest.StubStore{OnGetRun: func() (engine.Run, error) {
		return engine.Run{}, servertest.ErrBroken
	}})
	_, err := kagziv1.NewWorkflowServiceClient(conn).GetWorkflow(
		t.Context(), &kagziv1.GetWorkflowRequest{RunId: servertest.AnID})
	if status.Code(err) != codes.Internal {
		t.Errorf("code %s, want Internal", status.Code(err))
	}
	if text := fmt.Sprint(err, servertest.DetailOf(t, err)); strings.Contains(text, "secrets") ||
		strings.Contains(text, "/var") {
		t.Errorf("the answer shows what is inside: %s", text)
	}
	if servertest.DetailOf(t, err).SubjectId == "" {
		t.Error("the answer names no incident to look for in the log")
	}
}

func TestAPanicIsAnAnswerAndNotTheEnd(t *testing.T) {
	_, conn := serve(t, servertest.StubStore{OnGetRun: func() (engine.Run, error) { panic("boom " + servertest.AnID) }})
	client := kagziv1.NewWorkflowServiceClient(conn)
	for range 2 {
		_, err := client.GetWorkflow(t.Context(), &kagziv1.GetWorkflowRequest{RunId: servertest.AnID})
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "boom") {
			t.Errorf("a panic is answered with %v", err)
		}
	}
	stream, err := client.WatchWorkflow(t.Context(), &kagziv1.WatchWorkflowRequest{RunId: servertest.AnID})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "boom") {
		t.Errorf("a panic in a stream is answered with %v", err)
	}
}
