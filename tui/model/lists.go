package model

import (
	"context"
	"time"

	"github.com/google/uuid"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

const (
	listEvery = 500 * time.Millisecond // least time between two loads of a list
	runsEvery = time.Second            // the same for a list that depends on runs
)

// NewWorkers returns the workers of the namespace. They are also reloaded with each message of the
// stream, for their heartbeats and loads.
func NewWorkers(l *Link) *Collection[*kagziv1.Worker] {
	return newWorkers(l, func(c Change) bool { return c.WorkersChanged || c.Beat })
}

func newWorkers(l *Link, concerns func(Change) bool) *Collection[*kagziv1.Worker] {
	return newCollection(l, source[*kagziv1.Worker]{
		every: runsEvery, most: collectionMost, concerns: concerns,
		key: (*kagziv1.Worker).GetWorkerId,
		text: func(w *kagziv1.Worker) []string {
			texts := []string{w.GetWorkerId(), w.GetHostname(), w.GetVersion(), w.GetPlatform(), w.GetTaskQueue(),
				render.WorkerStatus(w.GetStatus())}
			texts = append(append(texts, w.GetTaskQueues()...), w.GetWorkflowTypes()...)
			return appendPairs(appendPairs(texts, w.GetLabels()), w.GetCapabilities())
		},
		read: func(namespace string) func(context.Context, *kagziv1.PageRequest) ([]*kagziv1.Worker,
			*kagziv1.PageInfo, error) {
			return func(ctx context.Context, page *kagziv1.PageRequest) ([]*kagziv1.Worker, *kagziv1.PageInfo, error) {
				answer, err := l.api.ListWorkers(ctx, &kagziv1.ListWorkersRequest{Namespace: namespace, Page: page})
				return answer.GetWorkers(), answer.GetPage(), err
			}
		},
	})
}

// NewSchedules returns the schedules of the namespace.
func NewSchedules(l *Link) *Collection[*kagziv1.WorkflowSchedule] {
	return newCollection(l, source[*kagziv1.WorkflowSchedule]{
		every: listEvery, most: collectionMost,
		concerns: func(c Change) bool { return c.SchedulesChanged },
		key:      (*kagziv1.WorkflowSchedule).GetScheduleId,
		text: func(s *kagziv1.WorkflowSchedule) []string {
			return appendPairs([]string{s.GetScheduleId(), s.GetName(), s.GetWorkflowType(), s.GetTaskQueue(),
				s.GetCronExpr(), s.GetTimeZone(), s.GetBroken()}, s.GetTags())
		},
		read: func(namespace string) func(context.Context, *kagziv1.PageRequest) ([]*kagziv1.WorkflowSchedule,
			*kagziv1.PageInfo, error) {
			return func(ctx context.Context, page *kagziv1.PageRequest) ([]*kagziv1.WorkflowSchedule,
				*kagziv1.PageInfo, error) {
				answer, err := l.api.ListWorkflowSchedules(
					ctx, &kagziv1.ListWorkflowSchedulesRequest{Namespace: namespace, Page: page})
				return answer.GetSchedules(), answer.GetPage(), err
			}
		},
	})
}

// NewQueues returns the queues of the namespace with their backlog.
func NewQueues(l *Link) *Collection[*kagziv1.QueueDepth] {
	return newCollection(l, source[*kagziv1.QueueDepth]{
		every: runsEvery, most: collectionMost,
		concerns: func(c Change) bool { return someRuns(c) || c.WorkersChanged },
		key:      (*kagziv1.QueueDepth).GetTaskQueue,
		text:     func(q *kagziv1.QueueDepth) []string { return []string{q.GetTaskQueue()} },
		read: func(namespace string) func(context.Context, *kagziv1.PageRequest) ([]*kagziv1.QueueDepth,
			*kagziv1.PageInfo, error) {
			return func(ctx context.Context, page *kagziv1.PageRequest) ([]*kagziv1.QueueDepth,
				*kagziv1.PageInfo, error) {
				answer, err := l.api.GetQueueDepth(ctx, &kagziv1.GetQueueDepthRequest{Namespace: namespace, Page: page})
				return answer.GetQueues(), answer.GetPage(), err
			}
		},
	})
}

// NewNamespaces returns all namespaces of the server.
func NewNamespaces(l *Link) *Collection[*kagziv1.Namespace] {
	return newCollection(l, source[*kagziv1.Namespace]{
		every: listEvery, most: collectionMost,
		concerns: func(c Change) bool { return c.NamespacesChanged },
		key:      (*kagziv1.Namespace).GetNamespace,
		text: func(n *kagziv1.Namespace) []string {
			return []string{n.GetNamespace(), n.GetDisplayName(), n.GetDescription()}
		},
		read: func(string) func(context.Context, *kagziv1.PageRequest) ([]*kagziv1.Namespace,
			*kagziv1.PageInfo, error) {
			return func(ctx context.Context, page *kagziv1.PageRequest) ([]*kagziv1.Namespace,
				*kagziv1.PageInfo, error) {
				answer, err := l.api.ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{Page: page})
				return answer.GetNamespaces(), answer.GetPage(), err
			}
		},
	})
}

// NewTypes returns the workflow types that have runs in the namespace.
func NewTypes(l *Link) *Collection[*kagziv1.WorkflowTypeInfo] {
	return newCollection(l, source[*kagziv1.WorkflowTypeInfo]{
		every: 10 * runsEvery, most: collectionMost, // counting runs by type costs a scan, and new types are rare
		concerns: func(c Change) bool { return c.RunsChanged },
		key:      (*kagziv1.WorkflowTypeInfo).GetWorkflowType,
		text: func(t *kagziv1.WorkflowTypeInfo) []string {
			return append([]string{t.GetWorkflowType()}, t.GetTaskQueues()...)
		},
		read: func(namespace string) func(context.Context, *kagziv1.PageRequest) ([]*kagziv1.WorkflowTypeInfo,
			*kagziv1.PageInfo, error) {
			return func(ctx context.Context, page *kagziv1.PageRequest) ([]*kagziv1.WorkflowTypeInfo,
				*kagziv1.PageInfo, error) {
				answer, err := l.api.ListWorkflowTypes(
					ctx, &kagziv1.ListWorkflowTypesRequest{Namespace: namespace, Page: page})
				return answer.GetWorkflowTypes(), answer.GetPage(), err
			}
		},
	})
}

// scheduleRunsMost limits the listed runs of a schedule.
const scheduleRunsMost = 100

// NewScheduleRuns returns the latest 100 runs of a schedule, by its id or name, newest first.
func NewScheduleRuns(l *Link, scheduleID string) *Collection[*kagziv1.Workflow] {
	named := uuid.Validate(scheduleID) != nil // runs refer to their schedule by id only
	s := ofRuns(l, scheduleRunsMost, func(c Change) bool {
		return c.RunsChanged || c.SchedulesChanged || anyRun(c, func(r *kagziv1.Workflow) bool {
			return r.GetScheduleId() == scheduleID || named && r.GetScheduleId() != ""
		})
	}, nil)
	s.read = func(namespace string) func(context.Context, *kagziv1.PageRequest) ([]*kagziv1.Workflow,
		*kagziv1.PageInfo, error) {
		return func(ctx context.Context, page *kagziv1.PageRequest) ([]*kagziv1.Workflow, *kagziv1.PageInfo, error) {
			answer, err := l.api.ListScheduleRuns(
				ctx, &kagziv1.ListScheduleRunsRequest{Namespace: namespace, ScheduleId: scheduleID, Page: page})
			return answer.GetRuns(), answer.GetPage(), err
		}
	}
	return newCollection(l, s)
}

// NewHeldRuns returns the runs that a worker holds.
func NewHeldRuns(l *Link, workerID string) *Collection[*kagziv1.Workflow] {
	return newCollection(l, ofRuns(l, collectionMost, someRuns, func(r *kagziv1.ListWorkflowsRequest) {
		r.WorkerId, r.Statuses = &workerID, []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING}
	}))
}

// finishedMost limits the listed runs that ended on a worker.
const finishedMost = 50

// NewFinishedBy returns the newest 50 runs that ended on a worker.
func NewFinishedBy(l *Link, workerID string) *Collection[*kagziv1.Workflow] {
	return newCollection(l, ofRuns(l, finishedMost, someRuns, func(r *kagziv1.ListWorkflowsRequest) {
		r.WorkerId, r.Statuses = &workerID, endedStatuses
	}))
}

// newChildren returns the runs that a run started.
func newChildren(l *Link, runID string) *Collection[*kagziv1.Workflow] {
	return newCollection(l, ofRuns(l, collectionMost, func(c Change) bool {
		return c.RunsChanged || anyRun(c, func(r *kagziv1.Workflow) bool { return r.GetParentRunId() == runID })
	}, func(r *kagziv1.ListWorkflowsRequest) { r.ParentRunId = &runID }))
}

var endedStatuses = []kagziv1.WorkflowStatus{
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED,
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT,
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED,
}

// ofRuns returns the list of runs that match a request.
func ofRuns(l *Link, most int, concerns func(Change) bool,
	choose func(*kagziv1.ListWorkflowsRequest)) source[*kagziv1.Workflow] {
	return source[*kagziv1.Workflow]{
		every: runsEvery, most: most, concerns: concerns,
		key: (*kagziv1.Workflow).GetRunId,
		text: func(r *kagziv1.Workflow) []string {
			return []string{r.GetRunId(), r.GetExternalId(), r.GetWorkflowType(), render.RunStatus(r.GetStatus()),
				r.GetNote(), r.GetError().GetMessage()}
		},
		read: func(namespace string) func(context.Context, *kagziv1.PageRequest) ([]*kagziv1.Workflow,
			*kagziv1.PageInfo, error) {
			return func(ctx context.Context, page *kagziv1.PageRequest) ([]*kagziv1.Workflow,
				*kagziv1.PageInfo, error) {
				request := &kagziv1.ListWorkflowsRequest{Namespace: namespace, Page: page}
				choose(request)
				answer, err := l.api.ListWorkflows(ctx, request)
				return answer.GetWorkflows(), answer.GetPage(), err
			}
		},
	}
}

// someRuns reports whether a change is about runs. The previous worker of a run is not known, so
// any run may matter.
func someRuns(c Change) bool { return c.RunsChanged || len(c.Runs) > 0 }

func anyRun(c Change, is func(*kagziv1.Workflow) bool) bool {
	for _, r := range c.Runs {
		if is(r) {
			return true
		}
	}
	return false
}

func appendPairs(texts []string, m map[string]string) []string {
	for k, v := range m {
		texts = append(texts, k+"="+v)
	}
	return texts
}
