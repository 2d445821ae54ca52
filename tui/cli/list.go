package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// maxPage is the server's limit for one page.
const maxPage = 1000

// pageFlags select how much of a list to show.
type pageFlags struct {
	limit int
	token string
	all   bool
}

func (f *pageFlags) register(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.limit, "limit", 50, "show at most this many")
	cmd.Flags().StringVar(&f.token, "page-token", "",
		"continue an earlier list at this token")
	cmd.Flags().BoolVar(&f.all, "all", false, "show all, ignoring --limit")
}

// most returns how many to show; negative means all.
func (f *pageFlags) most() (int, error) {
	switch {
	case f.all:
		return -1, nil
	case f.limit < 1:
		return 0, usagef("--limit is %d; it must be at least 1 (or use --all)", f.limit)
	}
	return f.limit, nil
}

// pageTokens are the tokens of the pages before and after a list; empty if there is none.
type pageTokens struct{ before, behind string }

// A server accepts a token only with the same request. If the request depends on now, the token
// carries that time in microseconds, after a mark that no server token has, so that the next page
// counts from the same time.
const (
	momentMark = "."
	momentBase = 36
)

// of adds the time that the list counts from.
func (t pageTokens) of(now time.Time) pageTokens {
	with := func(token string) string {
		if token == "" {
			return ""
		}
		return token + momentMark + strconv.FormatInt(now.UnixMicro(), momentBase)
	}
	return pageTokens{before: with(t.before), behind: with(t.behind)}
}

// begunAt returns the time that a continued list counts from: that of the token, or now, truncated
// to what a token carries. rest is the server's token.
func begunAt(token string, now time.Time) (at time.Time, rest string) {
	if i := strings.LastIndex(token, momentMark); i >= 0 {
		if micros, err := strconv.ParseInt(token[i+len(momentMark):], momentBase, 64); err == nil {
			return time.UnixMicro(micros), token[:i]
		}
	}
	return now.Truncate(time.Microsecond), token
}

// eachPage requests page by page from a token on, until limit items (negative: all) were taken or
// none are left. ask returns how many items of the page it took.
func eachPage(limit int, token string, ask func(*kagziv1.PageRequest) (int, *kagziv1.PageInfo, error)) (pageTokens,
	error) {
	tokens := pageTokens{behind: token}
	for first := true; limit != 0; first = false {
		size := maxPage
		if limit > 0 {
			size = min(limit, maxPage)
		}
		taken, info, err := ask(&kagziv1.PageRequest{PageSize: int32(size), PageToken: tokens.behind})
		if err != nil {
			return pageTokens{}, err
		}
		if first {
			tokens.before = info.GetPrevPageToken()
		}
		if tokens.behind = info.GetNextPageToken(); tokens.behind == "" {
			break
		}
		if limit > 0 {
			limit -= taken
		}
	}
	return tokens, nil
}

// listed is a list for printing.
type listed struct {
	name  string // field of the items in a document: "workflows"
	noun  string // name of the items in messages: "runs"
	none  string // message if there are none
	items []any
	table func() render.Table
}

// printList prints a list gathered from pages, and how to get the rest.
func (o *output) printList(l listed, tokens pageTokens) error {
	if len(l.items) == 0 && o.format == "table" {
		o.say("%s", l.none)
		return nil
	}
	if err := o.print(result{
		human:    func() []string { return o.table(l.table()) },
		document: pageDocument(l.name, l.items, tokens),
		items:    l.items,
	}); err != nil {
		return err
	}
	o.sayMore(l.noun, tokens)
	return nil
}

// sayMore tells how to get the rest of a list.
func (o *output) sayMore(what string, tokens pageTokens) {
	if tokens.behind != "" {
		o.say("there are more %s: continue with --page-token %s, or show all with --all", what, tokens.behind)
	}
	if tokens.before != "" {
		o.say("previous %s: --page-token %s", what, tokens.before)
	}
}

// pageDocument returns a list as one document: the items under their proto name, and the page
// tokens.
func pageDocument(name string, items []any, tokens pageTokens) render.Object {
	return render.Object{{Name: name, Value: items}, {Name: "page", Value: render.Object{
		{Name: "next_page_token", Value: tokens.behind}, {Name: "has_more", Value: tokens.behind != ""},
		{Name: "prev_page_token", Value: tokens.before},
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
		Long:    "List runs, newest first. All given flags and conditions must match.\n\n" + filterHelp,
		Example: `  kagzi workflow list --status FAILED --since 24h
  kagzi workflow list -q 'type in (order, refund) or tag.customer = x' -o jsonl --all`,
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

func runList(ctx context.Context, c *client, f string, page pageFlags) error {
	limit, err := page.most()
	if err != nil {
		return err
	}
	now, token := begunAt(page.token, c.now())
	q, relative, err := c.compileAt(f, now)
	if err != nil {
		return err
	}
	if !relative {
		token = page.token
	}
	var runs []*kagziv1.Workflow
	tokens, err := c.eachPage(ctx, q, limit, token, func(more []*kagziv1.Workflow) error {
		if c.out.format == "jsonl" { // printed as they come, so a long list needs no memory
			return c.out.print(result{items: render.Documents(more)})
		}
		runs = append(runs, more...)
		return nil
	})
	if err != nil {
		return err
	}
	if relative {
		tokens = tokens.of(now)
	}
	if c.out.format == "jsonl" {
		c.out.sayMore("runs", tokens)
		return nil
	}
	return c.out.printList(listed{
		name: "workflows", noun: "runs", none: fmt.Sprintf("no runs%s in namespace %s", matching(f), c.namespace),
		items: render.Documents(runs),
		table: func() render.Table { return render.RunsTable(runs, c.view()) },
	}, tokens)
}

func matching(f string) string {
	if f == "" {
		return ""
	}
	return " match " + f
}

type countOptions struct{ choose chooseFlags }

func newCount(e *env, o *countOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "count",
		Short:   "Count runs",
		Long:    "Count runs. All given flags and conditions must match.\n\n" + filterHelp,
		Example: `  kagzi workflow count -q 'status = FAILED and created > -1h'`,
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

func runCount(ctx context.Context, c *client, f string) error {
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
