package kagzi

import (
	"context"
	"slices"
	"sync"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// maxTaken bounds the bytes of operations that are sent before it is looked again for what goes first: on a slow line the results of all the worker's
// runs may take longer than its leases hold.
const maxTaken = 256 << 10

type sessionStream = grpc.BidiStreamingClient[kagziv1.SessionRequest, kagziv1.SessionResponse]

// session is the worker's queue of operations and the stream that they go out on, if there is one. It keeps nothing
// over a break: the executions know what they are owed and queue it again.
type session struct {
	mu      sync.Mutex
	epoch   int64 // number of the stream, from 1; 0 while there is none
	streams int64
	seq     int64
	urgent  []*operation // go first
	queue   []*operation
	spare   []*operation
	credit  int32
	sent    map[int64]*operation
	tasks   int64         // that have come on this stream
	bell    chan struct{} // capacity 1: there is something to send
}

// enqueue sends an operation as soon as possible. Without a stream, or when the operation is on its way already,
// it does nothing and returns false.
func (s *session) enqueue(op *operation) bool { return s.put(op, false) }

// enqueueFirst is for what keeps the worker alive: it goes before all that waits.
func (s *session) enqueueFirst(op *operation) bool { return s.put(op, true) }

func (s *session) put(op *operation, first bool) bool {
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
	s.ring()
	return true
}

// grant lets the server push n more tasks. Grants that wait are sent as one.
func (s *session) grant(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != 0 {
		s.credit += int32(n)
		s.ring()
	}
}

// received counts a task, which the worker holds by then, and so names in its heartbeats.
func (s *session) received() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks++
}

func (s *session) tasksReceived() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks
}

func (s *session) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// current reports whether the operation is on its way on the present stream.
func (s *session) current(op *operation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch != 0 && op.epoch == s.epoch
}

// open begins the use of a new stream, on which hello was number 1.
func (s *session) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams++
	s.epoch, s.seq, s.tasks = s.streams, 1, 0
	s.sent = make(map[int64]*operation)
}

// close ends the use of the stream. The worker's own operations are answered with nil.
func (s *session) close() {
	s.mu.Lock()
	var own []*operation
	for _, ops := range [][]*operation{s.urgent, s.queue} {
		for _, op := range ops {
			if op.e == nil {
				own = append(own, op)
			}
		}
	}
	for _, op := range s.sent {
		if op.e == nil {
			own = append(own, op)
		}
	}
	s.epoch, s.credit = 0, 0
	s.urgent, s.queue, s.spare, s.sent = nil, nil, nil, nil
	s.mu.Unlock()
	for _, op := range own {
		if op.answer != nil {
			op.answer(nil)
		}
	}
}

// take numbers what is to be sent next: all that waits, up to maxTaken.
func (s *session) take() []*operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := append(s.spare[:0], s.urgent...)
	n := 0
	for size := 0; n < len(s.queue) && size < maxTaken; n++ {
		size += proto.Size(s.queue[n].msg)
	}
	batch = append(batch, s.queue[:n]...)
	s.urgent, s.queue, s.spare = nil, slices.Delete(s.queue, 0, n), batch
	if len(s.queue) > 0 {
		s.ring()
	}
	if s.credit > 0 {
		batch = append(batch, &operation{msg: &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Credit{
			Credit: &kagziv1.Credit{Tasks: s.credit},
		}}})
		s.credit = 0
	}
	for _, op := range batch {
		s.seq++
		op.msg.Seq, op.msg.After, op.doubtful = s.seq, 0, 0
		if p := op.prev; p != nil && (s.sent[p.msg.Seq] == p || p.doubtful == s.epoch) {
			op.msg.After = p.msg.Seq // not to count should that one be refused, or if it has just been
		} else {
			op.prev = nil // answered, and of no use any more
		}
		s.sent[s.seq] = op
	}
	return batch
}

// write is the stream's only writer. It sends what waits until the stream breaks.
func (s *session) write(ctx context.Context, stream sessionStream) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.bell:
		}
		batch := s.take()
		for _, op := range batch {
			if err := stream.Send(op.msg); err != nil {
				s.refuse(op, err)
				return // Recv tells why
			}
		}
		clear(batch)
	}
}

// refuse answers an operation of a run that gRPC does not send for what it holds, which ends the stream: sent again on the next, it would end that
// one as well, and so keep the worker from all of its runs.
func (s *session) refuse(op *operation, err error) {
	d := &kagziv1.ErrorDetail{NonRetryable: true, Message: cleanText(plainMessage(status.Convert(err)), maxErrorText)}
	switch status.Code(err) {
	case codes.Internal:
		d.Code = kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT
	case codes.ResourceExhausted:
		d.Code = kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED
	default:
		return // the stream broke
	}
	if op.e == nil {
		return
	}
	op.e.answered(op, &kagziv1.SessionResponse{Seq: op.msg.Seq, Event: &kagziv1.SessionResponse_Error{Error: d}})
}

// answered takes out the operation that a response answers, nil when it answers none.
func (s *session) answered(r *kagziv1.SessionResponse) *operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := s.sent[r.GetSeq()]
	delete(s.sent, r.GetSeq())
	switch {
	case op == nil:
	case r.GetError() != nil:
		op.doubtful = s.epoch
	default:
		op.prev = nil // or a run that always has one unanswered would keep them all
	}
	return op
}

// settle has those behind a refused operation go on without it.
func (s *session) settle(op *operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op.doubtful = 0
}
