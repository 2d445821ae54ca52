package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// scheduleActOptions are the options of commands that act on schedules.
type scheduleActOptions struct{ reason string }

// command returns a command that runs do on each schedule named by the arguments; do gets the id.
func (o *scheduleActOptions) command(e *env, cmd *cobra.Command, fields []string,
	do func(context.Context, *client, string) (outcome, error)) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.ValidArgsFunction = e.complete(completeSchedules)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return e.run(cmd, func(ctx context.Context, c *client) error {
			return c.act(ctx, action{id: "schedule", fields: fields,
				do: func(ctx context.Context, c *client, id string) (outcome, error) {
					scheduleID, err := c.scheduleID(ctx, id)
					if err != nil {
						return outcome{}, err
					}
					return do(ctx, c, scheduleID)
				}}, args)
		})
	}
	cmd.Flags().StringVar(&o.reason, "reason", "", "reason, kept in the audit log")
	return cmd
}

func newScheduleDelete(e *env, o *scheduleActOptions) *cobra.Command {
	return o.command(e, &cobra.Command{
		Use:   "delete ID|NAME...",
		Short: "Delete schedules; their runs are kept",
	}, []string{"deleted", "message"}, func(ctx context.Context, c *client, id string) (outcome, error) {
		answer, err := c.DeleteWorkflowSchedule(
			ctx, &kagziv1.DeleteWorkflowScheduleRequest{Namespace: c.namespace, ScheduleId: id, Reason: o.reason})
		line := render.Safe(answer.GetMessage())
		switch {
		case !answer.GetDeleted():
			line = strings.TrimSpace("already deleted  " + line)
		case line == "":
			line = "deleted"
		}
		return outcome{line: line, values: []any{answer.GetDeleted(), answer.GetMessage()}}, err
	})
}

func newSchedulePause(e *env, o *scheduleActOptions) *cobra.Command {
	cmd := o.command(e, &cobra.Command{
		Use:   "pause ID|NAME...",
		Short: "Pause schedules until they are resumed",
	}, scheduleFields, func(ctx context.Context, c *client, id string) (outcome, error) {
		answer, err := c.PauseWorkflowSchedule(ctx,
			&kagziv1.PauseWorkflowScheduleRequest{Namespace: c.namespace, ScheduleId: id, Reason: o.reason})
		return c.scheduleState(answer.GetSchedule()), err
	})
	cmd.Flag("reason").Usage = "reason, shown with the schedule and kept in the audit log"
	return cmd
}

func newScheduleResume(e *env, o *scheduleActOptions) *cobra.Command {
	var catchup int32
	cmd := o.command(e, &cobra.Command{
		Use:   "resume ID|NAME...",
		Short: "Resume paused schedules",
		Long: `Resume paused schedules. Ticks missed during the pause are skipped, and counted so. --catchup fires
the latest of them now, at most this many and at most the schedule's --max-catchup. The newest tick
is not missed if it is at most 10 s old.`,
	}, scheduleFields, func(ctx context.Context, c *client, id string) (outcome, error) {
		answer, err := c.ResumeWorkflowSchedule(ctx, &kagziv1.ResumeWorkflowScheduleRequest{
			Namespace: c.namespace, ScheduleId: id, Reason: o.reason, Catchup: &catchup})
		return c.scheduleState(answer.GetSchedule()), err
	})
	cmd.Flags().Int32Var(&catchup, "catchup", 0, "fire this many of the missed ticks, the latest ones")
	return cmd
}

// scheduleFields are the document fields of a schedule that was paused or resumed.
var scheduleFields = []string{"schedule_id", "enabled", "next_fire_at"}

// scheduleState returns the state of a schedule as an outcome.
func (c *client) scheduleState(s *kagziv1.WorkflowSchedule) outcome {
	cell := render.ScheduleState(s)
	line := c.out.paint(cell.Text, cell.Style)
	switch at := s.GetNextFireAt(); {
	case !s.GetEnabled() && s.GetPauseReason() != "":
		line += "  " + render.Safe(s.GetPauseReason())
	case !s.GetEnabled() || at == nil:
	case at.AsTime().After(c.now()):
		line += "  next " + c.view().Time(at)
	default: // ticks were missed during the pause
		line += "  was due " + c.view().Time(at)
	}
	var next any
	if s.GetNextFireAt() != nil {
		next = render.Document(s.GetNextFireAt())
	}
	return outcome{line: line, values: []any{s.GetScheduleId(), s.GetEnabled(), next}}
}

type scheduleTriggerOptions struct{ requestID string }

func newScheduleTrigger(e *env, o *scheduleTriggerOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "trigger ID|NAME",
		Short:             "Start a run of a schedule now, in addition to its ticks, and print its id",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error {
				return runScheduleTrigger(ctx, c, o, args[0])
			})
		},
	}
	cmd.Flags().StringVar(&o.requestID, "request-id", "",
		"idempotency key of this call, to repeat it safely (default: a new one)")
	return cmd
}

func runScheduleTrigger(ctx context.Context, c *client, o *scheduleTriggerOptions, schedule string) error {
	id, err := c.scheduleID(ctx, schedule)
	if err != nil {
		return err
	}
	request := &kagziv1.TriggerWorkflowScheduleRequest{Namespace: c.namespace, ScheduleId: id, RequestId: o.requestID}
	if request.RequestId == "" {
		request.RequestId = c.newID()
	}
	answer, err := c.TriggerWorkflowSchedule(ctx, request)
	if err != nil {
		return hintedUncertain(err, "to repeat it without a second run add: --request-id "+request.GetRequestId())
	}
	return c.out.print(result{
		human:    func() []string { return []string{render.Safe(answer.GetRunId())} },
		document: render.Document(answer),
	})
}

type schedulePreviewOptions struct {
	zone  string
	count int32
	after string
}

func newSchedulePreview(e *env, o *schedulePreviewOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "preview EXPR",
		Short: "Show when a cron expression fires next, without storing anything",
		Example: `  kagzi schedule preview "0 9 * * 1-5" --zone Europe/Berlin
  kagzi schedule preview "30 2 * * *" --zone America/New_York --after 2026-03-07 --count 3`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return unquoted(len(args))
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			after, err := timeFlag("after", o.after, e.now(), nil)
			if err != nil {
				return err
			}
			if o.count < 1 {
				return usagef("--count is %d; it must be at least 1", o.count)
			}
			request := &kagziv1.PreviewScheduleRequest{
				CronExpr: args[0], TimeZone: o.zone, Count: o.count, After: after}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runSchedulePreview(ctx, c, request) })
		},
	}
	cmd.Flags().StringVar(&o.zone, "zone", "", "time zone of the expression, such as Europe/Berlin (default UTC)")
	cmd.Flags().Int32Var(&o.count, "count", nextFires, "number of times to show, at most 100")
	cmd.Flags().StringVar(&o.after, "after", "",
		"show times after this one: 2026-11-20T12:00:00Z, 2026-11-20 or +2h (default now)")
	return cmd
}

// unquoted reports a cron expression that the shell split into arguments.
func unquoted(arguments int) error {
	return usagef(`got %d arguments; quote the expression: "0 9 * * 1-5"`, arguments)
}

// oneWithCron requires one argument; with --cron, more mean an unquoted expression.
func oneWithCron(cmd *cobra.Command, args []string) error {
	if len(args) > 1 && cmd.Flags().Changed("cron") {
		return unquoted(len(args))
	}
	return cobra.ExactArgs(1)(cmd, args)
}

func runSchedulePreview(ctx context.Context, c *client, request *kagziv1.PreviewScheduleRequest) error {
	answer, err := c.PreviewSchedule(ctx, request)
	if err != nil {
		return err
	}
	if len(answer.GetTicks()) == 0 && c.out.format == "table" {
		c.out.say("it never fires again")
		return nil
	}
	return c.out.print(result{
		human: func() []string {
			return c.out.table(render.TicksTable(answer.GetTicks(), request.GetTimeZone(), c.view()))
		},
		document: render.Document(answer),
	})
}
