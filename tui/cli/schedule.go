package cli

import (
	"context"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

func newSchedule(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "schedule", Aliases: []string{"schedules"},
		Short: "Manage schedules, which start runs by a cron expression"}
	cmd.AddCommand(
		newScheduleCreate(e, &scheduleCreateOptions{}),
		newScheduleList(e, &scheduleListOptions{}),
		newScheduleShow(e),
		newScheduleUpdate(e, &scheduleUpdateOptions{}),
		newScheduleDelete(e, &scheduleActOptions{}),
		newSchedulePause(e, &scheduleActOptions{}),
		newScheduleResume(e, &scheduleActOptions{}),
		newScheduleTrigger(e, &scheduleTriggerOptions{}),
		newScheduleBackfill(e, &scheduleBackfillOptions{}),
		newSchedulePreview(e, &schedulePreviewOptions{}),
		newScheduleRuns(e, &scheduleRunsOptions{}),
	)
	e.register(cmd)
	return cmd
}

// schedule returns a schedule by id or name.
func (c *client) schedule(ctx context.Context, id string) (*kagziv1.WorkflowSchedule, error) {
	answer, err := c.GetWorkflowSchedule(ctx,
		&kagziv1.GetWorkflowScheduleRequest{Namespace: c.namespace, ScheduleId: id})
	return answer.GetSchedule(), err
}

// scheduleID returns the id of the schedule that an argument names by id or name.
func (c *client) scheduleID(ctx context.Context, id string) (string, error) {
	if _, err := uuid.Parse(id); err == nil {
		return id, nil
	}
	s, err := c.schedule(ctx, id)
	return s.GetScheduleId(), err
}

// nextFires is the number of upcoming times shown with a schedule.
const nextFires = 5

// next returns the upcoming times of a schedule; nil if it will not fire.
func (c *client) next(ctx context.Context, s *kagziv1.WorkflowSchedule) ([]*timestamppb.Timestamp, error) {
	if !s.GetEnabled() || s.GetBroken() != "" {
		return nil, nil
	}
	return tui.NextTicks(ctx, c, s, nextFires)
}

// printSchedule prints a schedule and its upcoming times. The schedule may just have been changed,
// so a failure to get the times is only reported.
func (c *client) printSchedule(ctx context.Context, s *kagziv1.WorkflowSchedule) error {
	next, err := c.next(ctx, s)
	if err != nil {
		lines, _ := explain(c.placed(err))
		c.out.say("cannot get the next times: %s", lines[0])
	}
	return c.out.print(result{
		human: func() []string {
			lines := render.PairLines(render.SchedulePairs(s, c.view()), c.out.colour)
			if len(s.GetInput().GetData()) > 0 {
				lines = append(append(lines, "", c.out.paint("Input", render.Strong)),
					indent(render.PayloadLines(s.GetInput(), 2048))...)
			}
			if len(next) > 0 {
				lines = append(append(lines, "", c.out.paint("Next", render.Strong)),
					c.out.table(render.TicksTable(next, s.GetTimeZone(), c.view()))...)
			}
			return lines
		},
		document: render.Object{{Name: "schedule", Value: render.Document(s)},
			{Name: "next_fires", Value: render.Documents(next)}},
	})
}

func newScheduleShow(e *env) *cobra.Command {
	return &cobra.Command{
		Use:               "show ID|NAME",
		Short:             "Show a schedule and when it fires next",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error {
				s, err := c.schedule(ctx, args[0])
				if err != nil {
					return err
				}
				return c.printSchedule(ctx, s)
			})
		},
	}
}

type scheduleListOptions struct {
	queue string
	query queryFlag[*kagziv1.WorkflowSchedule]
	page  pageFlags
}

func newScheduleList(e *env, o *scheduleListOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List schedules, newest first",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error { return runScheduleList(ctx, c, o) })
		},
	}
	cmd.Flags().StringVar(&o.queue, "queue", "", "only schedules of this queue")
	o.query.list = &query.Schedules
	o.query.register(cmd, `enabled = true and (type = "report*" or tag.team = "pay")`)
	o.page.register(cmd)
	_ = cmd.RegisterFlagCompletionFunc("queue", e.complete(completeQueues)) // fails only if the flag does not exist
	return cmd
}

func runScheduleList(ctx context.Context, c *client, o *scheduleListOptions) error {
	limit, err := o.page.most()
	if err != nil {
		return err
	}
	if err := o.query.parse(c.now()); err != nil {
		return err
	}
	request := &kagziv1.ListWorkflowSchedulesRequest{Namespace: c.namespace, Query: o.query.text}
	if o.queue != "" {
		request.TaskQueue = &o.queue
	}
	var schedules []*kagziv1.WorkflowSchedule
	tokens, err := eachPage(limit, o.page.token, func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		request.Page = page
		answer, err := c.ListWorkflowSchedules(ctx, request)
		list := o.query.selected(answer.GetSchedules())
		schedules = append(schedules, list...)
		return len(list), answer.GetPage(), err
	})
	if err != nil {
		return err
	}
	return c.out.printList(listed{
		name: "schedules", noun: "schedules", none: "no schedules" + o.query.matching() + " in namespace " + c.namespace,
		items: render.Documents(schedules),
		table: func() render.Table { return render.SchedulesTable(schedules, c.view()) },
	}, tokens)
}

type scheduleRunsOptions struct{ page pageFlags }

func newScheduleRuns(e *env, o *scheduleRunsOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "runs ID|NAME",
		Short:             "List the runs that a schedule started, newest first",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error { return runScheduleRuns(ctx, c, o, args[0]) })
		},
	}
	o.page.register(cmd)
	return cmd
}

func runScheduleRuns(ctx context.Context, c *client, o *scheduleRunsOptions, schedule string) error {
	limit, err := o.page.most()
	if err != nil {
		return err
	}
	id, err := c.scheduleID(ctx, schedule)
	if err != nil {
		return err
	}
	var runs []*kagziv1.Workflow
	tokens, err := eachPage(limit, o.page.token, func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		answer, err := c.ListScheduleRuns(ctx, &kagziv1.ListScheduleRunsRequest{
			Namespace: c.namespace, ScheduleId: id, Page: page})
		runs = append(runs, answer.GetRuns()...)
		return len(answer.GetRuns()), answer.GetPage(), err
	})
	if err != nil {
		return err
	}
	return c.out.printList(listed{
		name: "runs", noun: "runs", none: "schedule " + schedule + " has no runs, or none that are still kept",
		items: render.Documents(runs),
		table: func() render.Table { return render.RunsTable(runs, c.view()) },
	}, tokens)
}
