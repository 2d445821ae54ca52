package waiting

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// server explains a run and reports its changes.
type server struct {
	mu       sync.Mutex
	sentence string
	asked    int
	watched  int
	changes  chan *kagziv1.Workflow
	broken   chan error
	refuse   error // of calls that explain
}

func (s *server) ExplainWorkflow(context.Context, *kagziv1.ExplainWorkflowRequest,
	...grpc.CallOption) (*kagziv1.ExplainWorkflowResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return &kagziv1.ExplainWorkflowResponse{Summary: s.sentence}, s.refuse
}

func (s *server) WatchWorkflow(ctx context.Context, r *kagziv1.WatchWorkflowRequest,
	_ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent], error) {
	if !r.RunOnly {
		return nil, errors.New("want the run only")
	}
	s.watched++
	return &events{ctx: ctx, server: s}, nil
}

type events struct {
	grpc.ClientStream
	ctx    context.Context
	server *server
}

func (e *events) Recv() (*kagziv1.WatchWorkflowEvent, error) {
	select {
	case run := <-e.server.changes:
		return &kagziv1.WatchWorkflowEvent{Workflow: run}, nil
	case err := <-e.server.broken:
		return nil, err
	case <-e.ctx.Done():
		return nil, e.ctx.Err()
	}
}

func (s *server) set(sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sentence = sentence
}

// waits runs a test while a report is made. said returns what was said since it was last called.
func waits(t *testing.T, test func(t *testing.T, s *server, said func() []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{sentence: "due for 3s, but no worker", changes: make(chan *kagziv1.Workflow),
			broken: make(chan error)}
		var mu sync.Mutex
		var all []string
		stop := Report{API: s, RunID: "run-1", Say: func(sentence string) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, sentence)
		}}.Start(t.Context())
		defer stop()
		test(t, s, func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			was := all
			all = nil
			return was
		})
	})
}

func run(waitingFor string) *kagziv1.Workflow {
	return &kagziv1.Workflow{Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING, WaitingFor: waitingFor}
}

func wants(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}

func TestReport(t *testing.T) {
	t.Run("speaks after 3 seconds and not before", func(t *testing.T) {
		waits(t, func(t *testing.T, s *server, said func() []string) {
			time.Sleep(After - time.Millisecond)
			wants(t, said())
			time.Sleep(time.Millisecond)
			wants(t, said(), "due for 3s, but no worker")
			s.changes <- run("")
			time.Sleep(time.Hour)
			wants(t, said())
			if s.asked != 1 || s.watched != 1 {
				t.Errorf("asked %d times over %d streams, want once", s.asked, s.watched)
			}
		})
	})
	t.Run("speaks again when a change has lasted for 3 seconds", func(t *testing.T) {
		waits(t, func(t *testing.T, s *server, said func() []string) {
			time.Sleep(After)
			s.changes <- run("")
			said()
			for range 5 { // too short to be told
				s.changes <- run("timer:a")
				s.changes <- run("timer:b")
				time.Sleep(After - time.Millisecond)
			}
			wants(t, said())
			s.set("waits for signal approve")
			time.Sleep(time.Millisecond)
			wants(t, said(), "waits for signal approve")
			if s.asked != 2 {
				t.Errorf("asked %d times, want 2", s.asked)
			}
		})
	})
	t.Run("does not repeat a sentence when only its times differ", func(t *testing.T) {
		waits(t, func(t *testing.T, s *server, said func() []string) {
			time.Sleep(After)
			s.changes <- run("")
			said()
			s.set("due for 1d4h, but no worker")
			s.changes <- run("timer:a")
			time.Sleep(After)
			wants(t, said())
			s.set("due for 200ms, but no room")
			s.changes <- run("timer:b")
			time.Sleep(After)
			wants(t, said(), "due for 200ms, but no room")
		})
	})
	t.Run("watches again after the server was away", func(t *testing.T) {
		waits(t, func(t *testing.T, s *server, said func() []string) {
			time.Sleep(After)
			s.changes <- run("")
			said()
			s.broken <- status.Error(codes.Unavailable, "away")
			time.Sleep(After)
			s.broken <- io.EOF
			time.Sleep(2 * After)
			s.set("sleeps")
			s.changes <- run("timer:a")
			time.Sleep(After)
			wants(t, said(), "sleeps")
		})
	})
	t.Run("asks no more once the run has ended", func(t *testing.T) {
		waits(t, func(t *testing.T, s *server, _ func() []string) {
			time.Sleep(After)
			ended := run("")
			ended.FinishedAt = timestamppb.Now()
			s.changes <- ended
			time.Sleep(time.Hour)
			if s.asked != 1 || s.watched != 1 {
				t.Errorf("asked %d times over %d streams, want once", s.asked, s.watched)
			}
		})
	})
	t.Run("is silent when the server refuses", func(t *testing.T) {
		waits(t, func(t *testing.T, s *server, said func() []string) {
			s.refuse = status.Error(codes.PermissionDenied, "no")
			time.Sleep(After)
			s.broken <- status.Error(codes.Unimplemented, "no")
			time.Sleep(time.Hour)
			wants(t, said())
			if s.watched != 1 {
				t.Errorf("watched %d times, want once", s.watched)
			}
		})
	})
	t.Run("is silent when the wait is over before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stop := Report{API: &server{}, Say: func(string) { t.Error("spoke") }}.Start(t.Context())
			time.Sleep(After - time.Millisecond)
			stop()
			time.Sleep(time.Hour)
		})
	})
	t.Run("is silent when all slots are taken", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &server{sentence: "sleeps", changes: make(chan *kagziv1.Workflow)}
			spoke := 0
			slots := make(chan struct{}, 1)
			for range 3 {
				defer Report{API: s, Slots: slots, Say: func(string) { spoke++ }}.Start(t.Context())()
			}
			time.Sleep(After)
			synctest.Wait()
			if spoke != 1 || len(slots) != 1 {
				t.Errorf("%d reports spoke and %d slots are taken, want 1", spoke, len(slots))
			}
		})
	})
}
