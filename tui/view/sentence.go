package view

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// sentence is an error as people read it: what the server said, without the names that gRPC puts around it.
func sentence(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	s, ok := status.FromError(err)
	if !ok {
		return err.Error()
	}
	switch s.Code() {
	case codes.Unimplemented:
		return "the server does not offer this; it may be older than this program"
	case codes.DeadlineExceeded:
		return "no answer in time"
	case codes.Unauthenticated:
		return s.Message() + ": give a key with --api-key or KAGZI_API_KEY"
	case codes.Unavailable:
		if _, reason, found := strings.Cut(s.Message(), "rror while dialing: "); found { // gRPC writes error or Error, by its options
			return "no server answers: " + strings.TrimSuffix(reason, `"`)
		}
	}
	return s.Message()
}
