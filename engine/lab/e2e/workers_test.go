package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

func TestAWorkerCanDoNothingToARunThatAnotherHolds(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		owner, thief := s.register(t), s.session(t, func(r *kagziv1.RegisterRequest) { r.TaskQueue = "other" })
		thief.grant(1)
		run, own := s.start(t), s.start(t, ofQueue("other"))
		task, stolen := owner.take(t), receive(t, "the other run", thief.tasks)
		if task.RunId != run || stolen.RunId != own {
			t.Fatalf("handed out %s and %s", task.RunId, stolen.RunId)
		}
		owner.completeStep(t, task, "mine", "x")
		before := s.get(t, run)
		// With the token of its own run, the only one that it can know.
		claim := &kagziv1.Task{RunId: run, LeaseToken: stolen.LeaseToken}
		for name, r := range map[string]*kagziv1.SessionRequest{
			"a step": thief.stepDone(claim, "theirs", "y"), "the end": thief.runDone(claim, "y"),
			"a beginning": {Operation: &kagziv1.SessionRequest_BeginStep{
				BeginStep: &kagziv1.BeginStepRequest{RunId: run, StepName: "b", LeaseToken: claim.LeaseToken}}},
			"a failed step": {Operation: &kagziv1.SessionRequest_FailStep{
				FailStep: &kagziv1.FailStepRequest{RunId: run, StepId: "f", LeaseToken: claim.LeaseToken,
					Error: &kagziv1.ErrorDetail{Message: "f"}}}},
			"a failed end": {Operation: &kagziv1.SessionRequest_FailWorkflow{
				FailWorkflow: &kagziv1.FailWorkflowRequest{
					RunId: run, LeaseToken: claim.LeaseToken, Error: &kagziv1.ErrorDetail{Message: "f"}}}},
			"a wait": {Operation: &kagziv1.SessionRequest_AwaitSignal{
				AwaitSignal: &kagziv1.AwaitSignalRequest{
					RunId: run, StepName: "s", SignalName: "s", LeaseToken: claim.LeaseToken}}},
			"a child": {Operation: &kagziv1.SessionRequest_StartChild{
				StartChild: &kagziv1.StartChildRequest{
					StepName: "c", LeaseToken: claim.LeaseToken,
					Child: &kagziv1.StartWorkflowRequest{WorkflowType: "t", ParentRunId: run}}}},
			"a wait for one": {Operation: &kagziv1.SessionRequest_AwaitChildren{
				AwaitChildren: &kagziv1.AwaitChildrenRequest{
					RunId: run, ChildRunIds: []string{own}, LeaseToken: claim.LeaseToken}}},
			"a note": {Operation: &kagziv1.SessionRequest_SetNote{
				SetNote: &kagziv1.SetNote{RunId: run, Note: "n", LeaseToken: claim.LeaseToken}}},
			"a release": {Operation: &kagziv1.SessionRequest_ReleaseTask{
				ReleaseTask: &kagziv1.ReleaseTaskRequest{RunId: run, LeaseToken: claim.LeaseToken}}},
		} {
			if a := thief.do(r); a.GetError().GetCode() != codeLeaseLost ||
				a.GetError().GetMetadata()["status"] != "RUNNING" {
				t.Errorf("%s of a run that another holds is answered with %v", name, a)
			}
		}
		if lost := thief.beat(stolen, claim).GetHeartbeat().GetLost(); len(lost) != 1 || lost[0].RunId != run {
			t.Errorf("a heartbeat that names it is told %v, want that it is not held", lost)
		}
		if a := thief.do(&kagziv1.SessionRequest{
			Operation: &kagziv1.SessionRequest_Goodbye{
				Goodbye: &kagziv1.DeregisterRequest{WorkerId: owner.id}}}); a.GetError().GetMetadata()["field"] !=
			"worker_id" {
			t.Errorf("a goodbye in another's name is answered with %v", a)
		}
		after := s.get(t, run)
		if after.Status != running || after.GetWorkerId() != owner.id || after.StepCount != before.StepCount ||
			after.Note != "" {
			t.Errorf("the run was\n%v and is\n%v", before, after)
		}
		owner.complete(t, task, "by its owner")
		wantOutput(t, s.get(t, run), "by its owner")
		// A lease opens nothing in another namespace either.
		_, err := s.workers().CompleteWorkflow(ctx,
			&kagziv1.CompleteWorkflowRequest{Namespace: "other", RunId: own, LeaseToken: stolen.LeaseToken})
		wantRefused(t, "the run's own token in another namespace", err, codes.NotFound, codeNotFound, "no run")
	})
}

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestAForcedShutdownNamesTheRunsThatItHandsBack(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		began, ended, log := make(chan string, 2), make(chan struct{}, 2), &lines{}
		w := kagzi.NewWorker(kagzi.WorkerOptions{
			Address: s.Address, Logger: slog.New(slog.NewTextHandler(log, nil)), HandleSignals: []os.Signal{},
			DrainTimeout: 50 * time.Millisecond,
		})
		kagzi.Handle(w, "long", func(ctx kagzi.Context, _ int) (int, error) {
			if _, err := kagzi.Step(ctx, "quick", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
			return kagzi.Step(ctx, "wait", func(step context.Context) (int, error) {
				began <- kagzi.Info(ctx).RunID
				<-step.Done()
				ended <- struct{}{}
				return 0, step.Err()
			})
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		c := s.client(t)
		for range 2 {
			fine(kagzi.Start(ctx, c, "long", 0, kagzi.StartOptions{}))(t)
		}
		runs := []string{receive(t, "a step", began), receive(t, "a step", began)}
		stop()
		err := receive(t, "the end of the worker", done)
		if err == nil || !strings.Contains(err.Error(), "released 2 unfinished runs") {
			t.Errorf("the worker ends with %v, want the number of unfinished runs", err)
		}
		receive(t, "the end of a step's context", ended)
		receive(t, "the end of a step's context", ended)
		for _, run := range runs {
			if !strings.Contains(log.all(), run) {
				t.Errorf("run %s is not named in the log:\n%s", run, log.all())
			}
			got := s.get(t, run)
			if got.Status != pending || got.LeaseLosses != 0 || got.Attempts != 1 || got.WorkerId != nil {
				t.Errorf("the run that was handed back is %v, want it due with nothing counted", got)
			}
		}
		worker := fine(s.admin().GetWorker(t.Context(), &kagziv1.GetWorkerRequest{WorkerId: w.ID()}))(t).Worker
		if worker.Status != kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE || worker.ActiveWorkflowCount != 0 {
			t.Errorf("the worker is %v", worker)
		}
		// Another worker continues them after the last recorded step.
		var steps sync.Map
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "long", func(ctx kagzi.Context, _ int) (int, error) {
				for _, name := range []string{"quick", "wait"} {
					if _, err := kagzi.Step(ctx, name, func(context.Context) (int, error) {
						steps.Store(kagzi.Info(ctx).RunID+name, true)
						return 2, nil
					}); err != nil {
						return 0, err
					}
				}
				return 3, nil
			})
		})
		for _, run := range runs {
			wantOutput(t, s.await(t, run), "3")
			if _, again := steps.Load(run + "quick"); again {
				t.Errorf("the recorded step of run %s ran again", run)
			}
		}
	})
}

func TestAWorkerWithAllCapabilitiesThatAreAllowedGetsTheRunThatNeedsOne(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		const odd = `unit:"A100" (80 GB) / 100% \ ~`
		offers := map[string]string{odd: `it's {"a": 'b'}`}
		for i := len(offers); i < engine.MaxCapabilities; i++ {
			offers[fmt.Sprintf("%0*d", engine.MaxLabelKey, i)] = strings.Repeat("v", engine.MaxLabelValue)
		}
		other := s.register(t)
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.Requirements = map[string]string{odd: offers[odd]}
		})
		other.wantNothing(t, "it offers nothing")
		w := s.register(t, func(r *kagziv1.RegisterRequest) { r.Capabilities = offers })
		task := w.take(t)
		if task.RunId != run {
			t.Errorf("it got %s, want %s", task.RunId, run)
		}
		w.complete(t, task, "")
		listed := fine(s.admin().ListWorkers(within(t, time.Minute), &kagziv1.ListWorkersRequest{}))(t).Workers
		for _, l := range listed {
			if l.WorkerId == w.id && !maps.Equal(l.Capabilities, offers) {
				t.Errorf("it is listed with %d capabilities, want %d", len(l.Capabilities), len(offers))
			}
		}
	})
}

func TestPollsGiveAWorkerNoMoreThanItsMaxConcurrent(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		for range 4 {
			s.start(t)
		}
		w := s.register(t, func(r *kagziv1.RegisterRequest) { r.MaxConcurrent = 2 })
		var held []*kagziv1.Task
		poll := func(ctx context.Context, wait time.Duration) []*kagziv1.Task {
			a, err := w.workers().PollTask(ctx, &kagziv1.PollTaskRequest{WorkerId: w.id,
				WorkflowTypes: []string{"t"}, MaxTasks: 10, Wait: durationpb.New(wait)})
			if err != nil {
				t.Error(err)
			}
			if a.GetTask() == nil {
				return nil
			}
			return append([]*kagziv1.Task{a.Task}, a.More...)
		}
		if held = poll(t.Context(), 0); len(held) != 2 {
			t.Fatalf("a poll for 10 gets %d runs, want 2", len(held))
		}
		if more := poll(t.Context(), 0); len(more) != 0 {
			t.Errorf("a poll of the full worker gets %d runs", len(more))
		}
		next := make(chan []*kagziv1.Task, 2)
		for range 2 { // together they get one
			go func() { next <- poll(t.Context(), 30*time.Second) }()
		}
		s.awaitPoller(t)
		wantEmpty(t, "a run for the full worker", next)
		w.complete(t, held[0], "")
		got := receive(t, "a run for the free slot", next)
		if len(got) != 1 || len(next) != 0 {
			t.Fatalf("one free slot gets %d runs, and another poll came back: %v", len(got), len(next) != 0)
		}
		w.complete(t, held[1], "")
		if last := receive(t, "a run for the next slot", next); len(last) != 1 || last[0].RunId == got[0].RunId {
			t.Errorf("the next slot gets %v", last)
		}
	})
}

func TestHeartbeatsAddUpTheTotals(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t, func(r *kagziv1.RegisterRequest) {
			r.Hostname, r.Pid, r.Platform, r.MaxConcurrent, r.Version = "box", 42, "linux-arm64", 7, "1.2.3"
			r.Labels, r.Capabilities, r.TaskQueues = map[string]string{"zone": "a"},
				map[string]string{"tool:jq": "1.7"}, []string{"second"}
		})
		get := func() *kagziv1.Worker {
			return fine(s.admin().GetWorker(ctx, &kagziv1.GetWorkerRequest{WorkerId: w.id}))(t).Worker
		}
		first := get()
		if first.Hostname != "box" || first.Pid != 42 || first.Platform != "linux-arm64" || first.MaxConcurrent != 7 ||
			first.Labels["zone"] != "a" ||
			first.Capabilities["tool:jq"] != "1.7" || len(first.TaskQueues) != 2 || first.Version != "1.2.3" ||
			first.TotalCompleted != 0 || first.ActiveWorkflowCount != 0 ||
			first.Stats != nil {
			t.Errorf("registered as %v", first)
		}
		for _, beat := range []*kagziv1.HeartbeatRequest{
			{ActiveCount: 2, CompletedDelta: 3, FailedDelta: 1,
				Stats: &kagziv1.WorkerStats{CpuPercent: 150.5, MemoryBytes: 1 << 40, DiskAvailableBytes: 5,
					UptimeSeconds: 9, AverageRunMs: 1.5}},
			{ActiveCount: 1, CompletedDelta: 4},
		} {
			beat.WorkerId = w.id
			fine(s.workers().Heartbeat(ctx, beat))(t)
		}
		got := get()
		if got.ActiveWorkflowCount != 1 || got.TotalCompleted != 7 || got.TotalFailed != 1 ||
			got.Stats.GetCpuPercent() != 150.5 ||
			got.Stats.GetMemoryBytes() != 1<<40 || got.Stats.GetAverageRunMs() != 1.5 ||
			got.LastHeartbeatAt.AsTime().Before(first.LastHeartbeatAt.AsTime()) {
			t.Errorf("after two heartbeats it is %v, want their sums and the newest figures", got)
		}
		fine(s.workers().Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: w.id}))(t)
		if got := get(); got.TotalCompleted != 7 || got.ActiveWorkflowCount != 0 || got.DeregisteredAt == nil ||
			got.GetOfflineReason() != kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_DEREGISTERED {
			t.Errorf("gone it is %v, want its totals kept, and that it said goodbye", got)
		}
	})
}

func TestAnSDKWorkerReportsWhatItDid(t *testing.T) {
	var often Options // it reports with its heartbeats; a slow machine must not lose it
	often.Server.HeartbeatInterval, often.Server.WorkerLease = 200*time.Millisecond, 20*time.Second
	eachServer(t, often, func(t *testing.T, s *Server) {
		w, _ := s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "good", func(kagzi.Context, int) (int, error) { return 1, nil })
			kagzi.Handle(w, "bad", func(kagzi.Context, int) (int, error) { return 0, errors.New("bad") })
		})
		ctx, c := within(t, time.Minute), s.client(t)
		for _, kind := range []string{"good", "good", "bad", "good"} {
			fine(kagzi.Start(ctx, c, kind, 0, kagzi.StartOptions{}))(t)
		}
		var got *kagziv1.Worker
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the worker is %v", got)
			}
		})
		eventually(t, "the worker has reported three that completed and one that failed", func() bool {
			got = fine(s.admin().GetWorker(ctx, &kagziv1.GetWorkerRequest{WorkerId: w.ID()}))(t).Worker
			return got.TotalCompleted == 3 && got.TotalFailed == 1 && got.ActiveWorkflowCount == 0
		})
		if got.Stats.GetUptimeSeconds() < 0 || got.Stats.GetMemoryBytes() <= 0 {
			t.Errorf("its figures are %v", got.Stats)
		}
	})
}
