package server

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// outbox is what waits to be sent in a session. One goroutine sends, so that nobody who answers an operation waits for the network.
// Its length is bounded by the credit and by maxUnanswered.
type outbox struct {
	ready chan struct{} // capacity one

	mu       sync.Mutex
	messages []outgoing
	closed   bool
}

// outgoing is one message; of a task, with its lease.
type outgoing struct {
	message  *kagziv1.SessionResponse
	lease    engine.Lease
	answered bool // it answers an operation, whose room is free when it has been sent
}

func (o *outbox) push(m outgoing) {
	o.mu.Lock()
	o.messages = append(o.messages, m)
	o.mu.Unlock()
	ring(o.ready)
}

// close has send end when everything is sent.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	ring(o.ready)
}

// send sends until the outbox is closed and empty, or the stream breaks; what was not sent stays in it.
func (o *outbox) send(stream kagziv1.WorkerService_SessionServer, room <-chan struct{}) error {
	for range o.ready {
		for {
			o.mu.Lock()
			batch, closed := o.messages, o.closed
			o.messages = nil
			o.mu.Unlock()
			if len(batch) == 0 {
				if closed {
					return nil
				}
				break
			}
			for i, m := range batch {
				if err := stream.Send(m.message); err != nil {
					o.mu.Lock()
					o.messages = append(batch[i:], o.messages...)
					o.mu.Unlock()
					return err
				}
				if m.answered {
					<-room
				}
			}
		}
	}
	return nil
}

// rest is what was never sent.
func (o *outbox) rest() []outgoing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.messages
}
