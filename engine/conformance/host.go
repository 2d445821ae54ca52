package conformance

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/coordinator"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/wire"
)

const (
	namespace = "default"
	heartbeat = 500 * time.Millisecond
	// caseLease is short, because cases wait for its end. programLease outlasts a machine that is busy.
	caseLease    = 6 * time.Second
	programLease = time.Minute
)

// Stores opens a private database and returns how to open a store on it. A server that restarts
// opens it again. changed is called after each commit.
type Stores func(changed func()) (open func() engine.Store)

// host is a private server, which can be restarted, and what the suite asks it itself.
type host struct {
	open    func() engine.Store
	pages   bool // deliver histories in pages of one row
	lease   time.Duration
	address string
	changes *bell

	runs    kagziv1.WorkflowServiceClient
	admin   kagziv1.AdminServiceClient
	conn    *grpc.ClientConn
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

// bell wakes everybody who waits for a change.
type bell struct {
	mu   sync.Mutex
	rung chan struct{}
}

func newBell() *bell { return &bell{rung: make(chan struct{})} }

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.rung)
	b.rung = make(chan struct{})
}

// next returns a channel that is closed at the next change.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rung
}

func newHost(stores Stores, pages bool, lease time.Duration) (*host, error) {
	h := &host{changes: newBell(), pages: pages, lease: lease}
	h.open = stores(h.changes.ring)
	if err := h.start("127.0.0.1:0"); err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(h.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(engine.MaxMessage+64<<10), grpc.ForceCodecV2(wire.Codec{}),
			grpc.WaitForReady(true)))
	if err != nil {
		h.close()
		return nil, err
	}
	h.conn, h.runs, h.admin = conn, kagziv1.NewWorkflowServiceClient(conn), kagziv1.NewAdminServiceClient(conn)
	return h, nil
}

// start starts the parts of a server, as package daemon does.
func (h *host) start(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	h.address = l.Addr().String()
	quiet := slog.New(slog.DiscardHandler)
	store := h.open()
	if h.pages {
		store = paged{store}
	}
	matcher := matching.New(store, quiet)
	front := server.New(store, matcher, server.Options{Log: quiet, HeartbeatInterval: heartbeat, WorkerLease: h.lease,
		DrainTimeout: time.Second, Trusted: true})
	upkeep := coordinator.New(store, coordinator.Options{
		Interval: time.Second, HeartbeatInterval: heartbeat, WorkerLease: h.lease, Log: quiet})
	ctx, stop := context.WithCancel(context.Background())
	behind, stopBehind := context.WithCancel(context.Background())
	h.stop = stop
	h.stopped.Go(func() {
		_ = store.Listen(behind, func(r engine.Notification) {
			matcher.Notify(r)
			front.Notify(r)
			upkeep.Notify(r)
		}, front)
	})
	h.stopped.Go(func() { _ = upkeep.Run(behind) })
	h.stopped.Go(func() { _ = matcher.Run(behind) })
	h.stopped.Go(func() {
		defer stopBehind()
		_ = front.Run(ctx, l)
	})
	return nil
}

// restart stops the server and starts another on the same database and address.
func (h *host) restart() error {
	h.stop()
	h.stopped.Wait()
	return h.start(h.address)
}

func (h *host) close() {
	if h.conn != nil {
		_ = h.conn.Close()
	}
	h.stop()
	h.stopped.Wait()
}

// paged delivers each row of a history in a page of its own.
type paged struct{ engine.Store }

func (p paged) Claim(ctx context.Context, c engine.ClaimParams) (engine.Claimed, error) {
	c.HistoryBytes = 1
	return p.Store.Claim(ctx, c)
}

func (p paged) GetHistory(ctx context.Context, h engine.HistoryParams) ([]engine.Step, int64, error) {
	h.Bytes = 1
	return p.Store.GetHistory(ctx, h)
}

// workers returns the workers that are ONLINE.
func (h *host) workers(ctx context.Context) ([]*kagziv1.Worker, error) {
	online := kagziv1.WorkerStatus_WORKER_STATUS_ONLINE
	list, err := h.admin.ListWorkers(ctx, &kagziv1.ListWorkersRequest{Namespace: namespace, StatusFilter: &online})
	return list.GetWorkers(), err
}

// takeOffline frees the runs of all workers, as the loss of a worker does.
func (h *host) takeOffline(ctx context.Context) error {
	workers, err := h.workers(ctx)
	if err != nil {
		return err
	}
	for _, w := range workers {
		if _, err := h.admin.ForceOfflineWorker(ctx,
			&kagziv1.ForceOfflineWorkerRequest{WorkerId: w.GetWorkerId()}); err != nil {
			return err
		}
	}
	return nil
}

// rows returns all attempts of a run's steps.
func (h *host) rows(ctx context.Context, run string) ([]*kagziv1.Step, error) {
	var all []*kagziv1.Step
	for token := ""; ; {
		page, err := h.admin.ListSteps(ctx, &kagziv1.ListStepsRequest{Namespace: namespace, RunId: run,
			Page: &kagziv1.PageRequest{PageSize: 1000, PageToken: token}})
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetSteps()...)
		if token = page.GetPage().GetNextPageToken(); token == "" {
			return all, nil
		}
	}
}
