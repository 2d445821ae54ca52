package server

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// ListWorkers returns a page of workers, newest first.
func (s *Server) ListWorkers(ctx context.Context,
	request *kagziv1.ListWorkersRequest) (*kagziv1.ListWorkersResponse, error) {
	filter := engine.WorkerFilter{Queue: request.GetTaskQueue(), Status: engine.WorkerStatus(request.GetStatusFilter())}
	var err error
	if filter.Namespace, err = wire.NamespaceOf(request.Namespace); err != nil {
		return nil, err
	}
	if err := engine.CheckOptionalName("task_queue", filter.Queue); err != nil {
		return nil, err
	}
	if request.StatusFilter != nil && (filter.Status < engine.WorkerOnline || filter.Status > engine.WorkerOffline) {
		return nil, engine.Invalid("status_filter", "has the unknown value %d", request.GetStatusFilter())
	}
	page, err := wire.PageOf(request, request.Page, wire.BelowIDs)
	if err != nil {
		return nil, err
	}
	q, err := queryOf(&query.Workers, request.Query, s.now())
	if err != nil {
		return nil, err
	}
	workers := listing[engine.Worker, *kagziv1.Worker]{
		read: func(ctx context.Context, p engine.Page) ([]engine.Worker, engine.PageInfo, error) {
			return s.store.ListWorkers(ctx, filter, p)
		},
		message: func(w *engine.Worker) *kagziv1.Worker {
			s.workers.Freshen(w)
			return wire.WorkerTo(w)
		},
		place: func(w *engine.Worker) engine.Cursor { return engine.Cursor{At: w.RegisteredAt, Name: w.ID} },
	}
	list, around, err := workers.page(ctx, request, page, q)
	if err != nil {
		return nil, err
	}
	return &kagziv1.ListWorkersResponse{Workers: list, Page: around}, nil
}

// GetWorker returns one worker, also if it is OFFLINE.
func (s *Server) GetWorker(ctx context.Context, request *kagziv1.GetWorkerRequest) (*kagziv1.GetWorkerResponse, error) {
	if err := engine.CheckWorkerID("worker_id", request.WorkerId); err != nil {
		return nil, err
	}
	worker, err := s.store.GetWorker(ctx, request.WorkerId)
	if err != nil {
		return nil, err
	}
	s.workers.Freshen(&worker)
	return &kagziv1.GetWorkerResponse{Worker: wire.WorkerTo(&worker)}, nil
}

// DrainWorker asks a worker to finish the runs it holds and stop.
func (s *Server) DrainWorker(ctx context.Context,
	request *kagziv1.DrainWorkerRequest) (*kagziv1.DrainWorkerResponse, error) {
	if err := engine.CheckWorkerID("worker_id", request.WorkerId); err != nil {
		return nil, err
	}
	now := s.now()
	p := engine.DrainWorkerParams{WorkerID: request.WorkerId, By: auth.ActorOf(ctx),
		AuditID: engine.NewID(now), Now: now}
	if err := s.store.DrainWorker(ctx, p); err != nil {
		return nil, err
	}
	s.recorder.NoteWorker(auth.ActorOf(ctx), "worker draining", request.WorkerId)
	return &kagziv1.DrainWorkerResponse{Success: true,
		Message: "the worker finishes the runs it holds and gets no new ones"}, nil
}

// ForceOfflineWorker makes a worker OFFLINE at once and frees its runs.
func (s *Server) ForceOfflineWorker(ctx context.Context,
	request *kagziv1.ForceOfflineWorkerRequest) (*kagziv1.ForceOfflineWorkerResponse, error) {
	if err := engine.CheckWorkerID("worker_id", request.WorkerId); err != nil {
		return nil, err
	}
	now := s.now()
	taken, err := s.store.ForceOfflineWorker(ctx, engine.OfflineWorkerParams{
		WorkerID: request.WorkerId, Reason: engine.OfflineForced, By: auth.ActorOf(ctx),
		AuditID: engine.NewID(now), Now: now,
	})
	if err != nil {
		return nil, err
	}
	s.recorder.NoteWorker(auth.ActorOf(ctx), "worker forced offline", request.WorkerId,
		slog.Int("runs_freed", taken.Freed))
	return &kagziv1.ForceOfflineWorkerResponse{ReleasedRuns: int32(taken.Freed)}, nil
}

// GetQueueDepth counts the open runs of each queue, by name, and of all queues together.
func (s *Server) GetQueueDepth(ctx context.Context,
	request *kagziv1.GetQueueDepthRequest) (*kagziv1.GetQueueDepthResponse, error) {
	namespace, err := wire.NamespaceOf(request.Namespace)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckOptionalName("task_queue", request.GetTaskQueue()); err != nil {
		return nil, err
	}
	page, err := wire.PageOf(request, request.Page, wire.BehindNames)
	if err != nil {
		return nil, err
	}
	now := s.now()
	q, err := queryOf(&query.Queues, request.Query, now)
	if err != nil {
		return nil, err
	}
	queues, err := s.store.GetQueueDepth(ctx, namespace, request.GetTaskQueue(), now)
	if err != nil {
		return nil, err
	}
	if q != nil {
		queues = slices.DeleteFunc(queues, func(d engine.QueueDepth) bool { return !q.Matches(depthTo(&d, now)) })
	}
	response := &kagziv1.GetQueueDepthResponse{DepthByQueue: map[string]int64{}}
	for _, q := range queues {
		response.PendingCount += q.Pending
		response.RunningCount += q.Running
		response.SleepingCount += q.Sleeping
	}
	if request.GetPage().GetPageSize() == 0 {
		page.Limit = max(len(queues), 1) // clients without paging get as many as fit
	}
	queues, info := wire.PageOfWhole(queues, page, func(q *engine.QueueDepth) string { return q.Queue })
	list := make([]*kagziv1.QueueDepth, len(queues))
	for i := range queues {
		list[i] = depthTo(&queues[i], now)
	}
	const count = 24 // maximum bytes of an entry in depth_by_queue without its name
	from, to := wire.Fit(list, page, &info, func(q *kagziv1.QueueDepth) int {
		return proto.Size(q) + len(q.TaskQueue) + count
	})
	response.Queues = list[from:to]
	var first, last engine.Cursor
	if n := len(response.Queues); n > 0 {
		first, last = engine.Cursor{Name: response.Queues[0].TaskQueue},
			engine.Cursor{Name: response.Queues[n-1].TaskQueue}
	}
	response.Page = wire.PageTo(request, page, info, first, last)
	for _, q := range response.Queues {
		response.DepthByQueue[q.TaskQueue] = q.Pending
	}
	return response, nil
}

func waited(since, now time.Time) float64 {
	if since.IsZero() || since.After(now) {
		return 0
	}
	return now.Sub(since).Seconds()
}

// depthTo returns the message of a queue.
func depthTo(q *engine.QueueDepth, now time.Time) *kagziv1.QueueDepth {
	return &kagziv1.QueueDepth{
		TaskQueue: q.Queue, Pending: q.Pending, Running: q.Running, Sleeping: q.Sleeping,
		OldestPendingSeconds: waited(q.OldestDue, now), OnlineWorkers: int32(q.OnlineWorkers),
		UnservedByType: q.Unserved,
	}
}
