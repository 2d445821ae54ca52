package session

import (
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// outbox is what waits to be sent in a session. Whoever puts something into an empty one sends
// until it is empty again, so that an answer leaves from the goroutine that has it, and a session
// with nothing to say has no goroutine for that. Its length is bounded by the credit and by
// maxUnanswered.
type outbox struct {
	stream   func(*kagziv1.SessionResponse) error // sends one message; nil: all stays here
	room     <-chan struct{}                      // of the session, which has a place less for each answer sent
	sentTask func(engine.Lease)                   // is told of each task that was sent; nil: nobody is

	mu sync.Mutex
	// answers, which go first: on a slow line the tasks may take longer than a worker without one
	// believes in its leases
	messages []outgoing
	unasked  []outgoing    // tasks, and what the worker is told of them, in this order
	spare    []outgoing    // empty, for the next messages
	moved    time.Time     // when it began to send, or was last done with a batch
	sending  bool          // somebody is to call send, or has
	closed   bool          // nothing that comes now is sent
	quiet    chan struct{} // closed when nobody sends any more; nil: nobody waits for that
}

// outgoing is one message; of a task, with its lease.
type outgoing struct {
	message  *kagziv1.SessionResponse
	lease    engine.Lease
	answered bool // it answers an operation, whose room is free when it has been sent
	unasked  bool // it answers nothing
}

// maxSpare bounds the room that is kept for the next messages.
const maxSpare = 16

// put says whether the caller has to call send, when it holds no lock.
func (o *outbox) put(messages ...outgoing) (send bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.messages == nil {
		o.messages, o.spare = o.spare, nil
	}
	for _, m := range messages {
		if m.unasked {
			o.unasked = append(o.unasked, m)
		} else {
			o.messages = append(o.messages, m)
		}
	}
	if o.sending || o.closed || o.stream == nil {
		return false
	}
	o.sending, o.moved = true, time.Now()
	return true
}

// movedWithin says whether the network has taken something since, or has nothing to take.
func (o *outbox) movedWithin(d time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.sending || time.Since(o.moved) < d
}

// push is put for callers that must not wait for the network.
func (o *outbox) push(m outgoing, broken func(error)) {
	if o.put(m) {
		go o.send(broken)
	}
}

// send sends until the outbox is empty. When the stream breaks it tells broken; what was not sent
// stays here, and nothing is sent any more.
func (o *outbox) send(broken func(error)) {
	for batch := o.next(nil); len(batch) > 0; batch = o.next(batch) {
		for i, m := range batch {
			if err := o.stream(m.message); err != nil {
				o.giveUp(batch[i:])
				broken(err)
				return
			}
			if m.answered {
				<-o.room
			}
			if o.sentTask != nil && !m.lease.Token.IsZero() {
				o.sentTask(m.lease)
			}
		}
	}
}

// next is what is to be sent after the messages of sent: all answers, and one of the others;
// nothing: the caller sends no longer.
func (o *outbox) next(sent []outgoing) []outgoing {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cap(sent) <= maxSpare {
		clear(sent)
		o.spare = sent[:0]
	}
	o.moved = time.Now()
	batch := o.messages
	o.messages = nil
	if len(o.unasked) > 0 {
		batch = append(batch, o.unasked[0])
		o.unasked[0] = outgoing{}
		if o.unasked = o.unasked[1:]; len(o.unasked) == 0 {
			o.unasked = nil
		}
	}
	if len(batch) == 0 {
		o.rest()
	}
	return batch
}

// giveUp keeps what could not be sent.
func (o *outbox) giveUp(unsent []outgoing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.messages, o.closed = append(unsent, o.messages...), true
	o.rest()
}

// rest needs o.mu.
func (o *outbox) rest() {
	o.sending = false
	if o.quiet != nil {
		close(o.quiet)
		o.quiet = nil
	}
}

// close waits until everything is sent, or the stream broke, and returns what was never sent.
func (o *outbox) close() []outgoing {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.sending {
		quiet := make(chan struct{})
		o.quiet = quiet
		o.mu.Unlock()
		<-quiet
		o.mu.Lock()
	}
	return append(o.messages, o.unasked...)
}
