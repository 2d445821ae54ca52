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
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/render"
)

func newQueue(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "queue", Aliases: []string{"queues"},
		Short: "Show waiting runs and workers of queues"}
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
		Short:   "List queues by name, with their waiting runs and workers",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.limit < 1 {
				return usagef("--limit is %d; it must be at least 1 (or use --all)", o.limit)
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runQueueList(ctx, c, o) })
		},
	}
	cmd.Flags().IntVar(&o.limit, "limit", 100, "show at most this many")
	cmd.Flags().BoolVar(&o.all, "all", false, "show all, ignoring --limit")
	return cmd
}

func runQueueList(ctx context.Context, c *client, o *queueListOptions) error {
	queues, err := c.queues(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(queues, func(a, b *kagziv1.QueueDepth) int {
		return cmp.Compare(a.GetTaskQueue(), b.GetTaskQueue())
	})
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
		c.out.say("%s not shown: show all with --all", flagvalue.Counted(int64(left), "queue"))
	}
	return nil
}

// queues returns all queues of the namespace.
func (c *client) queues(ctx context.Context) (queues []*kagziv1.QueueDepth, err error) {
	_, err = eachPage(-1, "", func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		page.PageSize = 0 // as many as fit in an answer: the server counts all for every page
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
		Short:             "Show waiting runs and workers of one queue",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeQueues),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return e.run(cmd, func(ctx context.Context, c *client) error { return runQueueShow(ctx, c, o) })
		},
	}
}

func runQueueShow(ctx context.Context, c *client, o *queueShowOptions) error {
	if o.name == "" { // the server would return all queues
		return usagef("NAME: must not be empty")
	}
	answer, err := c.GetQueueDepth(ctx, &kagziv1.GetQueueDepthRequest{Namespace: c.namespace, TaskQueue: &o.name})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(answer.GetQueues(), func(q *kagziv1.QueueDepth) bool { return q.GetTaskQueue() == o.name })
	if at < 0 {
		return status.Error(codes.NotFound, fmt.Sprintf(
			"queue %s of namespace %s has no waiting runs and no online worker", o.name, c.namespace))
	}
	queue := answer.GetQueues()[at]
	return c.out.print(result{
		human:    func() []string { return render.PairLines(render.QueuePairs(queue), c.out.colour) },
		document: render.Object{{Name: "queue", Value: render.Document(queue)}},
	})
}

func newWorker(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "worker", Aliases: []string{"workers"}, Short: "List, drain and remove workers"}
	cmd.AddCommand(newWorkerList(e, &workerListOptions{}), newWorkerShow(e, &workerOptions{}),
		newWorkerDrain(e, &workerOptions{}), newWorkerOffline(e, &workerOptions{}))
	e.register(cmd)
	return cmd
}

type workerListOptions struct {
	queue  string
	status string
	page   pageFlags
}

func newWorkerList(e *env, o *workerListOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List workers",
		Long: `List workers. RUNS, DONE and FAILED are the values of the last heartbeat, sent at HEARTBEAT: runs
held then, and runs that COMPLETED or FAILED on the worker. To list the runs that a worker holds
now, use kagzi workflow list --worker ID.`,
		Example: "  kagzi worker list --status online --queue orders",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error { return runWorkerList(ctx, c, o) })
		},
	}
	cmd.Flags().StringVar(&o.queue, "queue", "", "only workers of this queue")
	cmd.Flags().Var(choice(&o.status, "any", "online", "draining", "offline"), "status",
		"only workers with this status: online, draining or offline")
	o.page.register(cmd)
	// these fail only if the flag does not exist
	_ = cmd.RegisterFlagCompletionFunc("queue", e.complete(completeQueues))
	_ = cmd.RegisterFlagCompletionFunc("status", words("online", "draining", "offline"))
	return cmd
}

func (o *workerListOptions) request(namespace string) *kagziv1.ListWorkersRequest {
	r := &kagziv1.ListWorkersRequest{Namespace: namespace}
	if o.queue != "" {
		r.TaskQueue = &o.queue
	}
	statuses := map[string]kagziv1.WorkerStatus{
		"online": kagziv1.WorkerStatus_WORKER_STATUS_ONLINE, "draining": kagziv1.WorkerStatus_WORKER_STATUS_DRAINING,
		"offline": kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE,
	}
	if s, ok := statuses[o.status]; ok {
		r.StatusFilter = &s
	}
	return r
}

func runWorkerList(ctx context.Context, c *client, o *workerListOptions) error {
	limit, err := o.page.most()
	if err != nil {
		return err
	}
	request := o.request(c.namespace)
	var workers []*kagziv1.Worker
	tokens, err := eachPage(limit, o.page.token, func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		request.Page = page
		answer, err := c.ListWorkers(ctx, request)
		workers = append(workers, answer.GetWorkers()...)
		return len(answer.GetWorkers()), answer.GetPage(), err
	})
	if err != nil {
		return err
	}
	return c.out.printList(listed{
		name: "workers", noun: "workers", none: "no workers in namespace " + c.namespace,
		items: render.Documents(workers),
		table: func() render.Table { return render.WorkersTable(workers, c.view()) },
	}, tokens)
}

type workerOptions struct{ id string }

// command returns a command on one worker.
func (o *workerOptions) command(e *env, use, short string,
	work func(context.Context, *client, *workerOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:               use + " ID",
		Short:             short,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeWorkers),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			return e.run(cmd, func(ctx context.Context, c *client) error { return work(ctx, c, o) })
		},
	}
}

// notLive replaces the server's message to an unknown worker, which says to register again.
func (o *workerOptions) notLive(err error) error {
	if status.Code(err) != codes.NotFound {
		return err
	}
	return &callError{err: status.Errorf(codes.NotFound, "no worker %s that is online or draining", o.id),
		hint: "list workers: kagzi worker list"}
}

func newWorkerShow(e *env, o *workerOptions) *cobra.Command {
	return o.command(e, "show", "Show a worker", runWorkerShow)
}

func newWorkerDrain(e *env, o *workerOptions) *cobra.Command {
	return o.command(e, "drain", "Drain a worker: it finishes its runs, takes no new ones and exits", runWorkerDrain)
}

func newWorkerOffline(e *env, o *workerOptions) *cobra.Command {
	cmd := o.command(e, "offline", "Set a worker offline at once and release its runs to others", runWorkerOffline)
	cmd.Long =
		`Set a worker offline at once and release its runs to others, without waiting for its lease to
expire. Use it for a worker whose process is gone or stuck. A process that is still alive registers
again within a second or so and may get the same runs; to keep it away, stop the process or use
kagzi worker drain.`
	return cmd
}

func runWorkerShow(ctx context.Context, c *client, o *workerOptions) error {
	answer, err := c.GetWorker(ctx, &kagziv1.GetWorkerRequest{WorkerId: o.id})
	if err != nil {
		return err
	}
	return c.out.print(result{
		human: func() []string {
			return render.PairLines(render.WorkerPairs(answer.GetWorker(), c.view()), c.out.colour)
		},
		document: render.Document(answer),
	})
}

func runWorkerDrain(ctx context.Context, c *client, o *workerOptions) error {
	answer, err := c.DrainWorker(ctx, &kagziv1.DrainWorkerRequest{WorkerId: o.id})
	if err != nil {
		return o.notLive(err)
	}
	if err := c.out.print(result{
		human: func() []string {
			line := render.Safe(o.id) + "  " + c.out.paint("DRAINING", render.Waiting)
			if !answer.GetSuccess() {
				line = render.Safe(o.id) + "  " + c.out.paint("not drained", render.Bad)
			}
			if answer.GetMessage() != "" {
				line += "  " + render.Safe(answer.GetMessage())
			}
			return []string{line}
		},
		document: render.Document(answer),
	}); err != nil {
		return err
	}
	if !answer.GetSuccess() {
		return codeError(ExitConflict)
	}
	return nil
}

func runWorkerOffline(ctx context.Context, c *client, o *workerOptions) error {
	answer, err := c.ForceOfflineWorker(ctx, &kagziv1.ForceOfflineWorkerRequest{WorkerId: o.id})
	if err != nil {
		return o.notLive(err)
	}
	return c.out.print(result{
		human: func() []string {
			return []string{
				fmt.Sprintf("%s  OFFLINE  %s released", render.Safe(o.id),
					flagvalue.Counted(int64(answer.GetReleasedRuns()), "run")),
				"if its process is still alive it registers again; to keep it away, stop the process or drain it",
			}
		},
		document: render.Document(answer),
	})
}
