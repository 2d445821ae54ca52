package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// edge is a limit: a value at it, and one past it.
type edge struct {
	what     string
	field    string
	try      func(n int) error
	at, past int
}

// holds requires that the value at the limit is accepted, and the one past it refused by name.
func (e edge) holds(t *testing.T) {
	t.Helper()
	if err := e.try(e.at); err != nil {
		t.Errorf("%s %s at its limit: %v", e.what, e.field, err)
	}
	err := e.try(e.past)
	if code := status.Code(err); code != codes.InvalidArgument && code != codes.ResourceExhausted ||
		detailOf(err).Metadata["field"] != e.field {
		t.Errorf("%s %s past its limit: %v naming %q", e.what, e.field, err, detailOf(err).Metadata["field"])
	}
}

// cronOf returns an expression of exactly n bytes.
func cronOf(n int) string {
	expr := strings.Repeat("0,", (n-9)/2) + "0 * * * *"
	return strings.Repeat("0", n-len(expr)) + expr
}

func TestEachLimitOfAScheduleHoldsAtItsEdge(t *testing.T) {
	type create = kagziv1.CreateWorkflowScheduleRequest
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		made := func(change func(r *create, n int)) func(n int) error {
			return func(n int) error {
				r := &create{WorkflowType: "t", TaskQueue: "idle", CronExpr: "@yearly"}
				change(r, n)
				return second(s.schedules().CreateWorkflowSchedule(ctx, r))
			}
		}
		there := s.schedule(t, func(r *create) { r.CronExpr = "@yearly" }).ScheduleId
		updated := func(change func(r *kagziv1.UpdateWorkflowScheduleRequest, n int)) func(n int) error {
			return func(n int) error {
				r := &kagziv1.UpdateWorkflowScheduleRequest{ScheduleId: there}
				change(r, n)
				return second(s.schedules().UpdateWorkflowSchedule(ctx, r))
			}
		}
		for _, e := range []edge{
			{"create", "cron_expr", made(func(r *create, n int) { r.CronExpr = cronOf(n) }), 256, 257},
			{"create", "max_catchup", made(func(r *create, n int) { r.MaxCatchup = proto.Int32(int32(n)) }),
				100_000, 100_001},
			{"create", "max_catchup", made(func(r *create, n int) { r.MaxCatchup = proto.Int32(int32(n)) }), 0, -1},
			{"create", "name", made(func(r *create, n int) { r.Name = chars(n) }), 255, 256},
			{"create", "request_id", made(func(r *create, n int) { r.RequestId = chars(n) }), 64, 65},
			{"create", "workflow_type", made(func(r *create, n int) { r.WorkflowType = chars(n) }), 255, 256},
			{"create", "task_queue", made(func(r *create, n int) { r.TaskQueue = chars(n) }), 255, 256},
			{"create", "version", made(func(r *create, n int) { r.Version = ptr(chars(n)) }), 255, 256},
			{"create", "tags", made(func(r *create, n int) { r.Tags = numbered(n) }), 32, 33},
			{"create", "input", made(func(r *create, n int) { r.Input = &kagziv1.Payload{Data: make([]byte, n)} }),
				engine.MaxPayload, engine.MaxPayload + 1},
			{"create", "overlap_policy", made(func(r *create, n int) {
				r.OverlapPolicy = kagziv1.OverlapPolicy(n)
			}), 3, 4},
			{"create", "retry_policy.maximum_attempts",
				made(func(r *create, n int) { r.RetryPolicy = &kagziv1.RetryPolicy{MaximumAttempts: int32(n)} }),
				10_000, 10_001},
			{"create", "timeouts.execution_timeout_ms", made(func(r *create, n int) {
				r.Timeouts = &kagziv1.TimeoutConfig{ExecutionTimeoutMs: engine.MaxDelay.Milliseconds() + int64(n)}
			}), 0, 1},
			{"update", "cron_expr", updated(func(r *kagziv1.UpdateWorkflowScheduleRequest, n int) {
				r.CronExpr = ptr(cronOf(n))
			}), 256, 257},
			{"update", "max_catchup", updated(func(r *kagziv1.UpdateWorkflowScheduleRequest, n int) {
				r.MaxCatchup = proto.Int32(int32(n))
			}), 100_000, 100_001},
			{"update", "reason", updated(func(r *kagziv1.UpdateWorkflowScheduleRequest, n int) { r.Reason = chars(n) }),
				1024, 1025},
			{"update", "tags", updated(func(r *kagziv1.UpdateWorkflowScheduleRequest, n int) {
				r.Tags = &kagziv1.ScheduleTags{Tags: numbered(n)}
			}), 32, 33},
			{"preview", "count", func(n int) error {
				return second(s.schedules().PreviewSchedule(
					ctx, &kagziv1.PreviewScheduleRequest{CronExpr: "@daily", Count: int32(n)}))
			}, 100, 101},
		} {
			e.holds(t)
		}
	})
}

func TestEachLimitAroundARunHoldsAtItsEdge(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		run := s.start(t)
		task := w.take(t)
		idle := s.start(t, ofQueue("idle"))
		steps := 0
		name := func() string { steps++; return fmt.Sprint("step-", steps) }
		await := func(step, signal string, limit time.Duration) error {
			r := &kagziv1.AwaitSignalRequest{RunId: run, LeaseToken: task.LeaseToken, StepName: step,
				SignalName: signal, Hold: true}
			if limit != 0 {
				r.Timeout = durationpb.New(limit)
			}
			return second(s.workers().AwaitSignal(ctx, r))
		}
		child := func(change func(*kagziv1.StartChildRequest)) error {
			r := &kagziv1.StartChildRequest{LeaseToken: task.LeaseToken, StepName: name(),
				Child: &kagziv1.StartWorkflowRequest{WorkflowType: "t", TaskQueue: "idle", ParentRunId: run}}
			change(r)
			return second(s.workers().StartChild(ctx, r))
		}
		space := func(change func(*kagziv1.CreateNamespaceRequest)) error {
			r := &kagziv1.CreateNamespaceRequest{Namespace: "space-" + name()}
			change(r)
			return second(s.namespaces().CreateNamespace(ctx, r))
		}
		for _, e := range []edge{
			{"pause", "reason", func(n int) error {
				return second(s.workflows().PauseWorkflow(
					ctx, &kagziv1.PauseWorkflowRequest{RunId: idle, Reason: chars(n)}))
			}, 1024, 1025},
			{"pin", "reason", func(n int) error {
				return second(s.workflows().PinWorkflow(
					ctx, &kagziv1.PinWorkflowRequest{RunId: idle, Reason: chars(n)}))
			}, 1024, 1025},
			{"signal", "name", func(n int) error {
				return second(s.workflows().SignalWorkflow(
					ctx, &kagziv1.SignalWorkflowRequest{RunId: idle, Name: chars(n)}))
			}, 255, 256},
			{"signal", "signal_id", func(n int) error {
				return second(s.workflows().SignalWorkflow(
					ctx, &kagziv1.SignalWorkflowRequest{RunId: idle, Name: "s", SignalId: chars(n)}))
			}, 255, 256},
			{"signal", "payload", func(n int) error {
				return second(s.workflows().SignalWorkflow(
					ctx, &kagziv1.SignalWorkflowRequest{
						RunId: idle, Name: "s", Payload: &kagziv1.Payload{Data: make([]byte, n)}}))
			}, engine.MaxPayload, engine.MaxPayload + 1},
			{"cancel", "grace", func(n int) error {
				return second(s.workflows().CancelWorkflow(
					ctx, &kagziv1.CancelWorkflowRequest{
						RunId: idle, Grace: durationpb.New(engine.MaxDelay + time.Duration(n))}))
			}, 0, 1},
			{"await", "step_name", func(n int) error { return await(chars(n), "s", 0) }, 255, 256},
			{"await", "signal_name", func(n int) error { return await(name(), chars(n), 0) }, 255, 256},
			{"await", "timeout", func(n int) error {
				return await(name(), "s", time.Duration(n))
			}, int(time.Millisecond), int(time.Millisecond) - 1},
			{"await", "timeout", func(n int) error {
				return await(name(), "s", engine.MaxDelay+time.Duration(n))
			}, 0, 1},
			{"note", "note", func(n int) error {
				return second(s.workers().SetRunNote(
					ctx, &kagziv1.SetNote{RunId: run, LeaseToken: task.LeaseToken, Note: chars(n)}))
			}, 255, 256},
			{"child", "step_name", func(n int) error {
				return child(func(r *kagziv1.StartChildRequest) { r.StepName = "k" + chars(n-1) })
			}, 255, 256},
			{"child", "child.external_id", func(n int) error {
				return child(func(r *kagziv1.StartChildRequest) { r.Child.ExternalId = chars(n) })
			}, 255, 256},
			{"child", "child.tags", func(n int) error {
				return child(func(r *kagziv1.StartChildRequest) { r.Child.Tags = numbered(n) })
			}, 32, 33},
			{"child", "parent_close_policy", func(n int) error {
				return child(func(r *kagziv1.StartChildRequest) { r.ParentClosePolicy = kagziv1.ParentClosePolicy(n) })
			}, 3, 4},
			{"namespace", "namespace", func(n int) error {
				return space(func(r *kagziv1.CreateNamespaceRequest) { r.Namespace = chars(n) })
			}, 63, 64},
			{"namespace", "display_name", func(n int) error {
				return space(func(r *kagziv1.CreateNamespaceRequest) { r.DisplayName = chars(n) })
			}, 255, 256},
			{"namespace", "description", func(n int) error {
				return space(func(r *kagziv1.CreateNamespaceRequest) { r.Description = ptr(chars(n)) })
			}, 1024, 1025},
			{"namespace", "retention", func(n int) error {
				return space(func(r *kagziv1.CreateNamespaceRequest) {
					r.Retention = durationpb.New(time.Minute + time.Duration(n))
				})
			}, 0, -1},
			{"namespace", "keep", func(n int) error {
				return space(func(r *kagziv1.CreateNamespaceRequest) {
					r.Keep = map[string]*durationpb.Duration{
						"failed": durationpb.New(engine.MaxDelay + time.Duration(n))}
				})
			}, 0, 1},
			{"namespace", "failure_task_queue", func(n int) error {
				return space(func(r *kagziv1.CreateNamespaceRequest) { r.FailureTaskQueue = chars(n) })
			}, 255, 256},
			{"bulk", "limit", func(n int) error {
				return s.bulkNothing(ctx, &kagziv1.BulkWorkflowsRequest{Limit: int64(n)})
			}, 0, -1},
			{"bulk", "reason", func(n int) error {
				return s.bulkNothing(ctx, &kagziv1.BulkWorkflowsRequest{Reason: chars(n)})
			}, 1024, 1025},
			{"terminate", "reason", func(n int) error {
				return second(s.workflows().TerminateWorkflow(
					ctx, &kagziv1.TerminateWorkflowRequest{RunId: s.start(t, ofQueue("idle")), Reason: chars(n)}))
			}, 1024, 1025},
			{"override", "reason", func(n int) error {
				return second(s.workflows().OverrideStep(
					ctx, &kagziv1.OverrideStepRequest{RunId: s.overridable(t), StepName: "s", Reason: chars(n),
						Result: &kagziv1.OverrideStepRequest_Output{}}))
			}, 1024, 1025},
			{"retry", "reason", func(n int) error {
				return second(s.workflows().RetryWorkflow(
					ctx, &kagziv1.RetryWorkflowRequest{RunId: idle, Reason: chars(n)}))
			}, 1024, 1025},
			{"retry", "request_id", func(n int) error {
				return second(s.workflows().RetryWorkflow(
					ctx, &kagziv1.RetryWorkflowRequest{RunId: idle, RequestId: chars(n)}))
			}, 64, 65},
			{"retry", "input", func(n int) error {
				return second(s.workflows().RetryWorkflow(
					ctx, &kagziv1.RetryWorkflowRequest{
						RunId: idle, Restart: true, Input: &kagziv1.Payload{Data: make([]byte, n)}}))
			}, engine.MaxPayload, engine.MaxPayload + 1},
		} {
			e.holds(t)
		}
	})
}

// bulkNothing cancels no run.
func (s *Server) bulkNothing(ctx context.Context, r *kagziv1.BulkWorkflowsRequest) error {
	r.Action, r.Filter = kagziv1.BulkAction_BULK_ACTION_CANCEL,
		&kagziv1.ListWorkflowsRequest{Tags: map[string]string{"no": "run"}}
	stream, err := s.workflows().BulkWorkflows(ctx, r)
	if err != nil {
		return err
	}
	return second(stream.Recv())
}

// overridable returns a failed run that completed a step "s".
func (s *Server) overridable(t testing.TB) string {
	t.Helper()
	run := s.start(t, ofQueue("overridable"))
	w := s.register(t, func(r *kagziv1.RegisterRequest) { r.TaskQueue = "overridable" })
	task := w.take(t)
	w.completeStep(t, task, "s", "x")
	w.failFor(t, task, "x")
	return run
}

func TestNoMoreSignalsWaitForARunThanTheLimit(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		now := s.Store.Now()
		run := engine.ImportedRun{Run: engine.Run{
			ID: engine.NewID(now), Namespace: "default", Queue: "default", Type: "t", Status: engine.RunPending,
			Attempts: 1, CreatedAt: now}}
		for i := 1; i < engine.MaxSignals; i++ {
			run.Signals = append(run.Signals, engine.Signal{Sequence: int64(i), Name: "s", ReceivedAt: now})
		}
		id := fine(s.Store.ImportRuns(ctx, engine.ImportRunsParams{
			Namespace: "default", Runs: []engine.ImportedRun{run}, AuditID: engine.NewID(now), Now: now}))(
			t).RunID.String()
		send := func(id, signal string) error {
			return second(s.workflows().SignalWorkflow(
				ctx, &kagziv1.SignalWorkflowRequest{RunId: id, Name: "s", SignalId: signal}))
		}
		if err := send(id, "last"); err != nil {
			t.Errorf("signal %d: %v", engine.MaxSignals, err)
		}
		wantRefused(t, "one signal more", send(id, "more"), codes.ResourceExhausted,
			kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED, "10000")
		if err := send(id, "last"); err != nil {
			t.Errorf("a signal that was delivered before: %v", err)
		}
		fine(s.workflows().ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{RunId: id}))(t)
		w := s.register(t)
		task := w.take(t)
		fine(s.workers().AwaitSignal(ctx, &kagziv1.AwaitSignalRequest{
			RunId: id, LeaseToken: task.LeaseToken, StepName: "s", SignalName: "s"}))(t)
		if err := send(id, "more"); err != nil {
			t.Errorf("after one was taken: %v", err)
		}
		wantRefused(t, "one signal more", send(id, "too-many"), codes.ResourceExhausted,
			kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED, "10000")
	})
}
