package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

type listOptions struct {
	choose chooseFlags
	page   pageFlags
}

func newList(e *env, o *listOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List runs, newest first",
		Long:    "List runs, newest first. Every flag and condition that is given must hold.\n\n" + filterHelp,
		Example: `  kagzi workflow list --status FAILED --since 24h
  kagzi workflow list -q 'type in ("order","refund") and tag.customer = "x"' -o jsonl --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := o.choose.filter()
			if err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runList(ctx, c, f, o.page) })
		},
	}
	o.choose.register(e, cmd)
	o.page.register(cmd)
	return cmd
}

func runList(ctx context.Context, c *client, f filter.Filter, page pageFlags) error {
	limit, err := page.most()
	if err != nil {
		return err
	}
	now, token := c.now(), page.token
	if f.Relative() {
		now, token = begunAt(token, now)
	}
	q, err := c.compileAt(f, now)
	if err != nil {
		return err
	}
	var runs []*kagziv1.Workflow
	tokens, err := c.eachPage(ctx, q, limit, token, func(more []*kagziv1.Workflow) error {
		if c.out.format == "jsonl" { // as they come: a list of millions needs no memory
			return c.out.print(result{items: render.Documents(more)})
		}
		runs = append(runs, more...)
		return nil
	})
	if err != nil {
		return err
	}
	if f.Relative() {
		tokens = tokens.of(now)
	}
	if c.out.format == "jsonl" {
		c.out.sayMore("runs", tokens)
		return nil
	}
	return c.out.printList(listed{
		name: "workflows", noun: "runs", none: fmt.Sprintf("no runs%s in namespace %s", matching(f), c.namespace), items: render.Documents(runs),
		table: func() render.Table { return render.RunsTable(runs, c.view()) },
	}, tokens)
}

func matching(f filter.Filter) string {
	if len(f) == 0 {
		return ""
	}
	return fmt.Sprintf(" match %s", f)
}

type countOptions struct{ choose chooseFlags }

func newCount(e *env, o *countOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "count",
		Short:   "Count runs",
		Long:    "Count runs. Every flag and condition that is given must hold.\n\n" + filterHelp,
		Example: `  kagzi workflow count -q 'status = "FAILED" and created > -1h'`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := o.choose.filter()
			if err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runCount(ctx, c, f) })
		},
	}
	o.choose.register(e, cmd)
	return cmd
}

func runCount(ctx context.Context, c *client, f filter.Filter) error {
	q, err := c.compile(f)
	if err != nil {
		return err
	}
	n, err := c.countRuns(ctx, q)
	if err != nil {
		return err
	}
	return c.out.print(result{
		human:    func() []string { return []string{fmt.Sprint(n)} },
		document: render.Object{{Name: "count", Value: n}},
	})
}
