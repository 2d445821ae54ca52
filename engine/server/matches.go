package server

import (
	"cmp"
	"context"
	"slices"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// MatchWorkers says of each live worker of a namespace whether it can run a run, or runs of a type.
func (s *Server) MatchWorkers(ctx context.Context,
	request *kagziv1.MatchWorkersRequest) (*kagziv1.MatchWorkersResponse, error) {
	c, err := s.wanted(ctx, request)
	if err != nil {
		return nil, err
	}
	workers, more, err := s.liveWorkers(ctx, c.Run.Namespace)
	if err != nil {
		return nil, err
	}
	if err := s.countRunning(ctx, &c, workers); err != nil {
		return nil, err
	}
	answer := &kagziv1.MatchWorkersResponse{More: more}
	for i := range workers {
		m := engine.MatchWorker(&c, &workers[i])
		answer.Matches = append(answer.Matches, &kagziv1.MatchWorkersResponse_Match{
			Worker: wire.WorkerTo(&workers[i]), CanRun: m.CanRun, Busy: m.Busy, Reason: m.Reason})
	}
	rank := func(m *kagziv1.MatchWorkersResponse_Match) int {
		switch {
		case m.CanRun && !m.Busy:
			return 0
		case m.CanRun:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(answer.Matches, func(a, b *kagziv1.MatchWorkersResponse_Match) int {
		return cmp.Compare(rank(a), rank(b))
	})
	return answer, nil
}

// wanted returns what the request asks for: a run, with the counts that the store knows about it, or
// one that is made up from a type, queue and requirements.
func (s *Server) wanted(ctx context.Context, r *kagziv1.MatchWorkersRequest) (c engine.Circumstances, err error) {
	if r.RunId != "" {
		if r.WorkflowType != "" || r.TaskQueue != "" || len(r.Requirements) > 0 {
			return c, engine.Invalid("run_id", "excludes workflow_type, task_queue and requirements")
		}
		namespace, id, err := wire.RunOf(r)
		if err != nil {
			return c, err
		}
		return s.store.ExplainInputs(ctx, namespace, id)
	}
	if c.Run.Namespace, err = wire.NamespaceOf(r.Namespace); err != nil {
		return c, err
	}
	c.Run.Type, c.Run.Queue, c.Run.Requirements = r.WorkflowType, wire.OrDefault(r.TaskQueue), r.Requirements
	return c, cmp.Or(engine.CheckName("workflow_type", c.Run.Type), engine.CheckName("task_queue", c.Run.Queue),
		engine.CheckRequirements("requirements", c.Run.Requirements))
}

// liveWorkers returns up to engine.MaxPage workers of a namespace that are not OFFLINE, newest first,
// and whether there are more.
func (s *Server) liveWorkers(ctx context.Context, namespace string) (live []engine.Worker, more bool, err error) {
	for _, status := range []engine.WorkerStatus{engine.WorkerOnline, engine.WorkerDraining} {
		workers, around, err := s.store.ListWorkers(ctx, engine.WorkerFilter{Namespace: namespace, Status: status},
			engine.Page{Limit: engine.MaxPage})
		if err != nil {
			return nil, false, err
		}
		live, more = append(live, workers...), more || around.HasNext
	}
	if len(live) > engine.MaxPage {
		live, more = live[:engine.MaxPage], true
	}
	for i := range live {
		s.workers.Freshen(&live[i])
	}
	return live, more, nil
}

// countRunning counts the running runs of a queue and type that no run stands for, as far as a limit of
// a worker depends on them.
func (s *Server) countRunning(ctx context.Context, c *engine.Circumstances, workers []engine.Worker) error {
	if !c.Run.ID.IsZero() {
		return nil // ExplainInputs has counted
	}
	running := func(types ...string) (int, error) {
		_, around, err := s.store.ListRuns(ctx, engine.RunFilter{Namespace: c.Run.Namespace,
			Statuses: []engine.RunStatus{engine.RunRunning}, Queues: []string{c.Run.Queue}, Types: types},
			engine.Page{Limit: 1, Count: true})
		return int(around.Total), err
	}
	var err error
	if slices.ContainsFunc(workers, func(w engine.Worker) bool { return w.QueueLimit > 0 }) {
		if c.RunningInQueue, err = running(); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(workers, func(w engine.Worker) bool { return w.TypeLimits[c.Run.Type] > 0 }) {
		c.RunningOfType, err = running(c.Run.Type)
	}
	return err
}
