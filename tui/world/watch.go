package world

import (
	"context"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	watchInterval = 100 * time.Millisecond
	watchBeat     = 5 * time.Second
	maxNamed      = 200     // runs that one event names
	maxEventBytes = 1 << 20 // of steps in one event
)

// Watch tells what changes in a namespace. Its interval is of our time, not of the world's.
func (w *World) Watch(ctx context.Context, request *kagziv1.WatchRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchEvent], error) {
	return call(w, ctx, "AdminService/Watch", func() (grpc.ServerStreamingClient[kagziv1.WatchEvent], error) {
		namespace, err := namespaceOf(request.Namespace)
		if err != nil {
			return nil, err
		}
		interval := watchInterval
		if request.Interval != nil {
			interval = request.Interval.AsDuration()
		}
		if interval < 50*time.Millisecond || interval > 10*time.Second {
			return nil, invalid("interval", "must be between 50 ms and 10 s, got %s", interval)
		}
		told, sent := w.news.last, time.Time{}
		return open(w, ctx, func() (*kagziv1.WatchEvent, error) {
			now := time.Now()
			silent := now.Sub(sent)
			if silent < interval {
				return nil, await(interval - silent)
			}
			event := w.changedSince(namespace, told)
			if event == nil && silent < watchBeat {
				return nil, await(watchBeat - silent)
			}
			if event == nil {
				event = &kagziv1.WatchEvent{}
			}
			event.At = stamp(w.now)
			told, sent = w.news.last, now
			return event, nil
		}), nil
	})
}

// changedSince is what has changed in a namespace since a change; nil when nothing has.
func (w *World) changedSince(namespace string, told int64) *kagziv1.WatchEvent {
	n := &w.news
	if n.last == told {
		return nil
	}
	event := &kagziv1.WatchEvent{
		WorkflowsChanged: n.started > told || n.forgotten > told, WorkersChanged: n.workers > told, SchedulesChanged: n.schedules > told,
		NamespacesChanged: n.namespaces > told,
	}
	for i := len(n.runs) - 1; i >= 0 && n.runs[i].number > told; i-- {
		r := n.runs[i].run
		if r.changed != n.runs[i].number || r.Namespace != namespace {
			continue // it is named for a later change, or is not of this namespace
		}
		if len(event.Workflows) == maxNamed {
			event.WorkflowsChanged = true
			break
		}
		event.Workflows = append(event.Workflows, r.summary())
	}
	if len(event.Workflows) == 0 && !event.WorkflowsChanged && !event.WorkersChanged && !event.SchedulesChanged && !event.NamespacesChanged {
		return nil
	}
	return event
}

// WatchWorkflow streams the run and its steps as they stand, then what changes, and ends with the end of the run.
func (w *World) WatchWorkflow(ctx context.Context, request *kagziv1.WatchWorkflowRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent], error) {
	return call(w, ctx, "WorkflowService/WatchWorkflow", func() (grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent], error) {
		r, err := w.runOf(request)
		if err != nil {
			return nil, err
		}
		events, over := r.since(-1), ended(r.Status)
		events = append(events, &kagziv1.WatchWorkflowEvent{SnapshotDone: true})
		told := r.changed
		return open(w, ctx, func() (*kagziv1.WatchWorkflowEvent, error) {
			if len(events) == 0 && !over {
				events, over, told = r.since(told), ended(r.Status), r.changed
			}
			switch {
			case len(events) > 0:
				next := events[0]
				events = events[1:]
				return next, nil
			case over:
				return nil, io.EOF
			}
			return nil, await(0)
		}), nil
	})
}

// since is what has changed of the run since a change: the steps, and then the run itself.
func (r *run) since(told int64) []*kagziv1.WatchWorkflowEvent {
	if r.changed <= told {
		return nil
	}
	var events []*kagziv1.WatchWorkflowEvent
	part, size := &kagziv1.WatchWorkflowEvent{}, 0
	for _, s := range inOrder(r.steps) {
		if s.changed <= told {
			continue
		}
		part.Steps = append(part.Steps, proto.CloneOf(s.Step))
		if size += proto.Size(s.Step); size >= maxEventBytes {
			events = append(events, part)
			part, size = &kagziv1.WatchWorkflowEvent{}, 0
		}
	}
	if len(part.Steps) > 0 {
		events = append(events, part)
	}
	return append(events, &kagziv1.WatchWorkflowEvent{Workflow: r.show()})
}
