package agq

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// An operator's WORKER.VERIFY is a job in a queue of the worker's own, so every worker that runs jobs answers it,
// whatever server it is connected to. What its command printed becomes a capability of the worker, says:NAME,
// until the worker registers again.

const (
	verifyQueue = "agq:verify:" // with the worker's id
	tagVerify   = "agq.verify"
	saysPrefix  = "says:"          // of the capabilities that hold what a command printed
	verifyTime  = 30 * time.Second // for the answer
)

// verification is the JSON of WORKER.VERIFY.
type verification struct {
	Worker  string    `json:"worker_id"`
	Command string    `json:"command"`
	Args    *[]string `json:"args"`
}

// runVerify carries out WORKER.VERIFY NAME JSON: a worker runs a tool or agentic unit that it has named, and the
// answer is what that printed.
func runVerify(c *conn, args []string) bool {
	v := verification{}
	if len(args) == 2 {
		if err := json.Unmarshal([]byte(args[1]), &v); err != nil {
			c.fail("ERR Invalid verification: " + jsonError(err))
			return true
		}
	}
	if text := c.mayVerify(args[0], &v); text != "" {
		c.fail(text)
		return true
	}
	w, err := c.lookUp(v.Worker)
	if err != nil {
		if notFound(err) || err == errNoJob {
			c.fail("ERR Worker not registered: " + cut(v.Worker, 64))
			return true
		}
		c.refuse(err)
		return true
	}
	if text := c.verifiable(w, args[0]); text != "" {
		c.fail(text)
		return true
	}
	start, text := v.start(w, args[0])
	if text != "" {
		c.fail("ERR Invalid verification: " + text)
		return true
	}
	return c.awaitVerified(start, args[0])
}

// mayVerify returns why the caller may not ask; empty: it may.
func (c *conn) mayVerify(name string, v *verification) string {
	operates := c.caller.open || c.caller.role == kagziv1.KeyRole_KEY_ROLE_ADMIN ||
		c.caller.role == kagziv1.KeyRole_KEY_ROLE_OPERATOR
	switch {
	case !c.door.verify:
		return "ERR WORKER.VERIFY is off: jobs trust the tools that a worker names; " +
			"start the server with --agq-verify to allow it"
	case !operates:
		return "NOPERM WORKER.VERIFY needs the key of an operator or administrator"
	case v.Worker == "":
		return "ERR Invalid verification: worker_id must name the worker"
	case v.Command != "" && v.Command != name:
		return "ERR Invalid verification: command must be " + cut(name, 64) + ", got '" + cut(v.Command, 64) + "'"
	}
	return ""
}

// verifiable returns why a worker cannot be asked for a tool or unit; empty: it can.
func (c *conn) verifiable(w *kagziv1.Worker, name string) string {
	tools, units, any := toolsOf(w)
	switch {
	case !c.alive(w):
		return "ERR Worker not active: " + w.WorkerId
	case !any && !slices.Contains(tools, name) && !slices.Contains(units, name):
		return "ERR Worker " + w.WorkerId + " has not named '" + cut(name, 64) + "' among its tools or agentic units"
	case !slices.Contains(w.TaskQueues, verifyQueue+w.WorkerId):
		return "ERR Worker " + w.WorkerId + " is connected to a server that was started without --agq-verify"
	}
	return ""
}

// start returns the start of the job that verifies, or what is wrong about its command.
func (v *verification) start(w *kagziv1.Worker, name string) (*kagziv1.StartWorkflowRequest, string) {
	args := []string{"--version"}
	if v.Args != nil {
		args = *v.Args
	}
	token := engine.NewToken()
	id := "verify_" + token.Wire()[:16]
	asked, err := json.Marshal(map[string]any{"plan_id": id, "plan_description": "asks what " + name + " says",
		"tasks": []map[string]any{{"task_number": 1, "command": name, "args": args,
			"timeout_secs": int(verifyTime.Seconds())}}})
	if err != nil {
		return nil, err.Error()
	}
	p, text := readPlan(string(asked))
	if text != "" {
		return nil, text
	}
	if text := p.checkInput([]byte("{}")); text != "" {
		return nil, text
	}
	input, err := json.Marshal(jobInput{ActionID: id, PlanID: id, Verify: name, Seconds: int64(verifyTime.Seconds()),
		Input: []byte("{}"), Plan: p.text})
	if err != nil {
		return nil, err.Error()
	}
	return &kagziv1.StartWorkflowRequest{
		Namespace: w.Namespace, TaskQueue: verifyQueue + w.WorkerId, WorkflowType: jobType, Input: jsonPayload(input),
		RetryPolicy: once(), RunRetryPolicy: once(),
		Timeouts: &kagziv1.TimeoutConfig{HeartbeatTimeoutMs: (Lease + beatEvery).Milliseconds(),
			StartToCloseTimeoutMs: verifyTime.Milliseconds()},
		Tags: map[string]string{tagPlan: id, tagVerify: name},
	}, ""
}

// once is the policy of what is not tried again.
func once() *kagziv1.RetryPolicy { return &kagziv1.RetryPolicy{MaximumAttempts: 1} }

// policy says how often the job runs.
func (in *jobInput) policy() *kagziv1.RetryPolicy {
	if in.Verify != "" {
		return once()
	}
	return jobPolicy()
}

// awaitVerified starts the job and answers with its result.
func (c *conn) awaitVerified(start *kagziv1.StartWorkflowRequest, name string) bool {
	made, err := c.door.runs.StartWorkflow(c.caller.ctx, start)
	if err != nil {
		c.refuse(err)
		return true
	}
	answer, err := c.door.runs.WaitWorkflow(c.caller.ctx, &kagziv1.WaitWorkflowRequest{Namespace: start.Namespace,
		RunId: made.RunId, Wait: durationpb.New(verifyTime)})
	worker := strings.TrimPrefix(start.TaskQueue, verifyQueue)
	switch {
	case err != nil:
		c.refuse(err)
	case !answer.Finished:
		_, err := c.door.runs.CancelWorkflow(c.caller.ctx, &kagziv1.CancelWorkflowRequest{Namespace: start.Namespace,
			RunId: made.RunId, Reason: "the worker did not answer"})
		if err != nil {
			c.door.log.Warn("a verification without an answer could not be cancelled; cancel it", "run", made.RunId,
				"error", err)
		}
		c.fail(fmt.Sprintf("ERR worker %s did not answer within %s; it may be busy", worker, verifyTime))
	case answer.Workflow.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED:
		c.fail("ERR worker " + worker + " failed to run " + name + ": " +
			oneLine(cut(answer.Workflow.GetError().GetMessage(), maxTextBytes)))
	default:
		text := strconv.QuoteToASCII(saidIn(answer.Workflow.Output.GetData()))
		c.say(func(r *reply) { r.simple("OK output=" + text) })
	}
	return true
}

// saidIn returns what the command of a verification printed, by the output of its job.
func saidIn(output []byte) string {
	var result jobResult
	if json.Unmarshal(output, &result) != nil {
		return ""
	}
	return result.said()
}

// said returns the first line that is not empty, as a capability may hold it.
func (r *jobResult) said() string {
	all := r.Stdout
	if len(r.Tasks) > 0 {
		all = r.Tasks[0].Stdout
	}
	clean(&all, maxKept)
	for line := range strings.Lines(all) {
		if line = strings.TrimSpace(oneLine(line)); line != "" {
			clean(&line, engine.MaxLabelValue)
			return line
		}
	}
	return ""
}

// noteVerified records on the worker what its tool or unit said, or that it could not be run.
func (c *conn) noteVerified(h *held, name string, o *outcome) error {
	known, _, err := c.door.server.WorkerOf(c.caller.ctx, h.who)
	if err != nil {
		return err
	}
	p := profileOf(&known)
	delete(p.says, name)
	if o.completed {
		p.says[name] = o.result.said()
	}
	_, err = c.door.work.Register(c.caller.ctx, c.door.registration(p, h.who))
	return err
}
