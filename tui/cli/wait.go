package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/waiting"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
)

// exitOf returns the exit code for a run's final status.
func exitOf(s kagziv1.WorkflowStatus) int {
	switch s {
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED:
		return ExitOK
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT:
		return ExitRunTimedOut
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED:
		return ExitRunStopped
	}
	return ExitRunFailed
}

// exit returns the error for an exit code.
func exit(code int) error {
	if code == ExitOK {
		return nil
	}
	return codeError(code)
}

type waitOptions struct {
	ids      []string
	external bool
}

func newWait(e *env, o *waitOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wait ID...",
		Short: "Wait until runs have ended; the exit code says how",
		Long: `Wait until all given runs have ended and print how each ended, in the order of the arguments. For a
run that continues as new, wait for the last run of the chain. The wait survives server restarts.
After 3 seconds it says on stderr what the run waits for, and again when that changes.

Exit code: 0 if all completed; otherwise that of the first that did not: 2 failed, 3 timed out,
4 cancelled or terminated.`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: e.complete(completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ids = args
			return e.run(cmd, func(ctx context.Context, c *client) error { return runWait(ctx, c, o) })
		},
	}
	cmd.Flags().BoolVar(&o.external, "external", false, "IDs are external ids")
	return cmd
}

func runWait(ctx context.Context, c *client, o *waitOptions) error {
	seq, server := &sequence{out: c.out}, &serverRetry{out: c.out}
	code := ExitOK
	for _, id := range o.ids {
		run, err := c.wait(ctx, server, id, o.external)
		if err == nil {
			err = seq.add(c.outcomeLine(run), render.Document(run))
		}
		if err != nil {
			_ = seq.close() // report the first error
			return err
		}
		if code == ExitOK {
			code = exitOf(run.GetStatus())
		}
	}
	if err := seq.close(); err != nil {
		return err
	}
	return exit(code)
}

// wait finds a run and waits for its end.
func (c *client) wait(ctx context.Context, server *serverRetry, id string, external bool) (*kagziv1.Workflow, error) {
	if external {
		run, err := c.find(ctx, id, true)
		for err != nil {
			if err = server.after(ctx, err); err != nil {
				return nil, err
			}
			run, err = c.find(ctx, id, true)
		}
		server.answered()
		id = run.GetRunId()
	}
	run, err := c.waitEnd(ctx, server, id)
	return run, c.externalHint(err)
}

// longPoll is how long one call waits on the server.
const longPoll = 30 * time.Second

// waitEnd waits until a run, or the last run it continued as, has ended. After the first answer it
// survives losing the server.
func (c *client) waitEnd(ctx context.Context, server *serverRetry, runID string) (*kagziv1.Workflow, error) {
	followed := map[string]bool{runID: true}
	stop := c.sayWhy(ctx, runID)
	defer func() { stop() }()
	for {
		call, cancel := context.WithTimeout(ctx, longPoll+defaultCallTimeout)
		answer, err := c.WaitWorkflow(call, &kagziv1.WaitWorkflowRequest{
			Namespace: c.namespace, RunId: runID, Wait: durationpb.New(longPoll)})
		cancel()
		next := answer.GetWorkflow().GetContinuedAsRunId()
		switch {
		case err == nil && answer.GetFinished() && next != "" && !followed[next]:
			// stop if the server answers with a cycle
			runID, followed[next] = next, true
			server.answered()
			stop()
			c.out.say("the run continued as %s", runID)
			stop = c.sayWhy(ctx, runID)
		case err == nil && answer.GetFinished():
			return answer.GetWorkflow(), nil
		case err == nil:
			server.answered()
		default:
			err := server.after(ctx, err)
			if err != nil && ctx.Err() != nil {
				return nil, &openError{runID, err}
			}
			if err != nil {
				return nil, err
			}
		}
	}
}

// sayWhy says on stderr what the run waits for, once it has been waited for a while, until stop.
func (c *client) sayWhy(ctx context.Context, runID string) (stop func()) {
	return waiting.Report{API: c, Namespace: c.namespace, RunID: runID,
		Say: func(sentence string) { c.out.say("run %s: %s", runID, sentence) }}.Start(ctx)
}

// openError reports that the time limit expired before the run ended.
type openError struct {
	runID string
	err   error
}

func (e *openError) Error() string { return e.err.Error() }
func (e *openError) Unwrap() error { return e.err }

// whyWithin limits the time to ask why a run has not ended, because the command's own time is over.
const whyWithin = 2 * time.Second

// whyOpen explains why the run of an openError has not ended, if the server answers in time.
func (c *client) whyOpen(ctx context.Context, err error) (lines []string) {
	open, ok := errors.AsType[*openError](err)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, whyWithin)
	defer cancel()
	if answer, err := c.ExplainWorkflow(ctx, &kagziv1.ExplainWorkflowRequest{
		Namespace: c.namespace, RunId: open.runID}); err == nil && answer.GetSummary() != "" {
		lines = append(lines, "the run continues: "+answer.GetSummary())
	}
	scope := model.Scope{Namespace: c.namespace, Address: c.address, Home: c.home}
	return append(lines, "see what it waits for: kagzi workflow explain "+open.runID+scope.Reach())
}

// outcomeLine returns how a run ended as one line.
func (c *client) outcomeLine(run *kagziv1.Workflow) string {
	v := c.view()
	line := fmt.Sprintf("%s  %s  %s", render.Safe(run.GetRunId()),
		c.out.paint(render.RunStatus(run.GetStatus()), render.RunStyle(run.GetStatus())),
		v.Took(run.GetStartedAt(), run.GetFinishedAt()))
	rest := render.PayloadLine(run.GetOutput(), v.Payloads)
	if run.GetError() != nil {
		rest = render.ErrorLine(run.GetError())
	}
	if rest != "" {
		line += "  " + render.Safe(rest)
	}
	return line
}

// serverRetry retries after a server goes away, 1, 2, 4 .. 15 s apart, but not if the server never
// answered. A call that it accepted without answering, such as a wait, shows that it was there.
type serverRetry struct {
	out   *output
	known bool // the server has answered or accepted a call
	delay time.Duration
}

func (r *serverRetry) answered() { r.known, r.delay = true, 0 }

// after waits before the next try, or returns the error if retrying makes no sense.
func (r *serverRetry) after(ctx context.Context, err error) error {
	code := status.Code(err)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.known = r.known || code == codes.Unavailable && taken(err)
	if !r.known || code != codes.Unavailable && code != codes.DeadlineExceeded {
		return err
	}
	r.delay = min(max(2*r.delay, time.Second), 15*time.Second)
	r.out.say("lost the connection to the server, retrying in %s", r.delay)
	timer := time.NewTimer(r.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
