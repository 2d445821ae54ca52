package rest

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

// problem is an error as RFC 9457 has it. Its type is about:blank, and so absent: what went wrong is
// in the error's codes.
type problem struct {
	Title  string          `json:"title"` // of the status
	Status int             `json:"status"`
	Detail string          `json:"detail"`
	GRPC   string          `json:"grpcStatus"` // of the same call over gRPC: "NOT_FOUND"
	Error  json.RawMessage `json:"error"`      // kagzi.v1.ErrorDetail
}

// grpcNames are the names of gRPC's codes, as its specification has them.
var grpcNames = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
	"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// refused is an error with a status of its own, which no call returns.
type refused struct {
	cause  *engine.Error
	status int
}

func (r refused) Error() string { return r.cause.Message }

// refuse returns an error with an HTTP status.
func refuse(status int, kind engine.Kind, text string) error {
	return refused{&engine.Error{Kind: kind, Message: text}, status}
}

// problemOf returns an error as JSON with its status and the time after which to try again; 0: the
// caller need not try again.
func problemOf(errors *wire.Errors, err error) (text []byte, code int, after time.Duration) {
	own, isOwn := err.(refused)
	if isOwn {
		err = own.cause
	}
	st := status.Convert(errors.Status(err))
	code, detail := wire.HTTPStatus(st.Err())
	if isOwn {
		code = own.status
	}
	after = time.Duration(detail.RetryAfterMs) * time.Millisecond
	if after == 0 && (code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests) {
		after = time.Second
	}
	p := problem{Title: http.StatusText(code), Status: code, Detail: detail.Message, GRPC: "UNKNOWN"}
	if int(st.Code()) < len(grpcNames) {
		p.GRPC = grpcNames[st.Code()]
	}
	p.Error, _ = protojson.Marshal(detail) // its text is valid: the server made it
	text, _ = json.Marshal(p)
	return text, code, after
}

// writeProblem answers with an error.
func writeProblem(w http.ResponseWriter, errors *wire.Errors, err error) {
	text, code, after := problemOf(errors, err)
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	if after > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	if code == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="kagzi"`)
	}
	write(w, code, append(text, '\n'))
}
