package e2e

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAKeyOfOneWorkerActsAsNoOther(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		root := s.lock(t)
		ctx := within(t, time.Minute)
		made, secret := root.key(t, &kagziv1.Key{Name: "edge", Role: worker, Namespaces: []string{"default"},
			WorkerIds: []string{"worker-002", "spare-*"}})
		edge := root.as(t, secret)
		if list := fine(root.admin().ListKeys(ctx, &kagziv1.ListKeysRequest{}))(t).Keys; !proto.Equal(list[0], made) ||
			strings.Join(made.WorkerIds, " ") != "worker-002 spare-*" {
			t.Errorf("made %v, listed %v", made, list[0])
		}
		named := func(id string) func(*kagziv1.RegisterRequest) {
			return func(r *kagziv1.RegisterRequest) { r.WorkerId = id }
		}
		denied := func(what string, err error, words ...string) {
			t.Helper()
			for _, w := range append(words, `the API key "edge" is for the worker ids worker-002, spare-*`) {
				wantRefused(t, what, err, codes.PermissionDenied, kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED, w)
			}
		}
		const not = `not for "worker-001"`

		first := root.register(t, named("worker-001"))
		root.start(t)
		task := first.take(t)
		_, err := edge.workers().Register(ctx, &kagziv1.RegisterRequest{WorkflowTypes: []string{"t"}})
		denied("a registration that leaves the id to the server", err, "must choose its id")
		for what, id := range map[string]string{"as a live worker": "worker-001", "as nobody yet": "worker-003"} {
			r := &kagziv1.RegisterRequest{WorkflowTypes: []string{"t"}, WorkerId: id}
			_, err = edge.workers().Register(ctx, r)
			denied("a registration "+what, err, `not for "`+id+`"`)
			stream := fine(edge.workers().Session(ctx))(t)
			if err := stream.Send(&kagziv1.SessionRequest{
				Seq: 1, Operation: &kagziv1.SessionRequest_Hello{Hello: r}}); err != nil {
				t.Fatal(err)
			}
			_, err = stream.Recv()
			denied("a session "+what, err, `not for "`+id+`"`)
		}
		_, err = edge.workers().PollTask(ctx, &kagziv1.PollTaskRequest{
			WorkerId: "worker-001", WorkflowTypes: []string{"t"}, Wait: durationpb.New(0)})
		denied("a poll", err, not)
		_, err = edge.workers().Heartbeat(ctx, &kagziv1.HeartbeatRequest{WorkerId: "worker-001"})
		denied("a heartbeat", err, not)
		_, err = edge.workers().Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: "worker-001"})
		denied("a goodbye", err, not)
		_, err = edge.workers().GetHistory(ctx, &kagziv1.GetHistoryRequest{RunId: task.RunId})
		denied("a history", err, not)
		run, token := task.RunId, task.LeaseToken
		for what, call := range map[string]func() error{
			"BeginStep": func() error {
				_, err := edge.workers().BeginStep(ctx, &kagziv1.BeginStepRequest{RunId: run, LeaseToken: token,
					StepName: "a"})
				return err
			},
			"CompleteStep": func() error {
				_, err := edge.workers().CompleteStep(ctx, &kagziv1.CompleteStepRequest{RunId: run, LeaseToken: token,
					StepId: "a"})
				return err
			},
			"FailStep": func() error {
				_, err := edge.workers().FailStep(ctx, &kagziv1.FailStepRequest{RunId: run, LeaseToken: token,
					StepId: "a"})
				return err
			},
			"Sleep": func() error {
				_, err := edge.workers().Sleep(ctx, &kagziv1.SleepRequest{RunId: run, LeaseToken: token, StepId: "a"})
				return err
			},
			"AwaitSignal": func() error {
				_, err := edge.workers().AwaitSignal(ctx, &kagziv1.AwaitSignalRequest{RunId: run, LeaseToken: token,
					StepName: "a", SignalName: "s"})
				return err
			},
			"StartChild": func() error {
				_, err := edge.workers().StartChild(ctx, &kagziv1.StartChildRequest{LeaseToken: token, StepName: "a",
					Child: &kagziv1.StartWorkflowRequest{ParentRunId: run, WorkflowType: "t"}})
				return err
			},
			"AwaitChildren": func() error {
				_, err := edge.workers().AwaitChildren(ctx, &kagziv1.AwaitChildrenRequest{RunId: run,
					LeaseToken: token, ChildRunIds: []string{run}})
				return err
			},
			"CompleteWorkflow": func() error {
				_, err := edge.workers().CompleteWorkflow(ctx, &kagziv1.CompleteWorkflowRequest{RunId: run,
					LeaseToken: token})
				return err
			},
			"FailWorkflow": func() error {
				_, err := edge.workers().FailWorkflow(ctx, &kagziv1.FailWorkflowRequest{RunId: run, LeaseToken: token})
				return err
			},
			"ReleaseTask": func() error {
				_, err := edge.workers().ReleaseTask(ctx, &kagziv1.ReleaseTaskRequest{RunId: run, LeaseToken: token})
				return err
			},
			"SetRunNote": func() error {
				_, err := edge.workers().SetRunNote(ctx, &kagziv1.SetNote{RunId: run, LeaseToken: token, Note: "x"})
				return err
			},
		} {
			denied(what+" with the token of worker-001", call(), not)
		}

		own := edge.session(t, named("spare-9"))
		answer := own.do(own.stepDone(task, "a", "1"))
		if e := answer.GetError(); e.GetCode() != kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED ||
			!strings.Contains(e.GetMessage(), not) {
			t.Errorf("a step over a session with the token of worker-001 is answered with %v", answer)
		}
		first.complete(t, task, "done")
		_, err = edge.workers().CompleteWorkflow(ctx, &kagziv1.CompleteWorkflowRequest{RunId: run, LeaseToken: token})
		wantRefused(t, "a late write with it", err, codes.FailedPrecondition,
			kagziv1.ErrorCode_ERROR_CODE_CONFLICT, "reported result")

		// It does what it is for, over a session and with unary calls.
		fine(root.workers().Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: "worker-001"}))(t)
		own.grant(1)
		run = root.start(t)
		got := receive(t, "a task", own.tasks)
		own.do(own.stepDone(got, "a", "1"))
		own.do(own.runDone(got, "2"))
		wantOutput(t, root.await(t, run), "2")
		second := edge.register(t, named("worker-002"))
		run = root.start(t)
		got = second.take(t)
		fine(second.workers().Heartbeat(ctx, &kagziv1.HeartbeatRequest{WorkerId: second.id, HeldIsWhole: true,
			Held: []*kagziv1.Lease{{RunId: run, LeaseToken: got.LeaseToken}}}))(t)
		second.completeStep(t, got, "a", "1")
		second.complete(t, got, "3")
		wantOutput(t, root.await(t, run), "3")

		for id, words := range map[string]string{
			"": "1 to 64", strings.Repeat("w", 65): "1 to 64", "a.b": "letters, digits and _ - *"} {
			_, err := root.admin().CreateKey(ctx, &kagziv1.CreateKeyRequest{Key: &kagziv1.Key{
				Name: "k", Role: worker, Namespaces: []string{"default"}, WorkerIds: []string{id}}})
			wantRefused(t, "a worker id "+id, err, codes.InvalidArgument,
				kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, "key.worker_ids")
			wantRefused(t, "a worker id "+id, err, codes.InvalidArgument,
				kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, words)
		}
		_, err = root.admin().CreateKey(ctx, &kagziv1.CreateKeyRequest{Key: &kagziv1.Key{
			Name: "k", Role: client, Namespaces: []string{"default"}, WorkerIds: []string{"w"}}})
		wantRefused(t, "a client's key for a worker", err, codes.InvalidArgument,
			kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, "only a worker's key")
	})
}
