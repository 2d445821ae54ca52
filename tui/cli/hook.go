package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

func newHook(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "hook",
		Aliases: []string{"hooks"},
		Short:   "Create and manage hooks, which start runs for webhooks",
		Long: `Create and manage hooks. A hook has a URL on the server's HTTP port; each signed POST to it starts a run.

The run's input is the body if that is JSON, otherwise {"base64": "…", "content_type": "…"}. At most
1 MiB is accepted. The run's tags say what it is of: hook, event and delivery.

A delivery that is sent again starts nothing. It is the same one if its id or its body is the same, as
long as the run is kept and, for the body, for --request-retention of the server (30 days) after that.

Secrets are stored readable in the table "hooks" of the server's database, and in its backups, because
signatures are checked with them. The API and this command show a secret only when it is made.`,
	}
	cmd.AddCommand(newHookCreate(e, &hookCreateOptions{}), newHookList(e, &pageFlags{}), newHookShow(e),
		newHookRotate(e, &hookRotateOptions{}), newHookDelete(e, &hookDeleteOptions{}))
	e.register(cmd)
	return cmd
}

// urlFlag is the flag for the server's public address.
type urlFlag struct{ base string }

func (f *urlFlag) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.base, "url", "",
		"public address of the HTTP port, such as https://kagzi.example (default: the address that the server listens on)")
}

// check returns an error unless the address can begin a URL.
func (f *urlFlag) check() error {
	if f.base == "" {
		return nil
	}
	u, err := url.Parse(f.base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return usagef("--url %q: want an address such as https://kagzi.example", f.base)
	}
	return nil
}

// of returns the URL of a hook. A server that does not say where it serves HTTP gives only a path.
func (f *urlFlag) of(ctx context.Context, c *client, h *kagziv1.Hook) string {
	if f.base != "" {
		return strings.TrimRight(f.base, "/") + h.GetPath()
	}
	settings, err := c.settings(ctx)
	if err != nil {
		return h.GetPath()
	}
	at, err := pageAt(settings["http"], c.address, settings)
	if err != nil {
		return h.GetPath() // off, or the server does not say where
	}
	return at + h.GetPath()
}

func newHookList(e *env, o *pageFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the hooks of a namespace, newest first",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error { return runHookList(ctx, c, o) })
		},
	}
	o.register(cmd)
	return cmd
}

func runHookList(ctx context.Context, c *client, o *pageFlags) error {
	limit, err := o.most()
	if err != nil {
		return err
	}
	var hooks []*kagziv1.Hook
	tokens, err := eachPage(limit, o.token, func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		answer, err := c.ListHooks(ctx, &kagziv1.ListHooksRequest{Namespace: c.namespace, Page: page})
		hooks = append(hooks, answer.GetHooks()...)
		return len(answer.GetHooks()), answer.GetPage(), err
	})
	if err != nil {
		return err
	}
	return c.out.printList(listed{
		name: "hooks", noun: "hooks",
		none:  "no hooks; create one with: kagzi hook create NAME --queue QUEUE --type TYPE --hmac github",
		items: render.Documents(hooks),
		table: func() render.Table { return render.HooksTable(hooks, c.view()) },
	}, tokens)
}

func newHookShow(e *env) *cobra.Command {
	var at urlFlag
	cmd := &cobra.Command{
		Use:               "show NAME",
		Aliases:           []string{"get"},
		Short:             "Show a hook with its URL, without its secret",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeHooks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := at.check(); err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error {
				answer, err := c.GetHook(ctx, &kagziv1.GetHookRequest{Namespace: c.namespace, Name: args[0]})
				if err != nil {
					return err
				}
				return c.printHook(answer.GetHook(), at.of(ctx, c, answer.GetHook()))
			})
		},
	}
	at.register(cmd)
	return cmd
}

func completeHooks(ctx context.Context, c *client, typed string) []cobra.Completion {
	answer, _ := c.ListHooks(ctx, // on an error there is nothing to suggest
		&kagziv1.ListHooksRequest{Namespace: c.namespace, Page: &kagziv1.PageRequest{PageSize: maxPage}})
	var list []cobra.Completion
	for _, h := range answer.GetHooks() {
		list = suggest(list, typed, h.GetName(), render.HookSignature(h.GetSignature())+" "+h.GetWorkflowType())
	}
	return list
}

// printHook prints a hook without its secret.
func (c *client) printHook(h *kagziv1.Hook, at string) error {
	return c.out.print(result{
		human:    func() []string { return render.PairLines(render.HookPairs(h, at, c.view()), c.out.colour) },
		document: render.Object{{Name: "hook", Value: render.Document(h)}, {Name: "url", Value: at}},
	})
}

type hookDeleteOptions struct{ yes bool }

func newHookDelete(e *env, o *hookDeleteOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a hook; deliveries to its URL are refused from now on, and its runs are kept",
		Long: `Delete a hook: deliveries to its URL are refused from now on. Its runs are kept. A new hook of the same
name has another URL and another secret.

The command asks for confirmation; -y skips it, and is required without a terminal.`,
		Example:           "  kagzi hook delete gh\n  kagzi hook delete gh -y",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeHooks),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error { return runHookDelete(ctx, c, o, args[0]) })
		},
	}
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func runHookDelete(ctx context.Context, c *client, o *hookDeleteOptions, name string) error {
	if !o.yes {
		if err := c.out.askable("-y skips the confirmation"); err != nil {
			return err
		}
		answer, err := c.GetHook(ctx, &kagziv1.GetHookRequest{Namespace: c.namespace, Name: name})
		if err != nil {
			return err
		}
		h := answer.GetHook()
		if err := c.out.ask(ctx, fmt.Sprintf("delete the %s hook %s, which starts %s on queue %s? Its senders are refused.",
			render.HookSignature(h.GetSignature()), h.GetName(), h.GetWorkflowType(), h.GetTaskQueue())); err != nil {
			return err
		}
	}
	answer, err := c.DeleteHook(ctx, &kagziv1.DeleteHookRequest{Namespace: c.namespace, Name: name})
	if err != nil {
		return err
	}
	return c.out.print(result{
		human:    func() []string { return []string{"deleted  " + render.Safe(name)} },
		document: render.Document(answer),
	})
}
