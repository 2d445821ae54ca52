package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/render"
)

type namespaceDeleteOptions struct {
	force  bool
	yes    bool
	reason string
}

func newNamespaceDelete(e *env, o *namespaceDeleteOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME...",
		Short: "Delete namespaces that are empty, or with --force with everything in them",
		Long: `Delete namespaces. Their audit events are kept.

A namespace with runs, schedules, hooks, workers or keys is not deleted, unless --force is given.
--force disables the namespace, terminates its open runs, and deletes everything in it: runs,
schedules, hooks and workers. A key for this namespace alone is revoked; other keys lose its name. If the command is
interrupted, repeat it.

The command asks for confirmation; -y skips it, and is required without a terminal.`,
		Example: `  kagzi namespace delete staging
  kagzi namespace delete load-test --force -y --reason "test is over"`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: e.complete(completeNamespaces),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error { return runNamespaceDelete(ctx, c, o, args) })
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.force, "force", false, "delete everything in the namespaces too")
	fs.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	fs.StringVar(&o.reason, "reason", "", "reason, kept in the audit log")
	return cmd
}

func runNamespaceDelete(ctx context.Context, c *client, o *namespaceDeleteOptions, names []string) error {
	if !o.yes {
		if err := c.out.askable("-y skips the confirmation"); err != nil {
			return err
		}
		question, err := o.question(ctx, c, names)
		if err != nil {
			return err
		}
		if err := c.out.ask(ctx, question); err != nil {
			return err
		}
	}
	return c.act(ctx, action{id: "namespace", fields: []string{"deleted", "removed"},
		do: func(ctx context.Context, c *client, name string) (outcome, error) {
			removed, err := o.delete(ctx, c, name)
			line := "deleted"
			if text := contentsText(removed); text != "" {
				line += ", with " + text
			}
			return outcome{line: line, values: []any{err == nil, render.Document(removed)}}, err
		}}, names)
}

// delete deletes one namespace, in as many calls as the server needs.
func (o *namespaceDeleteOptions) delete(ctx context.Context, c *client, name string) (*kagziv1.NamespaceContents,
	error) {
	request := &kagziv1.DeleteNamespaceRequest{Namespace: name, Force: o.force, Reason: o.reason}
	removed := &kagziv1.NamespaceContents{}
	for {
		answer, err := c.DeleteNamespace(ctx, request)
		if err != nil {
			return removed, hintedUncertain(err, "it can be repeated: what is deleted stays deleted")
		}
		part := answer.GetRemoved()
		removed.Runs, removed.Schedules = removed.Runs+part.GetRuns(), removed.Schedules+part.GetSchedules()
		removed.Workers, removed.Keys = removed.Workers+part.GetWorkers(), removed.Keys+part.GetKeys()
		if answer.GetDeleted() || !o.force {
			return removed, nil
		}
		request.Again = true
		c.out.say("namespace %s: %s deleted so far", name, flagvalue.Counted(removed.Runs, "run"))
	}
}

// question says what a deletion destroys.
func (o *namespaceDeleteOptions) question(ctx context.Context, c *client, names []string) (string, error) {
	var parts []string
	for _, name := range names {
		part := "namespace " + name
		if o.force {
			stats, err := c.GetStats(ctx, &kagziv1.GetStatsRequest{Namespace: &name})
			if err != nil {
				return "", err
			}
			holds := contentsText(&kagziv1.NamespaceContents{Runs: stats.GetTotalWorkflows(),
				Schedules: stats.GetTotalSchedules(), Workers: stats.GetOnlineWorkers()})
			var open int64
			for _, status := range []string{"PENDING", "RUNNING", "SLEEPING"} {
				open += stats.GetWorkflowsByStatus()[status]
			}
			switch {
			case open > 0:
				part += fmt.Sprintf(" with %s (%s open), and the keys for it alone", holds, flagvalue.Counted(open, "run"))
			case holds != "":
				part += " with " + holds + ", and the keys for it alone"
			}
		}
		parts = append(parts, part)
	}
	return "delete " + strings.Join(parts, "; ") + "? This cannot be undone.", nil
}

// contentsText lists what there is: "3 runs, 1 key".
func contentsText(c *kagziv1.NamespaceContents) string {
	var parts []string
	for _, part := range []struct {
		n    int64
		noun string
	}{{c.GetRuns(), "run"}, {c.GetSchedules(), "schedule"}, {c.GetHooks(), "hook"}, {c.GetWorkers(), "worker"},
		{c.GetKeys(), "key"}} {
		if part.n > 0 {
			parts = append(parts, flagvalue.Counted(part.n, part.noun))
		}
	}
	return strings.Join(parts, ", ")
}
