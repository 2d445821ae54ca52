package watch

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// watchEvery is the shortest interval at which a watcher reads a run.
const watchEvery = 50 * time.Millisecond

// WatchWorkflow sends the run and its steps, then their changes, until the run ends.
func (s *Service) WatchWorkflow(request *kagziv1.WatchWorkflowRequest,
	stream kagziv1.WorkflowService_WatchWorkflowServer) error {
	ctx := stream.Context()
	namespace, id, err := wire.RunOf(request)
	if err != nil {
		return err
	}
	wake, leave := s.subscribers.subscribe(id)
	defer leave()
	w := runWatch{service: s, namespace: namespace, id: id, send: stream.Send, seen: map[engine.ID]stepState{},
		runOnly: request.GetRunOnly()}
	for {
		began := time.Now()
		ended, err := w.look(ctx)
		if err != nil || ended {
			return err
		}
		// A run whose steps take long to read is read less often, so that watching stays cheap.
		pause := time.NewTimer(max(watchEvery, 10*time.Since(began)))
		err = async.Await(ctx, s.stopping, pause.C)
		pause.Stop()
		if err == nil {
			err = async.Await(ctx, s.stopping, wake)
		}
		if err != nil {
			return err
		}
	}
}

// runWatch holds what was sent to one watcher.
type runWatch struct {
	service   *Service
	namespace string
	id        engine.ID
	send      func(*kagziv1.WatchWorkflowEvent) error
	runOnly   bool // without steps and payloads

	run      *kagziv1.Workflow
	seen     map[engine.ID]stepState
	snapshot bool // the first snapshot is complete
}

// stepState holds the fields of an attempt that can change.
type stepState struct {
	status engine.StepStatus
	latest bool
	wakeAt time.Time
}

// look reads the run and its steps and sends what is new. It reads the run first and sends it last,
// so that the run's end is sent after all its steps.
func (w *runWatch) look(ctx context.Context) (ended bool, err error) {
	run, err := w.service.store.GetRun(ctx, w.namespace, w.id)
	if err != nil {
		return false, err
	}
	if w.runOnly {
		run.Input, run.Output = engine.Payload{}, engine.Payload{}
	} else if err := w.sendSteps(ctx); err != nil {
		return false, err
	}
	if message := wire.RunTo(&run); !proto.Equal(message, w.run) {
		w.run = message
		if err := w.send(&kagziv1.WatchWorkflowEvent{Workflow: message}); err != nil {
			return false, err
		}
	}
	if !w.snapshot {
		w.snapshot = true
		if err := w.send(&kagziv1.WatchWorkflowEvent{SnapshotDone: true}); err != nil {
			return false, err
		}
	}
	return run.Status.Ended(), nil
}

// sendSteps sends new and changed attempts in parts, so that no event is too large.
func (w *runWatch) sendSteps(ctx context.Context) error {
	page := engine.Page{Limit: engine.MaxPage}
	for {
		steps, info, err := w.service.store.ListSteps(ctx, w.namespace, w.id, engine.StepFilter{}, page)
		if err != nil {
			return err
		}
		var changed []*kagziv1.Step
		size := 0
		for i := range steps {
			step := &steps[i]
			now := stepState{step.Status, step.Latest, step.WakeAt}
			if w.seen[step.ID] == now {
				continue
			}
			w.seen[step.ID] = now
			message := wire.StepTo(w.namespace, step)
			changed, size = append(changed, message), size+proto.Size(message)
			if size >= engine.HistoryBytes {
				if err := w.send(&kagziv1.WatchWorkflowEvent{Steps: changed}); err != nil {
					return err
				}
				changed, size = nil, 0
			}
		}
		if len(changed) > 0 {
			if err := w.send(&kagziv1.WatchWorkflowEvent{Steps: changed}); err != nil {
				return err
			}
		}
		if !info.HasNext {
			return nil
		}
		last := steps[len(steps)-1]
		page.After = &engine.Cursor{Number: last.Sequence, Minor: last.Attempt}
	}
}
