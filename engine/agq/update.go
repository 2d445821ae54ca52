package agq

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// setOutput carries out SET job:ID:stdout and SET job:ID:stderr.
func (c *conn) setOutput(id string, of int, text string) bool {
	for again := false; ; again = true {
		h, err := c.reportOn(id, true)
		if errors.Is(err, errNotHeld) && h.reportedBefore("completed", "failed") {
			c.ok() // all of a report is repeated when the answer to its end was lost
			return true
		}
		if err == nil {
			err = h.stage(of, text)
		}
		switch {
		case err == nil:
			c.ok()
		case isLost(err) && !again:
			continue // it ended meanwhile, perhaps by the report that this repeats
		default:
			c.refuseReport(id, "running", h, err)
		}
		return true
	}
}

// setStatus carries out SET job:ID:status.
func (c *conn) setStatus(id, to string) bool {
	if to == "running" {
		return c.progress(id, "")
	}
	if to != "completed" && to != "failed" {
		c.fail("ERR status must be running, completed or failed, got '" + cut(to, 32) + "'")
		return true
	}
	h, err := c.reportOn(id, true)
	if err == nil {
		texts, steps := h.staged()
		o := outcome{completed: to == "completed",
			result: jobResult{Status: to, Worker: h.who.Worker, Stdout: texts[0], Stderr: texts[1]}}
		err = c.conclude(h, &o, steps)
	}
	return c.answerReport(id, to, h, err)
}

// conclude records the end of a job.
func (c *conn) conclude(h *held, o *outcome, staged []string) error {
	if input, err := h.input(); err == nil && input.Verify != "" {
		h.policy = input.policy()
		if err := c.noteVerified(h, input.Verify, o); err != nil {
			return err
		}
	}
	return h.finish(o, staged)
}

// answerReport answers a final report.
func (c *conn) answerReport(id, to string, h *held, err error) bool {
	switch {
	case err == nil:
		c.over(h, to == "failed")
		c.ok()
	case h != nil && (errors.Is(err, errNotHeld) || isLost(err) || isConflict(err)):
		again, _ := c.reportOn(id, true) // what holds now, whatever this server remembers
		if again == nil {
			c.refuseReport(id, to, h, errNotHeld)
			return true
		}
		done := again.reportedBefore(to)
		if s := again.recorded(); s != nil && again.token != "" && to == "completed" {
			done = again.endCompleted(s.Output.Data) == nil
		}
		if done {
			c.over(h, to == "failed")
			c.ok()
			return true
		}
		if w := c.worker(); w != nil {
			w.drop(h.run, h.token)
		}
		c.refuseReport(id, to, again, errNotHeld)
	default:
		c.refuseReport(id, to, h, err)
	}
	return true
}

// refuseReport answers a report that does not count.
func (c *conn) refuseReport(id, to string, h *held, err error) {
	switch {
	case errors.Is(err, errNoJob):
		c.fail("ERR Job not found: " + cut(id, 128))
	case h != nil && (errors.Is(err, errNotHeld) || isLost(err)):
		if now := h.claim.Run.Status; now.Ended() {
			c.fail(fmt.Sprintf("ERR Invalid status transition: %s -> %s", statusOf(now), to))
			return
		}
		c.fail("ERR Job " + h.run + " is not claimed by worker " + h.who.Worker +
			": it was handed out again, or given back; its report does not count")
	default:
		c.refuse(err)
	}
}

// reportedBefore says whether this worker's last report of the job was one of these, so this one is a
// repetition: its answer was lost.
func (h *held) reportedBefore(outcomes ...string) bool {
	if h == nil {
		return false
	}
	run := &h.claim.Run
	if run.Status == engine.RunCompleted || run.Status == engine.RunFailed {
		to := "completed"
		if run.Status == engine.RunFailed {
			to = "failed"
		}
		return run.WorkerID == h.who.Worker && slices.Contains(outcomes, to) && !isCrash(run.Error)
	}
	for i := range h.claim.Steps {
		s := &h.claim.Steps[i]
		if s.Name == jobStep && s.Status == engine.StepPending && s.WorkerID == h.who.Worker &&
			s.Error != nil && s.Error.Metadata["worker"] == h.who.Worker {
			return slices.Contains(outcomes, "failed")
		}
	}
	return false
}

func isCrash(f *engine.Failure) bool { return f != nil && f.Code == engine.FailureCrashed }

// jobUpdate is what JOB.UPDATE says.
type jobUpdate struct {
	Status   string       `json:"status"`
	Worker   string       `json:"worker_id"`
	Task     int          `json:"current_task"`
	Progress float64      `json:"progress_percent"`
	Error    string       `json:"error"`
	Results  []taskResult `json:"task_results"`
}

// runJobUpdate carries out JOB.UPDATE.
func runJobUpdate(c *conn, args []string) bool {
	id := args[0]
	var u jobUpdate
	if err := json.Unmarshal([]byte(args[1]), &u); err != nil {
		c.fail("ERR Invalid job update: " + jsonError(err))
		return true
	}
	if u.Worker != "" && c.identity == "" {
		if text := c.bind(u.Worker); text != "" {
			c.fail(text)
			return true
		}
	}
	if u.Worker != "" && u.Worker != c.identity {
		c.fail("ERR Job " + cut(id, 128) + " is not claimed by worker " + cut(u.Worker, 64) +
			": this connection speaks for " + c.identity)
		return true
	}
	if text := checkResults(u.Results); text != "" {
		c.fail("ERR Invalid job update: " + text)
		return true
	}
	switch u.Status {
	case "", "running":
		return c.progress(id, u.note())
	case "completed", "failed":
	default:
		h, err := c.reportOn(id, true)
		if err != nil {
			c.refuseReport(id, cut(u.Status, 32), h, err)
			return true
		}
		c.fail("ERR Invalid status transition: running -> " + cut(u.Status, 32))
		return true
	}
	h, err := c.reportOn(id, false)
	if err == nil {
		if h.job != nil && u.Status == "failed" {
			<-h.job.begun // the failure is that of the attempt
		}
		o := outcome{completed: u.Status == "completed", message: u.Error,
			result: jobResult{Status: u.Status, Worker: h.who.Worker, Tasks: u.Results}}
		err = c.conclude(h, &o, nil)
	}
	return c.answerReport(id, u.Status, h, err)
}

// checkResults returns what is wrong about task results; empty: nothing.
func checkResults(results []taskResult) string {
	if len(results) > maxTasks {
		return fmt.Sprintf("task_results has %d entries, at most %d are allowed", len(results), maxTasks)
	}
	seen := map[int]bool{}
	for i, t := range results {
		switch {
		case t.Task < 1 || t.Task > maxTasks:
			return fmt.Sprintf("task_results[%d].task_number must be between 1 and %d, got %d", i, maxTasks, t.Task)
		case seen[t.Task]:
			return fmt.Sprintf("task_results has two entries for task_number %d", t.Task)
		case t.Millis < 0:
			return fmt.Sprintf("task_results[%d].duration_ms must not be negative", i)
		}
		seen[t.Task] = true
	}
	return ""
}

// note returns a job's progress as lists show it.
func (u *jobUpdate) note() string {
	var parts []string
	if u.Task > 0 {
		parts = append(parts, fmt.Sprintf("task %d", u.Task))
	}
	if u.Progress > 0 && u.Progress <= 100 {
		parts = append(parts, fmt.Sprintf("%.0f %%", u.Progress))
	}
	return strings.Join(parts, ", ")
}

// progress notes that a job goes on.
func (c *conn) progress(id, note string) bool {
	h, err := c.reportOn(id, note == "")
	if err == nil && note != "" {
		_, err = c.door.work.SetRunNote(h.ctx, &kagziv1.SetNote{RunId: h.run, LeaseToken: h.token, Note: note})
		if isLost(err) {
			h, err = c.reportOn(id, true)
		}
	}
	if err != nil {
		c.refuseReport(id, "running", h, err)
		return true
	}
	c.ok()
	return true
}

// remove carries out LREM queue:processing COUNT ID: 1 if the job is one that this connection reported or
// holds, otherwise 0. It changes nothing: the report has ended the claim.
func runLrem(c *conn, args []string) bool {
	if args[0] != "queue:processing" {
		c.fail(unknownKey)
		return true
	}
	n := int64(0)
	if c.reported != "" && c.reported == args[2] {
		n = 1
	}
	c.integer(n)
	return true
}

// jsonError returns the error of JSON from a client without names of Go.
func jsonError(err error) string {
	if bad := (*json.UnmarshalTypeError)(nil); errors.As(err, &bad) {
		field := bad.Field
		if field == "" {
			return "it must be an object, got " + bad.Value
		}
		return field + " cannot be of type " + bad.Value
	}
	return "it is no JSON (" + strings.TrimPrefix(err.Error(), "json: ") + ")"
}
