package kagzi

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	maxBatchBytes = 4<<20 - 64<<10        // of starts that go together; the server takes 4 MiB
	aloneBytes    = 64 << 10              // a start that is larger gains nothing by company
	heldBackMost  = 20 * time.Millisecond // that a start waits for others that are on their way
)

// starts gathers the starts of a client. One that comes while none is under way goes to the server at once, and by itself. Those that come
// while one is under way stand in line, and then go together in one call, which costs the server little more than one start.
type starts struct {
	workflows kagziv1.WorkflowServiceClient

	mu       sync.Mutex
	underWay int // calls
	line     []*oneStart
	late     *time.Timer // has the line go although a call is still under way; nil until the first stands in it
	apart    bool        // the server starts no batches
}

// oneStart is a start that stands in line.
type oneStart struct {
	ctx         context.Context // of its caller
	traceparent string
	request     *kagziv1.StartWorkflowRequest
	size        int
	with        *batch        // that it goes in; nil while it stands in line: guarded by starts.mu
	done        chan struct{} // closed when there is an answer
	response    *kagziv1.StartWorkflowResponse
	err         error
}

// batch is starts that go in one call, which ends when nobody waits for it any more.
type batch struct {
	starts []*oneStart
	left   int // whose callers still wait: guarded by starts.mu
	cancel context.CancelFunc
}

// errApart tells a start that it has to go by itself.
var errApart = errors.New("kagzi: not together with others")

// start is StartWorkflow; traceparent is that of ctx, which carries it in its metadata as well. What else a caller has in its metadata may
// decide who it is: such a start, own, shares no call.
func (s *starts) start(ctx context.Context, traceparent string, own bool, request *kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowResponse, error) {
	one := &oneStart{ctx: ctx, traceparent: traceparent, request: request, size: proto.Size(request) + len(traceparent) + 16}
	if own || one.size > aloneBytes {
		return s.workflows.StartWorkflow(ctx, request)
	}
	if !s.join(one) {
		defer s.landed()
		return s.workflows.StartWorkflow(ctx, request)
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		s.gone(one)
		return nil, ctx.Err()
	}
	if one.err == errApart {
		return s.workflows.StartWorkflow(ctx, request)
	}
	return one.response, one.err
}

// ownMetadata says that a caller has given its calls metadata.
func ownMetadata(ctx context.Context) bool {
	md, _ := metadata.FromOutgoingContext(ctx)
	return len(md) > 0
}

// join puts a start in the line, unless it may go at once.
func (s *starts) join(one *oneStart) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.underWay == 0 || s.apart {
		s.underWay++
		return false
	}
	one.done = make(chan struct{})
	s.line = append(s.line, one)
	switch {
	case s.late == nil:
		s.late = time.AfterFunc(heldBackMost, s.hurry)
	case len(s.line) == 1:
		s.late.Reset(heldBackMost)
	}
	return true
}

// gone notes that nobody waits for a start any more. What it came to is unknown, as with any call that is given up.
func (s *starts) gone(one *oneStart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := one.with; b != nil {
		if b.left--; b.left == 0 {
			b.cancel()
		}
	}
}

// landed is the end of a call, after which those who stand in line go.
func (s *starts) landed() {
	if ctx, b := s.next(true); b != nil {
		go s.fly(ctx, b)
	}
}

// hurry has the line go without waiting for the call that is under way.
func (s *starts) hurry() {
	if ctx, b := s.next(false); b != nil {
		s.fly(ctx, b)
	}
}

// fly makes calls until nobody stands in line.
func (s *starts) fly(ctx context.Context, b *batch) {
	for b != nil {
		s.send(ctx, b)
		b.cancel()
		ctx, b = s.next(true)
	}
}

// next takes from the line what goes in one call; nil when it is empty. The call takes the place of one that has landed, if it is so.
func (s *starts) next(landed bool) (context.Context, *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if landed {
		s.underWay--
	}
	if len(s.line) == 0 {
		return nil, nil
	}
	b := &batch{starts: make([]*oneStart, 0, min(len(s.line), MaxBatch))}
	size, taken := 0, 0
	for _, one := range s.line {
		if size += one.size; size > maxBatchBytes || len(b.starts) == MaxBatch {
			break
		}
		taken++
		if one.ctx.Err() == nil {
			one.with = b
			b.starts = append(b.starts, one)
		}
	}
	s.line = slices.Delete(s.line, 0, taken)
	if s.late.Stop(); len(s.line) > 0 {
		s.late.Reset(heldBackMost)
	}
	if len(b.starts) == 0 {
		return nil, nil
	}
	s.underWay++
	b.left = len(b.starts)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	return ctx, b
}

// send makes the call of a batch and hands out the answers.
func (s *starts) send(ctx context.Context, b *batch) {
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
		err = errApart
	}
	for i, one := range b.starts {
		one.err = err
		if err == nil {
			result := response.Results[i]
			one.response = result.GetStarted()
			if d := result.GetError(); d != nil {
				one.err = itemStatus(result.GetStatusCode(), d).Err()
			}
		}
		close(one.done)
	}
}

// failed is what becomes of the starts of a call that failed. A server that is away is away for all. Anything else may be about one of them,
// or about calls with many: then each goes by itself, and learns what there is to say of it.
func (s *starts) failed(err error) error {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return err
	case codes.Unimplemented:
		s.mu.Lock()
		s.apart = true
		s.mu.Unlock()
	}
	return errApart
}
