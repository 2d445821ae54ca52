package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// pages reads one page of a list and returns the names of its items.
type pages func(ctx context.Context, p *kagziv1.PageRequest) ([]string, *kagziv1.PageInfo, error)

// named makes pages of a list call.
func named[R, T any](answer R, err error, of func(R) ([]T, *kagziv1.PageInfo), name func(T) string) ([]string,
	*kagziv1.PageInfo, error) {
	if err != nil {
		return nil, nil, err
	}
	items, info := of(answer)
	var names []string
	for _, item := range items {
		names = append(names, name(item))
	}
	return names, info, nil
}

// pagedLists has every list of the contract, with seven items or more each, for run and schedule.
func (s *Server) pagedLists(run, parent, schedule string) map[string]pages {
	return map[string]pages{
		"ListWorkflows": func(ctx context.Context, p *kagziv1.PageRequest) ([]string, *kagziv1.PageInfo, error) {
			a, err := s.workflows().ListWorkflows(
				ctx, &kagziv1.ListWorkflowsRequest{Page: p, ParentRunId: proto.String(parent)})
			return named(a, err, func(a *kagziv1.ListWorkflowsResponse) ([]*kagziv1.Workflow, *kagziv1.PageInfo) {
				return a.Workflows, a.Page
			}, (*kagziv1.Workflow).GetRunId)
		},
		"ListSteps": func(ctx context.Context, p *kagziv1.PageRequest) ([]string, *kagziv1.PageInfo, error) {
			a, err := s.admin().ListSteps(ctx, &kagziv1.ListStepsRequest{Page: p, RunId: run})
			return named(a, err, func(a *kagziv1.ListStepsResponse) ([]*kagziv1.Step, *kagziv1.PageInfo) {
				return a.Steps, a.Page
			}, (*kagziv1.Step).GetStepId)
		},
		"ListSignals": func(ctx context.Context, p *kagziv1.PageRequest) ([]string, *kagziv1.PageInfo, error) {
			a, err := s.workflows().ListSignals(ctx, &kagziv1.ListSignalsRequest{Page: p, RunId: run})
			return named(a, err, func(a *kagziv1.ListSignalsResponse) ([]*kagziv1.Signal, *kagziv1.PageInfo) {
				return a.Signals, a.Page
			}, (*kagziv1.Signal).GetSignalId)
		},
		"ListWorkers": func(ctx context.Context, p *kagziv1.PageRequest) ([]string, *kagziv1.PageInfo, error) {
			a, err := s.admin().ListWorkers(ctx, &kagziv1.ListWorkersRequest{Page: p})
			return named(a, err, func(a *kagziv1.ListWorkersResponse) ([]*kagziv1.Worker, *kagziv1.PageInfo) {
				return a.Workers, a.Page
			}, (*kagziv1.Worker).GetWorkerId)
		},
		"ListWorkflowTypes": func(ctx context.Context, p *kagziv1.PageRequest) ([]string, *kagziv1.PageInfo, error) {
			a, err := s.admin().ListWorkflowTypes(ctx, &kagziv1.ListWorkflowTypesRequest{Page: p})
			return named(a, err, func(a *kagziv1.ListWorkflowTypesResponse) ([]*kagziv1.WorkflowTypeInfo,
				*kagziv1.PageInfo) {
				return a.WorkflowTypes, a.Page
			}, (*kagziv1.WorkflowTypeInfo).GetWorkflowType)
		},
		"ListWorkflowSchedules": func(ctx context.Context, p *kagziv1.PageRequest) ([]string,
			*kagziv1.PageInfo, error) {
			a, err := s.schedules().ListWorkflowSchedules(ctx, &kagziv1.ListWorkflowSchedulesRequest{Page: p})
			return named(a, err, func(a *kagziv1.ListWorkflowSchedulesResponse) ([]*kagziv1.WorkflowSchedule,
				*kagziv1.PageInfo) {
				return a.Schedules, a.Page
			}, (*kagziv1.WorkflowSchedule).GetName)
		},
		"ListScheduleRuns": func(ctx context.Context, p *kagziv1.PageRequest) ([]string, *kagziv1.PageInfo, error) {
			a, err := s.schedules().ListScheduleRuns(
				ctx, &kagziv1.ListScheduleRunsRequest{Page: p, ScheduleId: schedule})
			return named(a, err, func(a *kagziv1.ListScheduleRunsResponse) ([]*kagziv1.Workflow, *kagziv1.PageInfo) {
				return a.Runs, a.Page
			}, (*kagziv1.Workflow).GetRunId)
		},
		"GetQueueDepth": func(ctx context.Context, p *kagziv1.PageRequest) ([]string, *kagziv1.PageInfo, error) {
			a, err := s.admin().GetQueueDepth(ctx, &kagziv1.GetQueueDepthRequest{Page: p})
			return named(a, err, func(a *kagziv1.GetQueueDepthResponse) ([]*kagziv1.QueueDepth, *kagziv1.PageInfo) {
				return a.Queues, a.Page
			}, (*kagziv1.QueueDepth).GetTaskQueue)
		},
		"ListNamespaces": func(ctx context.Context, p *kagziv1.PageRequest) ([]string, *kagziv1.PageInfo, error) {
			a, err := s.namespaces().ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{Page: p})
			return named(a, err, func(a *kagziv1.ListNamespacesResponse) ([]*kagziv1.Namespace, *kagziv1.PageInfo) {
				return a.Namespaces, a.Page
			}, (*kagziv1.Namespace).GetNamespace)
		},
		"ListAuditEvents": func(ctx context.Context, p *kagziv1.PageRequest) ([]string, *kagziv1.PageInfo, error) {
			a, err := s.admin().ListAuditEvents(ctx,
				&kagziv1.ListAuditEventsRequest{Namespace: "default", Page: p, SubjectId: proto.String(parent)})
			return named(a, err, func(a *kagziv1.ListAuditEventsResponse) ([]*kagziv1.AuditEvent, *kagziv1.PageInfo) {
				return a.Events, a.Page
			}, (*kagziv1.AuditEvent).GetReason)
		},
	}
}

// fillLists makes seven of everything, and returns what pagedLists needs and the lists as they
// should read.
func (s *Server) fillLists(t testing.TB) (run, parent, schedule string, want map[string][]string) {
	t.Helper()
	ctx := within(t, time.Minute)
	want = map[string][]string{}
	first := func(list, name string) { want[list] = append([]string{name}, want[list]...) }
	last := func(list, name string) { want[list] = append(want[list], name) }
	run, parent = s.start(t), s.start(t, ofQueue("parents"))
	w := s.register(t)
	task := w.take(t)
	first("ListWorkers", w.id)
	last("ListNamespaces", "default")
	schedule = fine(s.schedules().CreateWorkflowSchedule(ctx, &kagziv1.CreateWorkflowScheduleRequest{
		WorkflowType: "s", TaskQueue: "idle", CronExpr: "@yearly", Name: "schedule-0"}))(t).Schedule.ScheduleId
	first("ListWorkflowSchedules", "schedule-0")
	for i := 1; i <= 7; i++ {
		name := fmt.Sprint(i)
		first("ListWorkflows", s.start(t, ofType("type-"+name), func(r *kagziv1.StartWorkflowRequest) {
			r.ParentRunId = parent
		}))
		last("ListWorkflowTypes", "type-"+name)
		last("ListSteps", w.completeStep(t, task, "step-"+name, "x").StepId)
		fine(s.workflows().SignalWorkflow(ctx, &kagziv1.SignalWorkflowRequest{
			RunId: run, Name: "s", SignalId: "signal-" + name}))(t)
		last("ListSignals", "signal-"+name)
		first("ListWorkers", s.register(t).id)
		s.start(t, ofQueue("queue-"+name))
		last("GetQueueDepth", "queue-"+name)
		first("ListWorkflowSchedules", fine(s.schedules().CreateWorkflowSchedule(
			ctx, &kagziv1.CreateWorkflowScheduleRequest{
				WorkflowType: "s", TaskQueue: "idle", CronExpr: "@yearly", Name: "schedule-" + name}))(t).Schedule.Name)
		first("ListScheduleRuns", fine(s.schedules().TriggerWorkflowSchedule(
			ctx, &kagziv1.TriggerWorkflowScheduleRequest{ScheduleId: schedule}))(t).RunId)
		last("ListNamespaces", fine(s.namespaces().CreateNamespace(
			ctx, &kagziv1.CreateNamespaceRequest{Namespace: "space-" + name}))(t).Namespace.Namespace)
		fine(s.workflows().PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: parent, Reason: "pause-" + name}))(t)
		fine(s.workflows().ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{
			RunId: parent, Reason: "resume-" + name}))(t)
		first("ListAuditEvents", "pause-"+name)
		first("ListAuditEvents", "resume-"+name)
	}
	want["GetQueueDepth"] = slices.Concat([]string{"default", "idle", "parents"}, want["GetQueueDepth"])
	want["ListWorkflowTypes"] = append([]string{"s", "t"}, want["ListWorkflowTypes"]...)
	return run, parent, schedule, want
}

func TestEveryListIsPagedBothWays(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		run, parent, schedule, want := s.fillLists(t)
		lists := s.pagedLists(run, parent, schedule)
		tokens := map[string]string{}
		for name, page := range lists {
			get := func(p *kagziv1.PageRequest) ([]string, *kagziv1.PageInfo) {
				t.Helper()
				names, info, err := page(within(t, 20*time.Second), p)
				if err != nil {
					t.Fatalf("%s with %v: %v", name, p, err)
				}
				return names, info
			}
			var forward, backward [][]string
			var info *kagziv1.PageInfo
			for token, more := "", true; more; token = info.NextPageToken {
				var names []string
				names, info = get(&kagziv1.PageRequest{PageSize: 3, PageToken: token, IncludeTotalCount: true})
				if more = info.HasMore; more != (info.NextPageToken != "") ||
					(info.PrevPageToken == "") != (token == "") ||
					int(info.TotalCount) != len(slices.Concat(forward...))+len(names) && !more {
					t.Errorf("%s: page %d says %v", name, len(forward)+1, info)
				}
				forward = append(forward, names)
				if more {
					tokens[name] = info.NextPageToken
				}
			}
			for token := info.PrevPageToken; token != ""; token = info.PrevPageToken {
				var names []string
				names, info = get(&kagziv1.PageRequest{PageSize: 3, PageToken: token})
				backward = append([][]string{names}, backward...)
				if !info.HasMore || info.NextPageToken == "" {
					t.Errorf("%s: a page that was come to backwards says %v, want more after it", name, info)
				}
			}
			if got := slices.Concat(forward...); !slices.Equal(got, want[name]) {
				t.Errorf("%s reads forward\n%v, want\n%v", name, got, want[name])
			}
			if got, before := slices.Concat(backward...),
				slices.Concat(forward[:len(forward)-1]...); !slices.Equal(got, before) {
				t.Errorf("%s reads backward\n%v, want\n%v", name, got, before)
			}
			// From the end: the last page, and backwards from it.
			var fromEnd []string
			for at, token := info, "end"; token != ""; token = at.PrevPageToken {
				p := &kagziv1.PageRequest{PageSize: 3, PageToken: token}
				if token == "end" {
					p = &kagziv1.PageRequest{PageSize: 3, Last: true}
				}
				var names []string
				names, at = get(p)
				if len(names) != min(3, len(want[name])-len(fromEnd)) || at.HasMore != (token != "end") {
					t.Errorf("%s: from the end comes %v, more after it: %v", name, names, at.HasMore)
				}
				fromEnd = append(slices.Clone(names), fromEnd...)
			}
			if !slices.Equal(fromEnd, want[name]) {
				t.Errorf("%s reads from the end\n%v, want\n%v", name, fromEnd, want[name])
			}
			_, _, err := page(within(t, 20*time.Second), &kagziv1.PageRequest{PageToken: tokens[name], Last: true})
			wantRefused(t, name+" with a token and from the end", err, codes.InvalidArgument, codeInvalid, "page.last")
			// From the first page forward again, by the token in its answer.
			if names, _ := get(&kagziv1.PageRequest{PageSize: 3, PageToken: info.NextPageToken}); !slices.Equal(
				names, forward[1]) {
				t.Errorf("%s: after the way back the second page is %v, want %v", name, names, forward[1])
			}
		}
		for name, page := range lists {
			for other, token := range tokens {
				_, _, err := page(within(t, 20*time.Second), &kagziv1.PageRequest{PageToken: token})
				if (err == nil) != (name == other) || err != nil && detailOf(err).Metadata["field"] != "page_token" {
					t.Errorf("%s with a token of %s: %v", name, other, err)
				}
			}
			for _, token := range []string{"x", "====", "A" + tokens[name][1:], tokens[name][1:]} {
				_, _, err := page(within(t, 20*time.Second), &kagziv1.PageRequest{PageToken: token})
				wantRefused(t, name+" with a forged token", err, codes.InvalidArgument, codeInvalid, "page_token")
			}
		}
	})
}

func TestListsThatAreTooLargeForAnAnswerAreCutBothWays(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		run := s.start(t)
		task := w.take(t)
		var want []string
		for i := range 9 {
			name := fmt.Sprintf("s%d", i)
			fine(s.workers().CompleteStep(ctx, &kagziv1.CompleteStepRequest{
				RunId: run, LeaseToken: task.LeaseToken, StepId: name,
				Output: &kagziv1.Payload{Data: make([]byte, 1<<20)}}))(t)
			want = append(want, name)
		}
		var forward, backward []string
		var info *kagziv1.PageInfo
		get := func(token string) (names []string) {
			a := fine(s.admin().ListSteps(ctx, &kagziv1.ListStepsRequest{
				RunId: run, Page: &kagziv1.PageRequest{PageSize: 100, PageToken: token}}))(t)
			if size := proto.Size(a); size > engine.MaxMessage {
				t.Errorf("an answer has %d bytes", size)
			}
			for _, step := range a.Steps {
				names = append(names, step.Name)
			}
			info = a.Page
			return names
		}
		for token, more := "", true; more; token, more = info.NextPageToken, info.HasMore {
			forward = append(forward, get(token)...)
		}
		last := len(get(info.PrevPageToken)) // anywhere before the last page
		for token := info.NextPageToken; token != ""; token = info.NextPageToken {
			get(token)
		}
		for token := info.PrevPageToken; token != ""; token = info.PrevPageToken {
			backward = append(get(token), backward...)
		}
		if !slices.Equal(forward, want) || len(backward) == 0 || !slices.Equal(backward, want[:len(backward)]) ||
			last == 0 {
			t.Errorf("read forward %v and backward %v, want %v", forward, backward, want)
		}
	})
}
