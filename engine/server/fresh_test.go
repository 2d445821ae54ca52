package server

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// starting is a store whose runs end when they are first read.
type starting struct {
	servertest.StubStore
	reads *atomic.Int32
}

func (s starting) StartRuns(_ context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	return []engine.Started{{RunID: p.Runs[0].ID}}, nil
}

func (s starting) GetRun(_ context.Context, namespace string, id engine.ID) (engine.Run, error) {
	s.reads.Add(1)
	return engine.Run{ID: id, Namespace: namespace, Status: engine.RunCompleted}, nil
}

func TestAWaitAfterAStartReadsTheRunOnlyAtItsEnd(t *testing.T) {
	var reads atomic.Int32
	s, conn := serve(t, starting{reads: &reads})
	api := kagziv1.NewWorkflowServiceClient(conn)
	start := func() string {
		a, err := api.StartWorkflow(t.Context(),
			&kagziv1.StartWorkflowRequest{Namespace: "n", TaskQueue: "q", WorkflowType: "w"})
		if err != nil {
			t.Fatal(err)
		}
		return a.RunId
	}
	wait := func(run string, limit time.Duration) *kagziv1.WaitWorkflowResponse {
		a, err := api.WaitWorkflow(t.Context(), &kagziv1.WaitWorkflowRequest{
			Namespace: "n", RunId: run, Wait: durationpb.New(limit)})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}

	run := start()
	id, err := engine.ParseID(run)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan *kagziv1.WaitWorkflowResponse)
	go func() { answered <- wait(run, time.Minute) }()
	for s.watch.Count().RunWaiters == 0 {
		runtime.Gosched()
	}
	if n := reads.Load(); n != 0 {
		t.Fatalf("read %d times before it ended", n)
	}
	s.Notify(engine.Notification{Kind: engine.NotifyEnd, ID: id})
	if a := <-answered; !a.Finished || reads.Load() != 1 {
		t.Fatalf("answer %v after %d reads", a, reads.Load())
	}

	run = start()
	if id, err = engine.ParseID(run); err != nil {
		t.Fatal(err)
	}
	s.Notify(engine.Notification{Kind: engine.NotifyEnd, ID: id})
	if a := wait(run, time.Minute); !a.Finished {
		t.Fatalf("a run that had ended before the wait: %v", a)
	}
	if a := wait(start(), time.Millisecond); !a.Finished {
		t.Fatalf("a run of whose end nobody told, when the time is over: %v", a)
	}
}
