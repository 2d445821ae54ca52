package convert

import (
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ItemStatus returns the refusal of one item of a batch as the status that a call for this item
// alone would end with. Servers that do not send the code send 0; then the code follows from the
// detail.
func ItemStatus(code int32, d *kagziv1.ErrorDetail) *status.Status {
	st := status.New(codes.Code(code), d.GetMessage())
	if code == 0 {
		st = status.New(StatusOfCode(d.GetCode()), d.GetMessage())
	}
	if with, err := st.WithDetails(d); err == nil {
		return with
	}
	return st
}

// StatusOfCode returns the gRPC code that a server sends with an error code.
func StatusOfCode(c kagziv1.ErrorCode) codes.Code {
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

// Transient reports whether another attempt of the call may succeed.
func Transient(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted:
		return true
	}
	return false
}

// sentences replaces texts of gRPC by sentences that say what to do. An entry applies if the
// message contains its sign; what follows the sign is the reason. The first match counts.
var sentences = []struct {
	code       codes.Code
	sign       string
	says, next string
}{
	{codes.Unavailable, "Error while dialing: ", "no server answers: ",
		"; check that a server runs there (kagzi server) and check the address"},
	{codes.Unavailable, "authentication handshake failed: ", "no encrypted connection to the server: ",
		"; check the TLS settings and the certificates of both sides"},
	{codes.Unavailable, "use of closed network connection",
		"the address accepts connections but does not answer: the server hangs, or it is not a Kagzi server", ""},
	{codes.Unavailable, "error reading server preface: ",
		"the address does not answer as a Kagzi server without TLS: ",
		"; if that lasts, check the address, and turn on TLS if the server wants it"},
	{codes.Unavailable, "name resolver error: ", "cannot resolve the server's name: ", "; check the address"},
	{codes.Unavailable, "", "the server gave no answer: ", ""},
	{codes.Canceled, "the client connection is closing", "the client is closed", ""},
	{codes.ResourceExhausted, "trying to send message larger than max ",
		"the call is larger than a server accepts: ", "; send less in one call"},
	{codes.Internal, "grpc: error while marshaling: ", "the call cannot be sent: ",
		"; names, ids and texts must be UTF-8"},
	{codes.Unimplemented, "", "the server does not offer this: ", "; it may be older than this program"},
}

// PlainMessage returns the message of a status, in plain words if gRPC itself made it.
func PlainMessage(st *status.Status) string {
	for _, r := range sentences {
		if _, reason, found := strings.Cut(st.Message(), r.sign); found && r.code == st.Code() {
			return r.says + strings.TrimSuffix(strings.TrimPrefix(reason, `connection error: desc = "`), `"`) + r.next
		}
	}
	return st.Message()
}
