package watch

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// WaitWorkflow waits until the run has ended or the wait times out, and returns the run either way.
func (s *Service) WaitWorkflow(ctx context.Context,
	request *kagziv1.WaitWorkflowRequest) (*kagziv1.WaitWorkflowResponse, error) {
	namespace, id, err := wire.RunOf(request)
	if err != nil {
		return nil, err
	}
	wait, err := wire.WaitOf(request.Wait, engine.MaxPollWait)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	wake := make(waitChannel, 1)
	w := &waiter{id: id, to: wake}
	s.waiters.enter(w)
	defer s.waiters.leave(w)
	for look, over := !s.recent.has(namespace, id), false; ; look = true {
		if look {
			run, err := s.store.GetRun(ctx, namespace, id)
			if err != nil {
				return nil, err
			}
			if run.Status.Ended() || over {
				return &kagziv1.WaitWorkflowResponse{Workflow: wire.RunTo(&run), Finished: run.Status.Ended()}, nil
			}
		}
		select {
		case <-wake:
		case <-timer.C:
			over = true
		case <-s.stopping:
			return nil, wire.ErrStopping
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
