package kagzi

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
	patienceFor = 4 * time.Second       // for a server that is away, or refuses a call as UNAVAILABLE
	firstPause  = 50 * time.Millisecond // at most, before a refused call goes again; the next ones are up to twice as long
	mostPauses  = 6                     // of one call

	mostRefused = 1000 // tenths of calls that are remembered as refused
	tooRefused  = mostRefused / 2
)

// patience holds the calls of a connection for a server that is away. They do not knock: gRPC opens the connection again by itself, and they go
// out at the moment when it stands, or fail when that takes longer than patienceFor. So of a server that is restarted within that nothing is
// noticed but the delay, and of one that stays away it is told soon.
//
// A call whose connection broke goes again when there is a new one. One that the server refuses as UNAVAILABLE is repeated after pauses, unless
// many were refused lately: a herd of clients must not storm a server that is ill.
type patience struct {
	refused atomic.Int64 // lately, in tenths: one that is refused counts ten, one that is not takes one off
}

// repeatableMethod says that a method is a read, or a change that names an id, so that a repetition has no second effect.
func repeatableMethod(name string) bool {
	for _, known := range [...]string{
		"/kagzi.v1.WorkflowService/", "/kagzi.v1.WorkflowScheduleService/", "/kagzi.v1.WorkerService/GetHistory", "/kagzi.v1.AdminService/ListSteps",
	} {
		if strings.HasPrefix(name, known) {
			return true
		}
	}
	return false
}

// unary is the interceptor of the connection's unary calls.
func (p *patience) unary(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	var limit context.Context
	for pauses := 0; ; {
		if conn.GetState() != connectivity.Ready {
			if limit == nil {
				var cancel context.CancelFunc
				limit, cancel = context.WithTimeout(ctx, patienceFor)
				defer cancel()
			}
			awaitConnection(limit, conn)
		}
		err := invoke(ctx, method, request, reply, conn, options...)
		again := p.note(status.Code(err) == codes.Unavailable)
		if !again || !repeatableMethod(method) || limit != nil && limit.Err() != nil {
			return err
		}
		if conn.GetState() != connectivity.Ready {
			continue
		}
		if pauses == mostPauses || !sleep(ctx, rand.N(firstPause<<pauses)+time.Millisecond) {
			return err
		}
		pauses++
	}
}

// note counts a call, and says whether it may be made again.
func (p *patience) note(refused bool) (again bool) {
	if !refused {
		if p.refused.Load() > 0 {
			p.refused.Add(-1)
		}
		return false
	}
	if p.refused.Load() < mostRefused {
		p.refused.Add(10)
	}
	return p.refused.Load() <= tooRefused
}

// awaitConnection returns when the connection stands, is closed, or ctx ends. Whoever calls then gets gRPC's own word for what is wrong.
func awaitConnection(ctx context.Context, conn *grpc.ClientConn) {
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready, connectivity.Shutdown:
			return
		case connectivity.Idle:
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}
