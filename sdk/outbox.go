package kagzi

import (
	"math/rand/v2"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/session"
)

// outbox holds the unanswered operations of a run in order. A new stream sends them again, so they
// reach the server in order even when a stream breaks.
type outbox struct {
	ops     []*session.Operation
	issued  int64 // index of the last operation
	failed  int   // answers in a row that asked for a repeat
	waiters []durableWaiter

	repeating bool // a repeat is scheduled
}

type durableWaiter struct {
	index int64
	done  chan struct{}
}

// send appends an operation. It queues it for sending unless earlier ones have to be sent first.
// Needs e.mu.
func (e *execution) send(msg *kagziv1.SessionRequest, answer func(*kagziv1.SessionResponse)) *session.Operation {
	if e.replay != nil {
		e.replay.sent(msg)
		return &session.Operation{Msg: msg}
	}
	if session.MayEndLease(msg) {
		e.flushNote()
	}
	if asks(msg) {
		e.asking++
	}
	e.issued++
	op := &session.Operation{Msg: msg, Owner: e, Answer: answer, Index: e.issued}
	if n := len(e.ops); n > 0 {
		op.Prev = e.ops[n-1]
	}
	if op.Prev != nil && (op.Prev.Later || !e.w.session.Current(op.Prev)) {
		op.Later = op.Prev.Later // it is sent together with that one
	} else {
		e.w.session.Enqueue(op)
	}
	e.ops = append(e.ops, op)
	return op
}

// resend queues all unanswered operations on a new stream.
func (e *execution) resend() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.goOn() // the new session tells again which runs are to be paused
	e.flushNote()
	for _, op := range e.ops {
		op.Later = false
		e.w.session.Enqueue(op)
	}
	if len(e.ops) > 0 {
		e.again = e.issued
	}
}

// repeatLater schedules the repeat of an operation that the server could not settle, and of those
// after it that fail the same way. Needs e.mu.
func (e *execution) repeatLater(op *session.Operation) {
	if !slices.Contains(e.ops, op) {
		return
	}
	op.Later = true
	if e.repeating {
		return
	}
	e.repeating = true
	e.failed++
	delay := min(100*time.Millisecond<<min(e.failed, 10), 10*time.Second)
	time.AfterFunc(delay/2+rand.N(delay/2), e.repeat)
}

func (e *execution) repeat() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.repeating = false
	for _, op := range e.ops {
		if op.Later {
			op.Later = false
			op.Repeat()
			e.w.session.Enqueue(op)
		}
	}
}

// remove takes out an answered operation and wakes those who wait for it. Needs e.mu.
func (o *outbox) remove(op *session.Operation) bool {
	i := slices.Index(o.ops, op)
	if i < 0 {
		return false
	}
	o.ops = slices.Delete(o.ops, i, i+1)
	o.failed = 0
	keep := o.waiters[:0]
	for _, w := range o.waiters {
		if o.durable(w.index) {
			close(w.done)
		} else {
			keep = append(keep, w)
		}
	}
	o.waiters = keep
	return true
}

// dropAfter removes the operations after one that was refused for good. Needs e.mu.
func (o *outbox) dropAfter(op *session.Operation) {
	o.ops = slices.DeleteFunc(o.ops, func(later *session.Operation) bool { return later.Index > op.Index })
}

func (o *outbox) clear() { o.ops, o.waiters = nil, nil }

// durable reports whether all operations up to index are answered.
func (o *outbox) durable(index int64) bool { return len(o.ops) == 0 || o.ops[0].Index > index }

// awaitDurable waits until code with side effects may start: all earlier results are durable, the
// worker can assume that it still holds its leases, and the run is not to be paused. It counts the
// code as running; call codeEnded when its result is sent.
func (e *execution) awaitDurable() {
	e.lock()
	var done chan struct{}
	if !e.durable(e.issued) {
		done = make(chan struct{})
		e.waiters = append(e.waiters, durableWaiter{e.issued, done})
	}
	e.mu.Unlock()
	if done != nil {
		await(e, done)
	}
	e.w.lease.Await(e.life)
	e.startCode()
}

const (
	maxNote      = 255
	noteInterval = 250 * time.Millisecond // minimum between two notes of a run
)

// note is the run's latest progress text and its sending. All fields are guarded by e.mu.
type note struct {
	text    string
	pending bool
	next    time.Time // earliest time of the next send
	timer   *time.Timer
	ended   bool
}

// Note sets the progress text of the run, which lists of runs show. It is cut to 255 bytes. A note
// is not part of the history: Note does not wait, replays do not repeat it, and of several in quick
// succession only the last is sent. Step code may call it, too, with the workflow's Context.
func Note(ctx Context, text string) {
	e := ctx.workflow().e
	e.lock()
	defer e.mu.Unlock()
	if e.owing > 0 || e.replay != nil {
		return
	}
	e.note.text, e.note.pending = convert.CleanText(text, maxNote), true
	e.sendNote()
}

// sendNote sends a pending note, now or when noteInterval has passed. Needs e.mu.
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

// flushNote sends a pending note at once, before an operation that may end the lease. Without a
// stream the note stays pending. Needs e.mu.
func (e *execution) flushNote() {
	n := &e.note
	if !n.pending || n.ended || e.away {
		return
	}
	text := n.text
	sent := e.w.session.Enqueue(&session.Operation{
		Msg: &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_SetNote{
			SetNote: &kagziv1.SetNote{RunId: e.info.RunID, LeaseToken: e.token(), Note: text},
		}},
		Answer: func(r *kagziv1.SessionResponse) {
			if r == nil { // the stream broke
				e.noteLost(text)
			}
		},
	})
	if sent {
		n.pending, n.next = false, time.Now().Add(noteInterval)
	}
}

// noteLost makes a note pending again whose stream broke, unless there is a newer one.
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
