package cli

import (
	"context"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

type auditOptions struct {
	near    nearFlags
	page    pageFlags
	subject string
	since   string
	keys    bool
}

func newAudit(e *env, o *auditOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "See who changed what, and who was refused, newest first",
		Long: `See who changed what, newest first: everything that a person or a key did to runs, workers, schedules, namespaces and keys, and every
change that was refused. What workers do in their work is not here, nor are starts and signals that were let in.

The list is of one namespace; what was done to keys belongs to none and is shown with --keys. A server forgets what is older than 400
days, or than its --audit-retention.`,
		Example: `  kagzi audit --since 24h
  kagzi audit --subject 01936b2e-…
  kagzi audit --keys --db default`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.keys && cmd.Flags().Changed("namespace") {
				return usagef("--keys and --namespace cannot be given together: keys belong to no namespace")
			}
			return e.runNear(cmd, &o.near, false, func(ctx context.Context, c *client) error { return runAudit(ctx, c, o) })
		},
	}
	e.register(cmd)
	o.near.register(cmd)
	o.page.register(cmd)
	cmd.Flags().StringVar(&o.subject, "subject", "", "only what was done to this run, schedule, worker, namespace or key: its id")
	cmd.Flags().StringVar(&o.since, "since", "", "only what was done at or after this time: 24h, 2026-11-20, 2026-11-20T12:00:00Z")
	cmd.Flags().BoolVar(&o.keys, "keys", false, "what was done to keys")
	return cmd
}

func runAudit(ctx context.Context, c *client, o *auditOptions) error {
	limit, err := o.page.most()
	if err != nil {
		return err
	}
	request := &kagziv1.ListAuditEventsRequest{Namespace: c.namespace}
	none := "nothing was changed in namespace " + c.namespace
	if o.keys {
		request.Namespace, none = "", "nothing was done to keys"
	}
	if o.subject != "" {
		request.SubjectId = &o.subject
		none += " with subject " + o.subject
	}
	if o.since != "" {
		none += " since " + o.since
	}
	recent, err := c.since(o.since)
	if err != nil {
		return err
	}
	var events []*kagziv1.AuditEvent
	tokens, err := eachPage(limit, o.page.token, func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		request.Page = page
		answer, err := c.ListAuditEvents(ctx, request)
		info := answer.GetPage()
		for _, e := range answer.GetEvents() {
			if !recent(e) {
				return len(answer.GetEvents()), &kagziv1.PageInfo{PrevPageToken: info.GetPrevPageToken()}, err // what follows is older
			}
			events = append(events, e)
		}
		return len(answer.GetEvents()), info, err
	})
	if err == nil && o.since != "" && tokens.behind != "" {
		err = c.endAtOlder(ctx, request, recent, &tokens)
	}
	if err != nil {
		return err
	}
	return c.out.printList(listed{
		name: "audit_events", noun: "events", none: none, items: render.Documents(events),
		table: func() render.Table { return render.ChangesTable(events, c.view()) },
	}, tokens)
}

// endAtOlder takes the way on from a list whose next event is too old for it: --limit ended it where it would have ended anyway.
func (c *client) endAtOlder(ctx context.Context, request *kagziv1.ListAuditEventsRequest, recent func(*kagziv1.AuditEvent) bool, tokens *pageTokens) error {
	request.Page = &kagziv1.PageRequest{PageSize: 1, PageToken: tokens.behind}
	answer, err := c.ListAuditEvents(ctx, request)
	if events := answer.GetEvents(); err == nil && (len(events) == 0 || !recent(events[0])) {
		tokens.behind = ""
	}
	return err
}

// since says which events are as new as --since wants them.
func (c *client) since(text string) (func(*kagziv1.AuditEvent) bool, error) {
	if text == "" {
		return func(*kagziv1.AuditEvent) bool { return true }, nil
	}
	at, err := filter.ParseTime(past(text), c.now())
	if err != nil {
		return nil, usagef("--since %q: %w", text, err)
	}
	return func(e *kagziv1.AuditEvent) bool { return !e.GetAt().AsTime().Before(at) }, nil
}
