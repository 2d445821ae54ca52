// Package mux lets the calls of one client share calls to the server: starts go in batches, waits
// for ends share a stream.
package mux

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

const (
	MaxAwaiting = 10_000           // most waits on one stream
	AwaitsIdle  = 10 * time.Second // how long a stream without waits stays open
	// failures after which the pause stops growing, since new waits have to sit it out
	awaitsTries = 3

	MaxAwaitsHerd = 100 * time.Millisecond // clients of a restarted server reopen their streams within this time
)

// Awaits holds a client's waits for the ends of runs. One stream carries up to MaxAwaiting of them;
// more streams carry the rest. A stream is opened for the first wait, reopened when it breaks, and
// closed when it has been idle for a while.
type Awaits struct {
	AwaitOptions
	ctx     context.Context
	cancel  context.CancelFunc
	group   sync.WaitGroup
	mu      sync.Mutex
	streams []*awaitStream
	single  bool // the server only has calls that wait for one run
}

// AwaitOptions describes the client.
type AwaitOptions struct {
	Namespace string
	Conn      *grpc.ClientConn
	Log       *slog.Logger
	Explain   func(error) error // converts the error of a call for the log
}

// awaitStream is one stream of waits. All fields but wake and quit are guarded by Awaits.mu.
type awaitStream struct {
	of   *Awaits
	wake chan struct{} // capacity 1: there is something to send
	quit chan struct{} // closed when it is over

	waits  map[uint64]*awaited
	seq    uint64     // number of the latest wait
	unsent []*awaited // may include abandoned waits
	forget []uint64
	idle   *time.Timer // runs while there are no waits
	over   bool        // accepts no more waits
}

// awaited is one wait.
type awaited struct {
	request *kagziv1.AwaitWorkflowsRequest_Wait
	on      *awaitStream
	sent    bool          // guarded by Awaits.mu
	done    chan struct{} // closed when there is an answer
	ended   *kagziv1.AwaitWorkflowsResponse_Ended
	err     error
}

// ErrAlone means that the wait needs a call of its own, because the stream was refused.
var ErrAlone = errors.New("kagzi: not together with others")

// NewAwaits returns the waits of a client. Close them after use.
func NewAwaits(o AwaitOptions) *Awaits {
	a := &Awaits{AwaitOptions: o}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// Close ends the streams; all waits fail.
func (a *Awaits) Close() {
	a.mu.Lock()
	a.cancel() // under the lock, so that new waits see it
	a.mu.Unlock()
	a.group.Wait()
}

// Await waits until a run has ended. The error is ErrAlone, a refusal of this wait as a gRPC
// status, or the cause of ctx.
func (a *Awaits) Await(ctx context.Context, runID string, whole bool) (*kagziv1.AwaitWorkflowsResponse_Ended, error) {
	if !utf8.ValidString(runID) { // sending it would break the stream for all waits
		return nil, ErrAlone
	}
	w := a.enter(runID, whole)
	if w == nil {
		return nil, ErrAlone
	}
	select {
	case <-w.done:
		return w.ended, w.err
	case <-ctx.Done():
		a.leave(w)
		return nil, ctx.Err()
	}
}

func (a *Awaits) enter(runID string, whole bool) *awaited {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.single || a.ctx.Err() != nil {
		return nil
	}
	s := a.freeStream()
	s.seq++
	w := &awaited{on: s, done: make(chan struct{}),
		request: &kagziv1.AwaitWorkflowsRequest_Wait{Seq: s.seq, RunId: runID, Whole: whole}}
	if len(s.waits) == 0 {
		s.idle.Stop()
	}
	s.waits[s.seq] = w
	s.unsent = append(s.unsent, w)
	if len(s.unsent) > 2*MaxAwaiting { // without a server nothing else removes abandoned waits
		s.unsent = slices.DeleteFunc(s.unsent, func(w *awaited) bool { return s.waits[w.request.Seq] != w })
	}
	s.signal()
	return w
}

// freeStream returns a stream with room for one more wait.
func (a *Awaits) freeStream() *awaitStream {
	for _, s := range a.streams {
		if len(s.waits) < MaxAwaiting {
			return s
		}
	}
	s := &awaitStream{of: a, wake: make(chan struct{}, 1), quit: make(chan struct{}), waits: map[uint64]*awaited{}}
	s.idle = time.AfterFunc(AwaitsIdle, s.expire)
	a.streams = append(a.streams, s)
	a.group.Go(s.run)
	return s
}

// leave abandons a wait.
func (a *Awaits) leave(w *awaited) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := w.on
	if s.waits[w.request.Seq] == nil {
		return
	}
	s.remove(w)
	if w.sent {
		s.forget = append(s.forget, w.request.Seq)
		s.signal()
	}
}

func (s *awaitStream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *awaitStream) remove(w *awaited) {
	delete(s.waits, w.request.Seq)
	if len(s.waits) == 0 && !s.over {
		s.idle.Reset(AwaitsIdle)
	}
}

// expire ends the stream if it has no waits.
func (s *awaitStream) expire() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if len(s.waits) == 0 {
		s.end()
	}
}

// end takes the stream out of use. Needs the lock.
func (s *awaitStream) end() {
	if s.over {
		return
	}
	s.over = true
	s.idle.Stop()
	s.of.streams = slices.DeleteFunc(s.of.streams, func(o *awaitStream) bool { return o == s })
	close(s.quit)
}

// run keeps the stream open until it is over.
func (s *awaitStream) run() {
	log := s.of.Log
	for failures := 0; ; {
		answered, err := s.once()
		if answered {
			failures = 0
		}
		s.expire() // do not reopen a stream without waits
		if !convert.Transient(err) || s.of.ctx.Err() != nil || s.ended() {
			s.refuse(err)
			return
		}
		failures++
		if s.connected() {
			delay := transport.Backoff(min(failures, awaitsTries))
			log.Warn("cannot wait for runs; retrying", "error", s.of.Explain(err), "attempt", failures,
				"next_attempt_in",
				delay.Round(time.Millisecond))
			s.pause(delay)
			continue
		}
		log.Warn("the server is unreachable; waits for runs continue when it is back", "error", s.of.Explain(err))
		s.awaitConnection()
		s.pause(rand.N(MaxAwaitsHerd))
		failures = 0
	}
}

// connected reports whether the connection is up, so the server broke or refused the stream.
func (s *awaitStream) connected() bool { return s.of.Conn.GetState() == connectivity.Ready }

// awaitConnection returns when the connection is up again, which gRPC sees to, or no wait is left.
func (s *awaitStream) awaitConnection() {
	ctx, cancel := context.WithCancel(s.of.ctx)
	defer cancel()
	go func() {
		select {
		case <-s.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	transport.AwaitConnection(ctx, s.of.Conn)
}

// pause waits for delay, or until no wait is left.
func (s *awaitStream) pause(delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.quit:
	case <-s.of.ctx.Done():
	}
}

// refuse ends the stream and makes each wait use a call of its own, which gets its own error.
func (s *awaitStream) refuse(err error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.single = s.of.single || status.Code(err) == codes.Unimplemented
	for _, w := range s.waits {
		w.err = ErrAlone
		close(w.done)
	}
	clear(s.waits)
	s.end()
}

// once runs one gRPC stream. The error is nil if the stream was closed because it was idle.
func (s *awaitStream) once() (answered bool, err error) {
	ctx, cancel := context.WithCancel(s.of.ctx)
	defer cancel()
	stream, err := kagziv1.NewWorkflowServiceClient(s.of.Conn).AwaitWorkflows(ctx)
	if err != nil {
		return false, err
	}
	s.again()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.write(ctx, stream)
	}()
	answered, err = s.read(stream)
	cancel()
	<-sent
	return answered, err
}

// again marks all waits as unsent, for a new stream.
func (s *awaitStream) again() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.unsent, s.forget = s.unsent[:0], nil
	for _, w := range s.waits {
		s.unsent = append(s.unsent, w)
	}
	slices.SortFunc(s.unsent, func(a, b *awaited) int { return int(a.request.Seq) - int(b.request.Seq) })
	s.signal()
}

// write sends waits as they come. If the stream breaks, the reader gets the reason.
func (s *awaitStream) write(ctx context.Context,
	stream grpc.BidiStreamingClient[kagziv1.AwaitWorkflowsRequest, kagziv1.AwaitWorkflowsResponse]) {
	for {
		select {
		case <-s.wake:
		case <-s.quit:
			_ = stream.CloseSend()
			return
		case <-ctx.Done():
			return
		}
		if stream.Send(s.message()) != nil {
			return
		}
	}
}

// message returns the next message. Each one names the namespace, which costs little.
func (s *awaitStream) message() *kagziv1.AwaitWorkflowsRequest {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	m := &kagziv1.AwaitWorkflowsRequest{Namespace: s.of.Namespace, Forget: s.forget}
	for _, w := range s.unsent {
		if s.waits[w.request.Seq] == w {
			w.sent = true
			m.Waits = append(m.Waits, w.request)
		}
	}
	clear(s.unsent)
	s.unsent, s.forget = s.unsent[:0], nil
	return m
}

// read delivers answers until the stream ends.
func (s *awaitStream) read(stream grpc.BidiStreamingClient[kagziv1.AwaitWorkflowsRequest,
	kagziv1.AwaitWorkflowsResponse]) (answered bool, err error) {
	for {
		r, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && !s.ended():
			return answered, status.Error(codes.Unavailable, "the server closed the stream of waits")
		case errors.Is(err, io.EOF):
			return answered, nil
		case err != nil:
			return answered, err
		}
		answered = true
		s.answer(r.GetEnded())
	}
}

func (s *awaitStream) ended() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.over
}

func (s *awaitStream) answer(all []*kagziv1.AwaitWorkflowsResponse_Ended) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for _, ended := range all {
		w := s.waits[ended.GetSeq()]
		if w == nil {
			continue // abandoned
		}
		s.remove(w)
		switch d := ended.GetRefusal(); {
		case d == nil:
			w.ended = ended
		case codes.Code(ended.GetStatusCode()) == codes.ResourceExhausted:
			w.err = ErrAlone // the server's limit is lower than ours
		default:
			w.err = convert.ItemStatus(ended.GetStatusCode(), d).Err()
		}
		close(w.done)
	}
}
