package e2e

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestARunLivesInASession(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.session(t)
		wantEmpty(t, "a run before there is credit", w.tasks)
		run := s.start(t)
		s.start(t)
		w.grant(1)
		task := receive(t, "the run", w.tasks)
		if task.RunId != run {
			t.Errorf("the first run is %s, want %s", task.RunId, run)
		}
		// All at once: the operations of one run are applied and answered in their order.
		var answers []<-chan *kagziv1.SessionResponse
		for i := range 20 {
			answers = append(answers, w.send(w.stepDone(task, fmt.Sprintf("s%d", i), "x")))
		}
		answers = append(answers, w.send(w.runDone(task, "done")))
		for i, answer := range answers {
			a := receive(t, "an answer", answer)
			if i < 20 && a.GetCompletedStep().GetStep().GetSequence() != int64(i+1) || i == 20 &&
				a.GetCompletedWorkflow().GetStatus() != completed {
				t.Errorf("operation %d is answered with %v", i, a)
			}
		}
		wantOutput(t, s.get(t, run), "done")
		wantEmpty(t, "a run without credit", w.tasks)
		w.grant(3)
		task = receive(t, "the second run", w.tasks)

		for name, c := range map[string]struct {
			request *kagziv1.SessionRequest
			ok      func(*kagziv1.SessionResponse) bool
		}{
			"begin": {&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_BeginStep{
				BeginStep: &kagziv1.BeginStepRequest{RunId: task.RunId, LeaseToken: task.LeaseToken, StepName: "b"}}},
				func(a *kagziv1.SessionResponse) bool { return a.GetBegunStep().GetShouldExecute() }},
			"an unknown run": {w.stepDone(&kagziv1.Task{
				RunId: "0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b", LeaseToken: task.LeaseToken}, "s", ""),
				func(a *kagziv1.SessionResponse) bool { return a.GetError().GetCode() == codeNotFound }},
			"a malformed run": {w.stepDone(&kagziv1.Task{RunId: "x", LeaseToken: task.LeaseToken}, "s", ""),
				func(a *kagziv1.SessionResponse) bool { return a.GetError().GetMetadata()["field"] == "run_id" }},
			"no credit": {&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Credit{Credit: &kagziv1.Credit{}}},
				func(a *kagziv1.SessionResponse) bool { return a.GetError().GetMetadata()["field"] == "credit.tasks" }},
			"another's heartbeat": {&kagziv1.SessionRequest{
				Operation: &kagziv1.SessionRequest_Heartbeat{Heartbeat: &kagziv1.HeartbeatRequest{WorkerId: "other"}}},
				func(a *kagziv1.SessionResponse) bool { return a.GetError().GetMetadata()["field"] == "worker_id" }},
		} {
			if a := w.do(c.request); !c.ok(a) {
				t.Errorf("%s is answered with %v", name, a)
			}
		}
		if a := w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailWorkflow{
			FailWorkflow: &kagziv1.FailWorkflowRequest{
				RunId: task.RunId, LeaseToken: task.LeaseToken,
				Error: &kagziv1.ErrorDetail{Message: "boom"}}}}); a.GetFailedWorkflow().GetStatus() != failed {
			t.Errorf("fail is answered with %v", a)
		}
	})
}

func TestCancelReachesASessionAtOnce(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.session(t)
		w.grant(2)
		run, other := s.start(t), s.start(t)
		task, _ := receive(t, "a run", w.tasks), receive(t, "the other", w.tasks)
		began := time.Now()
		if _, err := s.workflows().CancelWorkflow(
			within(t, 20*time.Second), &kagziv1.CancelWorkflowRequest{RunId: run}); err != nil {
			t.Fatal(err)
		}
		told := receive(t, "word of the cancel", w.cancels)
		if took := time.Since(began); took > promptly {
			t.Errorf("word of the cancel took %s", took)
		}
		if told.RunId != run || told.LeaseToken != task.LeaseToken ||
			told.Reason.GetMetadata()["status"] != "CANCELLED" {
			t.Errorf("the worker is told %v", told)
		}
		if a := w.do(w.runDone(task, "")); a.GetError().GetCode() != codeLeaseLost ||
			a.GetError().GetMetadata()["status"] != "CANCELLED" {
			t.Errorf("the end of a cancelled run is answered with %v", a)
		}
		if got := s.get(t, other); got.Status != running {
			t.Errorf("the other run is %s", got.Status)
		}
		wantEmpty(t, "a second word", w.cancels)
	})
}

func TestADrainBySomebodyElse(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.session(t)
		w.grant(5)
		run := s.start(t)
		task := receive(t, "the run", w.tasks)
		if err := drain(t, s, w.id); err != nil {
			t.Fatal(err)
		}
		receive(t, "the drain", w.drains)
		late := s.start(t)
		if a := w.beat(task); !a.GetHeartbeat().GetShouldDrain() || len(a.GetHeartbeat().GetLost()) != 0 {
			t.Errorf("heartbeat while draining = %v", a)
		}
		if a := w.do(w.runDone(task, "in peace")); a.GetCompletedWorkflow() == nil {
			t.Errorf("the end while draining is answered with %v", a)
		}
		wantOutput(t, s.get(t, run), "in peace")
		if got := s.get(t, late); got.Status != pending {
			t.Errorf("a draining worker got a run: %s", got.Status)
		}
		wantEmpty(t, "a run while draining", w.tasks)
		if a := w.do(goodbye(false)); a.GetGoodbye() == nil {
			t.Errorf("goodbye is answered with %v", a)
		}
		if err := receive(t, "the end of the session", w.ended); err != io.EOF {
			t.Errorf("the session ends with %v, want a good end", err)
		}
		worker, err := s.admin().GetWorker(within(t, 20*time.Second), &kagziv1.GetWorkerRequest{WorkerId: w.id})
		if err != nil || worker.Worker.Status != kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE ||
			worker.Worker.DeregisteredAt == nil {
			t.Errorf("after goodbye the worker is %v, %v", worker, err)
		}
	})
}

func goodbye(drain bool) *kagziv1.SessionRequest {
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Goodbye{
		Goodbye: &kagziv1.DeregisterRequest{Drain: drain}}}
}

func TestAWorkerDrainsItself(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.session(t)
		w.grant(5)
		run := s.start(t)
		task := receive(t, "the run", w.tasks)
		if a := w.do(goodbye(true)); !a.GetGoodbye().GetDrained() {
			t.Errorf("goodbye with drain is answered with %v", a)
		}
		late := s.start(t)
		s.get(t, late)
		wantEmpty(t, "a run while draining", w.tasks)
		if a := w.do(w.stepDone(task, "s", "")); a.GetCompletedStep() == nil {
			t.Errorf("a step while draining is answered with %v", a)
		}
		if a := w.do(goodbye(false)); a.GetGoodbye() == nil {
			t.Errorf("goodbye is answered with %v", a)
		}
		receive(t, "the end of the session", w.ended)
		if got := s.get(t, run); got.Status != pending || got.LeaseLosses != 0 {
			t.Errorf("the run that was left is %v, want it due for others and no loss", got)
		}
		wantEmpty(t, "a drain that the worker asked for itself", w.drains)
	})
}

func TestAWorkerThatIsForcedOfflineLosesItsRunsAndItsSession(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.session(t)
		w.grant(5)
		run := s.start(t)
		receive(t, "the run", w.tasks)
		a, err := s.admin().ForceOfflineWorker(within(t, 20*time.Second),
			&kagziv1.ForceOfflineWorkerRequest{WorkerId: w.id})
		if err != nil || a.ReleasedRuns != 1 {
			t.Fatalf("force offline: %v, %v", a, err)
		}
		if told := receive(t, "word of the loss", w.cancels); told.RunId != run {
			t.Errorf("the worker is told %v", told)
		}
		if err := receive(t, "the end of the session", w.ended); status.Code(err) != codes.Unavailable {
			t.Errorf("the session ends with %v, want UNAVAILABLE", err)
		}
		if got := s.get(t, run); got.Status != pending || got.LeaseLosses != 0 {
			t.Errorf("the run is %v, want it due", got)
		}
		worker, err := s.admin().GetWorker(within(t, 20*time.Second), &kagziv1.GetWorkerRequest{WorkerId: w.id})
		if err != nil || worker.Worker.GetOfflineReason() != kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_FORCED {
			t.Errorf("the worker is %v, %v, want it to report that it was deregistered", worker, err)
		}
	})
}

func TestANewSessionOfAWorkerReplacesTheOld(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		same := func(r *kagziv1.RegisterRequest) { r.InstanceId = "instance-1" }
		old := s.session(t, same)
		old.grant(5)
		run := s.start(t)
		task := receive(t, "the run", old.tasks)
		renewed := s.session(t, same)
		if renewed.id != old.id {
			t.Errorf("the instance is %s, then %s", old.id, renewed.id)
		}
		if err := receive(t, "the end of the old session", old.ended); status.Code(err) != codes.Unavailable {
			t.Errorf("the old session ends with %v, want UNAVAILABLE", err)
		}
		if a := renewed.beat(task); len(a.GetHeartbeat().GetLost()) != 0 {
			t.Errorf("the lease is lost: %v", a)
		}
		if a := renewed.do(renewed.runDone(task, "over")); a.GetCompletedWorkflow() == nil {
			t.Errorf("the end is answered with %v", a)
		}
		wantOutput(t, s.get(t, run), "over")
		renewed.grant(1)
		s.start(t)
		receive(t, "the next run", renewed.tasks)
	})
}

func TestHowManyRunsAConnectedWorkerHoldsIsKnownAtOnce(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		same := func(r *kagziv1.RegisterRequest) { r.InstanceId, r.MaxConcurrent = "instance-1", 2 }
		w := s.session(t, same)
		holds := func(when string, want int32) {
			t.Helper()
			one := fine(s.admin().GetWorker(ctx, &kagziv1.GetWorkerRequest{WorkerId: w.id}))(t).Worker
			all := fine(s.admin().ListWorkers(ctx, &kagziv1.ListWorkersRequest{}))(t).Workers
			if one.ActiveWorkflowCount != want || len(all) != 1 || all[0].ActiveWorkflowCount != want {
				t.Errorf("%s the worker holds %d runs, and in the list %v, want %d", when,
					one.ActiveWorkflowCount, all, want)
			}
		}
		holds("at first", 0)
		w.grant(2)
		s.start(t)
		s.start(t)
		first, second := receive(t, "a run", w.tasks), receive(t, "another", w.tasks)
		holds("with both,", 2)
		third := s.start(t)
		why := fine(s.workflows().ExplainWorkflow(ctx, &kagziv1.ExplainWorkflowRequest{RunId: third}))(t)
		if why.Blocker != kagziv1.ExplainWorkflowResponse_BLOCKER_WORKERS_BUSY ||
			!strings.Contains(fmt.Sprint(why.Details), "runs 2 of 2") {
			t.Errorf("a third run is explained by %v", why)
		}
		w.do(w.runDone(first, "over"))
		holds("after the end of one", 1)
		w = s.session(t, same)
		w.beat(second)
		holds("in a new session", 1)
		w.do(w.runDone(second, "over"))
		holds("after both", 0)
	})
}

func TestCancelReachesANewSessionOfTheWorkerAtOnce(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		same := func(r *kagziv1.RegisterRequest) { r.InstanceId = "instance-1" }
		old := s.session(t, same)
		old.grant(2)
		asked, ended := s.start(t), s.start(t)
		first, second := receive(t, "a run", old.tasks), receive(t, "another", old.tasks)
		if first.RunId != asked {
			first, second = second, first
		}
		renewed := s.session(t, same)
		renewed.beat(first, second)
		if _, err := s.workflows().CancelWorkflow(within(t, 20*time.Second), &kagziv1.CancelWorkflowRequest{
			RunId: asked, Grace: durationpb.New(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if told := receive(t, "word of the graceful cancel", renewed.cancels); told.LeaseToken != first.LeaseToken ||
			told.GraceUntil == nil {
			t.Errorf("the worker is told %v", told)
		}
		if _, err := s.workflows().CancelWorkflow(
			within(t, 20*time.Second), &kagziv1.CancelWorkflowRequest{RunId: ended}); err != nil {
			t.Fatal(err)
		}
		if told := receive(t, "word of the cancel", renewed.cancels); told.LeaseToken != second.LeaseToken ||
			told.GraceUntil != nil {
			t.Errorf("the worker is told %v", told)
		}
	})
}

func TestRunsThatAHeartbeatDoesNotNameGoToOthers(t *testing.T) {
	var o Options
	o.Server.HeartbeatInterval = 300 * time.Millisecond
	o.Server.WorkerLease = 2 * time.Second
	eachServer(t, o, func(t *testing.T, s *Server) {
		w := s.session(t)
		w.grant(2)
		lost, kept := s.start(t), s.start(t)
		first, second := receive(t, "a run", w.tasks), receive(t, "another", w.tasks)
		if first.RunId != lost {
			first, second = second, first
		}
		for { // a run is freed a lease after its claim
			a := w.beat(second)
			if a.GetHeartbeat() == nil {
				t.Fatalf("heartbeat = %v", a)
			}
			if s.get(t, lost).Status == pending {
				break
			}
			<-time.After(100 * time.Millisecond)
		}
		if told := receive(t, "word of the loss", w.cancels); told.RunId != lost {
			t.Errorf("the worker is told %v", told)
		}
		if got := s.get(t, lost); got.LeaseLosses != 0 || got.Attempts != 1 {
			t.Errorf("the run is %v, want nothing counted", got)
		}
		if got := s.get(t, kept); got.Status != running {
			t.Errorf("the run that was named is %s", got.Status)
		}
		a := w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Heartbeat{
			Heartbeat: &kagziv1.HeartbeatRequest{
				Held: []*kagziv1.Lease{{RunId: first.RunId, LeaseToken: first.LeaseToken},
					{RunId: second.RunId, LeaseToken: second.LeaseToken}}}}})
		if l := a.GetHeartbeat().GetLost(); len(l) != 1 || l[0].RunId != lost || l[0].LeaseToken != first.LeaseToken {
			t.Errorf("a heartbeat that names the lost run is told %v", a)
		}
	})
}

func TestALongPollEndsWithTheServerAndASessionToo(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		unary, session := s.register(t), s.session(t)
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.TaskQueue = "idle" })
		ended := make(chan error, 4)
		go func() {
			_, err := unary.poll(within(t, 30*time.Second), 20*time.Second)
			ended <- err
		}()
		go func() {
			_, err := s.workflows().WaitWorkflow(within(t, 30*time.Second),
				&kagziv1.WaitWorkflowRequest{RunId: run, Wait: durationpb.New(20 * time.Second)})
			ended <- err
		}()
		watch, err := s.workflows().WatchWorkflow(within(t, 30*time.Second), &kagziv1.WatchWorkflowRequest{RunId: run})
		if err != nil {
			t.Fatal(err)
		}
		stats, err := s.admin().WatchStats(within(t, 30*time.Second),
			&kagziv1.WatchStatsRequest{Interval: durationpb.New(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
		if _, err := stats.Recv(); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- drainStream(watch.Recv) }()
		go func() { ended <- drainStream(stats.Recv) }()
		s.awaitPoller(t)
		began := time.Now()
		s.Stop()
		if took := time.Since(began); took > promptly {
			t.Errorf("the server took %s to stop", took)
		}
		for range 4 {
			if err := receive(t, "the end of a call", ended); status.Code(err) != codes.Unavailable {
				t.Errorf("a call ends with %v, want UNAVAILABLE", err)
			}
		}
		if err := receive(t, "the end of the session", session.ended); status.Code(err) != codes.Unavailable {
			t.Errorf("the session ends with %v, want UNAVAILABLE", err)
		}
		wantEmpty(t, "a drain by a server that only stops", session.drains)
	})
}

func drainStream[T any](recv func() (T, error)) error {
	for {
		if _, err := recv(); err != nil {
			return err
		}
	}
}

func TestAPollThatWasGivenUpTakesNoRun(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		gone, stays := s.register(t), s.register(t)
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := gone.poll(ctx, 20*time.Second)
				ended <- err
			}()
			s.awaitPoller(t)
			cancel()
			if err := receive(t, "the end of the poll", ended); status.Code(err) != codes.Canceled {
				t.Errorf("a poll that was given up ends with %v", err)
			}
			run := s.start(t)
			task := stays.take(t)
			if task.RunId != run {
				t.Errorf("the other worker got %s, want %s", task.RunId, run)
			}
			stays.complete(t, task, "")
		}
	})
}

func TestASessionThatBreaksOffLeavesItsRunsToTheWorker(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		same := func(r *kagziv1.RegisterRequest) { r.InstanceId = "instance-1" }
		w := s.session(t, same)
		w.grant(1)
		run := s.start(t)
		task := receive(t, "the run", w.tasks)
		w.hangUp()
		again := s.session(t, same)
		if a := again.do(again.runDone(task, "after all")); a.GetCompletedWorkflow() == nil {
			t.Errorf("the end is answered with %v", a)
		}
		wantOutput(t, s.get(t, run), "after all")
	})
}

func TestAnOperationThatCannotBeReadIsAnsweredByItsNumber(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.session(t)
		w.grant(1)
		run := s.start(t)
		task := receive(t, "the run", w.tasks)
		// inner is an operation as raw bytes.
		inner := func(number protowire.Number, content []byte) *kagziv1.SessionRequest {
			r := &kagziv1.SessionRequest{}
			r.ProtoReflect().SetUnknown(protowire.AppendBytes(
				protowire.AppendTag(nil, number, protowire.BytesType), content))
			return r
		}
		badName := protowire.AppendString(protowire.AppendTag(nil, 3, protowire.BytesType), "a\xffb") // step_id
		for name, c := range map[string]struct {
			request func() *kagziv1.SessionRequest
			code    kagziv1.ErrorCode
			field   string
		}{
			"text that is no UTF-8": {func() *kagziv1.SessionRequest {
				return inner(6, badName)
			}, codeInvalid, "complete_step.step_id"},
			"no operation": {func() *kagziv1.SessionRequest {
				return &kagziv1.SessionRequest{}
			}, codeInvalid, "operation"},
			"one of a contract to come": {func() *kagziv1.SessionRequest {
				return inner(4242, nil)
			}, codePrecondition, ""},
		} {
			for i := range 20 {
				bad := c.request()
				answer := w.send(bad)
				next := w.stepDone(task, fmt.Sprintf("behind-%d", i), "x")
				next.After = bad.Seq
				behind := w.send(next)
				if e := receive(t, "an answer to "+name, answer).GetError(); e.GetCode() != c.code ||
					e.GetMetadata()["field"] != c.field || e.GetMessage() == "" {
					t.Fatalf("%s is answered with %v", name, e)
				}
				if a := receive(t, "an answer to the one behind it", behind); a.GetError() == nil {
					t.Fatalf("what was built on %s is answered with %v", name, a)
				}
			}
		}
		if a := w.do(w.runDone(task, "done")); a.GetCompletedWorkflow() == nil {
			t.Errorf("the end of the run is answered with %v", a)
		}
		wantOutput(t, s.get(t, run), "done")
	})
}
