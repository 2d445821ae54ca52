package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/render"
)

type scheduleBackfillOptions struct {
	from, to string
	reason   string
	yes      bool
}

func newScheduleBackfill(e *env, o *scheduleBackfillOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backfill ID|NAME --from TIME",
		Short: "Start the runs of a schedule's past ticks that have none yet",
		Long: `Start the runs of a schedule's past ticks that have none yet, at most 1,000 at once.

The runs have the ids and scheduled times of their ticks. A tick that has fired already does not fire
again, so the command can be repeated. It ignores the overlap policy and works while the schedule is
paused. The command asks for confirmation; -y skips it, and is required without a terminal.`,
		Example: `  kagzi schedule backfill daily-report --from 2026-11-01 --to 2026-11-08
  kagzi schedule backfill daily-report --from -6h -y`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := o.request(e.now())
			if err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error {
				return runScheduleBackfill(ctx, c, o, request, args[0])
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.from, "from", "", "first tick at or after this time: 2026-11-20T12:00:00Z, 2026-11-20 or -6h")
	fs.StringVar(&o.to, "to", "", "last tick at or before this time (default now)")
	fs.StringVar(&o.reason, "reason", "", "reason, kept in the audit log")
	fs.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func (o *scheduleBackfillOptions) request(now time.Time) (*kagziv1.BackfillWorkflowScheduleRequest, error) {
	if o.from == "" {
		return nil, usagef("--from is required")
	}
	r := &kagziv1.BackfillWorkflowScheduleRequest{Reason: o.reason}
	var err error
	if r.From, err = timeFlag("from", o.from, now, nil); err != nil {
		return nil, err
	}
	r.To, err = timeFlag("to", o.to, now, nil)
	return r, err
}

func runScheduleBackfill(ctx context.Context, c *client, o *scheduleBackfillOptions,
	request *kagziv1.BackfillWorkflowScheduleRequest, schedule string) error {
	if !o.yes {
		if err := c.out.askable("-y skips the confirmation"); err != nil {
			return err
		}
	}
	s, err := c.schedule(ctx, schedule)
	if err != nil {
		return err
	}
	request.Namespace, request.ScheduleId = c.namespace, s.GetScheduleId()
	if !o.yes {
		until := "now"
		if request.To != nil {
			until = request.GetTo().AsTime().Format(time.RFC3339)
		}
		question := fmt.Sprintf("start a run for each tick of %q from %s to %s that has none?", s.GetCronExpr(),
			request.GetFrom().AsTime().Format(time.RFC3339), until)
		if err := c.out.ask(ctx, question); err != nil {
			return err
		}
	}
	answer, err := c.BackfillWorkflowSchedule(ctx, request)
	if err != nil {
		return hintedUncertain(err, "it can be repeated: ticks that have fired do not fire again")
	}
	started := int64(0)
	for _, tick := range answer.GetTicks() {
		if !tick.GetExisted() {
			started++
		}
	}
	return c.out.print(result{
		human: func() []string {
			line := flagvalue.Counted(started, "run") + " started"
			if fired := int64(len(answer.GetTicks())) - started; fired > 0 {
				line += ", " + flagvalue.Counted(fired, "tick") + " had fired before"
			}
			return append(c.out.table(render.BackfillTable(answer.GetTicks())), line)
		},
		document: render.Document(answer),
	})
}
