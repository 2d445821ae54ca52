package agq

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	maxKept  = 512 << 10 // bytes of stdout and of stderr that are stored
	maxStep  = 1 << 20   // bytes of the recorded results of a job, as JSON
	streams  = 2         // stdout and stderr
	maxStage = 64        // how often a worker may set an output again under one claim
)

// taskResult is what a worker reports of one task. A worker of AGW reports none: its job is one task.
type taskResult struct {
	Task     int    `json:"task_number"`
	Command  string `json:"command,omitempty"`
	ExitCode int    `json:"exit_code"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	Millis   int64  `json:"duration_ms"`
}

// jobResult is the output of a job, and that of its step.
type jobResult struct {
	Status string       `json:"status"`
	Worker string       `json:"worker_id"`
	Stdout string       `json:"stdout,omitempty"`
	Stderr string       `json:"stderr,omitempty"`
	Tasks  []taskResult `json:"task_results,omitempty"`
}

// reporter writes about one job under a lease.
type reporter struct {
	door   *Door
	ctx    context.Context
	who    server.Identity
	run    string
	token  string
	policy *kagziv1.RetryPolicy // of the job; nil: the usual one
	// worker has a session over which the operations go together; nil: each is a call
	worker *worker
}

// outcome is a worker's final report.
type outcome struct {
	completed bool
	result    jobResult
	message   string // why it failed
}

// finish records the end of a job. Its step is the point from which on it counts: if what follows is cut
// short, the next claim ends the run by it, without a worker.
func (r *reporter) finish(o *outcome, staged []string) error {
	text := fit(&o.result)
	if !o.completed {
		return r.fail(o)
	}
	if r.worker != nil && r.together(r.worker, o, staged, text) {
		return nil
	}
	for _, name := range staged {
		if err := r.completeStep(name, nil); err != nil {
			return err
		}
	}
	if err := r.tasks(o.result.Tasks); err != nil {
		return err
	}
	if err := r.completeStep(jobStep, text); err != nil {
		return err
	}
	return r.endCompleted(text)
}

// fail records a failed attempt. With attempts left, the job is due again after a while; otherwise the run
// ends.
func (r *reporter) fail(o *outcome) error {
	failure := failureOf(o)
	answer, err := r.door.work.FailStep(r.ctx, &kagziv1.FailStepRequest{Namespace: r.who.Namespace, RunId: r.run,
		LeaseToken: r.token, StepName: named(jobStep), Error: failure, RetryPolicy: cmp.Or(r.policy, jobPolicy())})
	if err != nil || answer.ScheduledRetry {
		return err
	}
	if err := r.tasks(o.result.Tasks); err != nil {
		return err
	}
	return r.endFailed(failure)
}

func named(name string) *string { return &name }

// failureOf returns a failed job as the failure of its step: the last task that failed says why.
func failureOf(o *outcome) *kagziv1.ErrorDetail {
	f := &kagziv1.ErrorDetail{Type: "agq", Message: o.message, Stack: o.result.Stderr,
		Metadata: map[string]string{"worker": o.result.Worker}}
	for _, t := range o.result.Tasks {
		if t.ExitCode == 0 {
			continue
		}
		f.Stack = t.Stderr
		f.Metadata["task"] = strconv.Itoa(t.Task)
		if f.Message == "" {
			f.Message = fmt.Sprintf("task %d (%s) exited with %d", t.Task, cut(t.Command, 64), t.ExitCode)
		}
		break
	}
	if f.Message == "" {
		f.Message = "the worker reported the job as failed"
	}
	return f
}

// tasks records the results of tasks as steps. A step of that name may have a result from a report that was
// cut short under an earlier claim; the new one is then recorded beside it.
func (r *reporter) tasks(results []taskResult) error {
	for _, t := range results {
		text, err := encodeTask(&t)
		if err != nil {
			return err
		}
		name := taskStep(t.Task)
		for again := 2; ; again++ {
			err := r.completeStep(name, text)
			if err == nil {
				break
			}
			if !isConflict(err) || again > 10 {
				return err
			}
			name = taskStep(t.Task) + "." + strconv.Itoa(again)
		}
	}
	return nil
}

func encodeTask(t *taskResult) ([]byte, error) { return json.Marshal(t) }

func taskStep(task int) string { return "task-" + strconv.Itoa(task) }

func (r *reporter) completeStep(name string, output []byte) error {
	_, err := r.door.work.CompleteStep(r.ctx, r.stepRequest(name, output))
	return err
}

func (r *reporter) stepRequest(name string, output []byte) *kagziv1.CompleteStepRequest {
	return &kagziv1.CompleteStepRequest{Namespace: r.who.Namespace, RunId: r.run, LeaseToken: r.token,
		StepName: named(name), Output: jsonPayload(output)}
}

func (r *reporter) endCompleted(output []byte) error {
	_, err := r.door.work.CompleteWorkflow(r.ctx, r.endRequest(output))
	return err
}

func (r *reporter) endRequest(output []byte) *kagziv1.CompleteWorkflowRequest {
	return &kagziv1.CompleteWorkflowRequest{Namespace: r.who.Namespace, RunId: r.run, LeaseToken: r.token,
		Output: jsonPayload(output)}
}

func (r *reporter) endFailed(failure *kagziv1.ErrorDetail) error {
	_, err := r.door.work.FailWorkflow(r.ctx, &kagziv1.FailWorkflowRequest{Namespace: r.who.Namespace,
		RunId: r.run, LeaseToken: r.token, Error: failure})
	return err
}

func jsonPayload(text []byte) *kagziv1.Payload {
	if len(text) == 0 {
		return &kagziv1.Payload{}
	}
	return &kagziv1.Payload{Data: text, Metadata: map[string]string{"content-type": "application/json"}}
}

// isConflict says whether a step has another result already; isLost, whether the lease has ended.
func isConflict(err error) bool { return codeOf(err) == kagziv1.ErrorCode_ERROR_CODE_CONFLICT }

func isLost(err error) bool { return codeOf(err) == kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST }

func codeOf(err error) kagziv1.ErrorCode {
	for _, d := range status.Convert(err).Details() {
		if d, ok := d.(*kagziv1.ErrorDetail); ok {
			return d.Code
		}
	}
	return kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED
}

// fit cuts the texts of a result until its JSON fits, and returns that.
func fit(result *jobResult) []byte {
	for limit := maxKept; ; limit /= 2 {
		clean(&result.Stdout, limit)
		clean(&result.Stderr, limit)
		for i := range result.Tasks {
			clean(&result.Tasks[i].Command, min(limit, 4096))
			clean(&result.Tasks[i].Stdout, limit)
			clean(&result.Tasks[i].Stderr, limit)
		}
		text, err := json.Marshal(result)
		if err != nil || len(text) <= maxStep || limit < 64 {
			return text
		}
	}
}

// clean makes a text valid UTF-8 of at most limit bytes, with a mark where it was cut.
func clean(text *string, limit int) {
	*text = strings.ToValidUTF8(*text, "\uFFFD")
	if len(*text) <= limit {
		return
	}
	mark := engine.CutMark
	*text = strings.ToValidUTF8((*text)[:max(limit-len(mark), 0)], "") + mark
}

// held is a job that a report is about.
type held struct {
	reporter
	claim server.Claim
	job   *job // as this server knows it; nil: it does not
}

// errNotHeld says that the worker does not hold the job.
var errNotHeld = errors.New("not held")

// reportOn returns the job of a report. fresh reads what is recorded of it. If the worker does not hold the
// job, the error is errNotHeld, and the job is returned as it is now.
func (c *conn) reportOn(id string, fresh bool) (*held, error) {
	run, err := engine.ParseID(id)
	if err != nil {
		return nil, errNoJob
	}
	h := &held{reporter: reporter{door: c.door, ctx: c.caller.ctx, who: c.who(), run: run.String()}}
	if w := c.worker(); w != nil {
		if c.isTakenOver(w.number) {
			return nil, c.errFenced()
		}
		w.beat()
		if h.job = w.find(h.run); h.job != nil {
			h.token, h.worker = h.job.token, w
			if !fresh {
				return h, c.checkNewest(w)
			}
			<-h.job.begun // what is read has it
		}
	}
	h.claim, err = c.door.server.Claim(c.caller.ctx, h.who, run)
	switch {
	case notFound(err) || err == nil && h.claim.Run.Type != jobType:
		return nil, errNoJob
	case err != nil:
		return nil, err
	}
	h.token = h.claim.Token
	if h.token == "" {
		return h, errNotHeld
	}
	if c.isTakenOver(h.claim.PID) {
		return nil, c.errFenced()
	}
	return h, nil
}

// recorded returns the result of a job whose report was cut short after it counted; nil: there is none.
func (h *held) recorded() *engine.Step {
	for i := range h.claim.Steps {
		if s := &h.claim.Steps[i]; s.Name == jobStep && s.Status == engine.StepCompleted {
			return s
		}
	}
	return nil
}

// errNoJob says that there is no job with an id.
var errNoJob = errors.New("no job")

// over forgets a job that was reported.
func (c *conn) over(h *held, failed bool) {
	c.reported = h.run
	if w := c.worker(); w != nil && w.drop(h.run, "") != nil {
		w.count(failed)
	}
}

// worker returns the worker of this connection, if it pops on this server; else nil.
func (c *conn) worker() *worker {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	return c.door.workers[c.who()]
}

// staged returns the outputs that were staged under the lease, and the names of their steps.
func (h *held) staged() (texts [streams]string, steps []string) {
	last := [streams]int{}
	for i := range h.claim.Steps {
		s := &h.claim.Steps[i]
		of, n, ok := streamOf(s.Name)
		if !ok || s.Status != engine.StepRunning {
			continue
		}
		steps = append(steps, s.Name)
		if n > last[of] {
			last[of] = n
			texts[of] = string(s.Input.Data)
		}
	}
	return texts, steps
}

// names of the streams, as keys and steps have them.
var streamNames = [streams]string{"stdout", "stderr"}

// streamOf reads the name of a step in which an output is staged: stdout, or stdout.2 if it was set again.
func streamOf(step string) (of, n int, ok bool) {
	name, number, again := strings.Cut(step, ".")
	n = 1
	if again {
		var err error
		if n, err = strconv.Atoi(number); err != nil || n < 2 {
			return 0, 0, false
		}
	}
	for i, known := range streamNames {
		if name == known {
			return i, n, true
		}
	}
	return 0, 0, false
}

// stage keeps an output until the job's status is there.
func (h *held) stage(of int, text string) error {
	clean(&text, maxKept)
	n, now := 0, ""
	for i := range h.claim.Steps {
		s := &h.claim.Steps[i]
		if stream, number, ok := streamOf(s.Name); ok && stream == of && s.Status == engine.StepRunning && number > n {
			n, now = number, string(s.Input.Data)
		}
	}
	if now == text {
		return nil // nothing new, or the same again
	}
	name := streamNames[of]
	if n++; n > 1 {
		name += "." + strconv.Itoa(n)
	}
	if n > maxStage {
		return status.Errorf(codes.FailedPrecondition, "the %s of a job was set %d times; a worker sets it once",
			streamNames[of], maxStage)
	}
	timeout := h.timeout()
	for again := n; ; again++ {
		answer, err := h.door.work.BeginStep(h.ctx, &kagziv1.BeginStepRequest{Namespace: h.who.Namespace, RunId: h.run,
			StepName: name, LeaseToken: h.token, StartToCloseTimeoutMs: timeout,
			Input: &kagziv1.Payload{Data: []byte(text), Metadata: map[string]string{"content-type": "text/plain"}}})
		if err != nil || answer.ShouldExecute || again > maxStage {
			return err
		}
		// a report that was cut short has ended the step of this name
		name = streamNames[of] + "." + strconv.Itoa(again+1)
	}
}

// timeout returns for how long an output may be staged, in milliseconds: longer than the job may take.
func (h *held) timeout() int64 {
	input, err := inputOf(h.claim.Run.Input.Data)
	if err != nil {
		return 0
	}
	return 2 * input.timeout().Milliseconds()
}
