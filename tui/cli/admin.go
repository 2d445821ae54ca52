package cli

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/render"
)

func newNamespace(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "namespace", Aliases: []string{"namespaces", "ns"},
		Short: "Manage namespaces, which separate teams and environments"}
	cmd.AddCommand(
		newNamespaceCreate(e, &namespaceFlags{}),
		newNamespaceList(e, &namespaceListOptions{}),
		newNamespaceShow(e),
		newNamespaceUpdate(e, &namespaceFlags{}),
		newNamespaceEnable(e, &namespaceActOptions{}),
		newNamespaceDisable(e, &namespaceActOptions{}),
		newNamespaceDelete(e, &namespaceDeleteOptions{}),
	)
	e.register(cmd)
	return cmd
}

// printNamespace prints one namespace.
func (c *client) printNamespace(n *kagziv1.Namespace) error {
	return c.out.print(result{
		human:    func() []string { return render.PairLines(render.NamespacePairs(n, c.view()), c.out.colour) },
		document: render.Object{{Name: "namespace", Value: render.Document(n)}},
	})
}

type namespaceListOptions struct {
	query queryFlag[*kagziv1.Namespace]
	page  pageFlags
}

func newNamespaceList(e *env, o *namespaceListOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List namespaces by name",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error { return runNamespaceList(ctx, c, o) })
		},
	}
	o.query.list = &query.Namespaces
	o.query.register(cmd, `enabled = false or created > -7d`)
	o.page.register(cmd)
	return cmd
}

func runNamespaceList(ctx context.Context, c *client, o *namespaceListOptions) error {
	limit, err := o.page.most()
	if err != nil {
		return err
	}
	if err := o.query.parse(c.now()); err != nil {
		return err
	}
	var namespaces []*kagziv1.Namespace
	tokens, err := eachPage(limit, o.page.token, func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		answer, err := c.ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{Page: page, Query: o.query.text})
		list := o.query.selected(answer.GetNamespaces())
		namespaces = append(namespaces, list...)
		return len(list), answer.GetPage(), err
	})
	if err != nil {
		return err
	}
	return c.out.printList(listed{
		name: "namespaces", noun: "namespaces", none: "no namespaces" + o.query.matching(),
		items: render.Documents(namespaces),
		table: func() render.Table { return render.NamespacesTable(namespaces, c.view()) },
	}, tokens)
}

func newNamespaceShow(e *env) *cobra.Command {
	return &cobra.Command{
		Use:               "show [NAME]",
		Short:             "Show a namespace (default: the one of --namespace)",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: e.completeOne(completeNamespaces),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error {
				name := c.namespace
				if len(args) > 0 {
					name = args[0]
				}
				answer, err := c.GetNamespace(ctx, &kagziv1.GetNamespaceRequest{Namespace: name})
				if err != nil {
					return err
				}
				return c.printNamespace(answer.GetNamespace())
			})
		},
	}
}

// namespaceFlags are the flags of create and update.
type namespaceFlags struct {
	displayName  string
	description  string
	retention    flagvalue.Retention
	keep         flagvalue.Keep
	failureQueue string
	reason       string
}

func (f *namespaceFlags) register(e *env, cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.displayName, "display-name", "", "name to display")
	fs.StringVar(&f.description, "description", "", "what the namespace is for")
	fs.Var(&f.retention, "retention",
		"delete ended runs after this time: 720h, 30d; default restores the server's setting")
	fs.Var(&f.keep, "keep",
		"retention by outcome, overrides --retention: completed=3d,failed=90d; also cancelled, timed_out, terminated")
	fs.StringVar(&f.failureQueue, "failure-queue", "",
		"queue for runs of the global failure handler when no online worker serves it")
	// fails only if the flag does not exist
	_ = cmd.RegisterFlagCompletionFunc("failure-queue", e.complete(completeQueues))
}

func newNamespaceCreate(e *env, o *namespaceFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create a namespace",
		Example: "  kagzi namespace create payments --display-name Payments --retention 30d --keep completed=3d,failed=90d",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &kagziv1.CreateNamespaceRequest{
				Namespace: args[0], DisplayName: o.displayName, FailureTaskQueue: o.failureQueue,
				Retention: o.retention.Duration(), Keep: o.keep.Over(nil),
			}
			if cmd.Flags().Changed("description") {
				request.Description = &o.description
			}
			return e.run(cmd, func(ctx context.Context, c *client) error {
				answer, err := c.CreateNamespace(ctx, request)
				if err != nil {
					return err
				}
				return c.printNamespace(answer.GetNamespace())
			})
		},
	}
	o.register(e, cmd)
	return cmd
}

func newNamespaceUpdate(e *env, o *namespaceFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "update NAME",
		Short: "Update a namespace; flags that are not given keep their values",
		Example: `  kagzi namespace update payments --retention 60d
  kagzi namespace update payments --keep failed=180d,completed=default --reason audit`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeNamespaces),
		RunE: func(cmd *cobra.Command, args []string) error {
			changed := cmd.Flags().Changed
			if !anyOf(changed, []string{"display-name", "description", "retention", "keep", "failure-queue"}) {
				return &usageError{err: usagef("nothing to update: no flags given"),
					hint: []string{"see: " + cmd.CommandPath() + " --help"}}
			}
			return e.run(cmd, func(ctx context.Context, c *client) error {
				return runNamespaceUpdate(ctx, c, o, changed, args[0])
			})
		},
	}
	o.register(e, cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "reason, kept in the audit log")
	return cmd
}

func runNamespaceUpdate(ctx context.Context, c *client, o *namespaceFlags, changed func(string) bool,
	name string) error {
	request := &kagziv1.UpdateNamespaceRequest{Namespace: name, Reason: o.reason}
	if changed("display-name") {
		request.DisplayName = &o.displayName
	}
	if changed("description") {
		request.Description = &o.description
	}
	if changed("failure-queue") {
		request.FailureTaskQueue = &o.failureQueue
	}
	if changed("retention") {
		request.Retention = durationpb.New(o.retention.D)
	}
	if changed("keep") {
		// Keep is replaced as a whole, so send the current values of outcomes that are not given.
		old, err := c.GetNamespace(ctx, &kagziv1.GetNamespaceRequest{Namespace: name})
		if err != nil {
			return err
		}
		request.Keep = &kagziv1.Keep{Keep: o.keep.Over(old.GetNamespace().GetKeep())}
	}
	answer, err := c.UpdateNamespace(ctx, request)
	if err != nil {
		return err
	}
	return c.printNamespace(answer.GetNamespace())
}

type namespaceActOptions struct{ reason string }

func (o *namespaceActOptions) command(e *env, cmd *cobra.Command,
	do func(context.Context, *client, string) (*kagziv1.Namespace, error)) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.ValidArgsFunction = e.complete(completeNamespaces)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return e.run(cmd, func(ctx context.Context, c *client) error {
			return c.act(ctx, action{id: "namespace", fields: []string{"enabled"},
				do: func(ctx context.Context, c *client, name string) (outcome, error) {
					n, err := do(ctx, c, name)
					cell := render.NamespaceState(n)
					return outcome{line: c.out.paint(cell.Text, cell.Style), values: []any{n.GetEnabled()}}, err
				}}, args)
		})
	}
	cmd.Flags().StringVar(&o.reason, "reason", "", "reason, kept in the audit log")
	return cmd
}

func newNamespaceEnable(e *env, o *namespaceActOptions) *cobra.Command {
	return o.command(e, &cobra.Command{
		Use:   "enable NAME...",
		Short: "Enable namespaces: allow starts, claims and schedules again",
	}, func(ctx context.Context, c *client, name string) (*kagziv1.Namespace, error) {
		answer, err := c.EnableNamespace(ctx, &kagziv1.EnableNamespaceRequest{Namespace: name, Reason: o.reason})
		return answer.GetNamespace(), err
	})
}

func newNamespaceDisable(e *env, o *namespaceActOptions) *cobra.Command {
	return o.command(e, &cobra.Command{
		Use:   "disable NAME...",
		Short: "Disable namespaces: block starts, claims and schedules; claimed runs may finish",
	}, func(ctx context.Context, c *client, name string) (*kagziv1.Namespace, error) {
		answer, err := c.DisableNamespace(ctx, &kagziv1.DisableNamespaceRequest{Namespace: name, Reason: o.reason})
		return answer.GetNamespace(), err
	})
}

type auditOptions struct {
	near    nearFlags
	page    pageFlags
	query   queryFlag[*kagziv1.AuditEvent]
	subject string
	since   string
	keys    bool
}

func newAudit(e *env, o *auditOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who changed what, and who was refused, newest first",
		Long: `List changes, newest first: everything that a person or a key did to runs, workers, schedules,
namespaces and keys, and every change that was refused. The normal work of workers is not listed,
nor are starts and signals that were accepted.

The list covers one namespace. Changes to keys belong to no namespace; show them with --keys. A
server deletes entries after 400 days, or as set with its --audit-retention.`,
		Example: `  kagzi audit --since 24h
  kagzi audit --subject 01936b2e-…
  kagzi audit --keys --db default`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.keys && cmd.Flags().Changed("namespace") {
				return usagef("--keys and --namespace cannot be given together: keys belong to no namespace")
			}
			return e.runNear(cmd, &o.near, false, func(ctx context.Context, c *client) error {
				return runAudit(ctx, c, o)
			})
		},
	}
	e.register(cmd)
	o.near.register(cmd)
	o.page.register(cmd)
	cmd.Flags().StringVar(&o.subject, "subject", "",
		"only changes to the run, schedule, worker, namespace or key with this id")
	cmd.Flags().StringVar(&o.since, "since", "",
		"only changes at or after this time: 24h, 2026-11-20, 2026-11-20T12:00:00Z")
	cmd.Flags().BoolVar(&o.keys, "keys", false, "show changes to keys")
	o.query.list = &query.Audit
	o.query.register(cmd, `method = "Terminate*" and not actor = "ci*" and at > -24h`)
	return cmd
}

func runAudit(ctx context.Context, c *client, o *auditOptions) error {
	limit, err := o.page.most()
	if err != nil {
		return err
	}
	if err := o.query.parse(c.now()); err != nil {
		return err
	}
	request := &kagziv1.ListAuditEventsRequest{Namespace: c.namespace, Query: o.query.text}
	none := "no changes" + o.query.matching() + " in namespace " + c.namespace
	if o.keys {
		request.Namespace, none = "", "no changes to keys"+o.query.matching()
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
		info, list := answer.GetPage(), o.query.selected(answer.GetEvents())
		for _, e := range list {
			if !recent(e) {
				// the rest is older
				return len(list), &kagziv1.PageInfo{PrevPageToken: info.GetPrevPageToken()}, err
			}
			events = append(events, e)
		}
		return len(list), info, err
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

// endAtOlder drops the next page's token if the next event is older than --since: the list is
// complete although --limit ended it.
func (c *client) endAtOlder(ctx context.Context, request *kagziv1.ListAuditEventsRequest,
	recent func(*kagziv1.AuditEvent) bool, tokens *pageTokens) error {
	request.Page = &kagziv1.PageRequest{PageSize: 1, PageToken: tokens.behind}
	answer, err := c.ListAuditEvents(ctx, request)
	events := answer.GetEvents()
	older := len(events) > 0 && !recent(events[0])
	if err == nil && (older || len(events) == 0 && !answer.GetPage().GetHasMore()) {
		tokens.behind = ""
	}
	return err
}

// since returns a test for events at or after --since.
func (c *client) since(text string) (func(*kagziv1.AuditEvent) bool, error) {
	if text == "" {
		return func(*kagziv1.AuditEvent) bool { return true }, nil
	}
	at, err := query.ParseTime(past(text), c.now())
	if err != nil {
		return nil, usagef("--since %q: %w", text, err)
	}
	return func(e *kagziv1.AuditEvent) bool { return !e.GetAt().AsTime().Before(at) }, nil
}
