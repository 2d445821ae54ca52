package cli

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
)

// scheduleFlags are the flags of create and update.
type scheduleFlags struct {
	cron        string
	zone        string
	queue       string
	name        string
	version     string
	maxCatchup  int32
	jitter      time.Duration
	overlap     string
	tags        map[string]string
	input       inputFlags
	policy      flagvalue.Policy
	concurrency keyFlags
}

func (f *scheduleFlags) register(e *env, cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.cron, "cron", "",
		`cron expression: five fields ("0 9 * * 1-5"), six or seven with seconds first, @hourly etc. or "@every 90s"`)
	fs.StringVar(&f.zone, "zone", "", "time zone of the expression, such as Europe/Berlin (default UTC)")
	fs.StringVar(&f.queue, "queue", "", `queue of the runs (default "default")`)
	fs.StringVar(&f.name, "name", "", "name of the schedule, unique in the namespace")
	fs.StringVar(&f.version, "workflow-version", "", "version of the workflow code for the runs")
	fs.Int32Var(&f.maxCatchup, "max-catchup", 0,
		"how many missed ticks to make up after downtime, the latest ones; 0 for none")
	fs.Var(flagvalue.Duration(&f.jitter), "jitter",
		"start each tick's run up to this much later, before the next tick: 30s; at most 24h, 0 for none")
	fs.Var(choice(&f.overlap, "allow", "skip", "buffer-one"), "overlap",
		"on a tick while the last run is active: allow starts another, skip drops the tick, buffer-one queues one")
	fs.Var(flagvalue.Pairs(&f.tags), "tag", "tag of the runs; may be repeated")
	f.input.register(fs)
	f.policy.Register(fs)
	f.concurrency.register(cmd)
	// these fail only if the flag does not exist
	_ = cmd.RegisterFlagCompletionFunc("queue", e.complete(completeQueues))
	_ = cmd.RegisterFlagCompletionFunc("on-failure", e.complete(completeTypes))
	_ = cmd.RegisterFlagCompletionFunc("overlap", words("allow", "skip", "buffer-one"))
}

func (f *scheduleFlags) overlapPolicy() kagziv1.OverlapPolicy {
	return map[string]kagziv1.OverlapPolicy{
		"allow": kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW, "skip": kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP,
		"buffer-one": kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE,
	}[f.overlap]
}

type scheduleCreateOptions struct {
	scheduleFlags
	disabled  bool
	update    bool
	requestID string
}

func newScheduleCreate(e *env, o *scheduleCreateOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create TYPE --cron EXPR",
		Short: "Create a schedule for a workflow type, and print when it fires next",
		Example: `  kagzi schedule create report --cron "0 9 * * 1-5" --zone Europe/Berlin --name daily-report
  kagzi schedule create sync --cron "@every 90s" --jitter 30s --overlap skip --max-catchup 0 --input '{"full": false}'
  kagzi schedule create report --cron "0 8 * * 1-5" --name daily-report --or-update`,
		Args:              oneWithCron,
		ValidArgsFunction: e.completeOne(completeTypes),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := o.request(e, cmd, args[0])
			if err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runScheduleCreate(ctx, c, request) })
		},
	}
	o.scheduleFlags.register(e, cmd)
	cmd.Flag("max-catchup").Usage += " (default 100)"
	cmd.Flags().BoolVar(&o.update, "or-update", false,
		"if a schedule has the --name, replace its settings; it stays paused or enabled")
	cmd.Flags().BoolVar(&o.disabled, "disabled", false,
		"create it paused: it does not fire until kagzi schedule resume")
	cmd.Flags().StringVar(&o.requestID, "request-id", "",
		"idempotency key of this call, to repeat it safely (default: a new one)")
	return cmd
}

func (o *scheduleCreateOptions) request(e *env, cmd *cobra.Command,
	workflowType string) (*kagziv1.CreateWorkflowScheduleRequest, error) {
	if o.cron == "" {
		return nil, &usageError{err: usagef("--cron is required"),
			hint: []string{`for example --cron "0 9 * * 1-5"; show its times: kagzi schedule preview "0 9 * * 1-5"`}}
	}
	if o.update && o.name == "" {
		return nil, usagef("--or-update needs --name")
	}
	changed := cmd.Flags().Changed
	input, err := o.input.read(changed, e.streams(cmd).in)
	if err != nil {
		return nil, err
	}
	r := &kagziv1.CreateWorkflowScheduleRequest{
		WorkflowType: workflowType, TaskQueue: o.queue, CronExpr: o.cron, TimeZone: o.zone, Name: o.name, Input: input,
		Tags: o.tags, RequestId: o.requestID,
		RetryPolicy: o.policy.RetryPolicy(changed, nil), RunRetryPolicy: o.policy.RunRetryPolicy(changed, nil),
		Timeouts:          o.policy.Timeouts(changed, nil),
		OnFailureWorkflow: o.policy.OnFailure, OnFailureTaskQueue: o.policy.OnFailureQueue,
		JitterMs: o.jitter.Milliseconds(), OrUpdate: o.update,
		ConcurrencyKey: o.concurrency.key, ConcurrencyLimit: o.concurrency.limit,
		ConcurrencyScope: o.concurrency.wire(changed),
	}
	if changed("max-catchup") {
		r.MaxCatchup = &o.maxCatchup
	}
	if changed("overlap") {
		r.OverlapPolicy = o.overlapPolicy()
	}
	if changed("workflow-version") {
		r.Version = &o.version
	}
	if changed("disabled") {
		r.Enabled = new(!o.disabled)
	}
	return r, nil
}

func runScheduleCreate(ctx context.Context, c *client, request *kagziv1.CreateWorkflowScheduleRequest) error {
	c.out.warnLarge("input", request.GetInput())
	request.Namespace = c.namespace
	if request.RequestId == "" {
		request.RequestId = c.newID()
	}
	answer, err := c.CreateWorkflowSchedule(ctx, request)
	if err != nil {
		return hintedUncertain(err, "to repeat it without a second schedule add: --request-id "+request.GetRequestId())
	}
	if answer.GetExisted() {
		c.out.say("the schedule existed; it has the given settings now")
	}
	return c.printSchedule(ctx, answer.GetSchedule())
}

type scheduleUpdateOptions struct {
	scheduleFlags
	workflowType string
	untag        []string
	enabled      bool
	nextFireAt   string
	reason       string
}

func newScheduleUpdate(e *env, o *scheduleUpdateOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "update ID|NAME",
		Short: "Update a schedule; flags that are not given keep their values",
		Long: `Update a schedule; flags that are not given keep their values.

A new expression, zone or --next-fire-at applies from now on: due ticks that have not fired yet do
not fire and count as skipped.`,
		Example: `  kagzi schedule update daily-report --cron "0 8 * * 1-5"
  kagzi schedule update daily-report --retry-attempts 5 --tag team=a --untag old --reason "moved"`,
		Args:              oneWithCron,
		ValidArgsFunction: e.completeOne(completeSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			changed := cmd.Flags().Changed
			request, err := o.request(changed, e, cmd)
			if err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error {
				return runScheduleUpdate(ctx, c, o, request, changed, args[0])
			})
		},
	}
	o.scheduleFlags.register(e, cmd)
	fs := cmd.Flags()
	fs.StringVar(&o.workflowType, "type", "", "workflow type of the runs")
	fs.StringSliceVar(&o.untag, "untag", nil, "remove the tag with this key; may be repeated")
	fs.BoolVar(&o.enabled, "enabled", false, "resume or pause it: --enabled or --enabled=false")
	fs.StringVar(&o.nextFireAt, "next-fire-at", "",
		"do not fire before this time: 2026-11-20T12:00:00Z or +2h")
	fs.StringVar(&o.reason, "reason", "", "reason, kept in the audit log")
	_ = cmd.RegisterFlagCompletionFunc("type", e.complete(completeTypes)) // fails only if the flag does not exist
	return cmd
}

// scheduleChanges are the flags of update that change something.
var scheduleChanges = []string{
	"cron", "zone", "queue", "name", "workflow-version", "max-catchup", "overlap", "tag", "input", "input-file", "type",
	"untag", "enabled", "next-fire-at", "jitter",
	"retry-attempts", "retry-initial", "retry-coefficient", "retry-max-interval", "retry-jitter", "retry-not",
	"run-retry-attempts", "run-retry-initial", "run-retry-coefficient", "run-retry-max-interval", "run-retry-jitter",
	"run-retry-not",
	"step-timeout", "heartbeat-timeout", "execution-timeout",
	"on-failure", "on-failure-queue", "concurrency-key", "concurrency-limit", "concurrency-scope",
}

// request returns the request as far as the flags alone determine it.
func (o *scheduleUpdateOptions) request(changed func(string) bool, e *env,
	cmd *cobra.Command) (*kagziv1.UpdateWorkflowScheduleRequest, error) {
	if !anyOf(changed, scheduleChanges) {
		return nil, &usageError{err: usagef("nothing to update: no flags given"),
			hint: []string{"see: " + cmd.CommandPath() + " --help"}}
	}
	r := &kagziv1.UpdateWorkflowScheduleRequest{Reason: o.reason}
	for flag, set := range map[string]func(){
		"cron": func() { r.CronExpr = &o.cron }, "zone": func() { r.TimeZone = &o.zone }, "queue": func() {
			r.TaskQueue = &o.queue
		}, "name": func() { r.Name = &o.name },
		"workflow-version": func() { r.Version = &o.version }, "max-catchup": func() {
			r.MaxCatchup = &o.maxCatchup
		}, "jitter": func() { r.JitterMs = new(o.jitter.Milliseconds()) }, "overlap": func() { r.OverlapPolicy = new(o.overlapPolicy()) },
		"type": func() { r.WorkflowType = &o.workflowType }, "enabled": func() { r.Enabled = &o.enabled },
		"on-failure": func() { r.OnFailureWorkflow = &o.policy.OnFailure }, "on-failure-queue": func() {
			r.OnFailureTaskQueue = &o.policy.OnFailureQueue
		},
		"concurrency-key":   func() { r.ConcurrencyKey = &o.concurrency.key },
		"concurrency-limit": func() { r.ConcurrencyLimit = &o.concurrency.limit },
		"concurrency-scope": func() { r.ConcurrencyScope = new(o.concurrency.wire(changed)) },
	} {
		if changed(flag) {
			set()
		}
	}
	var err error
	if r.Input, err = o.input.read(changed, e.streams(cmd).in); err != nil {
		return nil, err
	}
	r.NextFireAt, err = timeFlag("next-fire-at", o.nextFireAt, e.now(), nil)
	return r, err
}

func anyOf(changed func(string) bool, flags []string) bool {
	for _, flag := range flags {
		if changed(flag) {
			return true
		}
	}
	return false
}

func runScheduleUpdate(ctx context.Context, c *client, o *scheduleUpdateOptions,
	request *kagziv1.UpdateWorkflowScheduleRequest, changed func(string) bool, id string) error {
	c.out.warnLarge("input", request.GetInput())
	old, err := c.schedule(ctx, id)
	if err != nil {
		return err
	}
	request.Namespace, request.ScheduleId = c.namespace, old.GetScheduleId()
	// These are replaced as a whole, so send the current values of what is not given.
	request.RetryPolicy = o.policy.RetryPolicy(changed, old.GetRetryPolicy())
	request.RunRetryPolicy = o.policy.RunRetryPolicy(changed, cmp.Or(old.GetRunRetryPolicy(), old.GetRetryPolicy()))
	if request.RetryPolicy != nil && request.RunRetryPolicy == nil {
		request.RunRetryPolicy = old.GetRunRetryPolicy() // a policy of steps alone would remove it
	}
	request.Timeouts = o.policy.Timeouts(changed, old.GetTimeouts())
	if changed("tag") || changed("untag") {
		tags := maps.Clone(old.GetTags())
		for _, key := range o.untag {
			delete(tags, key)
		}
		if tags == nil {
			tags = map[string]string{}
		}
		maps.Copy(tags, o.tags)
		request.Tags = &kagziv1.ScheduleTags{Tags: tags}
	}
	answer, err := c.UpdateWorkflowSchedule(ctx, request)
	if err != nil {
		return err
	}
	return c.printSchedule(ctx, answer.GetSchedule())
}
