package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func ofQueue(name string) func(*kagziv1.StartWorkflowRequest) {
	return func(r *kagziv1.StartWorkflowRequest) { r.TaskQueue = name }
}

func ofType(name string) func(*kagziv1.StartWorkflowRequest) {
	return func(r *kagziv1.StartWorkflowRequest) { r.WorkflowType = name }
}

func TestQueuesAreServedInOrderOfPreference(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		low, high, middle := s.start(t, ofQueue("low")), s.start(t, ofQueue("high")), s.start(t, ofQueue("middle"))
		w := s.session(t, func(r *kagziv1.RegisterRequest) {
			r.TaskQueue, r.TaskQueues = "high", []string{"middle", "low"}
		})
		var got []string
		for range 3 {
			w.grant(1)
			got = append(got, receive(t, "a run", w.tasks).RunId)
		}
		if want := []string{high, middle, low}; !slices.Equal(got, want) {
			t.Errorf("served %v, want %v", got, want)
		}
	})
}

func TestHigherPriorityComesFirst(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		var runs []string
		for _, p := range []int32{-5, 0, 7} {
			runs = append(runs, s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.Priority = proto.Int32(p) }))
		}
		slices.Reverse(runs)
		w := s.register(t)
		for i, want := range runs {
			if got := w.take(t).RunId; got != want {
				t.Errorf("run %d is %s, want %s", i, got, want)
			}
		}
	})
}

func TestLimitsHoldAcrossWorkers(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		limited := func(r *kagziv1.RegisterRequest) {
			r.TaskQueue, r.WorkflowTypes = "limited", []string{"a", "b"}
			r.QueueConcurrencyLimit = proto.Int32(3)
			r.WorkflowTypeConcurrency = []*kagziv1.WorkflowTypeConcurrency{{WorkflowType: "a", MaxConcurrent: 2}}
		}
		one, two := s.session(t, limited), s.session(t, limited)
		one.grant(20)
		two.grant(20)
		const each = 5
		for range each {
			s.start(t, ofQueue("limited"), ofType("a"))
			s.start(t, ofQueue("limited"), ofType("b"))
		}
		done, most := 0, 0
		held := map[string]int{}
		for done < 2*each {
			var task *kagziv1.Task
			var by *sessionWorker
			select {
			case task = <-one.tasks:
				by = one
			case task = <-two.tasks:
				by = two
			case <-time.After(30 * time.Second):
				t.Fatalf("%d of %d runs came", done, 2*each)
			}
			// Before any of them ends, as many are handed out as the limits allow.
			depth, err := s.admin().GetQueueDepth(
				within(t, 20*time.Second), &kagziv1.GetQueueDepthRequest{TaskQueue: proto.String("limited")})
			if err != nil {
				t.Fatal(err)
			}
			held[task.WorkflowType]++
			most = max(most, int(depth.RunningCount))
			if depth.RunningCount > 3 {
				t.Errorf("%d runs of the queue at a time, want 3 at most", depth.RunningCount)
			}
			runs, err := s.workflows().ListWorkflows(within(t, 20*time.Second), &kagziv1.ListWorkflowsRequest{
				WorkflowType: proto.String("a"), StatusFilter: running.Enum()})
			if err != nil || len(runs.Workflows) > 2 {
				t.Errorf("%d runs of type a at a time (%v), want 2 at most", len(runs.Workflows), err)
			}
			by.do(by.runDone(task, ""))
			done++
		}
		if held["a"] != each || held["b"] != each {
			t.Errorf("runs by type: %v, want %d each", held, each)
		}
		t.Logf("at most %d of the queue at a time", most)
	})
}

func TestRunsGoToWorkersThatMeetTheirRequirements(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		plain := s.register(t)
		gpu := s.register(t, func(r *kagziv1.RegisterRequest) {
			r.Labels, r.Capabilities = map[string]string{"zone": "a"}, map[string]string{"gpu": "a100"}
		})
		needs := func(m map[string]string) string {
			return s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.Requirements = m })
		}
		any, exact := needs(map[string]string{"gpu": ""}), needs(map[string]string{"gpu": "a100", "zone": "a"})
		never := needs(map[string]string{"gpu": "h100"})
		plain.wantNothing(t, "a worker without a GPU")
		if got := []string{gpu.take(t).RunId, gpu.take(t).RunId}; !slices.Equal(got, []string{any, exact}) {
			t.Errorf("the GPU's worker got %v, want %v", got, []string{any, exact})
		}
		gpu.wantNothing(t, "a worker with another GPU")
		free := s.start(t)
		if got := plain.take(t).RunId; got != free {
			t.Errorf("the plain worker got %s, want %s", got, free)
		}
		depth, err := s.admin().GetQueueDepth(within(t, 20*time.Second), &kagziv1.GetQueueDepthRequest{})
		if err != nil || depth.Queues[0].UnservedByType["t"] != 1 || depth.Queues[0].OnlineWorkers != 2 ||
			depth.RunningCount != 3 || depth.PendingCount != 1 {
			t.Errorf("depth: %v, %v, want one run that nobody can take", depth, err)
		}
		if got := s.get(t, never); got.Status != pending {
			t.Errorf("the run that nobody can take is %s", got.Status)
		}
	})
}

func TestTypesAndNamespacesAreKeptApart(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		other := s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.Namespace = "other" })
		run := s.start(t, ofType("u"))
		w := s.register(t)
		w.wantNothing(t, "another type and another namespace")
		u := s.register(t, func(r *kagziv1.RegisterRequest) { r.WorkflowTypes = []string{"u"} })
		if got := u.take(t).RunId; got != run {
			t.Errorf("the worker of u got %s", got)
		}
		o := s.register(t, func(r *kagziv1.RegisterRequest) { r.Namespace = "other" })
		if task := o.take(t); task.RunId != other || task.Namespace != "other" {
			t.Errorf("the worker of the other namespace got %v", task)
		}
		if _, err := s.workflows().GetWorkflow(within(t, 20*time.Second),
			&kagziv1.GetWorkflowRequest{RunId: other}); err == nil {
			t.Error("a run of another namespace is shown")
		}
	})
}

func TestManyWorkersGetEachRunOnce(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		const workers, runs = 5, 200
		batch := &kagziv1.StartWorkflowsRequest{}
		for range runs {
			batch.Requests = append(batch.Requests, &kagziv1.StartWorkflowRequest{WorkflowType: "t"})
		}
		if _, err := s.workflows().StartWorkflows(within(t, 20*time.Second), batch); err != nil {
			t.Fatal(err)
		}
		taken := make(chan *kagziv1.Task, 2*runs)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var group sync.WaitGroup
		for range workers {
			w := s.register(t)
			group.Go(func() {
				for {
					answer, err := s.workers().PollTask(ctx, &kagziv1.PollTaskRequest{
						WorkerId: w.id, WorkflowTypes: []string{"t"}, MaxTasks: 7, Wait: durationpb.New(time.Second)})
					if err != nil {
						return
					}
					if answer.RunId != "" {
						for _, task := range append(answer.More, answer.Task) {
							taken <- task
						}
					}
				}
			})
		}
		seen := map[string]bool{}
		note := func(task *kagziv1.Task) {
			if seen[task.RunId] {
				t.Errorf("run %s was handed out twice", task.RunId)
			}
			seen[task.RunId] = true
		}
		for len(seen) < runs && !t.Failed() {
			note(receive(t, "another run", taken))
		}
		stop()
		group.Wait()
		close(taken)
		for task := range taken {
			note(task)
		}
		if len(seen) != runs {
			t.Errorf("%d runs were handed out, want %d", len(seen), runs)
		}
	})
}

func TestSuspendedRunsHoldNoSlot(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.session(t, func(r *kagziv1.RegisterRequest) { r.QueueConcurrencyLimit = proto.Int32(1) })
		w.grant(50)
		for i := range 20 {
			run := s.start(t)
			task := receive(t, fmt.Sprintf("run %d, while the others sleep", i), w.tasks)
			if task.RunId != run {
				t.Fatalf("run %d is %s, want %s", i, task.RunId, run)
			}
			a := w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Sleep{Sleep: &kagziv1.SleepRequest{
				RunId: run, LeaseToken: task.LeaseToken, StepId: "nap", Duration: durationpb.New(time.Hour)}}})
			if a.GetSleeping() == nil {
				t.Fatalf("sleep is answered with %v", a)
			}
		}
	})
}

// lives makes the worker send heartbeats, so that it is not lost during slow work. dies stops them
// and returns when the last one began.
func (w *sessionWorker) lives() (dies func() (last time.Time)) {
	over, lasts := make(chan struct{}), make(chan time.Time, 1)
	go func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for last := time.Now(); ; last = time.Now() {
			a, ok := <-w.send(&kagziv1.SessionRequest{
				Operation: &kagziv1.SessionRequest_Heartbeat{Heartbeat: &kagziv1.HeartbeatRequest{}}})
			if !ok || a.GetError() != nil { // a call that waits for an answer over the stream reports it
				lasts <- last
				return
			}
			select {
			case <-ticker.C:
			case <-over:
				lasts <- last
				return
			}
		}
	}()
	return func() time.Time {
		close(over)
		return <-lasts
	}
}

func TestALostWorkersRunIsFinishedElsewhere(t *testing.T) {
	eachServer(t, Options{}, func(t *testing.T, s *Server) {
		run := s.start(t)
		dead := s.session(t)
		dies := dead.lives()
		dead.grant(1)
		task := receive(t, "the run", dead.tasks)
		dead.do(dead.stepDone(task, "kept", "by the dead"))
		began := dies()

		alive := s.session(t)
		leaves := alive.lives()
		alive.grant(1)
		again := receive(t, "the dead worker's run", alive.tasks)
		// A lease of 600 ms, then a suspect for a heartbeat and a second.
		if took := time.Since(began); again.RunId != run || took < 600*time.Millisecond || took > promptly {
			t.Errorf("run %s was taken over after %s", again.RunId, took)
		}
		if len(again.History) != 1 || string(again.History[0].Output.GetData()) != "by the dead" || again.Attempt != 1 {
			t.Errorf("taken over as %v", again)
		}
		if got := s.get(t, run); got.LeaseLosses != 1 || got.Attempts != 1 {
			t.Errorf("after one loss the run is %v", got)
		}
		if a, ok := <-dead.send(dead.runDone(task, "too late")); ok && a.GetError().GetCode() != codeLeaseLost {
			t.Errorf("the dead worker's late end is answered with %v", a)
		}
		worker, err := s.admin().GetWorker(within(t, 20*time.Second), &kagziv1.GetWorkerRequest{WorkerId: dead.id})
		if err != nil || worker.Worker.Status != kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE ||
			worker.Worker.GetOfflineReason() != kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_LOST {
			t.Errorf("the dead worker is %v, %v", worker, err)
		}
		if a := alive.do(alive.runDone(again, "by the living")); a.GetCompletedWorkflow() == nil {
			t.Errorf("the end is answered with %v", a)
		}
		wantOutput(t, s.await(t, run), "by the living")
		leaves()
	})
}

func TestARunThatLosesTenWorkersFails(t *testing.T) {
	eachServer(t, Options{}, func(t *testing.T, s *Server) {
		run := s.start(t)
		for loss := 1; loss <= 10; loss++ {
			w := s.register(t)
			task := w.take(t)
			if task.Attempt != 1 {
				t.Errorf("after %d losses the attempt is %d, want 1: losses cost nothing", loss-1, task.Attempt)
			}
			// The worker dies here. It is lost after twice the lease, and then the delay of the
			// loss passes.
			s.until(t, run, fmt.Sprintf("lost %d times", loss),
				func(r *kagziv1.Workflow, _ map[string]*kagziv1.Step) bool {
					return int(r.LeaseLosses) == loss
				})
			if loss == 6 { // the next attempt is then some seconds away
				explained{s, t}.check(plight{run: run, blocker: blockedByRetry,
					summary: "lost 6 workers in a row, runs again in ", detail: "it fails after 10 in a row",
					next: nextDue})
			}
			s.Jump(5 * time.Minute)
		}
		got := s.await(t, run)
		if got.Status != failed || got.Error.GetCode() != kagziv1.ErrorCode_ERROR_CODE_CRASHED ||
			got.LeaseLosses != 10 || !got.Error.NonRetryable {
			t.Errorf("after ten losses the run is %v", got)
		}
	})
}
