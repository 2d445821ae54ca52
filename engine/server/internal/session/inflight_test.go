package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/limit"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestASessionWaitsWhileTooManyLargeCallsAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(writing{})
		defer s.pool.Close() // what carried out an operation waits for more
		in, answered := make(chan *kagziv1.SessionRequest), make(chan *kagziv1.SessionResponse, 8)
		ctx, end := context.WithCancel(t.Context())
		began := time.Now()
		w := sessionOf(s, func(error) { end() }, answered)
		go w.receive(ctx, context.WithoutCancel(ctx), &requests{ctx: ctx, in: in})
		step := func(seq int64, size int) *kagziv1.SessionRequest {
			return &kagziv1.SessionRequest{Seq: seq,
				Operation: &kagziv1.SessionRequest_CompleteStep{CompleteStep: &kagziv1.CompleteStepRequest{
					RunId: engine.NewID(s.store.Now()).String(), LeaseToken: "00", StepId: "s",
					Output: servertest.PayloadOf(size),
				}}}
		}
		count := func() int { synctest.Wait(); return len(answered) }

		s.inFlight.TryAcquire(limit.MaxBytes)
		in <- step(1, 100)
		if n := count(); n != 1 {
			t.Fatalf("%d answers to a small operation, want one", n)
		}
		in <- step(2, 1<<20)
		if n := count(); n != 1 {
			t.Fatalf("an operation too many is answered")
		}
		select {
		case in <- step(3, 100):
			t.Fatal("the next one is read before there is room for it")
		default:
		}
		s.inFlight.Release(limit.MaxBytes)
		in <- step(3, 100)
		if n := count(); n != 3 || s.inFlight.Held() != 0 {
			t.Fatalf("%d answers when there is room, want 3; %d bytes counted in, want none", n, s.inFlight.Held())
		}

		for len(answered) > 0 {
			<-answered
		}
		s.inFlight.TryAcquire(limit.MaxBytes)
		in <- step(4, 1<<20)
		in <- &kagziv1.SessionRequest{Seq: 5, Operation: &kagziv1.SessionRequest_Heartbeat{
			Heartbeat: &kagziv1.HeartbeatRequest{}}}
		if waited := time.Since(began); waited != s.options.HeartbeatInterval {
			t.Errorf("the next heartbeat is read after %s, want it when it is due, after %s", waited,
				s.options.HeartbeatInterval)
		}
		for range 2 {
			r := <-answered
			if r.Seq == 4 && r.GetError().GetCode() != kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE || r.Seq == 5 &&
				r.GetHeartbeat() == nil {
				t.Errorf(
					"operation %d is answered with %v; want UNAVAILABLE for what there was no room for, and the heartbeat heard", r.Seq, r)
			}
		}
		if held := s.inFlight.Held(); held != limit.MaxBytes {
			t.Errorf("%d bytes are counted in, want those of the others, %d", held, limit.MaxBytes)
		}

		in <- step(6, 1<<20)
		synctest.Wait()
		end()
		s.inFlight.Release(limit.MaxBytes)
		if n := count(); n != 0 || s.inFlight.Held() != 0 {
			t.Errorf("%d answers when the session ends meanwhile, want none; %d bytes counted in, want none", n,
				s.inFlight.Held())
		}
	})
}

// sessionOf returns a session of a worker whose answers are recorded.
func sessionOf(s *Service, end context.CancelCauseFunc, answered chan<- *kagziv1.SessionResponse) *session {
	w := &session{service: s, worker: engine.Worker{ID: "w"}, end: end, wake: make(chan struct{}, 1),
		room: make(chan struct{}, maxUnanswered), held: map[engine.ID]holding{}, queues: map[string]runQueue{},
		heard: time.Now()}
	w.poller = matching.New(writing{}, nil).Join(matching.Request{Worker: &w.worker})
	w.out.room = w.room
	w.out.stream = func(r *kagziv1.SessionResponse) error { answered <- r; return nil }
	return w
}

// requests is the receiving end of a session.
type requests struct {
	kagziv1.WorkerService_SessionServer
	ctx context.Context
	in  chan *kagziv1.SessionRequest

	asked func() // when the next is asked for
}

func (o *requests) RecvMsg(m any) error {
	if o.asked != nil {
		o.asked()
	}
	select {
	case r := <-o.in:
		raw, err := proto.Marshal(r)
		m.(*wire.Undecoded).Raw = mem.SliceBuffer(raw)
		return err
	case <-o.ctx.Done():
		return o.ctx.Err()
	}
}
