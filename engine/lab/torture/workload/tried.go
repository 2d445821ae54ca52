//go:build linux

package workload

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// TriedIn records each start call of the SDK whose effect is unknown. The SDK repeats such a call
// by itself, and returns only the last answer. That one may refuse a start that has counted, for
// example on a server with a full disk.
func TriedIn(log *history.Log) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
		o ...grpc.CallOption,
	) error {
		requests := startsOf(request)
		since := history.Now()
		err := invoke(ctx, method, request, reply, conn, o...)
		for n, id := range requests {
			if code, open := open(reply, n, err); open {
				log.NoteUnknown(history.Event{Op: history.Tried, Request: id, Why: code.String()}, since)
			}
		}
		return err
	})
}

// startsOf returns the requests of the runs that a call starts.
func startsOf(request any) []string {
	switch r := request.(type) {
	case *kagziv1.StartWorkflowRequest:
		return []string{r.RequestId}
	case *kagziv1.StartWorkflowsRequest:
		var ids []string
		for _, one := range r.Requests {
			ids = append(ids, one.RequestId)
		}
		return ids
	}
	return nil
}

// open reports whether the n-th start of a call may have counted without an answer. Only the server
// can say that it has not: gRPC uses the same codes for failures in transit.
func open(reply any, n int, err error) (codes.Code, bool) {
	if err != nil {
		return status.Code(err), !saysNo(err)
	}
	batch, ok := reply.(*kagziv1.StartWorkflowsResponse)
	switch {
	case !ok:
		return codes.OK, false
	case n >= len(batch.Results):
		return codes.Unknown, true
	case batch.Results[n].Error == nil:
		return codes.OK, false
	}
	one := status.New(codes.Code(batch.Results[n].StatusCode), "")
	if with, err := one.WithDetails(batch.Results[n].Error); err == nil {
		one = with
	}
	return one.Code(), !saysNo(one.Err())
}

// saysNo reports whether an error is the server's own statement that a call did not count.
func saysNo(err error) bool {
	if o, _ := Outcome(err); o != history.Refused {
		return false
	}
	for _, d := range status.Convert(err).Details() {
		if _, ok := d.(*kagziv1.ErrorDetail); ok {
			return true
		}
	}
	return false
}
