package kagzi

import (
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// pause is the state of a request to pause the run: no step starts, and when no step's code runs, the
// run is released. All fields are guarded by e.mu.
type pause struct {
	running int           // steps whose code runs and whose result was not sent
	asked   chan struct{} // set while the run is to be paused; closed when it is not any more
}

// startCode waits until a step's code may start, and counts it. If the code has to end, it ends the
// calling goroutine.
func (e *execution) startCode() {
	for {
		e.lock()
		asked := e.asked
		if asked == nil {
			e.running++
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		await(e, asked)
	}
}

// codeEnded counts a step whose result was sent. Needs e.mu.
func (e *execution) codeEnded() {
	e.running--
	e.pauseIfIdle()
}

// askPause asks to pause the run. It returns true the first time.
func (e *execution) askPause() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked != nil || e.ended {
		return false
	}
	e.asked = make(chan struct{})
	e.pauseIfIdle()
	return true
}

// goOn takes the request to pause back. Needs e.mu.
func (e *execution) goOn() {
	if e.asked != nil {
		close(e.asked)
		e.asked = nil
	}
}

// pauseIfIdle releases a run that is to be paused if no step's code runs. The server applies a run's
// operations in order, so the results that were sent still count. Needs e.mu.
func (e *execution) pauseIfIdle() {
	if e.asked == nil || e.running > 0 || e.closing || e.quitted {
		return
	}
	e.closing = true
	e.sendRelease(false, errPaused)
	e.quit(errPaused)
}

// pauseTask pauses a run, or goes on with it if the request was taken back.
func (w *Worker) pauseTask(p *kagziv1.PauseTask) {
	e := w.held(p.GetRunId(), p.GetLeaseToken())
	switch {
	case e == nil:
		w.expect(p.GetRunId(), p.GetLeaseToken(), func(next *nextStay) { next.pause = !p.GetTakenBack() })
	case p.GetTakenBack():
		e.mu.Lock()
		defer e.mu.Unlock()
		e.goOn()
	case e.askPause():
		w.log.Info("run is being paused; its running steps finish first", "run", p.GetRunId())
	}
}
