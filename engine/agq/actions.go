package agq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// submission is the JSON of ACTION.SUBMIT.
type submission struct {
	Action string            `json:"action_id"`
	Plan   string            `json:"plan_id"`
	Inputs []json.RawMessage `json:"inputs"`
}

// runActionSubmit carries out ACTION.SUBMIT: one job for each input, all in one commit.
func runActionSubmit(c *conn, args []string) bool {
	var s submission
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		c.fail("ERR Invalid action schema: " + jsonError(err))
		return true
	}
	if s.Action == "" {
		token := engine.NewToken()
		s.Action = "action_" + token.Wire()[:16]
	}
	if text := checkID("action_id", s.Action); text != "" {
		c.fail("ERR Invalid action schema: " + text)
		return true
	}
	kept, err := c.plan(s.Plan)
	if err != nil {
		return c.noPlan(s.Plan, err)
	}
	p, text := readPlan(string(kept.Input.GetData()))
	if text != "" {
		c.fail("ERR Invalid plan schema: " + text) // an older version accepted it
		return true
	}
	starts, text := p.starts(c.caller.namespace, &s)
	if text != "" {
		c.fail("ERR Invalid action schema: " + text)
		return true
	}
	ids, text, err := c.startAction(&s, starts)
	if err != nil {
		c.refuse(err)
		return true
	}
	if text != "" {
		c.fail(text)
		return true
	}
	return c.answerJSON(struct {
		Action      string   `json:"action_id"`
		Plan        string   `json:"plan_id"`
		Description string   `json:"plan_description,omitempty"`
		Created     int      `json:"jobs_created"`
		Jobs        []string `json:"job_ids"`
	}{s.Action, p.id, p.description, len(ids), ids})
}

// starts returns the starts of an action's jobs, or what is wrong about its inputs.
func (p *plan) starts(namespace string, s *submission) ([]*kagziv1.StartWorkflowRequest, string) {
	if len(s.Inputs) == 0 {
		s.Inputs = []json.RawMessage{json.RawMessage("{}")}
	}
	if n := len(s.Inputs); n > engine.MaxBatch {
		return nil, fmt.Sprintf("inputs has %d entries, at most %d are allowed in one action", n, engine.MaxBatch)
	}
	requirements := map[string]string{}
	for _, command := range p.commands() {
		requirements[toolPrefix+command] = ""
	}
	starts, size := make([]*kagziv1.StartWorkflowRequest, len(s.Inputs)), 0
	for i, raw := range s.Inputs {
		if text := p.checkInput(raw); text != "" {
			return nil, fmt.Sprintf("inputs[%d] %s", i, text)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return nil, fmt.Sprintf("inputs[%d] %s", i, jsonError(err))
		}
		input, err := json.Marshal(jobInput{ActionID: s.Action, PlanID: p.id, Seconds: int64(p.timeout.Seconds()),
			Input: compact.Bytes(), Plan: p.text})
		if err != nil {
			return nil, fmt.Sprintf("inputs[%d] %s", i, err)
		}
		if size += len(input) + 512; size > engine.MaxBatchBytes {
			return nil, fmt.Sprintf("inputs: the jobs, each with the plan, have more than %d bytes together; "+
				"submit fewer inputs in one action", engine.MaxBatchBytes)
		}
		starts[i] = &kagziv1.StartWorkflowRequest{
			Namespace: namespace, TaskQueue: readyQueue, WorkflowType: jobType, Input: jsonPayload(input),
			ExternalId: jobRun(s.Action, i+1), ExternalIdReuse: kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_NEVER,
			Requirements: requirements, RetryPolicy: jobPolicy(),
			RunRetryPolicy: &kagziv1.RetryPolicy{MaximumAttempts: 1},
			Timeouts: &kagziv1.TimeoutConfig{HeartbeatTimeoutMs: (Lease + beatEvery).Milliseconds(),
				StartToCloseTimeoutMs: p.timeout.Milliseconds()},
			Tags: map[string]string{tagAction: s.Action, tagPlan: p.id, tagPlace: strconv.Itoa(i + 1),
				tagJobs: strconv.Itoa(len(s.Inputs))},
		}
	}
	return starts, ""
}

// startAction starts the jobs, and returns their ids or the text of a refusal.
func (c *conn) startAction(s *submission, starts []*kagziv1.StartWorkflowRequest) (ids []string, refusal string,
	err error) {
	taken := "ERR Action already exists: " + s.Action
	_, err = c.door.runs.GetWorkflowByExternalId(c.caller.ctx, &kagziv1.GetWorkflowByExternalIdRequest{
		Namespace: c.caller.namespace, ExternalId: jobRun(s.Action, 1)})
	switch {
	case err == nil:
		return nil, taken, nil
	case !notFound(err):
		return nil, "", err
	}
	answer, err := c.door.runs.StartWorkflows(c.caller.ctx, &kagziv1.StartWorkflowsRequest{Requests: starts})
	if err != nil {
		return nil, "", err
	}
	var made []string
	for _, result := range answer.Results {
		switch {
		case result.Error != nil:
			refusal = "ERR " + result.Error.Message
		case result.Started.AlreadyExists:
			refusal = taken
		default:
			made = append(made, result.Started.RunId)
		}
	}
	if refusal == "" {
		return made, "", nil
	}
	for _, id := range made { // another server took the action's id at the same moment, with fewer inputs
		_, err := c.door.runs.CancelWorkflow(c.caller.ctx, &kagziv1.CancelWorkflowRequest{
			Namespace: c.caller.namespace, RunId: id, Reason: "its action was refused"})
		if err != nil {
			c.door.log.Warn("job of a refused action could not be cancelled; cancel it", "run", id, "error", err)
		}
	}
	return nil, refusal, nil
}

// jobsOf returns the jobs of an action by their places. Of a job that was retried it is the newest run.
func (c *conn) jobsOf(action string) ([]jobView, error) {
	if checkID("action_id", action) != "" {
		return nil, errNoJob
	}
	runs, err := c.listRuns(&kagziv1.ListWorkflowsRequest{WorkflowType: text(jobType),
		Tags: map[string]string{tagAction: action}})
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, errNoJob
	}
	total, _ := strconv.Atoi(runs[0].Tags[tagJobs]) // this door wrote it
	places := make([]*kagziv1.Workflow, max(total, 0)+1)
	for _, run := range runs { // newest first
		if at, err := strconv.Atoi(run.Tags[tagPlace]); err == nil && at > 0 && at < len(places) && places[at] == nil {
			places[at] = run
		}
	}
	var jobs []jobView
	for _, run := range places {
		if run != nil {
			jobs = append(jobs, viewRun(run))
		}
	}
	return jobs, nil
}

func (c *conn) noAction(id string, err error) bool {
	if err == errNoJob || notFound(err) {
		c.fail("ERR Action not found: " + cut(id, maxIDBytes))
		return true
	}
	c.refuse(err)
	return true
}

// runActionStatus carries out ACTION.STATUS.
func runActionStatus(c *conn, args []string) bool {
	jobs, err := c.jobsOf(args[0])
	if err != nil {
		return c.noAction(args[0], err)
	}
	s := struct {
		Action    string `json:"action_id"`
		Plan      string `json:"plan_id"`
		Status    string `json:"status"`
		Total     int    `json:"total_jobs"`
		Pending   int    `json:"pending"`
		Running   int    `json:"running"`
		Completed int    `json:"completed"`
		Failed    int    `json:"failed"`
		Dead      int    `json:"dead"`
		Created   string `json:"created_at"`
		Started   string `json:"started_at,omitempty"`
		Ended     string `json:"completed_at,omitempty"`
	}{Action: args[0], Plan: jobs[0].Plan, Total: len(jobs), Created: jobs[0].Created}
	for _, j := range jobs {
		*map[string]*int{"pending": &s.Pending, "running": &s.Running, "completed": &s.Completed, "failed": &s.Failed,
			"dead": &s.Dead}[j.Status]++
		if j.Started != "" && (s.Started == "" || j.Started < s.Started) {
			s.Started = j.Started
		}
		s.Ended = max(s.Ended, j.Ended)
	}
	switch open := s.Pending + s.Running; {
	case open == s.Total && s.Running == 0:
		s.Status = "pending"
	case open > 0:
		s.Status = "running"
	case s.Completed == s.Total:
		s.Status = "completed"
	default:
		s.Status = "failed"
	}
	if s.Pending+s.Running > 0 {
		s.Ended = ""
	}
	return c.answerJSON(s)
}

// stamp formats a time as JSON of AGQ has it; empty: unset.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
