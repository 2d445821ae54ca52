package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
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

	policy      flagvalue.Policy
	concurrency keyFlags

	batch string
	wait  bool
}

func newStart(e *env, o *startOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "start TYPE",
		Short: "Start a run, or many from a file",
		Long: `Start a run of a workflow type and print its id.

With --batch the runs come from a file of JSON lines ("-" reads stdin), each an object with the
fields of StartWorkflowRequest:
{"workflow_type":"order","external_id":"o-17","input":{"total":12}}
Fields missing in a line are taken from TYPE and the flags. If a line cannot be parsed, no run is
started. If the server refuses a line, the others still start and the exit code is 1. Repeating
the same file with the same --request-id starts no line twice.

With --wait the command waits until the run ends, across server restarts. After 3 seconds it says on
stderr what the run waits for, and again when that changes. Exit code: 0 completed, 2 failed, 3 timed
out, 4 cancelled or terminated.`,
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
	fs.StringVar(&o.queue, "queue", "", `queue of the run (default "default")`)
	fs.StringVar(&o.version, "workflow-version", "", "version of the workflow code for the run")
	fs.StringVar(&o.externalID, "external-id", "",
		"your own id for the run; a second start with it returns the first run")
	fs.Var(choice(&o.idReuse, "after-end", "never", "reject"), "id-reuse",
		"if the external id exists: after-end returns an active run, never also an ended one, reject fails")
	fs.StringVar(&o.requestID, "request-id", "",
		"idempotency key of this start or batch, to repeat it safely (default: a new one)")
	fs.Int32Var(&o.priority, "priority", 0,
		"-100 to 100; higher goes first in the queue; one run in eight goes by age instead")
	fs.Var(flagvalue.Pairs(&o.tags), "tag", "tag to find the run by; may be repeated")
	fs.Var(flagvalue.Pairs(&o.requirements), "require",
		"capability or label required of the worker; may be repeated")
	fs.Var(flagvalue.Duration(&o.delay), "delay", "delay the start: 90s, 2h, 7d")
	fs.StringVar(&o.startAt, "start-at", "", "start at this time: 2026-11-20T12:00:00Z")
	fs.StringVar(&o.deadline, "deadline", "", "time by which the run must end: 2026-11-20T12:00:00Z or +2h")
	o.policy.Register(fs)
	o.concurrency.register(cmd)
	fs.StringVar(&o.batch, "batch", "", "start a run for each line of this file of JSON lines; - for stdin")
	fs.BoolVar(&o.wait, "wait", false, "wait until the run has ended")
	// these fail only if the flag does not exist
	_ = cmd.RegisterFlagCompletionFunc("queue", e.complete(completeQueues))
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
	case answer.GetOtherInput():
		c.out.say("a run with external id %s already existed, with other input", request.GetExternalId())
	case answer.GetAlreadyExists():
		c.out.say("a run with external id %s already exists", request.GetExternalId())
	case wait:
		c.out.say("started %s as %s; waiting until it ends", request.GetWorkflowType(), answer.GetRunId())
	}
	if !wait {
		return c.out.print(result{
			human:    func() []string { return []string{render.Safe(answer.GetRunId())} },
			document: render.Document(answer),
		})
	}
	run, err := c.waitEnd(ctx, &serverRetry{out: c.out, known: true}, answer.GetRunId())
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

// request builds the request from the flags; changed reports which were given.
func (o *startOptions) request(changed func(string) bool, in io.Reader,
	now time.Time) (*kagziv1.StartWorkflowRequest, error) {
	if err := o.check(changed); err != nil {
		return nil, err
	}
	input, err := o.input.read(changed, in)
	if err != nil {
		return nil, err
	}
	r := &kagziv1.StartWorkflowRequest{
		WorkflowType: o.workflowType, TaskQueue: o.queue, Version: o.version, ExternalId: o.externalID,
		RequestId: o.requestID, Input: input,
		Tags: o.tags, Requirements: o.requirements, OnFailureWorkflow: o.policy.OnFailure,
		OnFailureTaskQueue: o.policy.OnFailureQueue,
		ConcurrencyKey:     o.concurrency.key, ConcurrencyLimit: o.concurrency.limit,
		ConcurrencyScope: o.concurrency.wire(changed),
		RetryPolicy:      o.policy.RetryPolicy(changed, nil),
		RunRetryPolicy:   o.policy.RunRetryPolicy(changed, nil), Timeouts: o.policy.Timeouts(changed, nil),
		ExternalIdReuse: map[string]kagziv1.ExternalIdReuse{
			"never":  kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_NEVER,
			"reject": kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_REJECT,
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

// check rejects flags that cannot be combined.
func (o *startOptions) check(changed func(string) bool) error {
	switch {
	case o.workflowType == "" && o.batch == "":
		return &usageError{err: errors.New("the workflow type is missing"),
			hint: []string{"usage: kagzi workflow start TYPE"}}
	case o.delay > 0 && o.startAt != "":
		return usagef("--delay and --start-at cannot be given together")
	case o.batch != "" && o.wait:
		return usagef("--wait and --batch cannot be given together")
	case o.batch == "-" && o.input.stdin():
		return usagef("--batch and the input cannot both read stdin")
	case o.batch != "" && changed("external-id"):
		return usagef("--external-id is for one run; in a batch set external_id in the lines")
	}
	return nil
}

func timeFlag(flag, text string, now time.Time, otherwise *timestamppb.Timestamp) (*timestamppb.Timestamp, error) {
	if text == "" {
		return otherwise, nil
	}
	t, err := query.ParseTime(text, now)
	if err != nil {
		return nil, usagef("--%s %q: must be a time such as 2026-11-20T12:00:00Z or +2h", flag, text)
	}
	return timestamppb.New(t), nil
}

// Limits of one StartWorkflows call, and of the file, which is read completely before any run
// starts.
const (
	maxBatchRuns  = 1000
	maxBatchBytes = 4<<20 - 64<<10 // below the server's 4 MiB by the framing of the call
	maxBatchFile  = 1 << 30
)

// startBatch is the starts in a file.
type startBatch struct {
	requests  []*kagziv1.StartWorkflowRequest
	lines     []int  // line number of each in the file, from 1, counting empty lines
	requestID string // prefix of the request ids of lines without one
}

// readBatch reads requests from JSON lines. Fields missing in a line come from flags. Its request
// id is derived from that of flags and is the same whenever the file is read.
func readBatch(path string, in io.Reader, flags *kagziv1.StartWorkflowRequest) (*startBatch, error) {
	data, err := readAll(path, in, maxBatchFile)
	if err != nil {
		return nil, &usageError{err: fmt.Errorf("--batch: %w", err)}
	}
	batch := &startBatch{requestID: flags.GetRequestId()}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r, err := batchLine(number, bytes.TrimSpace(line), flags)
		if err != nil {
			return nil, err
		}
		batch.requests, batch.lines = append(batch.requests, r), append(batch.lines, number)
	}
	if len(batch.requests) == 0 {
		return nil, usagef("--batch: no lines in %s", path)
	}
	return batch, nil
}

// protoPrefix is the start of an error of protojson: the package and a position that is not the
// user's. protojson uses a space or a no-break space at random.
var protoPrefix = regexp.MustCompile(`^proto:[ \x{a0}]+(\(line \d+:\d+\):[ \x{a0}]*)?`)

func batchLine(number int, line []byte, flags *kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowRequest, error) {
	source := fmt.Sprintf("--batch, line %d", number)
	if err := checkJSON(source, line); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return nil, usagef("%s: must be an object with the fields of StartWorkflowRequest", source)
	}
	input, hasInput := fields["input"]
	delete(fields, "input") // any JSON here, not a payload message
	rest, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	own := &kagziv1.StartWorkflowRequest{}
	if err := protojson.Unmarshal(rest, own); err != nil {
		return nil, usagef("%s: %s", source, protoPrefix.ReplaceAllString(err.Error(), ""))
	}
	r := proto.CloneOf(flags)
	if own.StartAt != nil || own.StartIn != nil {
		// proto.Merge would combine the seconds of one time with the nanoseconds of the other
		r.StartAt, r.StartIn = nil, nil
	}
	if own.DeadlineAt != nil {
		r.DeadlineAt = nil
	}
	proto.Merge(r, own)
	if own.GetRequestId() == "" {
		r.RequestId = fmt.Sprintf("%s:%d", flags.GetRequestId(), number)
	}
	if hasInput {
		if r.Input, err = jsonPayload(source, input); err != nil {
			return nil, err
		}
	}
	switch {
	case r.GetWorkflowType() == "":
		return nil, usagef("%s: workflow_type is missing and TYPE is not given", source)
	case own.GetNamespace() != "":
		return nil, usagef("%s: namespace cannot be set per line; use --namespace", source)
	}
	return r, nil
}

// runStartBatch starts the runs in as many calls as needed. If it fails, it tells how to continue.
func runStartBatch(ctx context.Context, c *client, b *startBatch) error {
	requests := b.requests
	seq := &sequence{out: c.out}
	failed, existed, done := 0, 0, 0
	inputs := make([]*kagziv1.Payload, len(requests))
	for i, r := range requests {
		inputs[i] = r.GetInput()
	}
	c.out.warnLarge("input", inputs...)
	for done < len(requests) {
		part := nextBatch(requests[done:])
		for _, r := range part {
			r.Namespace = c.namespace
		}
		answer, err := c.StartWorkflows(ctx, &kagziv1.StartWorkflowsRequest{Requests: part})
		if err != nil {
			_ = seq.close() // report the error of the call
			c.out.say("%d of %d were submitted before the error", done, len(requests))
			if done > 0 || uncertain(err) || ctx.Err() != nil {
				c.out.say("to continue without starting any line twice add: --request-id %s", b.requestID)
			}
			return err
		}
		for i, r := range answer.GetResults() {
			if r.GetError() != nil {
				failed++
				c.out.say("--batch, line %d: %s", b.lines[done+i], render.ErrorLine(r.GetError()))
			}
			if r.GetStarted().GetAlreadyExists() {
				existed++
			}
			if err := seq.add(batchResultLine(r), render.Document(r)); err != nil {
				return err
			}
		}
		done += len(part)
	}
	if err := seq.close(); err != nil {
		return err
	}
	c.out.say("started %d of %d runs", len(requests)-failed-existed, len(requests))
	if existed > 0 {
		c.out.say("for %d of them a run with the external id already exists", existed)
	}
	if failed > 0 {
		return codeError(ExitError)
	}
	return nil
}

// batchResultLine returns one output line per line of the file; "-" marks a run that was not
// started.
func batchResultLine(r *kagziv1.StartWorkflowsResponse_Result) string {
	if r.GetError() != nil {
		return "-"
	}
	return render.Safe(r.GetStarted().GetRunId())
}

// nextBatch returns the first requests that fit into one call, at least one.
func nextBatch(requests []*kagziv1.StartWorkflowRequest) []*kagziv1.StartWorkflowRequest {
	size := 0
	for i, r := range requests {
		size += proto.Size(r) + 64 // for the request id and the framing
		if i > 0 && (i == maxBatchRuns || size > maxBatchBytes) {
			return requests[:i]
		}
	}
	return requests
}
