package view

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/tui"
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
		what, _, _ := strings.Cut(s.Message(), ": give ") // a server says it for other clients too, and at length
		return what + ": give a key with --api-key-file or KAGZI_API_KEY"
	case codes.Unavailable:
		if _, reason, found := strings.Cut(s.Message(), "rror while dialing: "); found { // gRPC writes error or Error, by its options
			return "no server answers: " + strings.TrimSuffix(reason, `"`)
		}
		if why := tui.WhyUnreached("", s.Message()); !why.Absent {
			return why.Text
		}
	}
	return s.Message()
}

// remedy is what can be done about a connection that does not come about; what a server says that is there passes by itself. reach are the flags
// that lead a command line to it, and address is where it should be.
func remedy(err error, address, reach string) string {
	s := status.Convert(err)
	switch s.Code() {
	case codes.Unauthenticated:
		return "Give a key with:  kagzi tui" + reach + " --api-key-file FILE, or KAGZI_API_KEY, or a profile. An admin makes keys:  kagzi key create --help"
	case codes.PermissionDenied:
		return "Give a key that may do this; whose is used now:  kagzi doctor" + reach
	case codes.Unavailable:
		if strings.HasPrefix(s.Message(), "the server ") { // it is stopping, or silent
			return "See how it is:  kagzi doctor" + reach
		}
		advice := tui.WhyUnreached(address, s.Message()).Advice
		advice = strings.Replace(advice, "start one with: ", "start one with:  ", 1)
		return strings.ToUpper(advice[:1]) + advice[1:]
	}
	return "See what is wrong:  kagzi doctor" + reach
}
