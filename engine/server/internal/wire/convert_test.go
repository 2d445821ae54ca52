package wire

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestEachFieldOfARunIsSent(t *testing.T) {
	servertest.WantEachFieldSent(t, map[string]string{
		"RequestID":    "the caller knows it",
		"Bytes":        "counts for the limit only",
		"Traceparent":  "goes to the worker, with the task",
		"Gated":        "ExplainWorkflow says it",
		"HeldAt":       "it wakes up at no moment while it is held",
		"CancelReason": "goes to the worker, and is the error in the end",
		"Origin":       "the other fields say it",
		"Suspect":      "ExplainWorkflow says it",

		"ConcurrencyScope": "TestScopesRoundTrip",
	}, func(r *engine.Run) proto.Message { return RunTo(r) })
}

func TestEachFieldOfAStepIsSent(t *testing.T) {
	servertest.WantEachFieldSent(t, map[string]string{
		"Failures":    "part of AttemptNumber",
		"Token":       "a secret of the worker's",
		"Duration":    "WakeAt says it",
		"RetryPolicy": "the contract has no field for it in Step",
		"Awaited":     "WaitingFor of the run says it",
	}, func(s *engine.Step) proto.Message { return StepTo("", s) })
}

func TestEachFieldOfASignalIsSent(t *testing.T) {
	servertest.WantEachFieldSent(t, map[string]string{"RunID": "the caller named it"},
		func(s *engine.Signal) proto.Message { return SignalTo(s) })
}

func TestEachFieldOfAScheduleIsSent(t *testing.T) {
	servertest.WantEachFieldSent(t, map[string]string{
		"ConcurrencyScope": "TestScopesRoundTrip",

		"RequestID": "the caller knows it",
		"Revision":  "a matter between this server and the store",
		"Delay":     "part of next_run_at, TestJitterIsShownWithTheNextRun",
	}, func(s *engine.Schedule) proto.Message { return ScheduleTo(s) })
}

func TestScopesRoundTrip(t *testing.T) {
	for _, scope := range []engine.ConcurrencyScope{engine.ScopeSlot, engine.ScopeOpen} {
		run := RunTo(&engine.Run{ConcurrencyKey: "k", ConcurrencyScope: scope})
		schedule := ScheduleTo(&engine.Schedule{ConcurrencyKey: "k", ConcurrencyScope: scope})
		got, err := ScopeOf(run.ConcurrencyScope)
		if err != nil || got != scope || schedule.ConcurrencyScope != run.ConcurrencyScope ||
			run.ConcurrencyScope.String() != "CONCURRENCY_SCOPE_"+scope.String() {
			t.Errorf("scope %s is sent as %s and read as %s, %v", scope, run.ConcurrencyScope, got, err)
		}
	}
	if sent := RunTo(&engine.Run{}).ConcurrencyScope; sent != kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_UNSPECIFIED {
		t.Errorf("a run without a key has the scope %s", sent)
	}
	_, err := ScopeOf(3)
	if err == nil || !strings.Contains(err.Error(), "concurrency_scope: has the unknown value 3") {
		t.Errorf("an unknown scope: %v", err)
	}
}

func TestEachFieldOfANamespaceIsSent(t *testing.T) {
	servertest.WantEachFieldSent(t, map[string]string{"Keep": "TestKeepRoundTrips"},
		func(n *engine.Namespace) proto.Message { return NamespaceTo(n) })
}

func TestEachFieldOfAnAuditEventIsSent(t *testing.T) {
	servertest.WantEachFieldSent(t, map[string]string{"ID": "the contract has no field for it in AuditEvent"},
		func(e *engine.AuditEvent) proto.Message { return AuditTo(e) })
}

func TestEachFieldOfAWorkerIsSent(t *testing.T) {
	servertest.WantEachFieldSent(t, map[string]string{
		"InstanceID": "the worker's own; it takes ids over",
	}, func(w *engine.Worker) proto.Message { return WorkerTo(w) })
	hidden := map[string]string{"Blocked": "ExplainWorkflow shows it"}
	servertest.WantEachFieldSent(t, hidden, func(s *engine.WorkerStats) proto.Message {
		return cmp.Or(WorkerTo(&engine.Worker{Stats: *s}).Stats, &kagziv1.WorkerStats{})
	})
}

func TestEachFieldOfAKeyIsSentButForTheHash(t *testing.T) {
	servertest.WantEachFieldSent(t, map[string]string{"Hash": "of no use to anybody but the server"},
		func(k *engine.APIKey) proto.Message { return KeyTo(k) })
}

func TestEachFieldOfATypeIsSent(t *testing.T) {
	servertest.WantEachFieldSent(t, nil, func(i *engine.TypeInfo) proto.Message { return TypeTo(i) })
}

func TestATaskCarriesWhatAWorkerNeeds(t *testing.T) {
	var run engine.Run
	n := 0
	servertest.Fill(reflect.ValueOf(&run).Elem(), &n)
	now := time.Now()
	lease := engine.Lease{Token: engine.NewToken()}
	base := engine.NewToken()
	task := TaskTo(&engine.Task{Run: run, Lease: lease, Base: base, ClaimedAt: now, NextSequence: 7,
		History: []engine.Step{{Name: "s"}}}, time.Minute)
	if task.LeaseToken != lease.Token.Wire() || task.Base != base.Wire() || task.NextHistoryToken != "7" || len(task.History) != 1 ||
		task.RunId != run.ID.String() ||
		task.Traceparent != run.Traceparent || task.Attempt != int32(run.Attempt()) ||
		!task.DeadlineAt.AsTime().Equal(run.DeadlineAt) ||
		string(task.Input.Data) != string(run.Input.Data) || task.GetParentRunId() != run.ParentRunID.String() ||
		task.GetScheduleId() != run.ScheduleID || !task.ScheduledAt.AsTime().Equal(run.ScheduledAt) ||
		task.GetFailedRunId() != run.FailedRunID.String() ||
		!task.CancelRequested || !task.CancelGraceUntil.AsTime().Equal(run.GraceUntil) ||
		task.CancelReason.Message != run.CancelReason {
		t.Errorf("task = %v", task)
	}
	for fields, i := task.ProtoReflect().Descriptor().Fields(), 0; i < fields.Len(); i++ {
		if !task.ProtoReflect().Has(fields.Get(i)) {
			t.Errorf("the task does not say its %s", fields.Get(i).Name())
		}
	}
	if limit := RunTo(&run).GetTimeoutMs(); limit != run.Timeouts.Execution.Milliseconds() {
		t.Errorf("a run with a limit of %s says %d ms", run.Timeouts.Execution, limit)
	}
	if RunTo(&engine.Run{}).TimeoutMs != nil {
		t.Error("a run without a limit names one")
	}
	run.CancelRequestedAt = time.Time{}
	if task := TaskTo(&engine.Task{Run: run}, time.Minute); task.CancelRequested || task.CancelReason != nil {
		t.Errorf("nobody has asked for an end, but the task says %v", task)
	}
	run.Timeouts.Heartbeat = time.Hour
	longer := TaskTo(&engine.Task{Run: run, ClaimedAt: now}, time.Minute)
	if got := longer.LeaseExpiresAt.AsTime().Sub(now); got != time.Hour {
		t.Errorf("a run with a heartbeat timeout of an hour is leased for %s", got)
	}
}

func TestEachFieldOfAReportedFailureIsKeptAndToldToItsHandler(t *testing.T) {
	reported := &kagziv1.ErrorDetail{}
	servertest.FillAll(reported.ProtoReflect())
	reported.Code = kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND
	failure, err := FailureOf(reported)
	if kept := FailureTo(&failure); err != nil || !proto.Equal(kept, reported) {
		t.Errorf("kept = %v, %v, want %v", kept, err, reported)
	}
	run := engine.Run{ID: engine.NewID(time.Now()), Status: engine.RunFailed, Error: &failure, FinishedAt: time.Now()}
	handler := engine.HandlerOf(&run, "mourn", "q", false, time.Now())
	var event kagziv1.WorkflowFailedEvent
	if err := protojson.Unmarshal(handler.Input.Data, &event); err != nil || !proto.Equal(event.Error, reported) {
		t.Errorf("the handler is told %v, %v, want %v", event.Error, err, reported)
	}
}

func TestFailuresPoliciesTimeoutsAndPayloadsRoundTrip(t *testing.T) {
	n := 0
	var f engine.Failure
	servertest.Fill(reflect.ValueOf(&f).Elem(), &n)
	f.Code = engine.FailureTimeout
	if got, err := FailureOf(FailureTo(&f)); err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("failure: %+v, %v, want %+v", got, err, f)
	}
	var p engine.RetryPolicy
	servertest.Fill(reflect.ValueOf(&p).Elem(), &n)
	if got := RetryPolicyOf(retryPolicyTo(&p)); !reflect.DeepEqual(*got, p) {
		t.Errorf("policy: %+v, want %+v", got, p)
	}
	var to engine.Timeouts
	servertest.Fill(reflect.ValueOf(&to).Elem(), &n)
	if got := TimeoutsOf(timeoutsTo(to)); got != to {
		t.Errorf("timeouts: %+v, want %+v", got, to)
	}
	var pl engine.Payload
	servertest.Fill(reflect.ValueOf(&pl).Elem(), &n)
	if got := PayloadOf(PayloadTo(pl)); !reflect.DeepEqual(got, pl) {
		t.Errorf("payload: %+v, want %+v", got, pl)
	}
	if RetryPolicyOf(nil) != nil || retryPolicyTo(nil) != nil || FailureTo(nil) != nil ||
		PayloadTo(engine.Payload{}) != nil {
		t.Error("what is absent does not stay absent")
	}
	if got := Milliseconds(math.MaxInt64); got < engine.MaxDelay {
		t.Errorf("milliseconds(max) = %s: it has overflowed", got)
	}
	if got := Milliseconds(math.MinInt64); got > 0 {
		t.Errorf("milliseconds(min) = %s: it has overflowed", got)
	}
}

func TestEachFieldOfAStartIsRead(t *testing.T) {
	starts := StartReader{
		Now:   func() time.Time { return engine.Micros(time.Now()) },
		Trace: func(_ context.Context, r *kagziv1.StartWorkflowRequest) string { return FitTrace(r.Traceparent) },
	}
	read := func(r *kagziv1.StartWorkflowRequest) (any, error) {
		start, err := starts.Start(context.Background(), r)
		now := start.CreatedAt // of this very call: told apart from what the request says
		start.ID, start.CreatedAt = engine.ID{}, time.Time{}
		if start.AvailableAt.Equal(now) {
			start.AvailableAt = time.Time{}
		}
		if !start.DeadlineAt.IsZero() && start.DeadlineAt.Before(now.Add(time.Minute)) {
			start.DeadlineAt = time.Time{}
		}
		return start, err
	}
	servertest.WantEachFieldRead(t, &kagziv1.StartWorkflowRequest{WorkflowType: "plain"},
		map[protoreflect.Name]func(*kagziv1.StartWorkflowRequest){
			"on_failure_task_queue": func(r *kagziv1.StartWorkflowRequest) { r.OnFailureWorkflow = "w" },
			"concurrency_limit":     func(r *kagziv1.StartWorkflowRequest) { r.ConcurrencyKey = "k" },
			"concurrency_scope":     func(r *kagziv1.StartWorkflowRequest) { r.ConcurrencyKey = "k" },
		}, read)
}

func TestEachFieldOfARegistrationIsRead(t *testing.T) {
	read := func(r *kagziv1.RegisterRequest) (any, error) {
		w, err := WorkerOf(r)
		return struct { // keeps_runs and takes_batches are read by the session
			engine.Worker
			keeps   int32
			batches bool
		}{w, r.KeepsRuns, r.TakesBatches}, err
	}
	servertest.WantEachFieldRead(t, &kagziv1.RegisterRequest{WorkflowTypes: []string{"plain"}}, nil, read)
	w, err := WorkerOf(&kagziv1.RegisterRequest{
		TaskQueue: "a", TaskQueues: []string{"b", "a", "c"}, WorkflowTypes: []string{"t", "t"}})
	if err != nil || !slices.Equal(w.Queues, []string{"a", "b", "c"}) || !slices.Equal(w.Types, []string{"t"}) {
		t.Errorf("queues %v, types %v, %v, want each once and in their order", w.Queues, w.Types, err)
	}
	if w.MaxConcurrent != engine.DefaultConcurrent || w.Namespace != "default" {
		t.Errorf("defaults: %d at once in %q", w.MaxConcurrent, w.Namespace)
	}
}

func TestEachFilterOfAListIsRead(t *testing.T) {
	read := func(r *kagziv1.ListWorkflowsRequest) (any, error) {
		f, err := RunFilterOf(r)
		return []any{f, r.Page, r.Query}, err // page and query are read by themselves
	}
	servertest.WantEachFieldRead(t, &kagziv1.ListWorkflowsRequest{}, nil, read)
}

// An id that was lost on the way to a filter is not to have a bulk change end every run of the
// namespace.
func TestAFilterThatNamesNothingIsRefused(t *testing.T) {
	for field, r := range map[string]*kagziv1.ListWorkflowsRequest{
		"schedule_id": {ScheduleId: new("")}, "parent_run_id": {ParentRunId: new("")}, "worker_id": {WorkerId: new("")},
		"workflow_type": {WorkflowType: new("")}, "task_queue": {TaskQueue: new("")},
	} {
		if _, err := RunFilterOf(r); servertest.FieldOf(err) != field {
			t.Errorf("an empty %s: %v, want it refused", field, err)
		}
	}
	if _, err := RunFilterOf(&kagziv1.ListWorkflowsRequest{Search: new("")}); err != nil {
		t.Errorf("the empty beginning, which each id has, is refused: %v", err)
	}
}

func TestAMomentBeyondTheCalendarIsRefusedWithItsLimits(t *testing.T) {
	for _, seconds := range []int64{-1, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()} {
		if _, err := TimeOf("until", &timestamppb.Timestamp{Seconds: seconds}); err == nil ||
			err.Error() != "until: must be a time from 1970 to the year 9999" {
			t.Errorf("%d: %v", seconds, err)
		}
	}
}
