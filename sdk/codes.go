package kagzi

import (
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc/codes"
)

// ErrorCode says what sort of failure an error is; "" is a failure of the application's own code.
type ErrorCode string

// The codes that a server gives.
const (
	CodeNotFound           ErrorCode = "NOT_FOUND"
	CodeInvalidArgument    ErrorCode = "INVALID_ARGUMENT"
	CodePreconditionFailed ErrorCode = "PRECONDITION_FAILED"
	CodeConflict           ErrorCode = "CONFLICT"
	CodeUnauthorized       ErrorCode = "UNAUTHORIZED"
	CodeUnavailable        ErrorCode = "UNAVAILABLE"
	CodeInternal           ErrorCode = "INTERNAL"
	CodeTimeout            ErrorCode = "TIMEOUT"
	CodeCancelled          ErrorCode = "CANCELLED"
	CodeResourceExhausted  ErrorCode = "RESOURCE_EXHAUSTED"
	CodeLeaseLost          ErrorCode = "LEASE_LOST"
	CodeCrashed            ErrorCode = "CRASHED"
)

func errorCode(c kagziv1.ErrorCode) ErrorCode {
	if c == kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED {
		return ""
	}
	return ErrorCode(strings.TrimPrefix(c.String(), "ERROR_CODE_"))
}

func (c ErrorCode) wire() kagziv1.ErrorCode {
	return kagziv1.ErrorCode(kagziv1.ErrorCode_value["ERROR_CODE_"+string(c)])
}

func codeOfStatus(c codes.Code) ErrorCode {
	switch c {
	case codes.NotFound:
		return CodeNotFound
	case codes.InvalidArgument, codes.OutOfRange:
		return CodeInvalidArgument
	case codes.FailedPrecondition:
		return CodePreconditionFailed
	case codes.AlreadyExists:
		return CodeConflict
	case codes.Unauthenticated, codes.PermissionDenied:
		return CodeUnauthorized
	case codes.Unavailable:
		return CodeUnavailable
	case codes.DeadlineExceeded:
		return CodeTimeout
	case codes.Canceled:
		return CodeCancelled
	case codes.ResourceExhausted:
		return CodeResourceExhausted
	}
	return CodeInternal
}

func statusOfCode(c kagziv1.ErrorCode) codes.Code {
	switch c {
	case kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND:
		return codes.NotFound
	case kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT:
		return codes.InvalidArgument
	case kagziv1.ErrorCode_ERROR_CODE_CONFLICT:
		return codes.AlreadyExists
	case kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED:
		return codes.PermissionDenied
	case kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED:
		return codes.ResourceExhausted
	case kagziv1.ErrorCode_ERROR_CODE_INTERNAL:
		return codes.Internal
	case kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE:
		return codes.Unavailable
	case kagziv1.ErrorCode_ERROR_CODE_TIMEOUT:
		return codes.DeadlineExceeded
	}
	return codes.FailedPrecondition
}
