package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestEachKindOfErrorHasAnAnswer(t *testing.T) {
	s := &Server{store: stubStore{}, log: slog.New(slog.DiscardHandler)}
	for kind := engine.KindInternal; kind <= engine.KindDenied; kind++ {
		answer, ok := answers[kind]
		if !ok || answer.kagzi == kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED || answer.grpc == codes.OK {
			t.Errorf("kind %d has no answer: %+v", kind, answer)
		}
		err := s.toStatus(fmt.Errorf("wrapped: %w", &engine.Error{Kind: kind, Message: "m", Subject: "run", SubjectID: "id", Field: "f"}))
		detail := detailOf(t, err)
		if status.Code(err) != answer.grpc || detail.Code != answer.kagzi || detail.Message != "m" || detail.Subject != "run" ||
			detail.SubjectId != "id" || detail.Metadata["field"] != "f" {
			t.Errorf("kind %d goes out as %s %+v", kind, status.Code(err), detail)
		}
	}
	if len(answers) != int(engine.KindDenied)+1 {
		t.Errorf("%d answers for %d kinds", len(answers), engine.KindDenied+1)
	}
}

func TestAnErrorTellsWhereTheRunStands(t *testing.T) {
	s := &Server{store: stubStore{}, log: slog.New(slog.DiscardHandler)}
	detail := detailOf(t, s.toStatus(engine.LeaseLost(engine.ID{1}, engine.RunCancelled)))
	if detail.Code != kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST || detail.Metadata["status"] != "CANCELLED" || !detail.NonRetryable {
		t.Errorf("a lost lease goes out as %+v", detail)
	}
	detail = detailOf(t, s.toStatus(engine.RunEnded(&engine.Run{ID: engine.ID{1}, Status: engine.RunCompleted, ContinuedAs: engine.ID{2}})))
	if detail.Metadata["status"] != "COMPLETED" || detail.Metadata["continued_as_run_id"] != (engine.ID{2}).String() {
		t.Errorf("the end of a run that continued as new goes out as %+v", detail)
	}
}

func TestAnEchoThatIsCutIsTextStill(t *testing.T) {
	_, conn := serve(t, stubStore{})
	_, err := kagziv1.NewAdminServiceClient(conn).HealthCheck(t.Context(), &kagziv1.HealthCheckRequest{Service: proto.String(strings.Repeat("é", 64))})
	if detail := detailOf(t, err); status.Code(err) != codes.NotFound || detail.SubjectId != strings.Repeat("é", 32) {
		t.Errorf("a service that is not there is answered with %v, %+v", err, detail)
	}
	_, err = kagziv1.NewAdminServiceClient(conn).HealthCheck(t.Context(), &kagziv1.HealthCheckRequest{Service: proto.String("x" + strings.Repeat("é", 64))})
	if detail := detailOf(t, err); status.Code(err) != codes.NotFound || detail.SubjectId != "x"+strings.Repeat("é", 31) {
		t.Errorf("a service that is not there is answered with %v, %+v", err, detail)
	}
}

func TestOnlyWhatMayPassIsRetryable(t *testing.T) {
	s := &Server{store: stubStore{}, log: slog.New(slog.DiscardHandler)}
	for kind := engine.KindInternal; kind <= engine.KindDenied; kind++ {
		_, detail := s.errorDetail(&engine.Error{Kind: kind})
		want := kind != engine.KindUnavailable && kind != engine.KindExhausted && kind != engine.KindInternal
		if detail.NonRetryable != want {
			t.Errorf("kind %d: non-retryable %v, want %v", kind, detail.NonRetryable, want)
		}
	}
}

func TestAnUnknownErrorKeepsItsTextInside(t *testing.T) {
	_, conn := serve(t, stubStore{getRun: func() (engine.Run, error) { return engine.Run{}, errBroken }})
	_, err := kagziv1.NewWorkflowServiceClient(conn).GetWorkflow(t.Context(), &kagziv1.GetWorkflowRequest{RunId: anID})
	if status.Code(err) != codes.Internal {
		t.Errorf("code %s, want Internal", status.Code(err))
	}
	if text := fmt.Sprint(err, detailOf(t, err)); strings.Contains(text, "secrets") || strings.Contains(text, "/var") {
		t.Errorf("the answer shows what is inside: %s", text)
	}
	if detailOf(t, err).SubjectId == "" {
		t.Error("the answer names no incident to look for in the log")
	}
}

func TestAPanicIsAnAnswerAndNotTheEnd(t *testing.T) {
	_, conn := serve(t, stubStore{getRun: func() (engine.Run, error) { panic("boom " + anID) }})
	client := kagziv1.NewWorkflowServiceClient(conn)
	for range 2 {
		_, err := client.GetWorkflow(t.Context(), &kagziv1.GetWorkflowRequest{RunId: anID})
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "boom") {
			t.Errorf("a panic is answered with %v", err)
		}
	}
	stream, err := client.WatchWorkflow(t.Context(), &kagziv1.WatchWorkflowRequest{RunId: anID})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "boom") {
		t.Errorf("a panic in a stream is answered with %v", err)
	}
}

func TestACallThatEndedIsNoDefect(t *testing.T) {
	s := &Server{store: stubStore{}, log: slog.New(slog.DiscardHandler)}
	for err, want := range map[error]codes.Code{
		context.Canceled: codes.Canceled, context.DeadlineExceeded: codes.DeadlineExceeded, errors.New("x"): codes.Internal,
	} {
		if got := status.Code(s.toStatus(fmt.Errorf("call: %w", err))); got != want {
			t.Errorf("%v goes out as %s, want %s", err, got, want)
		}
	}
}

const anID = "0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b"
