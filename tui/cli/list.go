package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

// pageFlags say how much of a list to show.
type pageFlags struct {
	limit int
	token string
	all   bool
}

func (f *pageFlags) register(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.limit, "limit", 50, "show at most this many")
	cmd.Flags().StringVar(&f.token, "page-token", "", "go on where an earlier list ended")
	cmd.Flags().BoolVar(&f.all, "all", false, "show all, however many")
}

// most is how many to show, negative for all.
func (f *pageFlags) most() (int, error) {
	switch {
	case f.all:
		return -1, nil
	case f.limit < 1:
		return 0, usagef("--limit is %d; want at least 1, or --all", f.limit)
	}
	return f.limit, nil
}

// sayMore tells people how to get what a list left out.
func (o *output) sayMore(what, token string) {
	if token != "" {
		o.say("there are more %s: go on with --page-token %s, or show all with --all", what, token)
	}
}

// pageDocument is a list as one document: the items under their proto name, and the page's token.
func pageDocument(name string, items []any, token string) render.Object {
	return render.Object{{Name: name, Value: items}, {Name: "page", Value: render.Object{
		{Name: "next_page_token", Value: token}, {Name: "has_more", Value: token != ""},
	}}}
}

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
	q, err := c.compile(f)
	if err != nil {
		return err
	}
	var runs []*kagziv1.Workflow
	shown := 0
	token, err := c.eachPage(ctx, q, limit, page.token, func(more []*kagziv1.Workflow) error {
		shown += len(more)
		if c.out.format == "jsonl" { // as they come: a list of millions needs no memory
			return c.out.print(result{items: render.Documents(more)})
		}
		runs = append(runs, more...)
		return nil
	})
	if err != nil {
		return err
	}
	switch {
	case c.out.format == "jsonl":
		c.out.sayMore("runs", token)
		return nil
	case shown == 0 && c.out.format == "table":
		c.out.say("no runs%s in namespace %s", matching(f), c.namespace)
		return nil
	}
	if err := c.out.print(result{
		human:    func() []string { return c.out.table(render.RunsTable(runs, c.view())) },
		document: pageDocument("workflows", render.Documents(runs), token),
	}); err != nil {
		return err
	}
	c.out.sayMore("runs", token)
	return nil
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
