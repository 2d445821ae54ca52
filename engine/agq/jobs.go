package agq

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// jobView is a job as clients see it.
type jobView struct {
	JobID   string          `json:"job_id"`
	Action  string          `json:"action_id"`
	Plan    string          `json:"plan_id"`
	Status  string          `json:"status"`
	Created string          `json:"created_at"`
	Started string          `json:"started_at,omitempty"`
	Ended   string          `json:"completed_at,omitempty"`
	Worker  string          `json:"worker_id,omitempty"`
	Retries int32           `json:"retries"`
	Losses  int32           `json:"lost_workers,omitempty"`
	Error   string          `json:"error,omitempty"`
	Results json.RawMessage `json:"task_results,omitempty"`
	Stdout  string          `json:"stdout,omitempty"`
	Stderr  string          `json:"stderr,omitempty"`

	input  jobInput
	output []byte
}

// statusOf returns a run's status as AGQ has it. What has no retries left is dead; what a person or a
// deadline ended is failed.
func statusOf(s engine.RunStatus) string {
	switch s {
	case engine.RunRunning:
		return "running"
	case engine.RunCompleted:
		return "completed"
	case engine.RunFailed:
		return "dead"
	case engine.RunCancelled, engine.RunTimedOut, engine.RunTerminated:
		return "failed"
	}
	return "pending"
}

// statuses returns the statuses of runs with one of AGQ; nil: it has none of that name.
func statuses(of string) (all []kagziv1.WorkflowStatus) {
	for s := engine.RunPending; s <= engine.RunTerminated; s++ {
		if _, known := kagziv1.WorkflowStatus_name[int32(s)]; known && s.String() != "UNKNOWN" && statusOf(s) == of {
			all = append(all, kagziv1.WorkflowStatus(s))
		}
	}
	return all
}

// viewRun returns the view of a job's run as the API has it. Runs of lists have no input and output.
func viewRun(run *kagziv1.Workflow) jobView {
	v := jobView{JobID: run.RunId, Action: run.Tags[tagAction], Plan: run.Tags[tagPlan],
		Status: statusOf(engine.RunStatus(run.Status)), Created: stampOf(run.CreatedAt),
		Started: stampOf(run.StartedAt), Ended: stampOf(run.FinishedAt), Worker: run.GetWorkerId(),
		Retries: run.GetStepRetries(), Losses: run.LeaseLosses, Error: run.GetError().GetMessage(),
		output: run.Output.GetData()}
	v.fill(run.Input.GetData())
	return v
}

// viewOf returns the view of a job's run as the store has it.
func viewOf(run *engine.Run) jobView {
	v := jobView{JobID: run.ID.String(), Action: run.Tags[tagAction], Plan: run.Tags[tagPlan],
		Status: statusOf(run.Status), Created: stamp(run.CreatedAt), Started: stamp(run.StartedAt),
		Ended: stamp(run.FinishedAt), Worker: run.WorkerID, Losses: int32(run.LeaseLosses), output: run.Output.Data}
	v.fill(run.Input.Data)
	return v
}

func (v *jobView) fill(input []byte) {
	v.input, _ = inputOf(input) // a list has none
	var out struct {
		Tasks  json.RawMessage `json:"task_results"`
		Stdout string          `json:"stdout"`
		Stderr string          `json:"stderr"`
	}
	if json.Unmarshal(v.output, &out) == nil {
		v.Results, v.Stdout, v.Stderr = out.Tasks, out.Stdout, out.Stderr
	}
}

func stampOf(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return stamp(t.AsTime())
}

// viewJob returns a job; errNoJob: there is none. A job that was retried is its newest run.
func (c *conn) viewJob(id string) (*jobView, error) {
	run, err := engine.ParseID(id)
	if err != nil {
		return nil, errNoJob
	}
	answer, err := c.door.runs.GetWorkflow(c.caller.ctx,
		&kagziv1.GetWorkflowRequest{Namespace: c.caller.namespace, RunId: run.String()})
	if err != nil {
		return nil, err
	}
	w := answer.Workflow
	if w.WorkflowType != jobType {
		return nil, errNoJob
	}
	if ended(w.Status) && w.ExternalId != "" {
		newest, err := c.door.runs.GetWorkflowByExternalId(c.caller.ctx, &kagziv1.GetWorkflowByExternalIdRequest{
			Namespace: c.caller.namespace, ExternalId: w.ExternalId})
		if err == nil && newest.Workflow.WorkflowType == jobType {
			w = newest.Workflow
		}
	}
	v := viewRun(w)
	return &v, nil
}

func (c *conn) noJob(id string, err error) bool {
	if errors.Is(err, errNoJob) || errors.Is(err, errNotHeld) || notFound(err) {
		c.fail("ERR Job not found: " + cut(id, maxIDBytes))
		return true
	}
	c.refuse(err)
	return true
}

// runJobStatus carries out JOB.STATUS. A worker's key sees the jobs that it holds.
func runJobStatus(c *conn, args []string) bool {
	if c.caller.worksOnly() {
		h, err := c.reportOn(args[0], true)
		if err != nil {
			return c.noJob(args[0], err)
		}
		return c.answerJSON(viewOf(&h.claim.Run))
	}
	v, err := c.viewJob(args[0])
	if err != nil {
		return c.noJob(args[0], err)
	}
	return c.answerJSON(v)
}

// runJobList carries out JOB.LIST ACTION [STATUS].
func runJobList(c *conn, args []string) bool {
	if len(args) == 2 && statuses(args[1]) == nil {
		c.fail("ERR status must be pending, running, completed, failed or dead, got '" + cut(args[1], 32) + "'")
		return true
	}
	jobs, err := c.jobsOf(args[0])
	if err != nil {
		return c.noAction(args[0], err)
	}
	list := []any{}
	for _, j := range jobs {
		if len(args) == 1 || j.Status == args[1] {
			list = append(list, j)
		}
	}
	return c.answerList(list)
}

// runJobRetry carries out JOB.RETRY: a dead or failed job runs again, as a new run.
func runJobRetry(c *conn, args []string) bool {
	v, err := c.viewJob(args[0])
	if err != nil {
		return c.noJob(args[0], err)
	}
	if v.Status != "dead" && v.Status != "failed" {
		c.fail("ERR Invalid status transition: " + v.Status + " -> pending")
		return true
	}
	answer, err := c.door.runs.RetryWorkflow(c.caller.ctx, &kagziv1.RetryWorkflowRequest{
		Namespace: c.caller.namespace, RunId: v.JobID, Restart: true, Reason: "JOB.RETRY"})
	if err != nil {
		c.refuse(err)
		return true
	}
	c.say(func(r *reply) { r.simple("OK job_id=" + answer.NewRunId) })
	return true
}

// runJobsList carries out JOBS.LIST [STATUS]: the newest jobs.
func runJobsList(c *conn, args []string) bool {
	r := &kagziv1.ListWorkflowsRequest{WorkflowType: text(jobType)}
	if len(args) == 1 {
		if r.Statuses = statuses(args[0]); r.Statuses == nil {
			c.fail("ERR status must be pending, running, completed, failed or dead, got '" + cut(args[0], 32) + "'")
			return true
		}
	}
	return c.answerJobs(r)
}

// runJobsSearch carries out JOBS.SEARCH with a query of Kagzi, as in `kagzi help query`.
func runJobsSearch(c *conn, args []string) bool {
	return c.answerJobs(&kagziv1.ListWorkflowsRequest{WorkflowType: text(jobType), Query: args[0]})
}

// shown is how many jobs JOBS.LIST and JOBS.SEARCH show.
const shown = 100

func (c *conn) answerJobs(r *kagziv1.ListWorkflowsRequest) bool {
	r.Namespace, r.Page = c.caller.namespace, &kagziv1.PageRequest{PageSize: shown}
	answer, err := c.door.runs.ListWorkflows(c.caller.ctx, r)
	if err != nil {
		c.refuse(err)
		return true
	}
	list := make([]any, len(answer.Workflows))
	for i, run := range answer.Workflows {
		list[i] = viewRun(run)
	}
	return c.answerList(list)
}

// runQueuePeek carries out QUEUE.PEEK [QUEUE] [COUNT]: jobs that wait, those that have waited longest first.
func runQueuePeek(c *conn, args []string) bool {
	r := &kagziv1.ListWorkflowsRequest{WorkflowType: text(jobType), Statuses: statuses("pending")}
	runs, err := c.listRuns(r)
	if err != nil {
		c.refuse(err)
		return true
	}
	slices.Reverse(runs)
	list := []any{}
	for _, run := range runs[:min(len(runs), 10)] {
		list = append(list, viewRun(run))
	}
	return c.answerList(list)
}

// age returns how long ago a time was, in whole seconds.
func (c *conn) age(t *timestamppb.Timestamp) int64 {
	return max(0, int64(c.door.now().Sub(t.AsTime())/time.Second))
}
