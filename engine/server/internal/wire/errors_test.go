package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestEachKindOfErrorHasAnAnswer(t *testing.T) {
	s := &Errors{Log: slog.New(slog.DiscardHandler), Now: time.Now}
	for kind := engine.KindInternal; kind <= engine.KindDenied; kind++ {
		answer, ok := answers[kind]
		if !ok || answer.kagzi == kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED || answer.grpc == codes.OK {
			t.Errorf("kind %d has no answer: %+v", kind, answer)
		}
		err := s.Status(fmt.Errorf("wrapped: %w",
			&engine.Error{Kind: kind, Message: "m", Subject: "run", SubjectID: "id", Field: "f"}))
		detail := servertest.DetailOf(t, err)
		if status.Code(err) != answer.grpc || detail.Code != answer.kagzi || detail.Message != "m" ||
			detail.Subject != "run" ||
			detail.SubjectId != "id" || detail.Metadata["field"] != "f" {
			t.Errorf("kind %d goes out as %s %+v", kind, status.Code(err), detail)
		}
	}
	if len(answers) != int(engine.KindDenied)+1 {
		t.Errorf("%d answers for %d kinds", len(answers), engine.KindDenied+1)
	}
}

func TestAnErrorTellsWhereTheRunStands(t *testing.T) {
	s := &Errors{Log: slog.New(slog.DiscardHandler), Now: time.Now}
	detail := servertest.DetailOf(t, s.Status(engine.LeaseLost(engine.ID{1}, engine.RunCancelled)))
	if detail.Code != kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST || detail.Metadata["status"] != "CANCELLED" ||
		!detail.NonRetryable {
		t.Errorf("a lost lease goes out as %+v", detail)
	}
	detail = servertest.DetailOf(t, s.Status(
		engine.RunEnded(&engine.Run{ID: engine.ID{1}, Status: engine.RunCompleted, ContinuedAs: engine.ID{2}})))
	if detail.Metadata["status"] != "COMPLETED" || detail.Metadata["continued_as_run_id"] != (engine.ID{2}).String() {
		t.Errorf("the end of a run that continued as new goes out as %+v", detail)
	}
}

func TestOnlyWhatMayPassIsRetryable(t *testing.T) {
	s := &Errors{Log: slog.New(slog.DiscardHandler), Now: time.Now}
	for kind := engine.KindInternal; kind <= engine.KindDenied; kind++ {
		_, detail := s.Detail(&engine.Error{Kind: kind})
		want := kind != engine.KindUnavailable && kind != engine.KindExhausted && kind != engine.KindInternal
		if detail.NonRetryable != want {
			t.Errorf("kind %d: non-retryable %v, want %v", kind, detail.NonRetryable, want)
		}
	}
}

func TestACallThatEndedIsNoDefect(t *testing.T) {
	s := &Errors{Log: slog.New(slog.DiscardHandler), Now: time.Now}
	for err, want := range map[error]codes.Code{
		context.Canceled: codes.Canceled, context.DeadlineExceeded: codes.DeadlineExceeded,
		errors.New("x"): codes.Internal,
	} {
		if got := status.Code(s.Status(fmt.Errorf("call: %w", err))); got != want {
			t.Errorf("%v goes out as %s, want %s", err, got, want)
		}
	}
}
