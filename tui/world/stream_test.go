package world

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func recv[M any](t *testing.T, stream grpc.ServerStreamingClient[M]) *M {
	t.Helper()
	return must[*M](t)(stream.Recv())
}

func watch(t *testing.T, ctx context.Context, w *World) grpc.ServerStreamingClient[kagziv1.WatchEvent] {
	t.Helper()
	return must[grpc.ServerStreamingClient[kagziv1.WatchEvent]](t)(w.Watch(ctx, &kagziv1.WatchRequest{}))
}

func TestWatchTellsAtOnceThenWhatChangesAndABeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Empty(begin)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stream, from := watch(t, ctx, w), time.Now()
		if e := recv(t, stream); e.WorkflowsChanged || len(e.Workflows) > 0 || !e.At.AsTime().Equal(begin) || time.Since(from) != 0 {
			t.Errorf("first event %v after %s", e, time.Since(from))
		}
		id := start(t, w, &kagziv1.StartWorkflowRequest{WorkflowType: "order"})
		if e := recv(t, stream); !e.WorkflowsChanged || len(e.Workflows) != 1 || e.Workflows[0].RunId != id || time.Since(from) != watchInterval {
			t.Errorf("after a start: %v after %s", e, time.Since(from))
		}
		if e := recv(t, stream); e.WorkflowsChanged || len(e.Workflows) > 0 || time.Since(from) != watchInterval+watchBeat {
			t.Errorf("the beat: %v after %s", e, time.Since(from))
		}
		for range 5 {
			must[*kagziv1.PauseWorkflowResponse](t)(w.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: id}))
			must[*kagziv1.ResumeWorkflowResponse](t)(w.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{RunId: id}))
		}
		if e := recv(t, stream); e.WorkflowsChanged || len(e.Workflows) != 1 {
			t.Errorf("after ten changes of one run: %v", e)
		}
	})
}

func TestWatchSaysToReadAgainWhenMoreChangedThanItNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(seed, begin)
		stream := watch(t, t.Context(), w)
		recv(t, stream)
		w.Advance(2 * time.Hour)
		if e := recv(t, stream); !e.WorkflowsChanged || len(e.Workflows) != maxNamed || !e.WorkersChanged || !e.SchedulesChanged {
			t.Errorf("after two hours: %d runs, %t %t %t", len(e.Workflows), e.WorkflowsChanged, e.WorkersChanged, e.SchedulesChanged)
		}
		if _, err := w.Watch(ctx, &kagziv1.WatchRequest{Interval: durationpb.New(time.Millisecond)}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("an interval of 1 ms: %v", err)
		}
	})
}

func TestWatchWorkflowTellsAllAndEndsWithTheRun(t *testing.T) {
	w := New(seed, begin)
	id := start(t, w, &kagziv1.StartWorkflowRequest{WorkflowType: "thumbnail", TaskQueue: "media"})
	stream := must[grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent]](t)(w.WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: id}))
	if e := recv(t, stream); e.Workflow.GetRunId() != id {
		t.Errorf("first: %v", e)
	}
	if e := recv(t, stream); !e.SnapshotDone {
		t.Errorf("second: %v", e)
	}
	for r := get(t, w, id); !ended(r.Status); r = get(t, w, id) {
		w.Advance(time.Second)
	}
	rest := received(t, stream)
	last := rest[len(rest)-1]
	told := map[string]bool{}
	for _, e := range rest {
		for _, s := range e.Steps {
			told[s.StepId] = true
		}
	}
	if !ended(last.Workflow.GetStatus()) || len(told) != len(steps(t, w, id)) {
		t.Errorf("rest: %v", rest)
	}
	over := received(t, must[grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent]](t)(w.WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: w.ID(Big)})))
	if len(over) != 3 || len(over[0].Steps) != 6 || over[1].Workflow.Input == nil || !over[2].SnapshotDone {
		t.Errorf("of a run that has ended: %v", over)
	}
}

func TestAStepIsToldAgainOnlyWhenItHasChanged(t *testing.T) {
	w := New(seed, begin)
	r := w.byID[w.ID(Growing)]
	told, all := r.changed, len(r.steps)
	w.Advance(12 * time.Second)
	changed := 0
	for _, e := range r.since(told) {
		changed += len(e.Steps)
	}
	if changed == 0 || changed >= all {
		t.Errorf("%d of %d steps are told after 12 s", changed, all)
	}
	if events := r.since(r.changed); events != nil {
		t.Errorf("nothing has changed, told are %v", events)
	}
}

func TestWatchEventsTellsTheTailAndFollows(t *testing.T) {
	w := New(seed, begin)
	stream := must[grpc.ServerStreamingClient[kagziv1.ServerEvent]](t)(w.WatchEvents(ctx, &kagziv1.WatchEventsRequest{Tail: 3}))
	first := recv(t, stream)
	for i := range int64(2) {
		if e := recv(t, stream); e.Sequence != first.Sequence+i+1 {
			t.Errorf("event %d after %d", e.Sequence, first.Sequence+i)
		}
	}
	must[*kagziv1.TerminateWorkflowResponse](t)(w.TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{RunId: w.ID(Growing)}))
	if e := recv(t, stream); e.Sequence != first.Sequence+3 || e.Message != "run terminated" || e.Attributes[0].Value != w.ID(Growing) {
		t.Errorf("followed: %v", e)
	}
}

func TestWaitWorkflowAnswersAtTheEndOrWhenTheWaitIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(seed, begin)
		from := time.Now()
		over := must[*kagziv1.WaitWorkflowResponse](t)(w.WaitWorkflow(ctx, &kagziv1.WaitWorkflowRequest{RunId: w.ID(Growing), Wait: durationpb.New(3 * time.Second)}))
		if over.Finished || time.Since(from) != 3*time.Second {
			t.Errorf("after %s: %v", time.Since(from), over)
		}
		var group sync.WaitGroup
		group.Go(func() {
			<-time.After(time.Second)
			_, _ = w.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: w.ID(Growing)})
		})
		if r := must[*kagziv1.WaitWorkflowResponse](t)(w.WaitWorkflow(ctx, &kagziv1.WaitWorkflowRequest{RunId: w.ID(Growing)})); !r.Finished || time.Since(from) != 4*time.Second {
			t.Errorf("after %s: %v", time.Since(from), r)
		}
		group.Wait()
	})
}

func TestAServerThatIsDownFailsCallsAndCutsStreams(t *testing.T) {
	w := New(seed, begin)
	stream := watch(t, ctx, w)
	recv(t, stream)
	w.Down(status.Error(codes.Unavailable, "connection refused"))
	_, err := w.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: w.ID(Big)})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("call: %v", err)
	}
	w.Up()
	for range 2 {
		if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("stream: %v", err)
		}
	}
	get(t, w, w.ID(Big))
	recv(t, watch(t, ctx, w))
}

func TestAServerThatHangsAnswersWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(seed, begin)
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		stream := watch(t, ctx, w)
		recv(t, stream)
		w.Hang()
		from := time.Now()
		if _, err := w.GetStats(ctx, &kagziv1.GetStatsRequest{}); status.Code(err) != codes.DeadlineExceeded || time.Since(from) != 7*time.Second {
			t.Errorf("call: %v after %s", err, time.Since(from))
		}
		if _, err := stream.Recv(); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("stream: %v", err)
		}
		w.Up()
		must[*kagziv1.GetStatsResponse](t)(w.GetStats(t.Context(), &kagziv1.GetStatsRequest{}))
	})
}

func TestStreamsEndWithTheirContextAndLeaveNoGoroutine(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := New(seed, begin)
	ctx, cancel := context.WithCancel(context.Background())
	events := must[grpc.ServerStreamingClient[kagziv1.ServerEvent]](t)(w.WatchEvents(ctx, &kagziv1.WatchEventsRequest{Tail: 1}))
	run := must[grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent]](t)(w.WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: w.ID(Growing)}))
	all := watch(t, ctx, w)
	var group sync.WaitGroup
	for _, follow := range []func() error{
		func() error { _, err := events.Recv(); return err },
		func() error { _, err := run.Recv(); return err },
		func() error { _, err := all.Recv(); return err },
	} {
		group.Go(func() {
			for {
				if err := follow(); err != nil {
					if status.Code(err) != codes.Canceled {
						t.Errorf("ended with %v", err)
					}
					return
				}
			}
		})
	}
	cancel()
	group.Wait()
}

func TestRunLetsTimeGoUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(seed, begin)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Millisecond)
		defer cancel()
		w.Run(ctx, 10)
		if got := w.Now().Sub(begin); got != 10*time.Minute {
			t.Errorf("a minute at speed 10 is %s", got)
		}
	})
}

func TestManyCallersMayUseAWorldWhileTimeGoesOn(t *testing.T) {
	w := Many(seed, begin, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	var readers, callers sync.WaitGroup
	for range 3 {
		stream := watch(t, ctx, w)
		readers.Go(func() {
			for {
				e, err := stream.Recv()
				if err != nil {
					return
				}
				for _, r := range e.Workflows {
					_ = proto.Size(r)
				}
			}
		})
	}
	for n := range 4 {
		callers.Go(func() {
			for i := range 25 {
				started, err := w.StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "order", TaskQueue: "orders"})
				if err != nil {
					t.Error(err)
					return
				}
				page, err := w.ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 50}})
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range page.Workflows {
					_ = proto.Size(r)
				}
				if n == 0 {
					w.Advance(time.Second)
				}
				stream, err := w.WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: started.RunId})
				if err == nil {
					_, err = stream.Recv()
				}
				if _, end := w.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: page.Workflows[i].RunId}); end != nil && status.Code(end) != codes.FailedPrecondition {
					t.Error(end)
				}
				_, stats := w.GetStats(ctx, &kagziv1.GetStatsRequest{})
				_, explain := w.ExplainWorkflow(ctx, &kagziv1.ExplainWorkflowRequest{RunId: started.RunId})
				if err := errors.Join(err, stats, explain); err != nil && !errors.Is(err, io.EOF) {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	cancel()
	readers.Wait()
	checkWorld(t, w)
}
