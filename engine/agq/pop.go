package agq

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// pop is a pop that waits for a job. It is answered once, by what takes it from its connection: a job, its
// time-out, the next command, a newer connection of the worker, or the end of the connection or the server.
type pop struct {
	pair  bool // answer the key and the job; otherwise one value
	whole bool // the value is the whole job; otherwise its id
	timer *time.Timer
}

// key is what a pop's answer names as the list that it popped from.
const readyKey = "queue:ready"

// runPop carries out a pop. wait is how long it may wait, 0: for ever; negative: not at all.
func (c *conn) runPop(key string, wait time.Duration, p *pop) bool {
	if key != readyKey {
		c.fail(unknownKey)
		return true
	}
	if c.door.stopping() {
		c.nothing(p)
		return true
	}
	w, err := c.attend(nil)
	if err != nil {
		c.refuse(err)
		return true
	}
	w.beat()
	w.giveBackOldest()
	c.mu.Lock()
	c.pop = p
	if wait > 0 {
		p.timer = time.AfterFunc(wait, func() { c.answerPop(p, nil) })
	}
	c.mu.Unlock()
	if err := w.want(); err != nil || c.door.stopping() {
		c.answerPop(p, nil)
		return true
	}
	if wait < 0 {
		c.answerSoon(p)
		return true
	}
	w.keepAlive(p, c)
	return true
}

// soon is how long a pop that does not wait gives the server to find a job that is due.
const soon = 50 * time.Millisecond

// answerSoon answers a pop that does not wait.
func (c *conn) answerSoon(p *pop) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.timer = time.AfterFunc(soon, func() { c.answerPop(p, nil) })
	for c.pop == p && !c.closing {
		c.changed.Wait()
	}
}

// want asks the session for a task, unless it may send one already.
func (w *worker) want() error {
	w.mu.Lock()
	ask := w.credit == 0
	if ask {
		w.credit++
	}
	w.mu.Unlock()
	if !ask {
		return nil
	}
	return w.send(func(m *kagziv1.SessionRequest) {
		m.Operation = &kagziv1.SessionRequest_Credit{Credit: &kagziv1.Credit{Tasks: 1}}
	})
}

// keepAlive sends heartbeats while a pop waits: its worker is there, and says so by waiting. A worker that
// has gone without closing is noticed by the keepalive of TCP.
func (w *worker) keepAlive(p *pop, c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told != nil {
		w.told.Stop()
	}
	w.told = time.AfterFunc(2*beatEvery, func() {
		c.mu.Lock()
		waits := c.pop == p
		c.mu.Unlock()
		if waits && w.isOpen() {
			w.beat()
			w.keepAlive(p, c)
		}
	})
}

// answerPop answers a pop, if it still waits, and says whether it did. build nil: there is no job.
func (c *conn) answerPop(p *pop, build func(*reply)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pop != p || c.closing {
		return false
	}
	c.pop = nil
	if p.timer != nil {
		p.timer.Stop()
	}
	if build == nil {
		build = p.nothing
	}
	c.sayLocked(build)
	return true
}

func (p *pop) nothing(r *reply) {
	if p.pair {
		r.nullArray()
		return
	}
	r.null()
}

func (c *conn) nothing(p *pop) { c.say(p.nothing) }

// giveUp answers the pop that waits with nil. It may be called from any goroutine.
func (c *conn) giveUp() {
	c.mu.Lock()
	p := c.pop
	c.mu.Unlock()
	if p != nil {
		c.answerPop(p, nil)
	}
}

// giveBackOldest gives the oldest job back, without a loss or an attempt, if the worker has as many as it may
// have. It pops although it has one: so it never got it.
func (w *worker) giveBackOldest() {
	w.mu.Lock()
	if len(w.held) < w.most {
		w.mu.Unlock()
		return
	}
	j := w.held[0]
	w.held = w.held[1:]
	w.mu.Unlock()
	<-j.begun
	w.release(j.run, j.token)
}

// release gives a job back.
func (w *worker) release(run, token string) {
	_, err := w.door.work.ReleaseTask(w.ctx,
		&kagziv1.ReleaseTaskRequest{Namespace: w.who.Namespace, RunId: run, LeaseToken: token})
	if err != nil && status.Code(err) != codes.FailedPrecondition && status.Code(err) != codes.NotFound {
		w.door.log.Warn("job could not be given back; it is when the worker's lease is over", "run", run,
			"worker", w.who.Worker, "error", err)
	}
}

// deliver hands a task to the pop that waits. It is called by the session's goroutine.
func (w *worker) deliver(t *kagziv1.Task) {
	w.mu.Lock()
	w.credit--
	c := w.owner
	w.mu.Unlock()
	if c == nil {
		w.release(t.RunId, t.LeaseToken)
		return
	}
	if w.takenOver() {
		w.release(t.RunId, t.LeaseToken)
		w.close()
		c.fenceOf(w.number)
		return
	}
	input, err := inputOf(t.Input.GetData())
	if err != nil {
		w.refuseTask(t, err)
	}
	if err != nil || w.settled(t) {
		w.again(c)
		return
	}
	c.mu.Lock()
	p := c.pop
	c.mu.Unlock()
	j := newJob(t.RunId, t.LeaseToken, input, false)
	text := t.RunId
	if p != nil && p.whole {
		text = whole(j)
	}
	w.mu.Lock()
	w.held = append(w.held, j)
	w.mu.Unlock()
	given := p != nil && c.answerPop(p, func(r *reply) {
		if p.pair {
			r.array(2)
			r.bulk(readyKey)
		}
		r.bulk(text)
	})
	if !given { // it was answered meanwhile
		w.drop(j.run, j.token)
		close(j.begun)
		w.release(j.run, j.token)
		return
	}
	w.begin(j)
}

// again asks for another task if the pop still waits.
func (w *worker) again(c *conn) {
	c.mu.Lock()
	waits := c.pop != nil
	c.mu.Unlock()
	if waits {
		_ = w.want() // a session that has ended answers the pop
	}
}

// begin begins the job's step: its time-out counts from now. The worker has the job already; if the step
// cannot begin, the job has no time-out until it is handed out again, and its report counts all the same.
func (w *worker) begin(j *job) {
	begin := &kagziv1.BeginStepRequest{
		Namespace: w.who.Namespace, RunId: j.run, StepName: jobStep, LeaseToken: j.token,
		StartToCloseTimeoutMs: j.input.timeout().Milliseconds(), RetryPolicy: j.input.policy(),
	}
	w.operate(func(m *kagziv1.SessionResponse) {
		close(j.begun)
		if failure := m.GetError(); failure != nil && failure.Code != kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST {
			w.door.log.Warn("the start of a job could not be recorded; it has no time-out", "run", j.run,
				"worker", w.who.Worker, "error", failure.Message)
		}
	}, &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_BeginStep{BeginStep: begin}})
}

// settled ends a job that needs no worker any more, and says whether it was one: its result is recorded
// already, but its report was cut short, or its last attempt timed out.
func (w *worker) settled(t *kagziv1.Task) bool {
	r := reporter{door: w.door, ctx: w.ctx, who: w.who, run: t.RunId, token: t.LeaseToken}
	if t.CancelRequested { // a command has nothing to clean up
		w.logEnd(r.endCompleted(nil), t.RunId)
		return true
	}
	for _, s := range t.History {
		if s.Name != jobStep {
			continue
		}
		switch s.Status {
		case kagziv1.StepStatus_STEP_STATUS_COMPLETED:
			w.logEnd(r.endCompleted(s.Output.GetData()), t.RunId)
			return true
		case kagziv1.StepStatus_STEP_STATUS_FAILED:
			if s.Error.GetCode() != kagziv1.ErrorCode_ERROR_CODE_CRASHED { // interrupted: it runs again
				w.logEnd(r.endFailed(s.Error), t.RunId)
				return true
			}
		}
	}
	return false
}

func (w *worker) logEnd(err error, run string) {
	if err != nil {
		w.door.log.Warn("job could not be ended; another worker's pop tries again", "run", run, "error", err)
	}
}

// refuseTask ends a job that this door did not make and no worker can read.
func (w *worker) refuseTask(t *kagziv1.Task, err error) {
	r := reporter{door: w.door, ctx: w.ctx, who: w.who, run: t.RunId, token: t.LeaseToken}
	w.logEnd(r.endFailed(&kagziv1.ErrorDetail{Message: "the run's input is no job of AGQ: " + err.Error(),
		NonRetryable: true}), t.RunId)
}

// whole returns a job as seed 002 has it.
func whole(j *job) string {
	text, err := json.Marshal(struct {
		JobID    string          `json:"job_id"`
		ActionID string          `json:"action_id"`
		PlanID   string          `json:"plan_id"`
		Plan     json.RawMessage `json:"plan"`
		Inputs   json.RawMessage `json:"inputs"`
		Input    json.RawMessage `json:"input"`
		Status   string          `json:"status"`
	}{j.run, j.input.ActionID, j.input.PlanID, j.input.Plan, j.input.Input, j.input.Input, "pending"})
	if err != nil {
		return j.run // texts and JSON always encode
	}
	return string(text)
}

// jobPolicy says how often a job runs: once, and three times again.
func jobPolicy() *kagziv1.RetryPolicy {
	return &kagziv1.RetryPolicy{MaximumAttempts: 4, InitialIntervalMs: 1000, BackoffCoefficient: 2,
		MaximumIntervalMs: 60_000}
}

// timeoutOf reads the time-out of a blocking pop, in seconds; 0 waits for ever.
func timeoutOf(text string) (time.Duration, string) {
	seconds, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(seconds) || math.IsInf(seconds, 0):
		return 0, "ERR timeout is not a float or out of range"
	case seconds < 0:
		return 0, "ERR timeout is negative"
	case seconds > engine.MaxDelay.Seconds():
		return 0, "ERR timeout is out of range"
	case seconds > 0:
		return max(time.Duration(seconds*float64(time.Second)), time.Millisecond), ""
	}
	return 0, ""
}
