package transport

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

const maxReconnectBackoff = 60 * time.Second

// Backoff returns the delay after the n-th failure in a row: a random time of up to 1, 2, 4 … 60 s.
// This is full jitter ("Exponential Backoff And Jitter", AWS Architecture Blog, 2015). When a
// server restarts, ten thousand workers come back over a whole second, where ten percent of jitter
// would give a fifth of a second, and a single worker waits half as long on average.
func Backoff(n int) time.Duration {
	return rand.N(min(time.Second<<min(n-1, 10), maxReconnectBackoff)) + time.Millisecond
}

// Sleep waits for d. It returns false when ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// AwaitConnection returns when the connection is ready, is closed, or ctx ends. A call made
// afterwards gets gRPC's own error.
func AwaitConnection(ctx context.Context, conn *grpc.ClientConn) {
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
