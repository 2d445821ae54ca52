package simulate

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/coordinator"
	"github.com/kagzi/kagzi/engine/lab/host"
	"github.com/kagzi/kagzi/engine/matching"
	rpcserver "github.com/kagzi/kagzi/engine/server"
)

const (
	heartbeat = 4 * time.Second
	lease     = 12 * time.Second
)

var quiet = slog.New(slog.DiscardHandler)

// server is one life of a server process; a restart makes another.
type server struct {
	index int
	store *served
	stop  context.CancelFunc
	group sync.WaitGroup
	dead  atomic.Bool
}

func (s *server) isDead() bool { return s.dead.Load() }

// serve starts the parts of a server, as package daemon does.
func serve(index int, b *beside, t *traffic, l *bufconn.Listener) *server {
	ctx, stop := context.WithCancel(context.Background())
	s := &server{index: index, stop: stop}
	s.store = &served{Store: b.memory.Open(t.road(s)), beside: b}
	matcher := matching.New(s.store, quiet)
	front := rpcserver.New(s.store, matcher, rpcserver.Options{
		Log: quiet, HeartbeatInterval: heartbeat, WorkerLease: lease, DrainTimeout: time.Second, Trusted: true,
		AutoNamespaces: true,
	})
	upkeep := coordinator.New(s.store, coordinator.Options{
		Interval: 5 * time.Second, HeartbeatInterval: heartbeat, WorkerLease: lease, Log: quiet})
	behind, stopBehind := context.WithCancel(context.Background())
	s.group.Go(func() {
		_ = s.store.Listen(behind, func(r engine.Notification) {
			matcher.Notify(r)
			front.Notify(r)
			upkeep.Notify(r)
		}, front)
	})
	s.group.Go(func() { _ = upkeep.Run(behind) })
	s.group.Go(func() { _ = matcher.Run(behind) })
	s.group.Go(func() {
		defer stopBehind()
		_ = front.Run(ctx, l)
	})
	return s
}

// die kills the process: nothing that it still does reaches the database or a client. The outcome
// of its calls in flight is random.
func (s *server) die(t *traffic, n *network, hosts []*host.Host, rnd *rand.Rand) {
	s.dead.Store(true)
	n.down(s.index)
	for _, h := range hosts {
		h.Cut(func(server int) bool { return server == s.index })
	}
	t.crash(s, rnd)
	t.beside.restart()
}

// close stops the parts and waits for them.
func (s *server) close() {
	s.stop()
	s.group.Wait()
	_ = s.store.Close()
}
