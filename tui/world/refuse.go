package world

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// refusal is an answer other than OK, as a server gives it: a status code and, as its detail, what it is about.
type refusal struct {
	grpc               codes.Code
	code               kagziv1.ErrorCode
	message            string
	subject, subjectID string
	field              string                 // of the request
	status             kagziv1.WorkflowStatus // of the run, where that explains the refusal
}

func (r *refusal) Error() string { return r.message }

func (r *refusal) detail() *kagziv1.ErrorDetail {
	d := &kagziv1.ErrorDetail{Code: r.code, Message: r.message, Subject: r.subject, SubjectId: r.subjectID, NonRetryable: true}
	if r.field != "" {
		d.Metadata = map[string]string{"field": r.field}
	}
	if r.status != 0 {
		d.Metadata = map[string]string{"status": word(r.status)}
	}
	return d
}

// toStatus is an error as gRPC carries it.
func toStatus(err error) error {
	r, ok := errors.AsType[*refusal](err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	default:
		return err
	}
	st := status.New(r.grpc, r.message)
	if with, err := st.WithDetails(r.detail()); err == nil {
		st = with
	}
	return st.Err()
}

func invalid(field, format string, args ...any) error {
	return &refusal{grpc: codes.InvalidArgument, code: kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, field: field,
		message: field + ": " + fmt.Sprintf(format, args...)}
}

func tooLarge(field, format string, args ...any) error {
	return &refusal{grpc: codes.ResourceExhausted, code: kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED, field: field,
		message: field + ": " + fmt.Sprintf(format, args...)}
}

func notFound(subject, id, message string) error {
	return &refusal{grpc: codes.NotFound, code: kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, subject: subject, subjectID: id, message: message}
}

func runNotFound(id string) error { return notFound("run", id, "no run "+id+" in this namespace") }

func taken(subject, id, message string) error {
	return &refusal{grpc: codes.AlreadyExists, code: kagziv1.ErrorCode_ERROR_CODE_CONFLICT, subject: subject, subjectID: id, message: message}
}

func conflict(subject, id, message string) error {
	return &refusal{grpc: codes.FailedPrecondition, code: kagziv1.ErrorCode_ERROR_CODE_CONFLICT, subject: subject, subjectID: id, message: message}
}

func precondition(subject, id, message string) *refusal {
	return &refusal{grpc: codes.FailedPrecondition, code: kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED, subject: subject, subjectID: id, message: message}
}

// runEnded is the answer to a change of a run that has ended otherwise.
func runEnded(r *run) error {
	e := precondition("run", r.RunId, "run "+r.RunId+" has already ended: it is "+word(r.Status))
	e.status = r.Status
	return e
}

// notNow refuses what a run's status does not allow.
func notNow(r *run, what string) error {
	e := precondition("run", r.RunId, "run "+r.RunId+" cannot "+what+": it is "+word(r.Status))
	e.status = r.Status
	return e
}

func namespaceDisabled(name string) error {
	return precondition("namespace", name, "namespace "+name+" is disabled: enable it with `kagzi namespace enable "+name+"`")
}

func unsupported(message string) error {
	return &refusal{grpc: codes.Unimplemented, code: kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED, message: message}
}
