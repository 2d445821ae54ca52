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
	"github.com/kagzi/kagzi/proto/query"
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
	query queryFlag[*kagziv1.QueueDepth]
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
	o.query.list = &query.Queues
	o.query.register(cmd, `pending > 100 or workers = 0`)
	return cmd
}

func runQueueList(ctx context.Context, c *client, o *queueListOptions) error {
	if err := o.query.parse(c.now()); err != nil {
		return err
	}
	queues, err := c.queues(ctx, &o.query)
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
		if o.query.q != nil {
			c.out.say("no queues%s in namespace %s", o.query.matching(), c.namespace)
			return nil
		}
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

// queues returns the queues of the namespace that the query selects.
func (c *client) queues(ctx context.Context, q *queryFlag[*kagziv1.QueueDepth]) (queues []*kagziv1.QueueDepth,
	err error) {
	_, err = eachPage(-1, "", func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		page.PageSize = 0 // as many as fit in an answer: the server counts all for every page
		answer, err := c.GetQueueDepth(ctx, &kagziv1.GetQueueDepthRequest{Namespace: c.namespace, Page: page,
			Query: q.text})
		queues = append(queues, q.selected(answer.GetQueues())...)
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
	query  queryFlag[*kagziv1.Worker]
	page   pageFlags

	// which workers can run something
	canRun       string // a run id
	workflowType string
	requirements map[string]string
}

// matching reports whether the list says which workers can run something.
func (o *workerListOptions) matching() bool { return o.canRun != "" || o.workflowType != "" }

// checkMatching refuses flags that do not go together.
func (o *workerListOptions) checkMatching(changed func(flag string) bool) error {
	switch {
	case o.canRun != "" && (o.workflowType != "" || o.queue != "" || len(o.requirements) > 0):
		return usagef("--can-run names a run; it excludes --type, --queue and --require")
	case len(o.requirements) > 0 && !o.matching():
		return usagef("--require needs --type: it asks which workers can run such runs")
	case !o.matching():
		return nil
	}
	for _, flag := range []string{"status", "limit", "all", "page-token"} {
		if changed(flag) {
			return usagef("--%s does not go with --can-run or --type, which judge all workers that are not offline", flag)
		}
	}
	return nil
}

func newWorkerList(e *env, o *workerListOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List workers",
		Long: `List workers. RUNS, DONE and FAILED are the values of the last heartbeat, sent at HEARTBEAT: runs
held then, and runs that COMPLETED or FAILED on the worker. To list the runs that a worker holds
now, use kagzi workflow list --worker ID.

With --can-run or --type, say of each worker that is not offline whether it can run that run, or runs
of that type in --queue (default) with --require, and why not.`,
		Example: "  kagzi worker list --status online --queue orders\n" +
			"  kagzi worker list --can-run 01936b2e-0000-7000-8000-000000000001\n" +
			"  kagzi worker list --type order --queue orders --require gpu=a100",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.checkMatching(cmd.Flags().Changed); err != nil {
				return err
			}
			if o.matching() {
				return e.run(cmd, func(ctx context.Context, c *client) error { return runWorkerMatch(ctx, c, o) })
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runWorkerList(ctx, c, o) })
		},
	}
	cmd.Flags().StringVar(&o.queue, "queue", "", "only workers of this queue; with --type: the queue of such runs")
	cmd.Flags().StringVar(&o.canRun, "can-run", "", "say which workers can run the run with this id, and why not")
	cmd.Flags().StringVar(&o.workflowType, "type", "", "say which workers can run runs of this type, and why not")
	cmd.Flags().Var(flagvalue.Pairs(&o.requirements), "require",
		"with --type: capability or label required of the worker; may be repeated")
	cmd.Flags().Var(choice(&o.status, "any", "online", "draining", "offline"), "status",
		"only workers with this status: online, draining or offline")
	o.query.list = &query.Workers
	o.query.register(cmd, `status = online and not label.zone = "a" and active > 10`)
	o.page.register(cmd)
	// these fail only if the flag does not exist
	_ = cmd.RegisterFlagCompletionFunc("queue", e.complete(completeQueues))
	_ = cmd.RegisterFlagCompletionFunc("status", words("online", "draining", "offline"))
	return cmd
}

func (o *workerListOptions) request(namespace string) *kagziv1.ListWorkersRequest {
	r := &kagziv1.ListWorkersRequest{Namespace: namespace, Query: o.query.text}
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
	if err := o.query.parse(c.now()); err != nil {
		return err
	}
	request := o.request(c.namespace)
	var workers []*kagziv1.Worker
	tokens, err := eachPage(limit, o.page.token, func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		request.Page = page
		answer, err := c.ListWorkers(ctx, request)
		list := o.query.selected(answer.GetWorkers())
		workers = append(workers, list...)
		return len(list), answer.GetPage(), err
	})
	if err != nil {
		return err
	}
	return c.out.printList(listed{
		name: "workers", noun: "workers", none: "no workers" + o.query.matching() + " in namespace " + c.namespace,
		items: render.Documents(workers),
		table: func() render.Table { return render.WorkersTable(workers, c.view()) },
	}, tokens)
}

func runWorkerMatch(ctx context.Context, c *client, o *workerListOptions) error {
	answer, err := c.MatchWorkers(ctx, &kagziv1.MatchWorkersRequest{Namespace: c.namespace, RunId: o.canRun,
		WorkflowType: o.workflowType, TaskQueue: o.queue, Requirements: o.requirements})
	if err != nil {
		return err
	}
	if answer.GetMore() {
		c.out.say("more than %d workers are connected; the others are not shown", len(answer.GetMatches()))
	}
	return c.out.printList(listed{
		name: "matches", noun: "workers", none: "no worker is connected to namespace " + c.namespace,
		items: render.Documents(answer.GetMatches()),
		table: func() render.Table { return render.MatchesTable(answer.GetMatches()) },
	}, pageTokens{})
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
