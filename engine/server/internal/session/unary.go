package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Register registers a worker.
func (s *Service) Register(ctx context.Context, request *kagziv1.RegisterRequest) (*kagziv1.RegisterResponse, error) {
	worker, err := s.register(ctx, request)
	if err != nil {
		return nil, err
	}
	return s.registeredTo(&worker), nil
}

// Heartbeat records that a worker lives, which keeps its leases.
func (s *Service) Heartbeat(ctx context.Context,
	request *kagziv1.HeartbeatRequest) (*kagziv1.HeartbeatResponse, error) {
	return s.heartbeat(ctx, request, nil, 0)
}

// Deregister makes a worker OFFLINE or, with drain, DRAINING.
func (s *Service) Deregister(ctx context.Context,
	request *kagziv1.DeregisterRequest) (*kagziv1.DeregisterResponse, error) {
	return s.deregister(ctx, request)
}

// BeginStep begins a step.
func (s *Service) BeginStep(ctx context.Context,
	request *kagziv1.BeginStepRequest) (*kagziv1.BeginStepResponse, error) {
	return s.beginStep(ctx, engine.Sequenced{}, request)
}

// CompleteStep records a step's result.
func (s *Service) CompleteStep(ctx context.Context,
	request *kagziv1.CompleteStepRequest) (*kagziv1.CompleteStepResponse, error) {
	lease, step, err := s.completeStep(ctx, engine.Sequenced{}, request)
	if err != nil {
		return nil, err
	}
	return &kagziv1.CompleteStepResponse{Step: wire.StepTo(lease.Namespace, &step)}, nil
}

// FailStep records a step's failure.
func (s *Service) FailStep(ctx context.Context, request *kagziv1.FailStepRequest) (*kagziv1.FailStepResponse, error) {
	defer s.slots.free()
	return s.failStep(ctx, engine.Sequenced{}, request)
}

// Sleep sets a timer and parks the run.
func (s *Service) Sleep(ctx context.Context, request *kagziv1.SleepRequest) (*kagziv1.SleepResponse, error) {
	defer s.slots.free()
	return s.sleep(ctx, engine.Sequenced{}, request, false)
}

// AwaitSignal consumes a signal, or parks the run until one arrives.
func (s *Service) AwaitSignal(ctx context.Context,
	request *kagziv1.AwaitSignalRequest) (*kagziv1.AwaitSignalResponse, error) {
	defer s.slots.free()
	return s.awaitSignal(ctx, engine.Sequenced{}, request)
}

// StartChild starts a child run and records its step.
func (s *Service) StartChild(ctx context.Context,
	request *kagziv1.StartChildRequest) (*kagziv1.StartChildResponse, error) {
	return s.startChild(ctx, engine.Sequenced{}, request)
}

// AwaitChildren returns children that have ended, or parks the run until they have.
func (s *Service) AwaitChildren(ctx context.Context,
	request *kagziv1.AwaitChildrenRequest) (*kagziv1.AwaitChildrenResponse, error) {
	defer s.slots.free()
	return s.awaitChildren(ctx, engine.Sequenced{}, request)
}

// SetRunNote sets a run's note. The request names no namespace, so it tries the key's namespaces in
// turn.
func (s *Service) SetRunNote(ctx context.Context, request *kagziv1.SetNote) (*kagziv1.Ack, error) {
	key := auth.CallerOf(ctx)
	if key == nil || key.ReachesAll() {
		return s.setNote(ctx, engine.Sequenced{}, "", request)
	}
	for _, namespace := range key.Namespaces {
		answer, err := s.setNote(ctx, engine.Sequenced{}, namespace, request)
		if engine.KindOf(err) != engine.KindNotFound {
			return answer, err
		}
	}
	id, err := wire.IDOf("run_id", request.RunId)
	if err != nil {
		return nil, err
	}
	return nil, engine.RunNotFound(id)
}

// CompleteWorkflow ends a run with its result.
func (s *Service) CompleteWorkflow(ctx context.Context,
	request *kagziv1.CompleteWorkflowRequest) (*kagziv1.CompleteWorkflowResponse, error) {
	defer s.slots.free()
	return s.completeWorkflow(ctx, engine.Sequenced{}, request)
}

// FailWorkflow records a failure of a run, which ends or is retried.
func (s *Service) FailWorkflow(ctx context.Context,
	request *kagziv1.FailWorkflowRequest) (*kagziv1.FailWorkflowResponse, error) {
	defer s.slots.free()
	return s.failWorkflow(ctx, engine.Sequenced{}, request)
}

// ReleaseTask gives a run back unfinished.
func (s *Service) ReleaseTask(ctx context.Context,
	request *kagziv1.ReleaseTaskRequest) (*kagziv1.ReleaseTaskResponse, error) {
	defer s.slots.free()
	return s.releaseTask(ctx, engine.Sequenced{}, request)
}

// GetHistory returns the rest of a history that did not fit into its task.
func (s *Service) GetHistory(ctx context.Context,
	request *kagziv1.GetHistoryRequest) (*kagziv1.GetHistoryResponse, error) {
	namespace, id, err := wire.RunOf(request)
	if err != nil {
		return nil, err
	}
	from, err := wire.HistoryPlace(request.Token)
	if err != nil {
		return nil, err
	}
	steps, next, err := s.store.GetHistory(ctx,
		engine.HistoryParams{Namespace: namespace, RunID: id, From: from, Bytes: engine.HistoryBytes})
	if err != nil {
		return nil, err
	}
	hideUnsettled(steps)
	return &kagziv1.GetHistoryResponse{History: wire.StepsTo(namespace, steps),
		NextHistoryToken: wire.HistoryToken(next)}, nil
}

// hideUnsettled makes children that have ended since the claim look open: their results have no place
// in the order of results before the worker asks for them.
func hideUnsettled(steps []engine.Step) {
	for i := range steps {
		if s := &steps[i]; s.Settled == engine.Unsettled && s.Kind == engine.StepChild && s.OverriddenBy == "" {
			s.Status, s.Output, s.Error, s.FinishedAt = engine.StepRunning, engine.Payload{}, nil, time.Time{}
		}
	}
}

// PollTask waits for tasks. It returns an empty answer if none is due in time.
func (s *Service) PollTask(ctx context.Context, request *kagziv1.PollTaskRequest) (*kagziv1.PollTaskResponse, error) {
	wait, err := wire.WaitOf(request.Wait, s.options.PollTimeout)
	if err != nil {
		return nil, err
	}
	most := max(int(request.MaxTasks), 1)
	if request.MaxTasks < 0 || most > engine.MaxBatch {
		return nil, engine.Invalid("max_tasks", "must be between 0 (which means 1) and %d, got %d", engine.MaxBatch,
			request.MaxTasks)
	}
	worker, err := s.poller(ctx, request)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if most, err = s.awaitSlots(ctx, &worker, most, wait); most == 0 || err != nil {
		return &kagziv1.PollTaskResponse{}, err
	}
	defer s.slots.free()
	defer s.slots.drop(worker.ID, most)
	if wait > 0 {
		wait = max(time.Millisecond, wait-time.Since(began)) // 0 would mean not to wait
	}
	p := poll{tasks: make(chan engine.Task, most), refused: make(chan struct{}, 1)}
	ask := matching.Request{
		Worker: &worker, Queues: []string{wire.OrDefault(request.TaskQueue)}, Types: request.WorkflowTypes,
		Deliver: p.deliver, Refused: func() { async.Notify(p.refused) },
	}
	tasks, err := s.takeTasks(ctx, ask, &p, most, wait)
	tasks = append(tasks, p.close()...)
	if errors.Is(err, errRefused) {
		_, err = s.poller(ctx, request) // the reason; nil if the worker is ONLINE again
	}
	if err != nil {
		for _, t := range tasks {
			s.handBack(ctx, t.Lease)
		}
		return nil, err
	}
	return s.polledTo(ctx, tasks), nil
}

// poller returns the worker that polls, or an error if it may not poll for this queue and these
// types.
func (s *Service) poller(ctx context.Context, request *kagziv1.PollTaskRequest) (engine.Worker, error) {
	namespace, err := wire.NamespaceOf(request.Namespace)
	if err != nil {
		return engine.Worker{}, err
	}
	if err := engine.CheckWorkerID("worker_id", request.WorkerId); err != nil {
		return engine.Worker{}, err
	}
	if err := auth.MayActAs(ctx, request.WorkerId); err != nil {
		return engine.Worker{}, err
	}
	if n := len(request.WorkflowTypes); n == 0 || n > engine.MaxTypes {
		return engine.Worker{}, engine.Invalid("workflow_types", "must name 1 to %d types, got %d", engine.MaxTypes, n)
	}
	if err := engine.CheckOptionalName("task_queue", request.TaskQueue); err != nil {
		return engine.Worker{}, err
	}
	for _, name := range request.WorkflowTypes {
		if err := engine.CheckName("workflow_types", name); err != nil {
			return engine.Worker{}, err
		}
	}
	worker, err := s.store.GetWorker(ctx, request.WorkerId)
	refuse := func(text string) (engine.Worker, error) {
		return engine.Worker{}, &engine.Error{Kind: engine.KindPrecondition, Subject: "worker",
			SubjectID: request.WorkerId, Message: text}
	}
	switch {
	case errors.Is(err, engine.ErrNotFound), err == nil &&
		(worker.Status == engine.WorkerOffline || !mayPollAs(ctx, &worker)):
		return refuse("Worker not registered or offline. Call RegisterWorker first.")
	case err != nil:
		return engine.Worker{}, err
	case worker.Status == engine.WorkerDraining:
		return refuse("Worker is draining and not accepting new work")
	case worker.Namespace != namespace:
		return refuse("Worker is registered in another namespace")
	case !slices.Contains(worker.Queues, wire.OrDefault(request.TaskQueue)):
		return refuse("Worker is not registered for this task queue")
	}
	for _, name := range request.WorkflowTypes {
		if !slices.Contains(worker.Types, name) {
			return refuse("Worker is not registered for one of these workflow types")
		}
	}
	return worker, nil
}

// mayPollAs says whether the caller's key owns the worker. Otherwise the worker counts as not
// registered.
func mayPollAs(ctx context.Context, w *engine.Worker) bool {
	key := auth.CallerOf(ctx)
	return key == nil || key.Owns(w)
}

// errRefused says that a claim found the worker not ONLINE.
var errRefused = errors.New("worker refused")

// takeTasks gets tasks for a poll: those that are due now, or the first that is due within wait.
func (s *Service) takeTasks(ctx context.Context, request matching.Request, p *poll, most int,
	wait time.Duration) ([]engine.Task, error) {
	if wait == 0 {
		s.matcher.Poll(ctx, request, most)
		select {
		case <-p.refused:
			return nil, errRefused
		default:
			return nil, nil // the poll has them
		}
	}
	poller := s.matcher.Join(request)
	defer poller.Leave()
	poller.AddCredit(most)
	poller.Look()
	return s.awaitTasks(ctx, p, wait)
}

// awaitTasks waits for the first task.
func (s *Service) awaitTasks(ctx context.Context, p *poll, wait time.Duration) ([]engine.Task, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case t := <-p.tasks:
		return []engine.Task{t}, nil
	case <-timer.C:
		return nil, nil
	case <-p.refused:
		return nil, errRefused
	case <-s.stopping:
		return nil, wire.ErrStopping
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// polledTo returns the answer with these tasks. It releases tasks that do not fit.
func (s *Service) polledTo(ctx context.Context, tasks []engine.Task) *kagziv1.PollTaskResponse {
	response := &kagziv1.PollTaskResponse{}
	size := 0
	for i := range tasks {
		task := wire.TaskTo(&tasks[i], s.options.WorkerLease)
		size += proto.Size(task)
		switch {
		case i == 0:
			response.RunId, response.WorkflowType, response.Input, response.Task = task.RunId, task.WorkflowType,
				task.Input, task
			size += proto.Size(task.Input)
		case size > engine.MaxMessage:
			s.handBack(ctx, tasks[i].Lease)
		default:
			response.More = append(response.More, task)
		}
	}
	return response
}

// handBack releases a run that no worker received.
func (s *Service) handBack(ctx context.Context, l engine.Lease) {
	if err := s.store.Release(context.WithoutCancel(ctx),
		engine.ReleaseParams{Lease: l, Now: s.store.Now()}); err != nil {
		s.log.Warn("run could not be released; the next heartbeat of its worker releases it", "run", l.RunID,
			"error", err)
	}
}

// poll is the receiving end of one long poll.
type poll struct {
	tasks   chan engine.Task // with capacity for all the credit
	refused chan struct{}

	mu     sync.Mutex
	closed bool
}

func (p *poll) deliver(t engine.Task) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.tasks <- t
	return true
}

// close makes deliver return false, and returns the tasks that were delivered.
func (p *poll) close() []engine.Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var tasks []engine.Task
	for {
		select {
		case t := <-p.tasks:
			tasks = append(tasks, t)
		default:
			return tasks
		}
	}
}
