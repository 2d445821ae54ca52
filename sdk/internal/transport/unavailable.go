package transport

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

const (
	retryFor = 4 * time.Second // how long a call is retried while the server is away or refuses it as UNAVAILABLE
	// longest delay before the first retry; later delays are up to twice as long each
	firstDelay = 50 * time.Millisecond
	maxDelays  = 6 // most delays of one call

	maxRefused   = 1000 // limit for retrier.refused
	refusedLimit = maxRefused / 2
)

// retrier makes the unary calls of a connection outlast a server that is briefly away.
//
// While there is no connection, calls wait instead of dialing themselves: gRPC reconnects on its
// own. A call goes out as soon as the connection is ready, and fails after retryFor. A server that
// restarts within that time costs only the delay.
//
// A call whose connection broke is made again on the next one. A call that the server refuses as
// UNAVAILABLE is repeated with jitter, unless many calls were refused lately: thousands of clients
// must not storm an overloaded server.
type retrier struct {
	refused atomic.Int64 // in tenths of calls: a refused call adds ten, any other subtracts one
}

// repeatableMethod reports whether a method can be repeated safely: it only reads, or it names an
// id.
func repeatableMethod(name string) bool {
	for _, known := range [...]string{
		"/kagzi.v1.WorkflowService/", "/kagzi.v1.WorkflowScheduleService/", "/kagzi.v1.WorkerService/GetHistory",
		"/kagzi.v1.AdminService/ListSteps",
	} {
		if strings.HasPrefix(name, known) {
			return true
		}
	}
	return false
}

// unary is the interceptor of the connection's unary calls.
func (r *retrier) unary(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	var limit context.Context
	for delays := 0; ; {
		if conn.GetState() != connectivity.Ready {
			if limit == nil {
				var cancel context.CancelFunc
				limit, cancel = context.WithTimeout(ctx, retryFor)
				defer cancel()
			}
			AwaitConnection(limit, conn)
		}
		err := invoke(ctx, method, request, reply, conn, options...)
		again := r.note(status.Code(err) == codes.Unavailable)
		if !again || !repeatableMethod(method) || limit != nil && limit.Err() != nil {
			return err
		}
		if conn.GetState() != connectivity.Ready {
			continue
		}
		if delays == maxDelays || !Sleep(ctx, rand.N(firstDelay<<delays)+time.Millisecond) {
			return err
		}
		delays++
	}
}

// note counts a call, and reports whether it may be retried.
func (r *retrier) note(refused bool) (again bool) {
	if !refused {
		if r.refused.Load() > 0 {
			r.refused.Add(-1)
		}
		return false
	}
	if r.refused.Load() < maxRefused {
		r.refused.Add(10)
	}
	return r.refused.Load() <= refusedLimit
}
