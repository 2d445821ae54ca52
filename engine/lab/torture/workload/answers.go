//go:build linux

package workload

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// answers counts the answers to clients by code, before any retry: each attempt of a call.
type answers struct {
	mu sync.Mutex
	of map[codes.Code]int
}

// HandleRPC implements stats.Handler.
func (a *answers) HandleRPC(_ context.Context, s stats.RPCStats) {
	end, ok := s.(*stats.End)
	if !ok || !end.Client {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[codes.Code]int{}
	}
	a.of[status.Code(end.Error)]++
}

func (a *answers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (a *answers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (a *answers) HandleConn(context.Context, stats.ConnStats)                       {}

func (a *answers) Count(c codes.Code) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[c]
}
