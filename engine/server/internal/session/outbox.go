package session

import (
	"runtime"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// outbox holds the messages of a session that wait to be sent. The goroutine that puts a message
// into an empty outbox sends until it is empty again, so an idle session needs no goroutine for
// sending. The credit and maxUnanswered limit its length.
type outbox struct {
	stream   func(*kagziv1.SessionResponse) error // sends one message; nil: nothing is sent
	room     <-chan struct{}                      // session.room: one receive for each answer sent
	sentTask func(engine.Lease)                   // called for each task that was sent; may be nil
	batches  bool                                 // the worker reads several messages in one

	mu sync.Mutex
	// answers, which are sent first: on a slow connection the tasks may take longer than a lease,
	// and a worker without answers gives its leases up
	messages []outgoing
	unasked  []outgoing    // tasks and messages about them, in order
	spare    []outgoing    // empty slice to reuse for the next messages
	moved    time.Time     // when it began to send, or last finished a batch
	sending  bool          // a goroutine sends, or is about to call send
	closed   bool          // new messages are not sent
	quiet    chan struct{} // closed when sending becomes false; nil: nobody waits
}

// outgoing is one message; of a task, with its lease.
type outgoing struct {
	message  *kagziv1.SessionResponse
	lease    engine.Lease
	answered bool // it answers an operation, whose place in room is freed when it is sent
	unasked  bool // it is no answer
}

// maxSpare limits the capacity of the slice that is reused.
const maxSpare = 16

// put adds messages. It returns true if the caller has to call send, after releasing its locks.
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

// movedWithin says whether something was sent within d, or nothing is being sent.
func (o *outbox) movedWithin(d time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.sending || time.Since(o.moved) < d
}

// push is put for callers that must not block on the network.
func (o *outbox) push(m outgoing, broken func(error)) {
	if o.put(m) {
		go o.send(broken)
	}
}

// send sends until the outbox is empty. If the stream fails it calls broken; messages not sent stay
// in the outbox, and nothing is sent any more.
func (o *outbox) send(broken func(error)) {
	if o.batches {
		runtime.Gosched() // so that the other answers of one commit are put first
	}
	for batch := o.next(nil); len(batch) > 0; batch = o.next(batch) {
		for left := batch; len(left) > 0; {
			n, message := 1, left[0].message
			if o.batches {
				n, message = joined(left)
			}
			if err := o.stream(message); err != nil {
				o.giveUp(left)
				broken(err)
				return
			}
			o.sent(left[:n])
			left = left[n:]
		}
	}
}

// sent records that messages were sent.
func (o *outbox) sent(messages []outgoing) {
	for _, m := range messages {
		if m.answered {
			<-o.room
		}
		if o.sentTask != nil && !m.lease.Token.IsZero() {
			o.sentTask(m.lease)
		}
	}
}

// maxBatch limits the bytes of the messages in one batch. Larger messages are sent alone.
const maxBatch = 64 << 10

// joined returns the first messages as one, and their number.
func joined(left []outgoing) (n int, message *kagziv1.SessionResponse) {
	batch, size := &kagziv1.SessionResponse{}, 0
	for _, m := range left {
		if size += proto.Size(m.message); size > maxBatch {
			break
		}
		raw, err := proto.Marshal(m.message)
		if err != nil {
			break // sent alone, it ends the stream with this error
		}
		batch.Batch = append(batch.Batch, raw)
	}
	if len(batch.Batch) < 2 {
		return 1, left[0].message
	}
	return len(batch.Batch), batch
}

// next returns the next batch: all answers and one other message, or so many as one batch holds. If it
// is empty, the caller must stop sending. sent is the previous batch, whose slice is reused.
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
	for size := 0; len(o.unasked) > 0; {
		size += proto.Size(o.unasked[0].message)
		batch = append(batch, o.unasked[0])
		o.unasked[0] = outgoing{}
		if o.unasked = o.unasked[1:]; len(o.unasked) == 0 {
			o.unasked = nil
		}
		if !o.batches || size >= maxBatch {
			break
		}
	}
	if len(batch) == 0 {
		o.rest()
	}
	return batch
}

// giveUp puts back what could not be sent, and closes the outbox.
func (o *outbox) giveUp(unsent []outgoing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.messages, o.closed = append(unsent, o.messages...), true
	o.rest()
}

// rest records that nobody sends any more. o.mu is held.
func (o *outbox) rest() {
	o.sending = false
	if o.quiet != nil {
		close(o.quiet)
		o.quiet = nil
	}
}

// close waits until everything is sent or the stream has failed, and returns what was not sent.
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
