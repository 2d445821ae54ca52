package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

func newQueue(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "queue", Aliases: []string{"queues"}, Short: "See what waits in queues, and who serves them"}
	cmd.AddCommand(newQueueList(e, &queueListOptions{}), newQueueShow(e, &queueShowOptions{}))
	e.register(cmd)
	return cmd
}

type queueListOptions struct {
	limit int
	all   bool
}

func newQueueList(e *env, o *queueListOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List queues by name, with what waits in them and who serves them",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.limit < 1 {
				return usagef("--limit is %d; want at least 1, or --all", o.limit)
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runQueueList(ctx, c, o) })
		},
	}
	cmd.Flags().IntVar(&o.limit, "limit", 100, "show at most this many")
	cmd.Flags().BoolVar(&o.all, "all", false, "show all, however many")
	return cmd
}

func runQueueList(ctx context.Context, c *client, o *queueListOptions) error {
	queues, err := c.queues(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(queues, func(a, b *kagziv1.QueueDepth) int { return cmp.Compare(a.GetTaskQueue(), b.GetTaskQueue()) })
	left := max(len(queues)-o.limit, 0)
	if o.all {
		left = 0
	}
	queues = queues[:len(queues)-left]
	if len(queues) == 0 && c.out.format == "table" {
		c.out.say("no queues in namespace %s: no open runs and no online workers", c.namespace)
		return nil
	}
	items := render.Documents(queues)
	if err := c.out.print(result{
		human:    func() []string { return c.out.table(render.QueuesTable(queues)) },
		document: render.Object{{Name: "queues", Value: items}},
		items:    items,
	}); err != nil {
		return err
	}
	if left > 0 {
		c.out.say("%s left out: show all with --all", counted(int64(left), "queue"))
	}
	return nil
}

// queues is all queues of the namespace.
func (c *client) queues(ctx context.Context) (queues []*kagziv1.QueueDepth, err error) {
	_, err = eachPage(-1, "", func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		page.PageSize = 0 // as many as an answer has room for: each counts all
		answer, err := c.GetQueueDepth(ctx, &kagziv1.GetQueueDepthRequest{Namespace: c.namespace, Page: page})
		queues = append(queues, answer.GetQueues()...)
		return len(answer.GetQueues()), answer.GetPage(), err
	})
	return queues, err
}

type queueShowOptions struct{ name string }

func newQueueShow(e *env, o *queueShowOptions) *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show what waits in one queue, and who serves it",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeQueues),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return e.run(cmd, func(ctx context.Context, c *client) error { return runQueueShow(ctx, c, o) })
		},
	}
}

func runQueueShow(ctx context.Context, c *client, o *queueShowOptions) error {
	if o.name == "" { // which asks the server for all
		return usagef("NAME: must not be empty")
	}
	answer, err := c.GetQueueDepth(ctx, &kagziv1.GetQueueDepthRequest{Namespace: c.namespace, TaskQueue: &o.name})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(answer.GetQueues(), func(q *kagziv1.QueueDepth) bool { return q.GetTaskQueue() == o.name })
	if at < 0 {
		return status.Error(codes.NotFound, fmt.Sprintf("nothing waits in queue %s of namespace %s and no online worker serves it", o.name, c.namespace))
	}
	queue := answer.GetQueues()[at]
	return c.out.print(result{
		human:    func() []string { return render.PairLines(render.QueuePairs(queue), c.out.colour) },
		document: render.Object{{Name: "queue", Value: render.Document(queue)}},
	})
}
