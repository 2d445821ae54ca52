package kagzi

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/session"
)

// accept takes a task from the server and runs it.
func (w *Worker) accept(t *kagziv1.Task) {
	run, base := t.GetRunId(), t.GetBase()
	w.mu.Lock()
	old := w.executions[run]
	if old != nil && (old.token() == t.GetLeaseToken() || old.next.task.GetLeaseToken() == t.GetLeaseToken()) {
		w.mu.Unlock()
		w.session.AddCredit(1)
		return
	}
	if old != nil && old.takeNext().task != nil { // the server has freed that lease
		w.session.AddCredit(1)
	}
	if old != nil && base != "" && old.token() == base && !w.draining {
		old.next.task = t // the answer to what parked the run is still to come
		w.mu.Unlock()
		return
	}
	kept := w.cache.take(run)
	fits := kept != nil && base != "" && kept.token() == base && old == nil && !w.draining
	if fits {
		w.executions[run] = kept
	}
	w.mu.Unlock()
	switch {
	case fits:
		w.comeBack(kept, t)
		return
	case kept != nil:
		kept.over(errSuspended)
	}
	w.runTask(t)
}

// runTask runs a task from the beginning of its code.
func (w *Worker) runTask(t *kagziv1.Task) {
	e := newExecution(w, t)
	e.whole = t.GetBase() != ""
	h := w.handlers[t.GetWorkflowType()]
	w.mu.Lock()
	old := w.executions[t.GetRunId()]
	w.executions[t.GetRunId()] = e
	draining := w.draining
	w.mu.Unlock()
	if old != nil && old.isGone() { // it came back, and its code does not fit, or it has ended just now
		old = nil
	}
	if old != nil {
		old.lose(&kagziv1.ErrorDetail{Message: "claimed again by this worker"})
	}
	switch {
	case draining:
		e.giveBack()
	case h == nil:
		w.log.Error("no workflow function for the run's type; releasing the run", "run", t.GetRunId(), "type",
			t.GetWorkflowType())
		e.giveBack()
	default:
		w.code.Add(1)
		go branchGoroutine(func() {
			defer w.code.Done()
			e.run(h)
		})
	}
}

// forget drops a run that is no longer held and frees its slot.
func (w *Worker) forget(e *execution) {
	w.mu.Lock()
	task, counted := e.next.task, e.counted
	e.counted = false
	if w.executions[e.info.RunID] == e && task == nil {
		delete(w.executions, e.info.RunID)
	}
	draining := w.draining
	if task == nil {
		w.noteEmpty()
	}
	w.mu.Unlock()
	if !draining && !counted {
		w.session.AddCredit(1)
	}
	if task != nil {
		w.runTask(task)
		w.begun(e, task)
	}
}

// noteEmpty closes emptied when a draining worker holds no run. Needs w.mu.
func (w *Worker) noteEmpty() {
	if w.draining && len(w.executions) == 0 {
		select {
		case <-w.emptied:
		default:
			close(w.emptied)
		}
	}
}

func (w *Worker) all() []*execution {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*execution, 0, len(w.executions))
	for _, e := range w.executions {
		all = append(all, e)
	}
	return all
}

// held returns the execution with this lease, nil if there is none.
func (w *Worker) held(runID, token string) *execution {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.executions[runID]
	if e == nil || e.token() != token {
		return nil
	}
	return e
}

// cancelTask stops a run at once, or asks its code to stop.
func (w *Worker) cancelTask(c *kagziv1.CancelTask) {
	e := w.held(c.GetRunId(), c.GetLeaseToken())
	switch {
	case e == nil && c.GetGraceUntil() == nil:
		w.expect(c.GetRunId(), c.GetLeaseToken(), loseNext)
	case e == nil:
		w.expect(c.GetRunId(), c.GetLeaseToken(), func(next *nextStay) {
			next.task.CancelRequested, next.task.CancelGraceUntil = true, c.GetGraceUntil()
		})
	case c.GetGraceUntil() != nil:
		if until := c.GetGraceUntil().AsTime(); e.askCancel(until) {
			w.log.Info("run is being cancelled; its code may clean up", "run", c.GetRunId(), "reason",
				c.GetReason().GetMessage(), "grace",
				until.Sub(e.now()).Round(time.Millisecond))
		}
	case !e.leaving():
		e.lose(c.GetReason())
	}
}

// partingTimeout limits each of the last exchanges with the server: release, last report and
// goodbye.
const partingTimeout = 5 * time.Second

// drain claims nothing new, waits up to DrainTimeout for held runs, releases the rest and
// deregisters. Heartbeats continue. A signal ends the wait.
func (w *Worker) drain(reason string, signals <-chan os.Signal, served <-chan struct{}) error {
	w.mu.Lock()
	w.draining = true
	close(w.leaving)
	active := len(w.executions)
	w.noteEmpty()
	w.mu.Unlock()
	w.dropKept()
	message := "worker draining"
	if active > 0 && len(w.options.HandleSignals) > 0 {
		message = "worker draining; another signal releases its runs at once"
	}
	w.log.Info(message, "worker", w.ID(), "reason", reason, "active", active, "timeout", w.options.DrainTimeout)
	w.goodbye(true, nil)

	timeout := time.NewTimer(w.options.DrainTimeout)
	defer timeout.Stop()
	var err error
	select {
	case <-w.emptied:
	case <-served:
	case <-signals:
		err = w.handBack("second signal", served)
	case <-timeout.C:
		err = w.handBack("drain timeout", served)
	}
	w.part(served)
	return err
}

// endLimit is how long a worker may take to end after its drain; tests make it shorter.
var endLimit = 30 * time.Second

// watchEnd logs the stacks of all goroutines if the worker has not ended within endLimit, because
// code that ignores its context keeps it. The process is left alone. Call stop when it has ended.
func (w *Worker) watchEnd() (stop func()) {
	const maxStacks = 256 << 10
	timer := time.AfterFunc(endLimit, func() {
		text := make([]byte, maxStacks)
		w.log.Error("the worker has drained and does not end; Run waits for code that ignores its context",
			"worker", w.ID(),
			"after", endLimit, "goroutines", string(text[:runtime.Stack(text, true)]))
	})
	return func() { timer.Stop() }
}

// handBack releases the runs that are still active. Other workers continue them after the last
// recorded step.
func (w *Worker) handBack(reason string, served <-chan struct{}) error {
	active := w.all()
	if len(active) == 0 {
		return nil
	}
	ids := make([]string, 0, len(active))
	for _, e := range active {
		ids = append(ids, e.info.RunID)
	}
	slices.Sort(ids)
	w.log.Warn("releasing unfinished runs to other workers", "worker", w.ID(), "reason", reason, "runs", ids)
	for _, e := range active {
		e.giveBack()
	}
	limit := time.NewTimer(partingTimeout)
	defer limit.Stop()
	select {
	case <-w.emptied:
	case <-served:
	case <-limit.C:
		w.log.Warn("the server did not confirm the release; it frees the runs when their leases expire", "runs",
			len(w.all()))
	}
	return fmt.Errorf("kagzi: %s: released %d unfinished runs", reason, len(ids))
}

// part reports what has ended since the last heartbeat and deregisters, if there is a session.
func (w *Worker) part(served <-chan struct{}) {
	w.mu.Lock()
	w.parting = true
	w.mu.Unlock()
	w.reportRest(served)
	answers := make(chan *kagziv1.SessionResponse, 1)
	if !w.goodbye(false, func(r *kagziv1.SessionResponse) { answers <- r }) {
		if w.ID() != "" {
			w.log.Warn("no session to deregister on; the server takes the worker offline when its lease expires",
				"worker", w.ID())
		}
		return
	}
	limit := time.NewTimer(partingTimeout)
	defer limit.Stop()
	var answer *kagziv1.SessionResponse
	select {
	case answer = <-answers:
	case <-served:
	case <-limit.C:
	}
	if answer.GetGoodbye() == nil {
		w.log.Warn("the server did not confirm the deregistration; it takes the worker offline when its lease expires",
			"worker", w.ID(),
			"reason", answer.GetError().GetMessage())
		return
	}
	w.log.Info("worker deregistered", "worker", w.ID())
}

// reportRest reports work since the last accepted heartbeat, before the goodbye that could overtake
// a heartbeat.
func (w *Worker) reportRest(served <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), partingTimeout)
	defer cancel()
	w.awaitBeat(ctx, served)
	if w.counters.Pending() {
		w.beat()
		w.awaitBeat(ctx, served)
	}
}

// goodbye tells the server that the worker drains or is gone. It returns false without a session.
func (w *Worker) goodbye(drain bool, answer func(*kagziv1.SessionResponse)) bool {
	return w.session.Enqueue(&session.Operation{
		Msg: &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Goodbye{
			Goodbye: &kagziv1.DeregisterRequest{WorkerId: w.ID(), Drain: drain},
		}},
		Answer: answer,
	})
}

// awaitCode waits for user code to end, so that none outlives Run. Code that ignores its context is
// abandoned after a while, since Go cannot end a goroutine from outside.
func (w *Worker) awaitCode() {
	if !w.codeEnds(partingTimeout) {
		w.log.Warn("step or workflow code still runs after its context ended; Run returns without it", "worker", w.ID())
	}
}

// codeEnds waits up to limit for user code and reports whether it has ended.
func (w *Worker) codeEnds(limit time.Duration) bool {
	ended := make(chan struct{})
	go func() { w.code.Wait(); close(ended) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
