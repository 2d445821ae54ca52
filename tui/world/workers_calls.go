package world

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func (w *World) worker(id string) *worker {
	for _, h := range w.workers {
		if h.WorkerId == id {
			return h
		}
	}
	return nil
}

// ListWorkers is newest first.
func (w *World) ListWorkers(ctx context.Context, request *kagziv1.ListWorkersRequest, _ ...grpc.CallOption) (*kagziv1.ListWorkersResponse, error) {
	return call(w, ctx, "AdminService/ListWorkers", func() (*kagziv1.ListWorkersResponse, error) {
		namespace, err := namespaceOf(request.Namespace)
		if err := first(err, checkOptionalName("task_queue", request.GetTaskQueue())); err != nil {
			return nil, err
		}
		if s := request.GetStatusFilter(); request.StatusFilter != nil && (s < online || s > offline) {
			return nil, invalid("status_filter", "has the unknown value %d", s)
		}
		list := slices.Clone(w.workers)
		key := func(i int) string {
			return fmt.Sprintf("%020d/%s", moment(list[i].RegisteredAt).UnixMicro(), list[i].WorkerId)
		}
		slices.SortFunc(list, func(a, b *worker) int {
			if c := moment(b.RegisteredAt).Compare(moment(a.RegisteredAt)); c != 0 {
				return c
			}
			return strings.Compare(b.WorkerId, a.WorkerId)
		})
		workers, page, err := pageOf(request, request.Page, listing[*kagziv1.Worker]{
			n: len(list), key: key, falls: true,
			keep: func(i int) bool {
				h := list[i]
				return h.Namespace == namespace && (request.StatusFilter == nil || h.Status == *request.StatusFilter) &&
					(request.GetTaskQueue() == "" || slices.Contains(h.TaskQueues, request.GetTaskQueue()))
			},
			show: func(i int) *kagziv1.Worker { return w.showWorker(list[i]) },
		})
		return &kagziv1.ListWorkersResponse{Workers: workers, Page: page}, err
	})
}

// GetWorker also knows workers that are OFFLINE.
func (w *World) GetWorker(ctx context.Context, request *kagziv1.GetWorkerRequest, _ ...grpc.CallOption) (*kagziv1.GetWorkerResponse, error) {
	return call(w, ctx, "AdminService/GetWorker", func() (*kagziv1.GetWorkerResponse, error) {
		if err := checkWorkerID(request.WorkerId); err != nil {
			return nil, err
		}
		h := w.worker(request.WorkerId)
		if h == nil {
			return nil, notFound("worker", request.WorkerId, "no worker "+request.WorkerId)
		}
		return &kagziv1.GetWorkerResponse{Worker: w.showWorker(h)}, nil
	})
}

// DrainWorker asks a worker to finish what it holds and go.
func (w *World) DrainWorker(ctx context.Context, request *kagziv1.DrainWorkerRequest, _ ...grpc.CallOption) (*kagziv1.DrainWorkerResponse, error) {
	return call(w, ctx, "AdminService/DrainWorker", func() (*kagziv1.DrainWorkerResponse, error) {
		if err := checkWorkerID(request.WorkerId); err != nil {
			return nil, err
		}
		h := w.worker(request.WorkerId)
		if h == nil || h.Status == offline {
			return nil, workerNotFound(request.WorkerId)
		}
		w.drain(h)
		return &kagziv1.DrainWorkerResponse{Success: true, Message: "the worker finishes what it holds and gets nothing new"}, nil
	})
}

func workerNotFound(id string) error {
	return notFound("worker", id, "Worker not found or offline; register again")
}

// ForceOfflineWorker takes a worker off at once and frees its runs.
func (w *World) ForceOfflineWorker(ctx context.Context, request *kagziv1.ForceOfflineWorkerRequest, _ ...grpc.CallOption) (*kagziv1.ForceOfflineWorkerResponse, error) {
	return call(w, ctx, "AdminService/ForceOfflineWorker", func() (*kagziv1.ForceOfflineWorkerResponse, error) {
		if err := checkWorkerID(request.WorkerId); err != nil {
			return nil, err
		}
		h := w.worker(request.WorkerId)
		if h == nil {
			return nil, workerNotFound(request.WorkerId)
		}
		if h.Status == offline {
			return &kagziv1.ForceOfflineWorkerResponse{}, nil
		}
		held := slices.Clone(h.held)
		w.offline(h, kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_FORCED)
		w.note("WARN", "worker taken offline", "worker", h.WorkerId, "namespace", h.Namespace, "runs", len(held))
		w.restarts(h, restart)
		for _, r := range held {
			w.interrupt(r, w.now)
		}
		return &kagziv1.ForceOfflineWorkerResponse{ReleasedRuns: int32(len(held))}, nil
	})
}
