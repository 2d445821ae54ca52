// Package session queues the operations of a worker and its runs, and sends them on the stream to the server.
package session

import (
	"context"
	"slices"
	"sync"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// MaxBatch limits the bytes of operations that are sent before urgent ones get their next chance.
// On a slow connection the results of all runs may take longer than the worker's leases hold.
const MaxBatch = 256 << 10

// Stream is the worker's stream to the server.
type Stream = grpc.BidiStreamingClient[kagziv1.SessionRequest, kagziv1.SessionResponse]

// Session is the worker's queue of operations, and the stream that carries them while there is one.
// It keeps nothing when the stream breaks: the runs know which of their operations are unanswered,
// and queue them again.
type Session struct {
	mu      sync.Mutex
	epoch   int64 // number of the stream, from 1; 0 while there is none
	streams int64
	seq     int64
	urgent  []*Operation // go first
	queue   []*Operation
	spare   []*Operation
	credit  int32
	sent    map[int64]*Operation
	tasks   int64         // that have come on this stream
	wake    chan struct{} // capacity 1: there is something to send
}

// New returns a session without a stream.
func New() *Session { return &Session{wake: make(chan struct{}, 1)} }

// Due returns the channel that gets a value when there is something to send.
func (s *Session) Due() <-chan struct{} { return s.wake }

// Enqueue sends an operation as soon as possible. Without a stream, or when the operation is on its way already,
// it does nothing and returns false.
func (s *Session) Enqueue(op *Operation) bool { return s.put(op, false) }

// EnqueueFirst sends an operation before all that wait. Heartbeats use it.
func (s *Session) EnqueueFirst(op *Operation) bool { return s.put(op, true) }

func (s *Session) put(op *Operation, first bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch == 0 || op.epoch == s.epoch {
		return false
	}
	op.epoch = s.epoch
	if first {
		s.urgent = append(s.urgent, op)
	} else {
		s.queue = append(s.queue, op)
	}
	s.signal()
	return true
}

// AddCredit lets the server push n more tasks. Credit that is not sent yet goes out as one message.
func (s *Session) AddCredit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != 0 {
		s.credit += int32(n)
		s.signal()
	}
}

// CountTask counts a task that came on this stream. The worker calls it once it holds the task, and
// so names it in its heartbeats.
func (s *Session) CountTask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks++
}

// TasksReceived returns how many tasks came on this stream.
func (s *Session) TasksReceived() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks
}

func (s *Session) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Current reports whether the operation was queued on the current stream.
func (s *Session) Current(op *Operation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch != 0 && op.epoch == s.epoch
}

// Open starts using a new stream, on which hello was number 1.
func (s *Session) Open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams++
	s.epoch, s.seq, s.tasks = s.streams, 1, 0
	s.sent = make(map[int64]*Operation)
}

// Close stops using the stream. The worker's own operations are answered with nil.
func (s *Session) Close() {
	s.mu.Lock()
	var own []*Operation
	for _, ops := range [][]*Operation{s.urgent, s.queue} {
		for _, op := range ops {
			if op.Owner == nil {
				own = append(own, op)
			}
		}
	}
	for _, op := range s.sent {
		if op.Owner == nil {
			own = append(own, op)
		}
	}
	s.epoch, s.credit = 0, 0
	s.urgent, s.queue, s.spare, s.sent = nil, nil, nil, nil
	s.mu.Unlock()
	for _, op := range own {
		if op.Answer != nil {
			op.Answer(nil)
		}
	}
}

// Take numbers and returns the operations to send next: all that wait, up to MaxBatch bytes.
func (s *Session) Take() []*Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := append(s.spare[:0], s.urgent...)
	n := 0
	for size := 0; n < len(s.queue) && size < MaxBatch; n++ {
		size += proto.Size(s.queue[n].Msg)
	}
	batch = append(batch, s.queue[:n]...)
	s.urgent, s.queue, s.spare = nil, slices.Delete(s.queue, 0, n), batch
	if len(s.queue) > 0 {
		s.signal()
	}
	if s.credit > 0 {
		batch = append(batch, &Operation{Msg: &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Credit{
			Credit: &kagziv1.Credit{Tasks: s.credit},
		}}})
		s.credit = 0
	}
	for _, op := range batch {
		s.seq++
		op.Msg.Seq, op.Msg.After, op.unknown = s.seq, 0, 0
		if p := op.Prev; p != nil && (s.sent[p.Msg.Seq] == p || p.unknown == s.epoch) {
			op.Msg.After = p.Msg.Seq // so that it has no effect if that one is refused
		} else {
			op.Prev = nil // answered: not needed any more
		}
		s.sent[s.seq] = op
	}
	return batch
}

// Write sends what is queued until the stream breaks. It is the stream's only writer.
func (s *Session) Write(ctx context.Context, stream Stream) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		batch := s.Take()
		for _, op := range batch {
			if err := stream.Send(op.Msg); err != nil {
				s.refuse(op, err)
				return // Recv tells why
			}
		}
		clear(batch)
	}
}

// refuse answers an operation that gRPC refuses to send because of its content. That ends the
// stream; sent again, the operation would end the next stream too, and so block all of the worker's
// runs.
func (s *Session) refuse(op *Operation, err error) {
	d := &kagziv1.ErrorDetail{NonRetryable: true,
		Message: convert.CleanText(convert.PlainMessage(status.Convert(err)), convert.MaxErrorText)}
	switch status.Code(err) {
	case codes.Internal:
		d.Code = kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT
	case codes.ResourceExhausted:
		d.Code = kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED
	default:
		return // the stream broke
	}
	if op.Owner == nil {
		return
	}
	op.Deliver(&kagziv1.SessionResponse{Seq: op.Msg.Seq, Event: &kagziv1.SessionResponse_Error{Error: d}})
}

// Answered removes and returns the operation that r answers; nil when there is none.
func (s *Session) Answered(r *kagziv1.SessionResponse) *Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := s.sent[r.GetSeq()]
	delete(s.sent, r.GetSeq())
	switch {
	case op == nil:
	case r.GetError() != nil:
		op.unknown = s.epoch
	default:
		op.Prev = nil // free it, or a run with constant traffic would keep all of them
	}
	return op
}

// Settle lets operations after a refused one take effect without it.
func (s *Session) Settle(op *Operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op.unknown = 0
}
