package server

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/limit"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// taking is a store that takes starts and results of steps.
type taking struct{ starting }

func (taking) CompleteStep(_ context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	return engine.Step{ID: engine.NewID(p.Now), Name: p.Step.Name}, nil
}

func (taking) Heartbeat(context.Context, engine.HeartbeatParams) (engine.Beat, error) {
	return engine.Beat{Status: engine.WorkerOnline}, nil
}

func bytesOf(size int) *kagziv1.Payload { return &kagziv1.Payload{Data: make([]byte, size)} }

func TestLargeCallsAreRefusedWhileTooManyAreUnderWay(t *testing.T) {
	s, conn := serve(t, taking{})
	api := kagziv1.NewWorkflowServiceClient(conn)
	start := func(size int) error {
		_, err := api.StartWorkflow(t.Context(), &kagziv1.StartWorkflowRequest{Namespace: "n", TaskQueue: "q", WorkflowType: "w", Input: bytesOf(size)})
		return err
	}
	others := limit.MaxBytes - 1<<20
	if !s.cargo.TryAcquire(others) {
		t.Fatal("there is no room for the others")
	}
	if err := start(2<<20 - 100); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "128 MiB") {
		t.Errorf("a call too many is answered with %v, want UNAVAILABLE", err)
	}
	if _, err := api.StartWorkflows(t.Context(), &kagziv1.StartWorkflowsRequest{Requests: []*kagziv1.StartWorkflowRequest{
		{Namespace: "n", TaskQueue: "q", WorkflowType: "w", Input: bytesOf(1 << 20)}, {Namespace: "n", TaskQueue: "q", WorkflowType: "w", Input: bytesOf(1)},
	}}); status.Code(err) != codes.Unavailable {
		t.Errorf("a batch too many is answered with %v, want UNAVAILABLE", err)
	}
	for _, size := range []int{0, limit.MinBytes, 1 << 20} {
		if err := start(size); err != nil {
			t.Errorf("a call of %d bytes, for which there is room: %v", size, err)
		}
	}
	s.cargo.Release(others)
	if err := start(2<<20 - 100); err != nil {
		t.Errorf("a large call when the others are done: %v", err)
	}
	if left := s.cargo.Held(); left != 0 {
		t.Errorf("%d bytes are counted in for good", left)
	}
}

func TestASessionWaitsWhileTooManyLargeCallsAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(taking{}, nil, Options{})
		defer s.pool.Close() // whoever carried out an operation waits for more
		in, answered := make(chan *kagziv1.SessionRequest), make(chan *kagziv1.SessionResponse, 8)
		ctx, end := context.WithCancel(t.Context())
		began := time.Now()
		w := sessionOf(s, func(error) { end() }, answered)
		go w.receive(ctx, context.WithoutCancel(ctx), &operations{ctx: ctx, in: in})
		step := func(seq int64, size int) *kagziv1.SessionRequest {
			return &kagziv1.SessionRequest{Seq: seq, Operation: &kagziv1.SessionRequest_CompleteStep{CompleteStep: &kagziv1.CompleteStepRequest{
				RunId: engine.NewID(s.store.Now()).String(), LeaseToken: "00", StepId: "s", Output: bytesOf(size),
			}}}
		}
		count := func() int { synctest.Wait(); return len(answered) }

		s.cargo.TryAcquire(limit.MaxBytes)
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
		s.cargo.Release(limit.MaxBytes)
		in <- step(3, 100)
		if n := count(); n != 3 || s.cargo.Held() != 0 {
			t.Fatalf("%d answers when there is room, want 3; %d bytes counted in, want none", n, s.cargo.Held())
		}

		for len(answered) > 0 {
			<-answered
		}
		s.cargo.TryAcquire(limit.MaxBytes)
		in <- step(4, 1<<20)
		in <- &kagziv1.SessionRequest{Seq: 5, Operation: &kagziv1.SessionRequest_Heartbeat{Heartbeat: &kagziv1.HeartbeatRequest{}}}
		if waited := time.Since(began); waited != s.options.HeartbeatInterval {
			t.Errorf("the next heartbeat is read after %s, want it when it is due, after %s", waited, s.options.HeartbeatInterval)
		}
		for range 2 {
			r := <-answered
			if r.Seq == 4 && r.GetError().GetCode() != kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE || r.Seq == 5 && r.GetHeartbeat() == nil {
				t.Errorf("operation %d is answered with %v; want UNAVAILABLE for what there was no room for, and the heartbeat heard", r.Seq, r)
			}
		}
		if held := s.cargo.Held(); held != limit.MaxBytes {
			t.Errorf("%d bytes are counted in, want those of the others, %d", held, limit.MaxBytes)
		}

		in <- step(6, 1<<20)
		synctest.Wait()
		end()
		s.cargo.Release(limit.MaxBytes)
		if n := count(); n != 0 || s.cargo.Held() != 0 {
			t.Errorf("%d answers when the session ends meanwhile, want none; %d bytes counted in, want none", n, s.cargo.Held())
		}
	})
}

// sessionOf is a session of a worker of which the answers are caught.
func sessionOf(s *Server, end context.CancelCauseFunc, answered chan<- *kagziv1.SessionResponse) *session {
	w := &session{server: s, worker: engine.Worker{ID: "w"}, end: end, bell: make(chan struct{}, 1),
		room: make(chan struct{}, maxUnanswered), held: map[engine.ID]holding{}, lines: map[string]line{}, heard: time.Now()}
	w.seat = matching.New(taking{}, nil).Sit(matching.Request{Worker: &w.worker})
	w.out.room = w.room
	w.out.stream = func(r *kagziv1.SessionResponse) error { answered <- r; return nil }
	return w
}

// operations is the receiving end of a session.
type operations struct {
	kagziv1.WorkerService_SessionServer
	ctx context.Context
	in  chan *kagziv1.SessionRequest

	asked func() // when the next is asked for
}

func (o *operations) RecvMsg(m any) error {
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

func TestEveryPayloadThatACallBringsIsCounted(t *testing.T) {
	payload := (*kagziv1.Payload)(nil).ProtoReflect().Descriptor()
	// fill puts a payload of 1 MiB wherever the message has room for one, and says how many.
	var fill func(m protoreflect.Message) int
	fill = func(m protoreflect.Message) (n int) {
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			switch f := fields.Get(i); {
			case f.ContainingOneof() != nil && m.WhichOneof(f.ContainingOneof()) != nil: // one of them is set
			case f.Message() == nil || f.IsMap() || f.Message().ParentFile().Package() != payload.ParentFile().Package():
			case f.Message() == payload:
				m.Set(f, protoreflect.ValueOf(bytesOf(1<<20).ProtoReflect()))
				n++
			case f.IsList():
				n += fill(m.Mutable(f).List().AppendMutable().Message())
			case f.Message() != m.Descriptor():
				n += fill(m.Mutable(f).Message())
			}
		}
		return n
	}
	protoregistry.GlobalFiles.RangeFilesByPackage(payload.ParentFile().Package(), func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				method := methods.Get(j)
				kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
				if err != nil {
					t.Fatal(err)
				}
				if method.Name() == "Session" {
					operations := method.Input().Oneofs().ByName("operation").Fields()
					for k := range operations.Len() {
						request := kind.New()
						n := fill(request.Mutable(operations.Get(k)).Message())
						if got := cargoOfOperation(request.Interface().(*kagziv1.SessionRequest)); got != n<<20 {
							t.Errorf("operation %s: %d bytes are counted of %d payloads of 1 MiB", operations.Get(k).Name(), got, n)
						}
					}
				} else if request := kind.New(); !method.IsStreamingClient() {
					if n, got := fill(request), limit.PayloadBytes(request.Interface()); got != n<<20 {
						t.Errorf("%s: %d bytes are counted of %d payloads of 1 MiB", method.Name(), got, n)
					}
				}
			}
		}
		return true
	})
}
