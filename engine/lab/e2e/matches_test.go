package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestMatchWorkersSaysWhoCanRunARun(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		one := int32(1)
		for id, change := range map[string]func(r *kagziv1.RegisterRequest){
			"free":    func(r *kagziv1.RegisterRequest) { r.Capabilities = map[string]string{"gpu": "a100"} },
			"no-gpu":  func(*kagziv1.RegisterRequest) {},
			"limited": func(r *kagziv1.RegisterRequest) { r.TaskQueue, r.QueueConcurrencyLimit = "small", &one },
			"gone":    func(*kagziv1.RegisterRequest) {},
		} {
			s.register(t, func(r *kagziv1.RegisterRequest) {
				r.WorkerId, r.TaskQueue, r.WorkflowTypes, r.BuildId = id, "q", []string{"t"}, "b-"+id
				change(r)
			})
		}
		fine(s.admin().ForceOfflineWorker(ctx, &kagziv1.ForceOfflineWorkerRequest{WorkerId: "gone"}))(t)
		ask := func(r *kagziv1.MatchWorkersRequest) (lines []string) {
			t.Helper()
			for _, m := range fine(s.admin().MatchWorkers(ctx, r))(t).Matches {
				lines = append(lines, fmt.Sprintf("%s %s %t %t %s", m.Worker.WorkerId, m.Worker.BuildId, m.CanRun, m.Busy,
					m.Reason))
			}
			slices.Sort(lines)
			return lines
		}
		want := func(what string, got []string, want ...string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s:\n%q, want\n%q", what, got, want)
			}
		}
		gpu := map[string]string{"gpu": ""}
		answers := []string{"free b-free true false ",
			"limited b-limited false false does not serve queue q: it serves small",
			"no-gpu b-no-gpu false false does not offer gpu"}
		want("a type", ask(&kagziv1.MatchWorkersRequest{WorkflowType: "t", TaskQueue: "q", Requirements: gpu}), answers...)
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.WorkflowType, r.TaskQueue, r.Requirements = "t", "q", gpu
		})
		want("a run", ask(&kagziv1.MatchWorkersRequest{RunId: run}), answers...)
		want("a shortened id", ask(&kagziv1.MatchWorkersRequest{RunId: run[:20]}), answers...)

		s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.WorkflowType, r.TaskQueue = "t", "small" })
		limited := &unaryWorker{Server: s, id: "limited"}
		task := fine(s.workers().PollTask(ctx, &kagziv1.PollTaskRequest{WorkerId: limited.id, TaskQueue: "small",
			WorkflowTypes: []string{"t"}}))(t)
		if task.RunId == "" {
			t.Fatal("no run was claimed")
		}
		want("a queue that is full", ask(&kagziv1.MatchWorkersRequest{WorkflowType: "t", TaskQueue: "small"}),
			"free b-free false false does not serve queue small: it serves q",
			"limited b-limited true true has to wait: 1 of at most 1 runs of its queue are running",
			"no-gpu b-no-gpu false false does not serve queue small: it serves q")

		for name, c := range map[string]struct {
			request *kagziv1.MatchWorkersRequest
			code    codes.Code
		}{
			"a run and a type": {&kagziv1.MatchWorkersRequest{RunId: run, WorkflowType: "t"}, codes.InvalidArgument},
			"nothing":          {&kagziv1.MatchWorkersRequest{}, codes.InvalidArgument},
			"an unknown run": {&kagziv1.MatchWorkersRequest{RunId: "0199a000-0000-7000-8000-00000000000f"},
				codes.NotFound},
		} {
			if _, err := s.admin().MatchWorkers(ctx, c.request); status.Code(err) != c.code {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
		}
	})
}
