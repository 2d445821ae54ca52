package kagzi

import (
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	maxNote      = 255
	noteInterval = 250 * time.Millisecond // between two notes of a run
)

// note is the run's progress line on its way to the server. All fields are guarded by e.mu.
type note struct {
	text    string
	pending bool
	next    time.Time // when the next may be sent
	timer   *time.Timer
	ended   bool
}

// Note sets the run's progress line, which people see in lists: at most 255 bytes, longer is cut. It is a hint, and no part of the
// history: it does not wait, replays do not repeat it, and of many in a row the last counts. The code of a step may call it too, with the
// workflow's Context.
func Note(ctx Context, text string) {
	e := ctx.workflow().e
	e.lock()
	defer e.mu.Unlock()
	if !e.live || e.replay != nil {
		return
	}
	e.note.text, e.note.pending = cleanText(text, maxNote), true
	e.sendNote()
}

// sendNote sends what is pending, or sees to it that it is sent when it may be. Needs e.mu.
func (e *execution) sendNote() {
	n := &e.note
	if !n.pending || n.ended || n.timer != nil {
		return
	}
	if wait := time.Until(n.next); wait > 0 {
		n.timer = time.AfterFunc(wait, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			n.timer = nil
			e.flushNote()
		})
		return
	}
	e.flushNote()
}

// flushNote sends what is pending at once: it is the last moment for it. Without a stream it goes on pending. Needs e.mu.
func (e *execution) flushNote() {
	n := &e.note
	if !n.pending || n.ended {
		return
	}
	text := n.text
	sent := e.w.session.enqueue(&operation{
		msg: &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_SetNote{
			SetNote: &kagziv1.SetNote{RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(), Note: text},
		}},
		answer: func(r *kagziv1.SessionResponse) {
			if r == nil { // the stream broke
				e.noteLost(text)
			}
		},
	})
	if sent {
		n.pending, n.next = false, time.Now().Add(noteInterval)
	}
}

// noteLost takes back a note whose stream broke, unless there is a newer one.
func (e *execution) noteLost(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := &e.note; !n.pending {
		n.text, n.pending = text, true
	}
}

func (n *note) stop() {
	n.ended = true
	if n.timer != nil {
		n.timer.Stop()
	}
}
