package wire

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// answers maps the engine's kinds of error to gRPC codes, Kagzi's error codes and HTTP statuses.
var answers = map[engine.Kind]struct {
	grpc  codes.Code
	kagzi kagziv1.ErrorCode
	http  int
}{
	engine.KindInternal:     {codes.Internal, kagziv1.ErrorCode_ERROR_CODE_INTERNAL, 500},
	engine.KindInvalid:      {codes.InvalidArgument, kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, 400},
	engine.KindNotFound:     {codes.NotFound, kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, 404},
	engine.KindExists:       {codes.AlreadyExists, kagziv1.ErrorCode_ERROR_CODE_CONFLICT, 409},
	engine.KindConflict:     {codes.FailedPrecondition, kagziv1.ErrorCode_ERROR_CODE_CONFLICT, 409},
	engine.KindPrecondition: {codes.FailedPrecondition, kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED, 409},
	engine.KindLeaseLost:    {codes.FailedPrecondition, kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, 409},
	engine.KindTooLarge:     {codes.ResourceExhausted, kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED, 413},
	engine.KindExhausted:    {codes.ResourceExhausted, kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED, 429},
	engine.KindUnsupported:  {codes.Unimplemented, kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED, 501},
	engine.KindUnavailable:  {codes.Unavailable, kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, 503},
	engine.KindNoKey:        {codes.Unauthenticated, kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED, 401},
	engine.KindDenied:       {codes.PermissionDenied, kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED, 403},
}

// Errors converts errors to their wire form.
type Errors struct {
	Log *slog.Logger
	Now func() time.Time
}

// Detail returns the gRPC code and the ErrorDetail of an error. An error that is neither an
// engine.Error nor the end of the call's context is a defect: its text is logged with an incident
// number, and the caller gets only the number.
func (c *Errors) Detail(err error) (codes.Code, *kagziv1.ErrorDetail) {
	e, ok := errors.AsType[*engine.Error](err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled):
		return codes.Canceled, &kagziv1.ErrorDetail{
			Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, Message: "the caller cancelled the call"}
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded, &kagziv1.ErrorDetail{
			Code: kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, Message: "the call's deadline passed"}
	default:
		incident := engine.NewID(c.Now()).String()
		c.Log.Error("internal error", "incident", incident, "error", err)
		e = &engine.Error{Message: "internal error; the server's log has more under incident " + incident,
			SubjectID: incident}
	}
	answer := answers[e.Kind]
	detail := &kagziv1.ErrorDetail{
		Code: answer.kagzi, Message: e.Message, Subject: e.Subject, SubjectId: e.SubjectID,
		NonRetryable: e.Kind != engine.KindUnavailable && e.Kind != engine.KindExhausted &&
			e.Kind != engine.KindInternal,
	}
	if e.RetryAfter > 0 {
		detail.RetryAfterMs = max(1, e.RetryAfter.Milliseconds())
	}
	if e.Field != "" {
		detail.Metadata = map[string]string{"field": e.Field}
	}
	if e.Status != 0 {
		detail.Metadata = map[string]string{"status": e.Status.String()}
	}
	if !e.ContinuedAs.IsZero() {
		detail.Metadata["continued_as_run_id"] = e.ContinuedAs.String()
	}
	return answer.grpc, detail
}

// Status returns an error as gRPC carries it, with its ErrorDetail.
func (c *Errors) Status(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	code, detail := c.Detail(err)
	st := status.New(code, detail.Message)
	if with, err := st.WithDetails(detail); err == nil {
		st = with
	}
	return st.Err()
}

// HTTPStatus returns the HTTP status of an error that a call returned, and its ErrorDetail.
func HTTPStatus(err error) (int, *kagziv1.ErrorDetail) {
	st := status.Convert(err)
	detail := &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED, Message: st.Message()}
	for _, d := range st.Details() {
		if d, ok := d.(*kagziv1.ErrorDetail); ok {
			detail = d
		}
	}
	switch st.Code() {
	case codes.Canceled:
		return statusClientClosed, detail
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout, detail
	case codes.ResourceExhausted: // too large for good, or too much for now
		if detail.NonRetryable {
			return http.StatusRequestEntityTooLarge, detail
		}
		return http.StatusTooManyRequests, detail
	}
	for _, answer := range answers {
		if answer.grpc == st.Code() {
			return answer.http, detail
		}
	}
	return http.StatusInternalServerError, detail
}

// StartedBefore returns the run of an error which says that a start was made before, in part with other
// content.
func StartedBefore(err error) (run string, ok bool) {
	if err == nil {
		return "", false
	}
	_, detail := HTTPStatus(err)
	if detail.GetCode() != kagziv1.ErrorCode_ERROR_CODE_CONFLICT || detail.GetSubject() != "run" {
		return "", false
	}
	return detail.GetSubjectId(), true
}

// statusClientClosed is what proxies log when the client has gone; nobody reads it.
const statusClientClosed = 499

// ErrStopping ends calls when the server stops.
var ErrStopping = &engine.Error{Kind: engine.KindUnavailable, Message: "the server is stopping; try again"}

// LogLevelOf returns the level at which to log a call with this code. Mistakes of callers are not
// logged for operators.
func LogLevelOf(code codes.Code) slog.Level {
	switch code {
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// ErrUnsupported refuses operations of a newer API, whose fields this server does not know.
var ErrUnsupported = &engine.Error{Kind: engine.KindUnsupported,
	Message: "this server does not know the operation; it may be older than the client"}
