package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// chars returns n letters.
func chars(n int) string { return strings.Repeat("n", n) }

func numbered(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("k%d", i)] = "v"
	}
	return m
}

func names(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("n%d", i))
	}
	return list
}

// TestEachLimitHoldsAtItsEdge runs a table: a value at a limit is accepted, one past it is refused
// by name.
func TestEachLimitHoldsAtItsEdge(t *testing.T) {
	type start = kagziv1.StartWorkflowRequest
	type register = kagziv1.RegisterRequest
	large := engine.MaxDelay.Milliseconds()
	starts := []struct {
		field    string
		set      func(r *start, n int)
		at, past int
	}{
		{"namespace", func(r *start, n int) { r.Namespace = chars(n) }, 63, 64},
		{"external_id", func(r *start, n int) { r.ExternalId = chars(n) }, 255, 256},
		{"task_queue", func(r *start, n int) { r.TaskQueue = chars(n) }, 255, 256},
		{"workflow_type", func(r *start, n int) { r.WorkflowType = chars(n) }, 255, 256},
		{"workflow_type", func(r *start, n int) { r.WorkflowType = chars(n) }, 1, 0},
		{"version", func(r *start, n int) { r.Version = chars(n) }, 255, 256},
		{"request_id", func(r *start, n int) { r.RequestId = chars(n) }, 64, 65},
		{"concurrency_key", func(r *start, n int) { r.ConcurrencyKey = chars(n) }, 255, 256},
		{"on_failure_workflow", func(r *start, n int) { r.OnFailureWorkflow = chars(n) }, 255, 256},
		{"on_failure_task_queue", func(r *start, n int) {
			r.OnFailureWorkflow, r.OnFailureTaskQueue = "w", chars(n)
		}, 255, 256},
		{"tags", func(r *start, n int) { r.Tags = numbered(n) }, 32, 33},
		{"tags", func(r *start, n int) { r.Tags = map[string]string{chars(n): ""} }, 63, 64},
		{"tags", func(r *start, n int) { r.Tags = map[string]string{"k": chars(n)} }, 255, 256},
		{"requirements", func(r *start, n int) { r.Requirements = numbered(n) }, 32, 33},
		{"input", func(r *start, n int) { r.Input = &kagziv1.Payload{Data: make([]byte, n)} }, 2 << 20, 2<<20 + 1},
		{"input.metadata", func(r *start, n int) { r.Input = &kagziv1.Payload{Metadata: numbered(n)} }, 32, 33},
		{"priority", func(r *start, n int) { r.Priority = proto.Int32(int32(n)) }, 100, 101},
		{"priority", func(r *start, n int) { r.Priority = proto.Int32(int32(n)) }, -100, -101},
		{"concurrency_limit", func(r *start, n int) {
			r.ConcurrencyKey, r.ConcurrencyLimit = "k", int32(n)
		}, 1_000_000, 1_000_001},
		{"retry_policy.maximum_attempts", func(r *start, n int) {
			r.RetryPolicy = &kagziv1.RetryPolicy{MaximumAttempts: int32(n)}
		}, 10_000, 10_001},
		{"retry_policy.maximum_attempts", func(r *start, n int) {
			r.RetryPolicy = &kagziv1.RetryPolicy{MaximumAttempts: int32(n)}
		}, -1, -2},
		{"retry_policy.initial_interval_ms", func(r *start, n int) {
			r.RetryPolicy = &kagziv1.RetryPolicy{InitialIntervalMs: large + int64(n)}
		}, 0, 1},
		{"retry_policy.non_retryable_errors", func(r *start, n int) {
			r.RetryPolicy = &kagziv1.RetryPolicy{NonRetryableErrors: names(n)}
		}, 64, 65},
		{"timeouts.execution_timeout_ms", func(r *start, n int) {
			r.Timeouts = &kagziv1.TimeoutConfig{ExecutionTimeoutMs: large + int64(n)}
		}, 0, 1},
		{"timeouts.start_to_close_timeout_ms", func(r *start, n int) {
			r.Timeouts = &kagziv1.TimeoutConfig{StartToCloseTimeoutMs: int64(n)}
		}, 1, -1},
		{"start_at", func(r *start, n int) {
			r.StartAt = timestamppb.New(time.Now().Add(engine.MaxDelay + time.Duration(n)*time.Minute))
		}, -1, 1},
		{"start_in", func(r *start, n int) { r.StartIn = durationpb.New(engine.MaxDelay + time.Duration(n)) }, 0, 1},
		{"start_in", func(r *start, n int) { r.StartIn = durationpb.New(time.Duration(n)) }, 0, -1},
		{"deadline_at", func(r *start, n int) {
			r.DeadlineAt = timestamppb.New(time.Now().Add(time.Duration(n) * time.Minute))
		}, 1, -1},
		{"external_id_reuse", func(r *start, n int) { r.ExternalIdReuse = kagziv1.ExternalIdReuse(n) }, 2, 3},
	}
	limits := func(name string, limit, times int) []*kagziv1.WorkflowTypeConcurrency {
		return slices.Repeat([]*kagziv1.WorkflowTypeConcurrency{
			{WorkflowType: name, MaxConcurrent: int32(limit)}}, times)
	}
	registers := []struct {
		field    string
		set      func(r *register, n int)
		at, past int
	}{
		{"worker_id", func(r *register, n int) { r.WorkerId = chars(n) }, 64, 65},
		{"instance_id", func(r *register, n int) { r.InstanceId = chars(n) }, 255, 256},
		{"workflow_types", func(r *register, n int) { r.WorkflowTypes = names(n) }, 256, 257},
		{"workflow_types", func(r *register, n int) { r.WorkflowTypes = names(n) }, 1, 0},
		{"workflow_types", func(r *register, n int) { r.WorkflowTypes = []string{chars(n)} }, 255, 256},
		{"task_queues", func(r *register, n int) { r.TaskQueue, r.TaskQueues = "n0", names(n) }, 64, 65},
		{"hostname", func(r *register, n int) { r.Hostname = chars(n) }, 255, 256},
		{"version", func(r *register, n int) { r.Version = chars(n) }, 255, 256},
		{"platform", func(r *register, n int) { r.Platform = chars(n) }, 255, 256},
		{"labels", func(r *register, n int) { r.Labels = numbered(n) }, 32, 33},
		{"capabilities", func(r *register, n int) { r.Capabilities = numbered(n) }, 1024, 1025},
		{"capabilities", func(r *register, n int) { r.Capabilities = map[string]string{chars(n): ""} }, 63, 64},
		{"capabilities", func(r *register, n int) { r.Capabilities = map[string]string{"k": chars(n)} }, 255, 256},
		{"max_concurrent", func(r *register, n int) { r.MaxConcurrent = int32(n) }, 100_000, 100_001},
		{"pid", func(r *register, n int) { r.Pid = int32(n) }, math.MaxInt32, -1},
		{"queue_concurrency_limit", func(r *register, n int) { r.QueueConcurrencyLimit = proto.Int32(int32(n)) }, 1, 0},
		{"queue_concurrency_limit", func(r *register, n int) {
			r.QueueConcurrencyLimit = proto.Int32(int32(n))
		}, 1_000_000, 1_000_001},
		{"workflow_type_concurrency.max_concurrent", func(r *register, n int) {
			r.WorkflowTypeConcurrency = limits("t", n, 1)
		}, 1, 0},
		{"workflow_type_concurrency.max_concurrent", func(r *register, n int) {
			r.WorkflowTypeConcurrency = limits("t", n, 1)
		}, 1_000_000, 1_000_001},
		{"workflow_type_concurrency.workflow_type", func(r *register, n int) {
			r.WorkflowTypeConcurrency = limits("t", 7, n)
		}, 1, 2},
	}
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		check := func(what, field string, accepted, refused error) {
			t.Helper()
			if accepted != nil {
				t.Errorf("%s %s at its limit: %v", what, field, accepted)
			}
			code := status.Code(refused)
			if code != codes.InvalidArgument && code != codes.ResourceExhausted ||
				detailOf(refused).Metadata["field"] != field {
				t.Errorf("%s %s past its limit: %v naming %q", what, field, refused,
					detailOf(refused).Metadata["field"])
			}
		}
		for _, c := range starts {
			try := func(n int) error {
				r := &start{WorkflowType: "t"}
				c.set(r, n)
				_, err := s.workflows().StartWorkflow(ctx, r)
				return err
			}
			check("start", c.field, try(c.at), try(c.past))
		}
		for _, c := range registers {
			try := func(n int) error {
				r := &register{WorkflowTypes: []string{"t"}}
				c.set(r, n)
				_, err := s.workers().Register(ctx, r)
				return err
			}
			check("register", c.field, try(c.at), try(c.past))
		}

		w := s.register(t, func(r *register) { r.TaskQueue = "q" })
		s.start(t, ofQueue("q"))
		task := w.take(t)
		step := func(name string, size int) error {
			_, err := s.workers().CompleteStep(ctx,
				&kagziv1.CompleteStepRequest{RunId: task.RunId, LeaseToken: task.LeaseToken, StepId: name,
					Output: &kagziv1.Payload{Data: make([]byte, size)}})
			return err
		}
		check("step", "step_id", step(chars(255), 1), step(chars(256), 1))
		check("step", "output", step("large", engine.MaxPayload), step("larger", engine.MaxPayload+1))
		nap := func(d time.Duration) error {
			_, err := s.workers().Sleep(ctx, &kagziv1.SleepRequest{
				RunId: task.RunId, LeaseToken: task.LeaseToken, StepId: "nap" + itoa(int(d)),
				Duration: durationpb.New(d), Hold: true})
			return err
		}
		check("sleep", "duration", nap(time.Millisecond), nap(time.Millisecond-1))
		check("sleep", "duration", nap(engine.MaxDelay), nap(engine.MaxDelay+time.Millisecond))
		wait := func(d time.Duration) error {
			_, err := s.workers().PollTask(ctx, &kagziv1.PollTaskRequest{
				WorkerId: w.id, TaskQueue: "q", WorkflowTypes: []string{"t"}, Wait: durationpb.New(d)})
			return err
		}
		check("poll", "wait", wait(0), wait(-1))
		check("poll", "wait", nil, wait(time.Minute+1))
		most := func(n int32) error {
			_, err := s.workers().PollTask(ctx, &kagziv1.PollTaskRequest{
				WorkerId: w.id, TaskQueue: "q", WorkflowTypes: []string{"t"}, Wait: durationpb.New(0), MaxTasks: n})
			return err
		}
		check("poll", "max_tasks", most(1000), most(1001))
		list := func(n int32) error {
			_, err := s.workflows().ListWorkflows(
				ctx, &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: n}})
			return err
		}
		check("list", "page_size", list(1000), list(1001))
		batch := func(n, size int) error {
			r := &kagziv1.StartWorkflowsRequest{}
			for range n {
				r.Requests = append(r.Requests, &start{
					WorkflowType: "t", Input: &kagziv1.Payload{Data: make([]byte, size)}})
			}
			answer, err := s.workflows().StartWorkflows(ctx, r)
			if err == nil && len(answer.Results) != n {
				err = fmt.Errorf("%d results for %d starts", len(answer.Results), n)
			}
			return err
		}
		check("batch", "requests", batch(1000, 0), batch(1001, 0))
		check("batch", "requests", batch(1, 0), batch(0, 0))
		check("batch", "requests", batch(4, 1_000_000), batch(5, 1_000_000))
	})
}

func TestARunRecordsNoMoreThanItsLimit(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run := s.start(t)
		w := s.register(t)
		task := w.take(t)
		recorded := 0
		for i := 0; ; i++ {
			_, err := s.workers().CompleteStep(ctx, &kagziv1.CompleteStepRequest{
				RunId: run, LeaseToken: task.LeaseToken, StepId: "s" + itoa(i),
				Output: &kagziv1.Payload{Data: make([]byte, engine.MaxPayload)}})
			if err != nil {
				if status.Code(err) != codes.ResourceExhausted {
					t.Errorf("the step past the limit: %v, want RESOURCE_EXHAUSTED", err)
				}
				break
			}
			recorded += engine.MaxPayload
			if recorded > engine.MaxRunBytes {
				t.Fatalf("%d bytes are recorded, want %d at most", recorded, engine.MaxRunBytes)
			}
		}
		if recorded < engine.MaxRunBytes-engine.MaxPayload-100 {
			t.Errorf("%d bytes are recorded when it is refused, want nearly %d", recorded, engine.MaxRunBytes)
		}
		w.complete(t, task, "in the end")
		wantOutput(t, s.get(t, run), "in the end")
	})
}
