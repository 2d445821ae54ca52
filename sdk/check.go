package kagzi

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	checkArgument = "-kagzi-check" // argument of the worker's program
	checkVariable = "KAGZI_CHECK"  // "1" has the same effect as the argument
	checkLimit    = time.Minute    // for one run
	checkLooks    = 5              // reads of a run that changes while it is read
	checkPage     = 200            // runs; each run's steps have their own pages
)

// CheckError is the error of Run when a check found runs that this build could not continue.
type CheckError struct {
	Checked  int // number of open runs
	Diverged int // those whose record does not match the code
	Stuck    int // those whose code did not finish within a minute
}

func (e *CheckError) Error() string {
	text := fmt.Sprintf("kagzi: check: %d of %d open runs diverge", e.Diverged, e.Checked)
	if e.Stuck > 0 {
		text += fmt.Sprintf(", %d came to no end", e.Stuck)
	}
	return text
}

// init removes the argument of a check before main parses flags, and sets the variable instead. A
// program that this one starts with the remaining arguments then checks as well.
func init() {
	rest, asked := withoutCheck(os.Args)
	if !asked {
		return
	}
	os.Args = rest
	if err := os.Setenv(checkVariable, "1"); err != nil {
		panic(err) // never run work that was meant to be a check
	}
}

// withoutCheck returns the arguments without the check argument, and whether it was there.
func withoutCheck(arguments []string) (rest []string, asked bool) {
	if len(arguments) < 2 || !slices.Contains(arguments[1:], checkArgument) {
		return arguments, false
	}
	others := slices.DeleteFunc(slices.Clone(arguments[1:]), func(a string) bool { return a == checkArgument })
	return append(arguments[:1:1], others...), true
}

// check replays the open runs of the worker's types and queues. It prints each that diverges, with both
// lists of calls, and a summary. It registers nothing, runs no step and changes nothing on the server.
func (w *Worker) check(ctx context.Context, out io.Writer) error {
	conn, err := transport.Dial(w.options.Address, w.options.APIKey, w.options.TLS, w.options.DialOptions)
	if err != nil {
		return err
	}
	defer conn.Close()
	c := &checker{w: w, out: out, workflows: kagziv1.NewWorkflowServiceClient(conn),
		admin:      kagziv1.NewAdminServiceClient(conn),
		namespaces: kagziv1.NewNamespaceServiceClient(conn)}
	list := &kagziv1.ListWorkflowsRequest{
		Namespace:     w.options.Namespace,
		WorkflowTypes: slices.Sorted(maps.Keys(w.handlers)),
		TaskQueues: slices.Compact(slices.Sorted(
			slices.Values(append([]string{w.options.Queue}, w.options.Queues...)))),
		Statuses: []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING,
			kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING, kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING},
	}
	for run, err := range pages(ctx, checkPage,
		func(page *kagziv1.PageRequest) ([]*kagziv1.Workflow, *kagziv1.PageInfo, error) {
			list.Page = page
			resp, err := c.workflows.ListWorkflows(ctx, list)
			return resp.GetWorkflows(), resp.GetPage(), err
		}) {
		if err == nil {
			err = c.run(ctx, run.GetRunId())
		}
		if err != nil {
			return err
		}
	}
	if c.result.Checked == 0 {
		if err := c.namespaceThere(ctx); err != nil {
			return err
		}
	}
	return c.conclude()
}

// namespaceThere returns an error if the namespace does not exist: a misspelt name has no open runs
// either, and would pass. Without permission to ask, or with a server that does not know the call,
// the namespace counts as there. So does "default", which exists from its first run on.
func (c *checker) namespaceThere(ctx context.Context) error {
	name := c.w.options.Namespace
	if name == "default" {
		return nil
	}
	_, err := c.namespaces.GetNamespace(ctx, &kagziv1.GetNamespaceRequest{Namespace: name})
	if !gone(err) {
		return nil
	}
	return fmt.Errorf(
		"kagzi: check: there is no namespace %[1]s, so nothing was checked; if that is its name and nothing has run "+
			"there yet, make it with: kagzi namespace create %[1]s", convert.Printable(name))
}

// checker is one check.
type checker struct {
	w          *Worker
	out        io.Writer
	workflows  kagziv1.WorkflowServiceClient
	admin      kagziv1.AdminServiceClient
	namespaces kagziv1.NamespaceServiceClient
	result     CheckError
}

// run checks one run. Its pages are not one snapshot, so a divergence counts only if a second read
// shows the run unchanged.
func (c *checker) run(ctx context.Context, runID string) error {
	var verdict error
	for last, look := (*runRecord)(nil), 0; look < checkLooks; look++ {
		r, err := c.read(ctx, runID)
		if err != nil {
			return err
		}
		if r == nil {
			return nil // it has ended
		}
		if last != nil && last.same(r) {
			break
		}
		if verdict = c.replay(ctx, r); verdict == nil {
			break
		}
		last = r
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.result.Checked++
	if verdict == nil {
		return nil
	}
	if d, ok := verdict.(*Divergence); ok {
		c.result.Diverged++
		return c.say("%s%s", d.Error(), d.lists())
	}
	c.result.Stuck++
	return c.say("run %s: %s", convert.Printable(runID), convert.Printable(verdict.Error()))
}

func (c *checker) replay(ctx context.Context, r *runRecord) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	return replayRecord(ctx, NewWorker(c.w.options), c.w.handlers[r.run.GetWorkflowType()], r)
}

// read returns the record of a run, nil if the run is not open any more.
func (c *checker) read(ctx context.Context, runID string) (*runRecord, error) {
	namespace := c.w.options.Namespace
	got, err := c.workflows.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: namespace, RunId: runID})
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, callError(ctx, err)
	}
	var steps []*kagziv1.Step
	request := &kagziv1.ListStepsRequest{Namespace: namespace, RunId: runID}
	for s, err := range pages(ctx, 1000, func(page *kagziv1.PageRequest) ([]*kagziv1.Step, *kagziv1.PageInfo, error) {
		request.Page = page
		resp, err := c.admin.ListSteps(ctx, request)
		return resp.GetSteps(), resp.GetPage(), err
	}) {
		if gone(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	if statusOf(got.GetWorkflow()).Ended() {
		return nil, nil
	}
	return newRecord(got.GetWorkflow(), steps), nil
}

// gone reports that a run was deleted or a namespace does not exist.
func gone(err error) bool { return err != nil && status.Code(err) == codes.NotFound }

func (c *checker) conclude() error {
	r := c.result
	err := c.say("checked %d open runs of %d workflow types in namespace %s: %d diverge, %d came to no end",
		r.Checked, len(c.w.handlers), convert.Printable(c.w.options.Namespace), r.Diverged, r.Stuck)
	if err == nil && r.Diverged+r.Stuck > 0 {
		err = &r
	}
	return err
}

func (c *checker) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(c.out, format+"\n", args...); err != nil {
		return fmt.Errorf("kagzi: check: %w", err)
	}
	return nil
}
