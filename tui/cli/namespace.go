package cli

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

func newNamespace(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "namespace", Aliases: []string{"namespaces", "ns"}, Short: "Keep the runs, workers and schedules of teams and stages apart"}
	cmd.AddCommand(
		newNamespaceCreate(e, &namespaceFlags{}),
		newNamespaceList(e, &pageFlags{}),
		newNamespaceShow(e),
		newNamespaceUpdate(e, &namespaceFlags{}),
		newNamespaceEnable(e, &namespaceActOptions{}),
		newNamespaceDisable(e, &namespaceActOptions{}),
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

func newNamespaceList(e *env, o *pageFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List namespaces by name",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error { return runNamespaceList(ctx, c, o) })
		},
	}
	o.register(cmd)
	return cmd
}

func runNamespaceList(ctx context.Context, c *client, o *pageFlags) error {
	limit, err := o.most()
	if err != nil {
		return err
	}
	var namespaces []*kagziv1.Namespace
	tokens, err := eachPage(limit, o.token, func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		answer, err := c.ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{Page: page})
		namespaces = append(namespaces, answer.GetNamespaces()...)
		return len(answer.GetNamespaces()), answer.GetPage(), err
	})
	if err != nil {
		return err
	}
	return c.out.printList(listed{
		name: "namespaces", noun: "namespaces", none: "no namespaces", items: render.Documents(namespaces),
		table: func() render.Table { return render.NamespacesTable(namespaces, c.view()) },
	}, tokens)
}

func newNamespaceShow(e *env) *cobra.Command {
	return &cobra.Command{
		Use:               "show [NAME]",
		Short:             "Show a namespace; without a name the one that --namespace says",
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

// namespaceFlags are what create and update say of a namespace.
type namespaceFlags struct {
	displayName  string
	description  string
	retention    retentionValue
	keep         keepValue
	failureQueue string
	reason       string
}

func (f *namespaceFlags) register(e *env, cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.displayName, "display-name", "", "name for people")
	fs.StringVar(&f.description, "description", "", "what it is for")
	fs.Var(&f.retention, "retention", "delete ended runs after this long: 720h, 30d; default goes back to the server's setting")
	fs.Var(&f.keep, "keep", "retention by outcome, before --retention: completed=3d,failed=90d; also cancelled, timed_out, terminated")
	fs.StringVar(&f.failureQueue, "failure-queue", "", "queue of the global failure handler's runs when no online worker serves it")
	_ = cmd.RegisterFlagCompletionFunc("failure-queue", e.complete(completeQueues)) // fails only for a flag that is not there
}

func newNamespaceCreate(e *env, o *namespaceFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Make a namespace",
		Example: "  kagzi namespace create payments --display-name Payments --retention 30d --keep completed=3d,failed=90d",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &kagziv1.CreateNamespaceRequest{
				Namespace: args[0], DisplayName: o.displayName, FailureTaskQueue: o.failureQueue, Retention: o.retention.duration(), Keep: o.keep.over(nil),
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
		Short: "Change what is named of a namespace; all else stays",
		Example: `  kagzi namespace update payments --retention 60d
  kagzi namespace update payments --keep failed=180d,completed=default --reason audit`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeNamespaces),
		RunE: func(cmd *cobra.Command, args []string) error {
			changed := cmd.Flags().Changed
			if !anyOf(changed, []string{"display-name", "description", "retention", "keep", "failure-queue"}) {
				return &usageError{err: usagef("nothing to change is named"), hint: []string{"see: " + cmd.CommandPath() + " --help"}}
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runNamespaceUpdate(ctx, c, o, changed, args[0]) })
		},
	}
	o.register(e, cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why, for whoever looks at the namespace later")
	return cmd
}

func runNamespaceUpdate(ctx context.Context, c *client, o *namespaceFlags, changed func(string) bool, name string) error {
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
		request.Retention = durationpb.New(o.retention.d)
	}
	if changed("keep") { // goes over the wire whole: the outcomes that are not named stay because they are sent as they were
		old, err := c.GetNamespace(ctx, &kagziv1.GetNamespaceRequest{Namespace: name})
		if err != nil {
			return err
		}
		request.Keep = &kagziv1.Keep{Keep: o.keep.over(old.GetNamespace().GetKeep())}
	}
	answer, err := c.UpdateNamespace(ctx, request)
	if err != nil {
		return err
	}
	return c.printNamespace(answer.GetNamespace())
}

type namespaceActOptions struct{ reason string }

func (o *namespaceActOptions) command(e *env, cmd *cobra.Command, do func(context.Context, *client, string) (*kagziv1.Namespace, error)) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.ValidArgsFunction = e.complete(completeNamespaces)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return e.run(cmd, func(ctx context.Context, c *client) error {
			return c.act(ctx, action{id: "namespace", fields: []string{"enabled"}, do: func(ctx context.Context, c *client, name string) (outcome, error) {
				n, err := do(ctx, c, name)
				cell := render.NamespaceState(n)
				return outcome{line: c.out.paint(cell.Text, cell.Style), values: []any{n.GetEnabled()}}, err
			}}, args)
		})
	}
	cmd.Flags().StringVar(&o.reason, "reason", "", "why, for whoever looks at the namespace later")
	return cmd
}

func newNamespaceEnable(e *env, o *namespaceActOptions) *cobra.Command {
	return o.command(e, &cobra.Command{
		Use:   "enable NAME...",
		Short: "Let runs start, be worked on and be fired in namespaces again",
	}, func(ctx context.Context, c *client, name string) (*kagziv1.Namespace, error) {
		answer, err := c.EnableNamespace(ctx, &kagziv1.EnableNamespaceRequest{Namespace: name, Reason: o.reason})
		return answer.GetNamespace(), err
	})
}

func newNamespaceDisable(e *env, o *namespaceActOptions) *cobra.Command {
	return o.command(e, &cobra.Command{
		Use:   "disable NAME...",
		Short: "Let no run start, be taken up or be fired in namespaces; what a worker holds may end",
	}, func(ctx context.Context, c *client, name string) (*kagziv1.Namespace, error) {
		answer, err := c.DisableNamespace(ctx, &kagziv1.DisableNamespaceRequest{Namespace: name, Reason: o.reason})
		return answer.GetNamespace(), err
	})
}
