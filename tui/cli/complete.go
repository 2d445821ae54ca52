package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// completeTime is how long a shell may hang for its suggestions.
const completeTime = time.Second

// completer finds what could stand where the user is typing.
type completer func(ctx context.Context, c *client, typed string) []cobra.Completion

// complete turns a completer into the hook of cobra. A server that does not answer means no suggestions.
func (e *env) complete(from completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, closeConn, err := e.connect(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer func() { _ = closeConn() }() // nothing is left in flight
		parent := cmd.Context()
		if parent == nil {
			parent = context.Background()
		}
		ctx, cancel := context.WithTimeout(parent, completeTime)
		defer cancel()
		return from(ctx, c, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeOne completes the first argument only.
func (e *env) completeOne(from completer) cobra.CompletionFunc {
	complete := e.complete(from)
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// words completes a flag that takes one of a few.
func words(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// suggest keeps what begins as typed; names that would not be harmless in a shell are left out.
func suggest(list []cobra.Completion, typed, name, description string) []cobra.Completion {
	if name == "" || !strings.HasPrefix(name, typed) || render.Safe(name) != name {
		return list
	}
	return append(list, cobra.CompletionWithDesc(name, render.Safe(description)))
}

func completeRuns(ctx context.Context, c *client, typed string) []cobra.Completion {
	request := &kagziv1.ListWorkflowsRequest{Namespace: c.namespace, Page: &kagziv1.PageRequest{PageSize: 30}}
	if typed != "" {
		request.Search = &typed
	}
	answer, _ := c.ListWorkflows(ctx, request) // an error leaves nothing to suggest, here and below
	var list []cobra.Completion
	for _, r := range answer.GetWorkflows() {
		list = suggest(list, typed, r.GetRunId(), r.GetWorkflowType()+" "+render.RunStatus(r.GetStatus()))
	}
	return list
}

func completeTypes(ctx context.Context, c *client, typed string) []cobra.Completion {
	answer, _ := c.ListWorkflowTypes(ctx, &kagziv1.ListWorkflowTypesRequest{Namespace: c.namespace, Page: &kagziv1.PageRequest{PageSize: maxPage}})
	var list []cobra.Completion
	for _, t := range answer.GetWorkflowTypes() {
		list = suggest(list, typed, t.GetWorkflowType(), strings.Join(t.GetTaskQueues(), " "))
	}
	return list
}

func completeQueues(ctx context.Context, c *client, typed string) []cobra.Completion {
	answer, _ := c.GetQueueDepth(ctx, &kagziv1.GetQueueDepthRequest{Namespace: c.namespace})
	var list []cobra.Completion
	for _, q := range answer.GetQueues() {
		list = suggest(list, typed, q.GetTaskQueue(), "")
	}
	return list
}

func completeWorkers(ctx context.Context, c *client, typed string) []cobra.Completion {
	answer, _ := c.ListWorkers(ctx, &kagziv1.ListWorkersRequest{Namespace: c.namespace, Page: &kagziv1.PageRequest{PageSize: 100}})
	var list []cobra.Completion
	for _, w := range answer.GetWorkers() {
		list = suggest(list, typed, w.GetWorkerId(), render.WorkerStatus(w.GetStatus())+" "+w.GetHostname())
	}
	return list
}

func completeNamespaces(ctx context.Context, c *client, typed string) []cobra.Completion {
	answer, _ := c.ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{Page: &kagziv1.PageRequest{PageSize: maxPage}})
	var list []cobra.Completion
	for _, n := range answer.GetNamespaces() {
		list = suggest(list, typed, n.GetNamespace(), n.GetDisplayName())
	}
	return list
}

func completeSchedules(ctx context.Context, c *client, typed string) []cobra.Completion {
	answer, _ := c.ListWorkflowSchedules(ctx, &kagziv1.ListWorkflowSchedulesRequest{Namespace: c.namespace, Page: &kagziv1.PageRequest{PageSize: maxPage}})
	var list []cobra.Completion
	for _, s := range answer.GetSchedules() {
		about := s.GetWorkflowType() + " " + s.GetCronExpr()
		list = suggest(list, typed, s.GetName(), about)
		if s.GetName() == "" || typed != "" { // ids are for those who have begun to type one
			list = suggest(list, typed, s.GetScheduleId(), about)
		}
	}
	return list
}

// stepsOf completes the names of the steps of a run.
func stepsOf(runID string) completer {
	return func(ctx context.Context, c *client, typed string) []cobra.Completion {
		answer, _ := c.ListSteps(ctx, &kagziv1.ListStepsRequest{Namespace: c.namespace, RunId: runID, Page: &kagziv1.PageRequest{PageSize: maxPage}})
		var list []cobra.Completion
		for _, s := range answer.GetSteps() {
			if s.GetIsLatest() {
				list = suggest(list, typed, s.GetName(), render.StepStatus(s.GetStatus()))
			}
		}
		return list
	}
}

// completeStep completes a flag that names a step of the run that is the first argument.
func (e *env) completeStep() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return e.complete(stepsOf(args[0]))(cmd, args, typed)
	}
}

// completeRunAndStep completes a run and then one of its steps.
func (e *env) completeRunAndStep() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return e.complete(completeRuns)(cmd, args, typed)
		case 1:
			return e.completeStep()(cmd, args, typed)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
