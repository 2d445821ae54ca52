package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

type startOptions struct {
	workflowType string
	input        inputFlags
	queue        string
	version      string
	externalID   string
	idReuse      string
	requestID    string
	priority     int32
	tags         map[string]string
	requirements map[string]string
	delay        time.Duration
	startAt      string
	deadline     string

	policy           policyFlags
	concurrencyKey   string
	concurrencyLimit int32

	batch string
	wait  bool
}

func newStart(e *env, o *startOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "start TYPE",
		Short: "Start a run, or many from a file",
		Long: `Start a run of a workflow type and print its id.

With --batch the runs come from a file of JSON lines (- reads them from stdin), each an object with the fields of
StartWorkflowRequest: {"workflow_type":"order","external_id":"o-17","input":{"total":12}}. What a line leaves out is
taken from TYPE and the flags. Nothing is started unless every line can be read. A line that the server refuses starts nothing and is named,
the others start, and the exit code is 1. The same file with the same --request-id starts no line twice.

With --wait the command ends when the run does, and outlasts restarts of the server: exit code 0 completed, 2 failed, 3 timed out,
4 cancelled or terminated.`,
		Example: `  kagzi workflow start order --input '{"total": 12}' --external-id order-17
  kagzi workflow start report --delay 2h --tag customer=x --retry-attempts 5 --wait
  kagzi workflow start --batch orders.jsonl --queue orders`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: e.completeOne(completeTypes),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.workflowType = args[0]
			}
			in := e.streams(cmd).in
			request, err := o.request(cmd.Flags().Changed, in, e.now())
			if err != nil {
				return err
			}
			if o.batch != "" {
				if request.RequestId == "" {
					request.RequestId = e.newID()
				}
				batch, err := readBatch(o.batch, in, request)
				if err != nil {
					return err
				}
				return e.run(cmd, func(ctx context.Context, c *client) error { return runStartBatch(ctx, c, batch) })
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runStart(ctx, c, request, o.wait) })
		},
	}
	o.register(e, cmd)
	return cmd
}

func (o *startOptions) register(e *env, cmd *cobra.Command) {
	fs := cmd.Flags()
	o.input.register(fs)
	fs.StringVar(&o.queue, "queue", "", `queue to put the run in (default "default")`)
	fs.StringVar(&o.version, "workflow-version", "", "version of the workflow's code that the run is meant for")
	fs.StringVar(&o.externalID, "external-id", "", "your own id of the run: a second start with it returns the first run")
	fs.Var(choice(&o.idReuse, "after-end", "never", "reject"), "id-reuse", "when the external id is taken: after-end returns the active run, never also returns an ended one, reject fails")
	fs.StringVar(&o.requestID, "request-id", "", "id of this very start, or batch, to repeat it safely (default: a new one)")
	fs.Int32Var(&o.priority, "priority", 0, "-100 to 100, higher first within the queue, until one has been due for a minute")
	fs.Var(keyValue(&o.tags), "tag", "tag to find the run by; may be repeated")
	fs.Var(keyValue(&o.requirements), "require", "capability or label that the worker must have; may be repeated")
	fs.Var(duration(&o.delay), "delay", "start so much later: 90s, 2h, 7d")
	fs.StringVar(&o.startAt, "start-at", "", "start at this time: 2026-11-20T12:00:00Z")
	fs.StringVar(&o.deadline, "deadline", "", "time by which the run must have ended: 2026-11-20T12:00:00Z or +2h")
	o.policy.register(fs)
	fs.StringVar(&o.concurrencyKey, "concurrency-key", "", "runs of the type that share this key run one at a time, or so many as --concurrency-limit says")
	fs.Int32Var(&o.concurrencyLimit, "concurrency-limit", 0, "how many runs with the key may run at a time (default 1)")
	fs.StringVar(&o.batch, "batch", "", "start the runs that this file of JSON lines describes; - is stdin")
	fs.BoolVar(&o.wait, "wait", false, "wait until the run has ended")
	_ = cmd.RegisterFlagCompletionFunc("queue", e.complete(completeQueues)) // these fail only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("on-failure", e.complete(completeTypes))
	_ = cmd.RegisterFlagCompletionFunc("id-reuse", words("after-end", "never", "reject"))
}

func runStart(ctx context.Context, c *client, request *kagziv1.StartWorkflowRequest, wait bool) error {
	c.out.warnLarge("input", request.GetInput())
	request.Namespace = c.namespace
	if request.RequestId == "" {
		request.RequestId = c.newID()
	}
	answer, err := c.StartWorkflow(ctx, request)
	if err != nil {
		return hintedUncertain(err, "to repeat it without a second run add: --request-id "+request.GetRequestId())
	}
	switch {
	case answer.GetAlreadyExists():
		c.out.say("a run with the external id %s exists already", request.GetExternalId())
	case wait:
		c.out.say("started %s as %s, waiting for its end", request.GetWorkflowType(), answer.GetRunId())
	}
	if !wait {
		return c.out.print(result{
			human:    func() []string { return []string{render.Safe(answer.GetRunId())} },
			document: render.Document(answer),
		})
	}
	run, err := c.waitEnd(ctx, &patience{out: c.out, known: true}, answer.GetRunId())
	if err != nil {
		return err
	}
	if err := c.out.print(result{
		human:    func() []string { return []string{c.outcomeLine(run)} },
		document: render.Object{{Name: "workflow", Value: render.Document(run)}},
	}); err != nil {
		return err
	}
	return exit(exitOf(run.GetStatus()))
}

// request is what the flags say; changed tells which were given.
func (o *startOptions) request(changed func(string) bool, in io.Reader, now time.Time) (*kagziv1.StartWorkflowRequest, error) {
	if err := o.check(changed); err != nil {
		return nil, err
	}
	input, err := o.input.read(changed, in)
	if err != nil {
		return nil, err
	}
	r := &kagziv1.StartWorkflowRequest{
		WorkflowType: o.workflowType, TaskQueue: o.queue, Version: o.version, ExternalId: o.externalID, RequestId: o.requestID, Input: input,
		Tags: o.tags, Requirements: o.requirements, OnFailureWorkflow: o.policy.onFailure, OnFailureTaskQueue: o.policy.onFailureQueue,
		ConcurrencyKey: o.concurrencyKey, ConcurrencyLimit: o.concurrencyLimit, RetryPolicy: o.policy.retryPolicy(changed, nil), Timeouts: o.policy.timeouts(changed, nil),
		ExternalIdReuse: map[string]kagziv1.ExternalIdReuse{
			"never": kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_NEVER, "reject": kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_REJECT,
		}[o.idReuse],
	}
	if changed("priority") {
		r.Priority = &o.priority
	}
	if o.delay > 0 {
		r.StartAt, r.StartIn = timestamppb.New(now.Add(o.delay)), durationpb.New(o.delay)
	}
	if r.StartAt, err = timeFlag("start-at", o.startAt, now, r.StartAt); err != nil {
		return nil, err
	}
	if r.DeadlineAt, err = timeFlag("deadline", o.deadline, now, nil); err != nil {
		return nil, err
	}
	return r, nil
}

// check refuses flags that do not go together.
func (o *startOptions) check(changed func(string) bool) error {
	switch {
	case o.workflowType == "" && o.batch == "":
		return &usageError{err: errors.New("which workflow type? none is given"), hint: []string{"usage: kagzi workflow start TYPE"}}
	case o.delay > 0 && o.startAt != "":
		return usagef("--delay and --start-at are both given; want one")
	case o.batch != "" && o.wait:
		return usagef("--wait waits for one run and does not go with --batch")
	case o.batch == "-" && o.input.stdin():
		return usagef("--batch and the input cannot both read stdin")
	case o.batch != "" && changed("external-id"):
		return usagef("--external-id names one run; in a batch it stands in its lines")
	}
	return nil
}

func timeFlag(flag, text string, now time.Time, otherwise *timestamppb.Timestamp) (*timestamppb.Timestamp, error) {
	if text == "" {
		return otherwise, nil
	}
	t, err := filter.ParseTime(text, now)
	if err != nil {
		return nil, usagef("--%s %q: want a time such as 2026-11-20T12:00:00Z or +2h", flag, text)
	}
	return timestamppb.New(t), nil
}
