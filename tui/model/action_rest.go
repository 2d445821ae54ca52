package model

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// Drain tells workers to finish their runs and exit.
func (s Scope) Drain(workers []string) Action {
	return s.newAction(Action{
		Name: "drain", Targets: workers, command: []string{"worker", "drain"}, alone: true,
		do: func(ctx context.Context, api tui.API, worker, _ string) (Outcome, error) {
			answer, err := api.DrainWorker(ctx, &kagziv1.DrainWorkerRequest{WorkerId: worker})
			if err == nil && !answer.GetSuccess() {
				err = fmt.Errorf("not drained: %s", answer.GetMessage())
			}
			return Outcome{Text: joined("DRAINING", answer.GetMessage())}, err
		},
	})
}

// ForceOffline takes workers offline at once and releases their runs to other workers.
func (s Scope) ForceOffline(workers []string) Action {
	return s.newAction(Action{
		Name: "force offline", Danger: true, Targets: workers, command: []string{"worker", "offline"}, alone: true,
		do: func(ctx context.Context, api tui.API, worker, _ string) (Outcome, error) {
			answer, err := api.ForceOfflineWorker(ctx, &kagziv1.ForceOfflineWorkerRequest{WorkerId: worker})
			return Outcome{Text: fmt.Sprintf("OFFLINE, runs released: %d", answer.GetReleasedRuns())}, err
		},
	})
}

// CreateSchedule creates a schedule. The action sets the request's namespace and request id.
func (s Scope) CreateSchedule(request *kagziv1.CreateWorkflowScheduleRequest) Action {
	request = proto.CloneOf(request)
	request.Namespace = s.namespace()
	return s.newAction(Action{
		Name: "create schedule", Targets: []string{request.GetWorkflowType()}, command: []string{"schedule", "create"},
		flags: createFlags(request), alone: true,
		do: func(ctx context.Context, api tui.API, _, id string) (Outcome, error) {
			request := proto.CloneOf(request)
			request.RequestId = id
			answer, err := api.CreateWorkflowSchedule(ctx, request)
			return ofSchedule(answer.GetSchedule()), err
		},
	})
}

// UpdateSchedule changes the fields that the request sets; old is the current schedule.
func (s Scope) UpdateSchedule(old *kagziv1.WorkflowSchedule, request *kagziv1.UpdateWorkflowScheduleRequest) Action {
	request = proto.CloneOf(request)
	request.Namespace, request.ScheduleId = s.namespace(), old.GetScheduleId()
	return s.newAction(Action{
		Name: "update schedule", Targets: []string{old.GetScheduleId()}, command: []string{"schedule", "update"},
		flags: updateFlags(old, request), alone: true,
		do: func(ctx context.Context, api tui.API, _, _ string) (Outcome, error) {
			answer, err := api.UpdateWorkflowSchedule(ctx, request)
			return ofSchedule(answer.GetSchedule()), err
		},
	})
}

// PauseSchedules stops schedules from firing until they are resumed.
func (s Scope) PauseSchedules(schedules []string, reason string) Action {
	return s.newAction(Action{
		Name: "pause schedule", Targets: schedules, command: []string{"schedule", "pause"}, flags: reasonFlag(reason),
		do: func(ctx context.Context, api tui.API, id, _ string) (Outcome, error) {
			answer, err := api.PauseWorkflowSchedule(
				ctx, &kagziv1.PauseWorkflowScheduleRequest{Namespace: s.namespace(), ScheduleId: id, Reason: reason})
			return ofSchedule(answer.GetSchedule()), err
		},
	})
}

// ResumeSchedules resumes paused schedules, and fires up to catchup of the ticks missed meanwhile.
func (s Scope) ResumeSchedules(schedules []string, catchup int32, reason string) Action {
	var flags []flag
	if catchup > 0 {
		flags = textFlag("catchup", strconv.Itoa(int(catchup)))
	}
	return s.newAction(Action{
		Name: "resume schedule", Targets: schedules, command: []string{"schedule", "resume"},
		flags: append(flags, reasonFlag(reason)...),
		do: func(ctx context.Context, api tui.API, id, _ string) (Outcome, error) {
			answer, err := api.ResumeWorkflowSchedule(ctx, &kagziv1.ResumeWorkflowScheduleRequest{
				Namespace: s.namespace(), ScheduleId: id, Reason: reason, Catchup: &catchup})
			return ofSchedule(answer.GetSchedule()), err
		},
	})
}

// TriggerSchedules starts a run of each schedule now, in addition to its ticks.
func (s Scope) TriggerSchedules(schedules []string) Action {
	return s.newAction(Action{
		Name: "trigger schedule", Targets: schedules, command: []string{"schedule", "trigger"}, alone: true,
		do: func(ctx context.Context, api tui.API, schedule, id string) (Outcome, error) {
			answer, err := api.TriggerWorkflowSchedule(
				ctx, &kagziv1.TriggerWorkflowScheduleRequest{
					Namespace: s.namespace(), ScheduleId: schedule, RequestId: id})
			return Outcome{Text: "started as " + answer.GetRunId(), ID: answer.GetRunId()}, err
		},
	})
}

// BackfillSchedule starts the runs of the ticks in a span that have none. Without to, the span ends now.
func (s Scope) BackfillSchedule(id string, from, to *timestamppb.Timestamp, reason string) Action {
	flags := append(timeFlag("from", from), timeFlag("to", to)...)
	return s.newAction(Action{
		Name: "backfill schedule", Targets: []string{id}, command: []string{"schedule", "backfill"}, alone: true,
		flags: append(append(flags, flag{name: "yes", bare: true}), reasonFlag(reason)...),
		do: func(ctx context.Context, api tui.API, id, _ string) (Outcome, error) {
			answer, err := api.BackfillWorkflowSchedule(ctx, &kagziv1.BackfillWorkflowScheduleRequest{
				Namespace: s.namespace(), ScheduleId: id, From: from, To: to, Reason: reason})
			started := 0
			for _, tick := range answer.GetTicks() {
				if !tick.GetExisted() {
					started++
				}
			}
			return Outcome{Text: fmt.Sprintf("runs started: %d, ticks that had fired: %d", started,
				len(answer.GetTicks())-started)}, err
		},
	})
}

// DeleteSchedules deletes schedules and keeps the runs that they started.
func (s Scope) DeleteSchedules(schedules []string, reason string) Action {
	return s.newAction(Action{
		Name: "delete schedule", Danger: true, Targets: schedules, command: []string{"schedule", "delete"},
		flags: reasonFlag(reason),
		do: func(ctx context.Context, api tui.API, id, _ string) (Outcome, error) {
			answer, err := api.DeleteWorkflowSchedule(
				ctx, &kagziv1.DeleteWorkflowScheduleRequest{Namespace: s.namespace(), ScheduleId: id, Reason: reason})
			text := "deleted"
			if !answer.GetDeleted() {
				text = "already deleted"
			}
			return Outcome{Text: joined(text, answer.GetMessage())}, err
		},
	})
}

// ofSchedule returns the state of a schedule as the outcome of an action.
func ofSchedule(s *kagziv1.WorkflowSchedule) Outcome {
	return Outcome{Text: render.ScheduleState(s).Text, ID: s.GetScheduleId()}
}

// CreateNamespace creates a namespace.
func (s Scope) CreateNamespace(request *kagziv1.CreateNamespaceRequest) Action {
	request = proto.CloneOf(request)
	flags := textFlag("display-name", request.GetDisplayName())
	flags = append(flags, optionalFlag("description", request.Description)...)
	flags = append(flags, retentionFlags(request.GetRetention(), request.GetKeep())...)
	flags = append(flags, textFlag("failure-queue", request.GetFailureTaskQueue())...)
	return s.newAction(Action{
		Name: "create namespace", Targets: []string{request.GetNamespace()}, command: []string{"namespace", "create"},
		flags: flags, alone: true,
		do: func(ctx context.Context, api tui.API, _, _ string) (Outcome, error) {
			answer, err := api.CreateNamespace(ctx, request)
			return Outcome{Text: "created", ID: answer.GetNamespace().GetNamespace()}, err
		},
	})
}

// EnableNamespaces enables disabled namespaces.
func (s Scope) EnableNamespaces(names []string, reason string) Action {
	return s.newAction(Action{
		Name: "enable namespace", Targets: names, command: []string{"namespace", "enable"}, flags: reasonFlag(reason),
		do: func(ctx context.Context, api tui.API, name, _ string) (Outcome, error) {
			answer, err := api.EnableNamespace(ctx, &kagziv1.EnableNamespaceRequest{Namespace: name, Reason: reason})
			return Outcome{Text: render.NamespaceState(answer.GetNamespace()).Text}, err
		},
	})
}

// DeleteNamespaces deletes empty namespaces, or with force everything in them, too.
func (s Scope) DeleteNamespaces(names []string, force bool, reason string) Action {
	flags := []flag{{name: "yes", bare: true}}
	if force {
		flags = append(flags, flag{name: "force", bare: true})
	}
	return s.newAction(Action{
		Name: "delete namespace", Danger: true, Targets: names, command: []string{"namespace", "delete"},
		flags: append(flags, reasonFlag(reason)...),
		do: func(ctx context.Context, api tui.API, name, _ string) (Outcome, error) {
			request := &kagziv1.DeleteNamespaceRequest{Namespace: name, Force: force, Reason: reason}
			for { // the server deletes a large namespace in parts
				answer, err := api.DeleteNamespace(ctx, request)
				if err != nil || answer.GetDeleted() || !force {
					return Outcome{Text: "deleted"}, err
				}
				request.Again = true
			}
		},
	})
}

// DisableNamespaces disables namespaces: no run starts or is claimed there, and no schedule fires.
func (s Scope) DisableNamespaces(names []string, reason string) Action {
	return s.newAction(Action{
		Name: "disable namespace", Danger: true, Targets: names, command: []string{"namespace", "disable"},
		flags: reasonFlag(reason),
		do: func(ctx context.Context, api tui.API, name, _ string) (Outcome, error) {
			answer, err := api.DisableNamespace(ctx, &kagziv1.DisableNamespaceRequest{Namespace: name, Reason: reason})
			return Outcome{Text: render.NamespaceState(answer.GetNamespace()).Text}, err
		},
	})
}
