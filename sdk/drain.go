package kagzi

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// partingTimeout bounds each of the last exchanges with the server: handing runs back, the last report, and goodbye.
const partingTimeout = 5 * time.Second

// drain takes nothing new, lets what is held go on for DrainTimeout, hands the rest back and deregisters. Heartbeats
// go on all the while. A signal cuts it short.
func (w *Worker) drain(reason string, signals <-chan os.Signal, served <-chan struct{}) error {
	w.mu.Lock()
	w.draining = true
	close(w.leaving)
	active := len(w.executions)
	w.noteEmpty()
	w.mu.Unlock()
	w.log.Info("draining", "worker", w.ID(), "reason", reason, "active", active, "timeout", w.options.DrainTimeout)
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

// handBack releases the runs that are still active. Others take them from the last recorded step on.
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
	w.log.Warn("runs handed back unfinished", "worker", w.ID(), "reason", reason, "runs", ids)
	for _, e := range active {
		e.giveBack()
	}
	limit := time.NewTimer(partingTimeout)
	defer limit.Stop()
	select {
	case <-w.emptied:
	case <-served:
	case <-limit.C:
		w.log.Warn("the server did not confirm; it frees the runs when their leases end", "runs", len(w.all()))
	}
	return fmt.Errorf("kagzi: %s: %d runs handed back unfinished", reason, len(ids))
}

// part reports what has ended since the last heartbeat, and deregisters, if the server can be told.
func (w *Worker) part(served <-chan struct{}) {
	w.mu.Lock()
	w.parting = true
	w.mu.Unlock()
	w.reportRest(served)
	answers := make(chan *kagziv1.SessionResponse, 1)
	if !w.goodbye(false, func(r *kagziv1.SessionResponse) { answers <- r }) {
		if w.ID() != "" {
			w.log.Warn("no session to say goodbye on; the server takes the worker off when its lease ends", "worker", w.ID())
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
		w.log.Warn("the server did not confirm the goodbye; it takes the worker off when its lease ends", "worker", w.ID(),
			"reason", answer.GetError().GetMessage())
		return
	}
	w.log.Info("worker deregistered", "worker", w.ID())
}

// reportRest has the server count what the worker has done since the last heartbeat that counted, before a goodbye that may overtake one.
func (w *Worker) reportRest(served <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), partingTimeout)
	defer cancel()
	w.awaitBeat(ctx, served)
	if w.counters.rest() {
		w.beat()
		w.awaitBeat(ctx, served)
	}
}

// goodbye tells the server that the worker drains, or that it is gone; false without a session.
func (w *Worker) goodbye(drain bool, answer func(*kagziv1.SessionResponse)) bool {
	return w.session.put(&operation{
		msg: &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Goodbye{
			Goodbye: &kagziv1.DeregisterRequest{WorkerId: w.ID(), Drain: drain},
		}},
		answer: answer,
	}, false)
}

// awaitCode waits for the author's code to end, so that none of it outlives Run; code that does not heed its
// context is given up after a while, since a goroutine cannot be ended from outside.
func (w *Worker) awaitCode() {
	if !w.codeEnds(partingTimeout) {
		w.log.Warn("code of steps or workflows goes on in spite of its ended context", "worker", w.ID())
	}
}

// codeEnds waits for the author's code for up to limit, and reports whether it has ended.
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
