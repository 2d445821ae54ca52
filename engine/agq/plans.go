package agq

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// planLife is when the run that keeps a plan would start: it never does, because a plan is not run.
const planLife = 9 * 365 * 24 * time.Hour

// The external ids of the runs of this door.
func planRun(id string) string               { return "agq-plan:" + id }
func jobRun(action string, place int) string { return "agq-job:" + action + ":" + strconv.Itoa(place) }

// runPlanSubmit carries out PLAN.SUBMIT. The same plan again has the same id.
func runPlanSubmit(c *conn, args []string) bool {
	p, text := readPlan(args[0])
	if text != "" {
		c.fail("ERR Invalid plan schema: " + text)
		return true
	}
	about := p.description
	clean(&about, maxTextBytes)
	answer, err := c.door.runs.StartWorkflow(c.caller.ctx, &kagziv1.StartWorkflowRequest{
		Namespace: c.caller.namespace, TaskQueue: plansQueue, WorkflowType: planType, ExternalId: planRun(p.id),
		Input: jsonPayload(p.text), StartIn: durationpb.New(planLife),
		Tags: map[string]string{tagPlan: p.id, tagTasks: strconv.Itoa(len(p.tasks)), tagAbout: about},
	})
	switch {
	case err != nil:
		c.refuse(err)
	case answer.AlreadyExists && answer.OtherInput:
		c.fail("ERR Plan already exists: " + p.id + " (with other content)")
	default:
		c.bulk(p.id)
	}
	return true
}

// plan returns the run that keeps a plan.
func (c *conn) plan(id string) (*kagziv1.Workflow, error) {
	if checkID("plan_id", id) != "" {
		return nil, errNoJob
	}
	answer, err := c.door.runs.GetWorkflowByExternalId(c.caller.ctx,
		&kagziv1.GetWorkflowByExternalIdRequest{Namespace: c.caller.namespace, ExternalId: planRun(id)})
	if err != nil {
		return nil, err
	}
	if answer.Workflow.WorkflowType != planType || ended(answer.Workflow.Status) {
		return nil, errNoJob // deleted
	}
	return answer.Workflow, nil
}

func ended(s kagziv1.WorkflowStatus) bool { return engine.RunStatus(s).Ended() }

// noPlan answers for a plan that could not be read.
func (c *conn) noPlan(id string, err error) bool {
	if notFound(err) || err == errNoJob {
		c.fail("ERR Plan not found: " + cut(id, maxIDBytes))
		return true
	}
	c.refuse(err)
	return true
}

func runPlanGet(c *conn, args []string) bool {
	run, err := c.plan(args[0])
	if err != nil {
		return c.noPlan(args[0], err)
	}
	c.bulk(string(run.Input.GetData()))
	return true
}

// runPlanList carries out PLAN.LIST: plans as JSON, newest first.
func runPlanList(c *conn, _ []string) bool {
	open := kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING
	runs, err := c.listRuns(&kagziv1.ListWorkflowsRequest{WorkflowType: text(planType), StatusFilter: &open})
	if err != nil {
		c.refuse(err)
		return true
	}
	list := make([]any, len(runs))
	for i, run := range runs {
		tasks, _ := strconv.Atoi(run.Tags[tagTasks]) // this door wrote it
		list[i] = struct {
			Plan        string `json:"plan_id"`
			Description string `json:"description"`
			Tasks       int    `json:"task_count"`
			Created     string `json:"created_at"`
		}{run.Tags[tagPlan], run.Tags[tagAbout], tasks, run.CreatedAt.AsTime().Format(time.RFC3339)}
	}
	return c.answerList(list)
}

// maxListed limits the runs of one answer.
const maxListed = 10_000

// listRuns returns all runs of a request, newest first, up to maxListed.
func (c *conn) listRuns(r *kagziv1.ListWorkflowsRequest) (all []*kagziv1.Workflow, err error) {
	r.Namespace, r.Page = c.caller.namespace, &kagziv1.PageRequest{PageSize: engine.MaxPage}
	for {
		answer, err := c.door.runs.ListWorkflows(c.caller.ctx, r)
		if err != nil {
			return nil, err
		}
		all = append(all, answer.Workflows...)
		r.Page.PageToken = answer.Page.GetNextPageToken()
		if r.Page.PageToken == "" || len(all) >= maxListed {
			return all, nil
		}
	}
}

// answerList answers with an array of JSON.
func (c *conn) answerList(list []any) bool {
	texts := make([]string, len(list))
	for i, one := range list {
		text, err := json.Marshal(one)
		if err != nil {
			c.refuse(err)
			return true
		}
		texts[i] = string(text)
	}
	c.say(func(r *reply) { r.bulks(texts) })
	return true
}

// openStatuses are those of runs that have not ended.
var openStatuses = []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING,
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING, kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING}

// runPlanDelete carries out PLAN.DELETE. A plan is kept while jobs of it are open.
func runPlanDelete(c *conn, args []string) bool {
	run, err := c.plan(args[0])
	if err != nil {
		return c.noPlan(args[0], err)
	}
	open, err := c.door.runs.ListWorkflows(c.caller.ctx, &kagziv1.ListWorkflowsRequest{
		Namespace: c.caller.namespace, WorkflowType: text(jobType), Statuses: openStatuses,
		Tags: map[string]string{tagPlan: args[0]},
		Page: &kagziv1.PageRequest{PageSize: 1, IncludeTotalCount: true}})
	if err != nil {
		c.refuse(err)
		return true
	}
	if n := open.Page.GetTotalCount(); n > 0 {
		c.fail(fmt.Sprintf("ERR Plan in use: %s has %d open jobs; delete it when they have ended", args[0], n))
		return true
	}
	_, err = c.door.runs.CancelWorkflow(c.caller.ctx, &kagziv1.CancelWorkflowRequest{
		Namespace: c.caller.namespace, RunId: run.RunId, Reason: "PLAN.DELETE"})
	if err != nil && status.Code(err) != codes.FailedPrecondition { // it has ended meanwhile
		c.refuse(err)
		return true
	}
	c.ok()
	return true
}
