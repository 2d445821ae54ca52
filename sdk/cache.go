package kagzi

import (
	"container/list"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"google.golang.org/protobuf/proto"
)

// A worker keeps the code of parked runs in memory: its goroutines wait within calls of the SDK, or for
// the lease when they make one. If such a run comes back to this worker, the task has only what
// happened meanwhile (Task.base names the lease under which the run was parked), and the code goes on
// from there. A replay would bring it to the same place. Whatever does not fit, the worker drops the
// code as at any other suspension, reads the whole history and replays.

const (
	defaultCache      = 1000
	defaultCacheBytes = 256 << 20
	// cacheOverhead is what a kept run counts beside its payloads: goroutines and what the SDK knows of
	// the run. Go cannot measure it.
	cacheOverhead = 16 << 10
	cacheTime     = 10 * time.Minute
	maxCache      = 100_000 // as servers accept
)

// stay is the time for which this worker holds the run, from its task to the end of the lease. An
// execution without the cache has one stay.
type stay struct {
	token string
	info  RunInfo
	since time.Time
	ahead time.Duration // how far the server's clock is ahead of the local one
}

func (e *execution) newStay(t *kagziv1.Task) *stay {
	s := &stay{token: t.GetLeaseToken(), info: newRunInfo(e.w, t), since: time.Now()}
	if expires := t.GetLeaseExpiresAt(); expires != nil {
		s.ahead = expires.AsTime().Add(-max(e.w.lease.Duration(), e.heartbeatTimeout)).Sub(s.since)
	}
	return s
}

// token returns the token of the lease under which the worker holds the run, or held it last.
func (e *execution) token() string { return e.stay.Load().token }

// cache holds the runs that the worker keeps in memory. Guarded by Worker.mu.
type cache struct {
	runs  map[string]*list.Element // of order, by run id
	order list.List                // of shelved, the one that was parked first in front
	size  int64
	time  time.Duration // for which a run is kept
	timer *time.Timer   // ends the time of the first; nil if none is set
}

type shelved struct {
	e     *execution
	size  int64
	until time.Time
}

// take removes a run and returns it, nil if it is not kept.
func (c *cache) take(run string) *execution {
	place := c.runs[run]
	if place == nil {
		return nil
	}
	s := c.order.Remove(place).(*shelved)
	delete(c.runs, run)
	c.size -= s.size
	return s.e
}

// first removes the run that was parked first.
func (c *cache) first() *execution {
	return c.take(c.order.Front().Value.(*shelved).e.info.RunID)
}

// clear removes all runs and returns them.
func (c *cache) clear() (all []*execution) {
	for c.order.Len() > 0 {
		all = append(all, c.first())
	}
	return all
}

// keeps returns how many parked runs the worker keeps in memory.
func (w *Worker) keeps() int { return max(0, w.options.Cache) }

// shelve keeps a run that is parked, if it was not handed over again already, and frees its slot.
func (w *Worker) shelve(e *execution) {
	w.mu.Lock()
	task, counted := e.next.task, e.counted
	e.counted = false
	var over []*execution
	switch {
	case task != nil:
	case w.executions[e.info.RunID] != e, w.draining:
		over = append(over, e)
	default:
		over = w.put(e)
	}
	if w.executions[e.info.RunID] == e && task == nil {
		delete(w.executions, e.info.RunID)
		w.noteEmpty()
	}
	draining := w.draining
	w.mu.Unlock()
	if !draining && !counted {
		w.session.AddCredit(1)
	}
	for _, one := range over {
		one.over(errSuspended)
	}
	if task != nil {
		w.comeBack(e, task)
		w.begun(e, task)
	}
}

// nextStay is the task of a run that came before the answer which ends the stay before.
type nextStay struct {
	task  *kagziv1.Task // nil: none came
	pause bool          // the run is to be paused
}

// takeNext returns the task of the next stay and forgets it. Needs Worker.mu.
func (e *execution) takeNext() nextStay {
	next := e.next
	e.next = nextStay{}
	return next
}

// begun forgets the next stay of an execution, which has begun. Until then heartbeats name it, or the
// server would give the run to another worker. What the server said of it meanwhile applies now.
func (w *Worker) begun(e *execution, task *kagziv1.Task) {
	w.mu.Lock()
	next := e.takeNext()
	now := w.executions[task.GetRunId()]
	if now != nil && now.token() != task.GetLeaseToken() {
		now = nil
	}
	if now != nil && next.task == nil {
		now.counted = true // loseNext has given the slot back
	}
	w.mu.Unlock()
	switch {
	case now == nil:
	case next.task == nil:
		now.lose(&kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, Message: "not renewed by the server"})
	case next.pause:
		now.askPause()
	}
}

// expect changes what is known of the next stay of a run, which has this lease. It returns false if
// there is none.
func (w *Worker) expect(runID, token string, change func(*nextStay)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.executions[runID]
	if e == nil || e.next.task == nil || e.next.task.GetLeaseToken() != token {
		return false
	}
	if change(&e.next); e.next.task == nil {
		w.session.AddCredit(1)
	}
	return true
}

// loseNext drops the next stay of a run, whose lease is lost already.
func loseNext(next *nextStay) { *next = nextStay{} }

// put keeps a run, and returns those that have to go for it. Needs w.mu.
func (w *Worker) put(e *execution) (over []*execution) {
	c := &w.cache
	if old := c.take(e.info.RunID); old != nil {
		over = append(over, old)
	}
	s := &shelved{e, e.size + cacheOverhead, time.Now().Add(c.time)}
	c.runs[e.info.RunID] = c.order.PushBack(s)
	c.size += s.size
	for c.order.Len() > w.keeps() || c.size > w.options.CacheBytes {
		over = append(over, c.first())
	}
	w.timeCache()
	return over
}

// timeCache sets the timer for the run that was parked first. Needs w.mu.
func (w *Worker) timeCache() {
	c := &w.cache
	if c.timer != nil || c.order.Len() == 0 {
		return
	}
	c.timer = time.AfterFunc(time.Until(c.order.Front().Value.(*shelved).until), func() {
		w.mu.Lock()
		c.timer = nil
		var over []*execution
		for c.order.Len() > 0 && !time.Now().Before(c.order.Front().Value.(*shelved).until) {
			over = append(over, c.first())
		}
		w.timeCache()
		w.mu.Unlock()
		for _, e := range over {
			e.over(errSuspended)
		}
	})
}

// dropKept ends the code of all runs that are kept.
func (w *Worker) dropKept() {
	w.mu.Lock()
	over := w.cache.clear()
	if w.cache.timer != nil {
		w.cache.timer.Stop()
		w.cache.timer = nil
	}
	w.mu.Unlock()
	for _, e := range over {
		e.over(errSuspended)
	}
}

// comeBack goes on with a run whose code is in memory, or else replays it.
func (w *Worker) comeBack(e *execution, t *kagziv1.Task) {
	if !e.resume(t) {
		w.log.Debug("the code in memory does not fit what happened meanwhile; replaying it", "run", t.GetRunId())
		e.over(errSuspended)
		w.runTask(t)
	}
}

// isGone reports whether the code waits in memory or its lease has ended.
func (e *execution) isGone() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.away || e.ended
}

// refuses notes that the server refused an operation without ending the run. Such a run is not kept.
func (e *execution) refuses() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clean = false
}

// keepable reports whether the code may wait in memory: everything that it did is recorded, and it owes
// nothing. Needs e.mu.
func (e *execution) keepable() bool {
	return e.w.keeps() > 0 && e.w.resumes.Load() && e.w.keepsOrder() && e.replay == nil && e.clean && !e.quitted &&
		!e.ended && len(e.ops) == 0 && e.owing == 0 && len(e.held)+len(e.results)+len(e.endings) == 0
}

// suspend ends the stay of a run that was parked. Its code waits in memory, or ends.
func (e *execution) suspend() {
	e.mu.Lock()
	if !e.keepable() {
		e.mu.Unlock()
		e.over(errSuspended)
		return
	}
	e.closing, e.away = true, true
	e.note.rest()
	e.stopWatch()
	e.stopStall()
	e.stopGrace()
	e.watch.timer, e.stall.timer = nil, nil
	e.goOn()
	e.mu.Unlock()
	e.endActivation(errSuspended)
	e.w.shelve(e)
}

// fits reports whether the code waits for what happened to this step. Needs e.mu.
func (e *execution) fits(s *kagziv1.Step) bool {
	switch s.GetStatus() {
	case kagziv1.StepStatus_STEP_STATUS_COMPLETED, kagziv1.StepStatus_STEP_STATUS_FAILED:
	default:
		return false
	}
	if s.GetSettled() <= 0 {
		return false
	}
	if s.GetKind() == kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW {
		child := e.kids[s.GetName()]
		return child != nil && child.step == nil
	}
	return e.waitsFor(s) != nil
}

// waitsFor returns the sleep or the wait for a signal that a step is the record of, if its call has no
// result yet. Needs e.mu.
func (e *execution) waitsFor(s *kagziv1.Step) *call {
	for c := range e.open {
		if c.name == s.GetName() && c.kind == s.GetKind() && c.state == callActive && !c.running &&
			c.kind != kagziv1.StepKind_STEP_KIND_FUNCTION {
			return c
		}
	}
	return nil
}

// resume goes on with code that waits in memory. It returns false, and changes nothing, if the code
// does not fit the task.
func (e *execution) resume(t *kagziv1.Task) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.away || e.quitted || t.GetOwedFrom() != e.task.GetOwedFrom() || t.GetNextHistoryToken() != "" {
		return false
	}
	for _, s := range t.GetHistory() {
		if !e.fits(s) {
			return false
		}
	}
	e.stay.Store(e.newStay(t))
	_, span := e.w.traceActivation(t)
	e.span = span
	// Places that the server gives go on from its own count; ours count the operations, too. So they
	// all come after those of earlier stays.
	base := e.recorded + e.issued
	e.recorded, e.issued, e.failed, e.again = base, 0, 0, 0
	for c := range e.open {
		if c.server != nil {
			c.server.asked, c.server.hinted, c.server.known = false, false, time.Now()
		}
	}
	for _, s := range t.GetHistory() {
		e.recorded = max(e.recorded, base+s.GetSettled())
		e.tookPlace(s, base+s.GetSettled())
	}
	for p := range e.parked {
		p.wake() // its time may be over by now, or by the clock of this stay
	}
	e.away, e.closing = false, false
	if e.back != nil {
		close(e.back)
		e.back = nil
	}
	if t.GetCancelRequested() {
		e.cancelAsked, e.graceUntil = true, convert.When(t.GetCancelGraceUntil())
		e.tryCancel()
		e.armGrace()
	}
	e.moved()
	return true
}

// tookPlace takes a step that has got its result while the run was parked. Needs e.mu.
func (e *execution) tookPlace(s *kagziv1.Step, key int64) {
	name := s.GetName()
	e.history[name] = s
	e.size += int64(proto.Size(s.GetOutput()))
	if s.GetKind() == kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW {
		e.kids[name].step, e.kids[name].key, e.kids[name].live = s, key, false
		for c := range e.open {
			if len(c.children) > 0 && c.state == callActive {
				e.childrenKnown(c)
			}
		}
		return
	}
	c := e.waitsFor(s)
	if s.GetKind() == kagziv1.StepKind_STEP_KIND_SIGNAL && s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_COMPLETED &&
		!s.GetSignalTimedOut() {
		e.unreceived[name] = true
	}
	c.record = s
	c.b.replays(c.kind, true) // from here on a replay would write the same lines
	e.queue(c, key, false, 0)
}

// overridden reports whether a person set the result of a step.
func (e *execution) overridden(step string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.history[step].GetOverriddenBy() != ""
}

// rest drops a note that was not sent, as the run is parked.
func (n *note) rest() {
	n.pending = false
	if n.timer != nil {
		n.timer.Stop()
		n.timer = nil
	}
}
