package world

import (
	"context"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// GetStats counts everything.
func (w *World) GetStats(ctx context.Context, request *kagziv1.GetStatsRequest, _ ...grpc.CallOption) (*kagziv1.GetStatsResponse, error) {
	return call(w, ctx, "AdminService/GetStats", func() (*kagziv1.GetStatsResponse, error) {
		namespace := ""
		if request.Namespace != nil {
			var err error
			if namespace, err = namespaceOf(*request.Namespace); err != nil {
				return nil, err
			}
		}
		of := func(name string) bool { return namespace == "" || name == namespace }
		s := &kagziv1.GetStatsResponse{WorkflowsByStatus: map[string]int64{}, WorkflowsByType: map[string]int64{}, At: stamp(w.now)}
		for i := range w.runCount() {
			if f := w.runFacts(i, false); of(f.namespace) {
				s.TotalWorkflows++
				s.WorkflowsByStatus[word(f.status)]++
				s.WorkflowsByType[f.kind]++
			}
		}
		s.PendingWorkflows, s.RunningWorkflows = s.WorkflowsByStatus["PENDING"], s.WorkflowsByStatus["RUNNING"]
		s.CompletedWorkflows, s.FailedWorkflows = s.WorkflowsByStatus["COMPLETED"], s.WorkflowsByStatus["FAILED"]
		for _, h := range w.workers {
			if of(h.Namespace) {
				s.TotalWorkers++
				if h.Status == online {
					s.OnlineWorkers++
				}
			}
		}
		for _, c := range w.schedules {
			if of(c.Namespace) {
				s.TotalSchedules++
				if c.Enabled {
					s.EnabledSchedules++
				}
			}
		}
		for _, r := range w.open {
			if of(r.Namespace) && w.isDue(r) {
				s.OldestPendingSeconds = max(s.OldestPendingSeconds, w.now.Sub(r.available).Seconds())
			}
		}
		w.rates(s)
		return s, nil
	})
}

// rates are those of the last minute.
func (w *World) rates(s *kagziv1.GetStatsResponse) {
	const seconds = 60
	var sum tally
	for n := w.now.Unix() - seconds; n < w.now.Unix(); n++ {
		if t := w.activity.seconds[n%keptSeconds]; t.number == n {
			sum.started += t.started
			sum.completed += t.completed + t.failed + t.stopped
			sum.step += t.step
		}
	}
	s.RunsStartedPerSecond, s.RunsFinishedPerSecond = float64(sum.started)/seconds, float64(sum.completed)/seconds
	s.StepsCompletedPerSecond = float64(sum.step) / seconds
}

// GetQueueDepth is what waits and runs in each queue that has open runs or workers, by name.
func (w *World) GetQueueDepth(ctx context.Context, request *kagziv1.GetQueueDepthRequest, _ ...grpc.CallOption) (*kagziv1.GetQueueDepthResponse, error) {
	return call(w, ctx, "AdminService/GetQueueDepth", func() (*kagziv1.GetQueueDepthResponse, error) {
		namespace, err := namespaceOf(request.Namespace)
		if err := first(err, checkOptionalName("task_queue", request.GetTaskQueue())); err != nil {
			return nil, err
		}
		queues := w.depths(namespace)
		response := &kagziv1.GetQueueDepthResponse{DepthByQueue: map[string]int64{}}
		for _, name := range sortedKeys(queues) {
			q := queues[name]
			if only := request.GetTaskQueue(); only != "" && name != only {
				continue
			}
			response.PendingCount += q.Pending
			response.RunningCount += q.Running
			response.SleepingCount += q.Sleeping
			response.DepthByQueue[name] = q.Pending
			response.Queues = append(response.Queues, q)
		}
		return response, nil
	})
}

func (w *World) depths(namespace string) map[string]*kagziv1.QueueDepth {
	queues := map[string]*kagziv1.QueueDepth{}
	queue := func(name string) *kagziv1.QueueDepth {
		if queues[name] == nil {
			queues[name] = &kagziv1.QueueDepth{TaskQueue: name}
		}
		return queues[name]
	}
	for _, r := range w.open {
		if r.Namespace != namespace {
			continue
		}
		q := queue(r.TaskQueue)
		switch r.Status {
		case pending:
			q.Pending++
		case inProgress:
			q.Running++
		default:
			q.Sleeping++
		}
		if !w.isDue(r) {
			continue
		}
		q.OldestPendingSeconds = max(q.OldestPendingSeconds, w.now.Sub(r.available).Seconds())
		if w.unserved(r) {
			if q.UnservedByType == nil {
				q.UnservedByType = map[string]int64{}
			}
			q.UnservedByType[r.WorkflowType]++
		}
	}
	for _, h := range w.workers {
		if h.Namespace != namespace || h.Status == offline {
			continue
		}
		for _, name := range h.TaskQueues {
			q := queue(name)
			if h.Status == online {
				q.OnlineWorkers++
			}
		}
	}
	return queues
}
