package mux

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	maxBatchBytes = 4<<20 - 64<<10        // of starts that go together; the server takes 4 MiB
	AloneBytes    = 64 << 10              // larger starts gain nothing from batching
	MaxQueued     = 20 * time.Millisecond // longest wait for calls in flight
)

// Starts batches the starts of a client. A start that comes while no call is in flight goes to the
// server at once, alone. Starts that come while one is in flight are queued, and then go together
// in one call, which costs the server little more than one start.
type Starts struct {
	workflows kagziv1.WorkflowServiceClient
	most      int // starts in one call

	mu       sync.Mutex
	inFlight int // calls
	queue    []*pendingStart
	timer    *time.Timer // sends the queue although a call is still in flight; nil until the first start is queued
	noBatch  bool        // the server starts no batches
}

// NewStarts returns a batcher of up to most starts in one call.
func NewStarts(workflows kagziv1.WorkflowServiceClient, most int) *Starts {
	return &Starts{workflows: workflows, most: most}
}

// pendingStart is a start that is queued, or in flight with others.
type pendingStart struct {
	ctx         context.Context // of its caller
	traceparent string
	request     *kagziv1.StartWorkflowRequest
	size        int
	batch       *startBatch   // that it goes in; nil while it is queued. Guarded by Starts.mu.
	done        chan struct{} // closed when there is an answer
	response    *kagziv1.StartWorkflowResponse
	err         error
}

// startBatch is the starts of one call, which is cancelled when no caller waits any more.
type startBatch struct {
	starts  []*pendingStart
	waiting int // callers. Guarded by Starts.mu.
	cancel  context.CancelFunc
}

// errStartAlone tells a start to make a call of its own.
var errStartAlone = errors.New("kagzi: not together with others")

// Start calls StartWorkflow, together with other starts where that helps. traceparent is the one
// that the metadata of ctx carries as well. A caller with other metadata (own) may be somebody else
// to the server, so its start shares no call.
func (s *Starts) Start(ctx context.Context, traceparent string, own bool,
	request *kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowResponse, error) {
	one := &pendingStart{ctx: ctx, traceparent: traceparent, request: request,
		size: proto.Size(request) + len(traceparent) + 16}
	if own || one.size > AloneBytes {
		return s.workflows.StartWorkflow(ctx, request)
	}
	if !s.enqueue(one) {
		defer s.callDone()
		return s.workflows.StartWorkflow(ctx, request)
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		s.abandon(one)
		return nil, ctx.Err()
	}
	if one.err == errStartAlone {
		return s.workflows.StartWorkflow(ctx, request)
	}
	return one.response, one.err
}

// OwnMetadata reports whether a caller has given its calls metadata, besides the keys of the SDK.
func OwnMetadata(ctx context.Context, sdk ...string) bool {
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	for _, key := range sdk {
		delete(md, key)
	}
	return len(md) > 0
}

// enqueue queues a start. It returns false when the start may go at once.
func (s *Starts) enqueue(one *pendingStart) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight == 0 || s.noBatch {
		s.inFlight++
		return false
	}
	one.done = make(chan struct{})
	s.queue = append(s.queue, one)
	switch {
	case s.timer == nil:
		s.timer = time.AfterFunc(MaxQueued, s.flush)
	case len(s.queue) == 1:
		s.timer.Reset(MaxQueued)
	}
	return true
}

// abandon records that the caller of a start has stopped waiting. The outcome is unknown, as with
// any call that is given up.
func (s *Starts) abandon(one *pendingStart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := one.batch; b != nil {
		if b.waiting--; b.waiting == 0 {
			b.cancel()
		}
	}
}

// callDone ends a call that was in flight, and sends the queue.
func (s *Starts) callDone() {
	if ctx, b := s.next(true); b != nil {
		go s.sendQueued(ctx, b)
	}
}

// flush sends the queue without waiting for the call in flight.
func (s *Starts) flush() {
	if ctx, b := s.next(false); b != nil {
		s.sendQueued(ctx, b)
	}
}

// sendQueued makes calls until the queue is empty.
func (s *Starts) sendQueued(ctx context.Context, b *startBatch) {
	for b != nil {
		s.send(ctx, b)
		b.cancel()
		ctx, b = s.next(true)
	}
}

// next takes the starts of one call from the queue; nil when it is empty. With done, a call in flight has ended.
func (s *Starts) next(done bool) (context.Context, *startBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done {
		s.inFlight--
	}
	if len(s.queue) == 0 {
		return nil, nil
	}
	b := &startBatch{starts: make([]*pendingStart, 0, min(len(s.queue), s.most))}
	size, taken := 0, 0
	for _, one := range s.queue {
		if size += one.size; size > maxBatchBytes || len(b.starts) == s.most {
			break
		}
		taken++
		if one.ctx.Err() == nil {
			one.batch = b
			b.starts = append(b.starts, one)
		}
	}
	s.queue = slices.Delete(s.queue, 0, taken)
	if s.timer.Stop(); len(s.queue) > 0 {
		s.timer.Reset(MaxQueued)
	}
	if len(b.starts) == 0 {
		return nil, nil
	}
	s.inFlight++
	b.waiting = len(b.starts)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	return ctx, b
}

// send makes the call of a batch, and passes the answers on.
func (s *Starts) send(ctx context.Context, b *startBatch) {
	if len(b.starts) == 1 {
		one := b.starts[0]
		one.response, one.err = s.workflows.StartWorkflow(one.ctx, one.request)
		close(one.done)
		return
	}
	request := &kagziv1.StartWorkflowsRequest{Requests: make([]*kagziv1.StartWorkflowRequest, len(b.starts))}
	for i, one := range b.starts {
		one.request.Traceparent = one.traceparent
		request.Requests[i] = one.request
	}
	response, err := s.workflows.StartWorkflows(ctx, request)
	if err != nil {
		err = s.failed(err)
	} else if len(response.GetResults()) != len(b.starts) {
		err = errStartAlone
	}
	for i, one := range b.starts {
		one.err = err
		if err == nil {
			result := response.Results[i]
			one.response = result.GetStarted()
			if d := result.GetError(); d != nil {
				one.err = convert.ItemStatus(result.GetStatusCode(), d).Err()
			}
		}
		close(one.done)
	}
}

// failed returns the error for the starts of a batch whose call failed. A server that is
// unavailable is so for all of them. Anything else may be about one start, or about batches: then
// each start makes its own call, and gets its own error.
func (s *Starts) failed(err error) error {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return err
	case codes.Unimplemented:
		s.mu.Lock()
		s.noBatch = true
		s.mu.Unlock()
	}
	return errStartAlone
}
