package world

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	preconditionFailed = kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED
	invalidArgument    = kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT
	isMissing          = kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND
	isConflict         = kagziv1.ErrorCode_ERROR_CODE_CONFLICT
)

func start(t *testing.T, w *World, r *kagziv1.StartWorkflowRequest) string {
	t.Helper()
	return must[*kagziv1.StartWorkflowResponse](t)(w.StartWorkflow(ctx, r)).RunId
}

// until lets time pass until a run is as it should be.
func until(t *testing.T, w *World, id string, is func(*kagziv1.Workflow) bool) *kagziv1.Workflow {
	t.Helper()
	for range 3600 {
		if r := get(t, w, id); is(r) {
			return r
		}
		w.Advance(time.Second)
	}
	t.Fatalf("after an hour run %s is %v", id, get(t, w, id))
	return nil
}

func hasEnded(r *kagziv1.Workflow) bool { return ended(r.Status) }

func TestARunThatIsStartedGoesItsWay(t *testing.T) {
	w := New(seed, begin)
	id := start(t, w, &kagziv1.StartWorkflowRequest{WorkflowType: "invoice.send", TaskQueue: "emails", Input: jsonPayload(`{"invoice":1}`)})
	if r := get(t, w, id); r.Status != pending || string(r.Input.Data) != `{"invoice":1}` || r.Attempts != 1 {
		t.Errorf("started: %v", r)
	}
	w.Advance(300 * time.Millisecond)
	if r := get(t, w, id); r.Status != inProgress || r.GetWorkerId() != "mailer-1" || r.StartedAt == nil {
		t.Errorf("after a moment: %v", r)
	}
	until(t, w, id, hasEnded)
	if s := steps(t, w, id); len(s) < 2 || s[0].Name != "render-pdf" || s[0].Status != stepCompleted || s[0].Sequence != 1 {
		t.Errorf("steps: %v", s)
	}
	by := must[*kagziv1.GetWorkflowByExternalIdResponse](t)(w.GetWorkflowByExternalId(ctx, &kagziv1.GetWorkflowByExternalIdRequest{ExternalId: "refund-10231"}))
	if by.Workflow.RunId != w.ID(Signalled) {
		t.Errorf("by external id: %v", by)
	}
}

func TestAStartIsRepeatableAndRefusedAsOnAServer(t *testing.T) {
	w := New(seed, begin)
	one := &kagziv1.StartWorkflowRequest{WorkflowType: "order", TaskQueue: "orders", ExternalId: "mine", RequestId: "r1"}
	id := start(t, w, one)
	if start(t, w, one) != id {
		t.Error("a repeated request starts another run")
	}
	again := must[*kagziv1.StartWorkflowResponse](t)(w.StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "order", ExternalId: "mine"}))
	if again.RunId != id || !again.AlreadyExists {
		t.Errorf("a taken external id: %v", again)
	}
	other := proto.CloneOf(one)
	other.WorkflowType = "thumbnail"
	_, err := w.StartWorkflow(ctx, other)
	refused(t, err, codes.FailedPrecondition, isConflict, "run")
	reject := proto.CloneOf(one)
	reject.RequestId, reject.ExternalIdReuse = "", kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_REJECT
	_, err = w.StartWorkflow(ctx, reject)
	refused(t, err, codes.AlreadyExists, isConflict, "run")
	_, err = w.StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{})
	refused(t, err, codes.InvalidArgument, invalidArgument, "workflow_type")
	_, err = w.StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "order", Input: &kagziv1.Payload{Data: make([]byte, maxPayload+1)}})
	refused(t, err, codes.ResourceExhausted, kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED, "input")
	many := must[*kagziv1.StartWorkflowsResponse](t)(w.StartWorkflows(ctx, &kagziv1.StartWorkflowsRequest{Requests: []*kagziv1.StartWorkflowRequest{{WorkflowType: "order"}, {}}}))
	if many.Results[0].Started == nil || many.Results[1].Error.GetCode() != invalidArgument {
		t.Errorf("many: %v", many)
	}
	_, err = w.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: "01a1f8a7-5bc0-7000-b74e-6677b6695e40"})
	refused(t, err, codes.NotFound, isMissing, "run")
	_, err = w.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: "x"})
	refused(t, err, codes.InvalidArgument, invalidArgument, "run_id")
}

func TestCancelTerminateAndTheirRepetition(t *testing.T) {
	w := New(seed, begin)
	for range 2 {
		if c := must[*kagziv1.CancelWorkflowResponse](t)(w.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: w.ID(Growing), Reason: "enough"})); !c.Cancelled {
			t.Errorf("cancel: %v", c)
		}
	}
	if r := get(t, w, w.ID(Growing)); r.Status != cancelled || r.Error.Message != "enough" || r.FinishedAt == nil {
		t.Errorf("cancelled: %v", r)
	}
	_, err := w.TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{RunId: w.ID(Growing)})
	refused(t, err, codes.FailedPrecondition, preconditionFailed, "run")
	if c := must[*kagziv1.TerminateWorkflowResponse](t)(w.TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{RunId: w.ID(Waiting)})); !c.Terminated {
		t.Errorf("terminate: %v", c)
	}
	c := must[*kagziv1.CancelWorkflowResponse](t)(w.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: w.ID(Sleeping), Grace: durationpb.New(time.Minute)}))
	if c.Cancelled || !c.Requested || !c.GraceUntil.AsTime().Equal(begin.Add(time.Minute)) {
		t.Errorf("cancel with grace: %v", c)
	}
	w.Advance(400 * time.Millisecond)
	if s := steps(t, w, w.ID(Sleeping)); s[len(s)-1].Name != "refund-card" {
		t.Errorf("its code does not clean up: %v", s)
	}
	r := until(t, w, w.ID(Sleeping), hasEnded)
	if r.Status != cancelled || !r.FinishedAt.AsTime().Before(begin.Add(time.Minute)) {
		t.Errorf("after the grace: %v", r)
	}
	must[*kagziv1.CancelWorkflowResponse](t)(w.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: w.ID(Draining), Grace: durationpb.New(time.Minute)}))
	if s := w.byID[w.ID(Draining)].latest["ship"]; s.Status != stepFailed || s.Error.Type != "cancelled" {
		t.Errorf("what its code did: %v", s)
	}
	w.Advance(10 * time.Minute)
	if r := get(t, w, w.ID(Cancelling)); r.Status != cancelled {
		t.Errorf("the one that was told before: %v", r)
	}
}

func TestPauseAndResume(t *testing.T) {
	w := New(seed, begin)
	paused := must[*kagziv1.PauseWorkflowResponse](t)(w.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: w.ID(Growing), Reason: "lunch"})).Workflow
	if !paused.Paused || paused.Status != pending || paused.WorkerId != nil {
		t.Errorf("paused: %v", paused)
	}
	w.Advance(time.Minute)
	if e := explained(t, w, w.ID(Growing)); e.Blocker != byPause || !strings.HasPrefix(e.Summary, "paused by local 1m ago: lunch") {
		t.Errorf("explain: %v", e)
	}
	must[*kagziv1.ResumeWorkflowResponse](t)(w.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{RunId: w.ID(Growing)}))
	until(t, w, w.ID(Growing), func(r *kagziv1.Workflow) bool { return r.Status == inProgress })
	must[*kagziv1.ResumeWorkflowResponse](t)(w.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{RunId: w.ID(Paused)}))
	until(t, w, w.ID(Paused), hasEnded)
	_, err := w.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: w.ID(Failed)})
	refused(t, err, codes.FailedPrecondition, preconditionFailed, "run")
}

func TestRetryKeepsStepsFromWhereItIsAsked(t *testing.T) {
	w := New(seed, begin)
	retry := &kagziv1.RetryWorkflowRequest{RunId: w.ID(Failed), FromStep: "charge-card", RequestId: "again"}
	id := must[*kagziv1.RetryWorkflowResponse](t)(w.RetryWorkflow(ctx, retry)).NewRunId
	if same := must[*kagziv1.RetryWorkflowResponse](t)(w.RetryWorkflow(ctx, retry)); same.NewRunId != id || same.AlreadyRunning {
		t.Errorf("repeated: %v", same)
	}
	if kept := steps(t, w, id); len(kept) != 2 || kept[1].Name != "reserve-stock" || kept[1].Status != stepCompleted || kept[1].RunId != id {
		t.Errorf("kept: %v", kept)
	}
	again := must[*kagziv1.RetryWorkflowResponse](t)(w.RetryWorkflow(ctx, &kagziv1.RetryWorkflowRequest{RunId: w.ID(Failed)}))
	if !again.AlreadyRunning || again.NewRunId != id {
		t.Errorf("while it runs: %v", again)
	}
	if r := until(t, w, id, hasEnded); r.GetRetriedFromRunId() != w.ID(Failed) || r.ExternalId != "order-70344" {
		t.Errorf("retried: %v", r)
	}
	_, err := w.RetryWorkflow(ctx, &kagziv1.RetryWorkflowRequest{RunId: w.ID(Big)})
	refused(t, err, codes.FailedPrecondition, preconditionFailed, "run")
	_, err = w.RetryWorkflow(ctx, &kagziv1.RetryWorkflowRequest{RunId: w.ID(TimedOut), FromStep: "nope"})
	refused(t, err, codes.NotFound, isMissing, "step")
	_, err = w.RetryWorkflow(ctx, &kagziv1.RetryWorkflowRequest{RunId: w.ID(TimedOut), Input: jsonPayload("1")})
	refused(t, err, codes.InvalidArgument, invalidArgument, "input")
	restarted := must[*kagziv1.RetryWorkflowResponse](t)(w.RetryWorkflow(ctx, &kagziv1.RetryWorkflowRequest{RunId: w.ID(Cancelled), Restart: true, Input: jsonPayload(`{"n":1}`)})).NewRunId
	if r := get(t, w, restarted); r.StepCount != 0 || string(r.Input.Data) != `{"n":1}` {
		t.Errorf("restarted: %v", r)
	}
}

func TestOverrideSetsAResultAndSaysWho(t *testing.T) {
	w := New(seed, begin)
	output := &kagziv1.OverrideStepRequest_Output{Output: jsonPayload(`{"rows":0}`)}
	s := must[*kagziv1.OverrideStepResponse](t)(w.OverrideStep(ctx, &kagziv1.OverrideStepRequest{RunId: w.ID(Paused), StepName: "parse", Reason: "by hand", Result: output})).Step
	if s.Status != stepCompleted || s.OverriddenBy != "local" || s.OverrideReason != "by hand" || !s.IsLatest {
		t.Errorf("step: %v", s)
	}
	_, err := w.OverrideStep(ctx, &kagziv1.OverrideStepRequest{RunId: w.ID(Growing), StepName: "day-01", Reason: "x", Result: output})
	refused(t, err, codes.FailedPrecondition, preconditionFailed, "run")
	_, err = w.OverrideStep(ctx, &kagziv1.OverrideStepRequest{RunId: w.ID(Paused), StepName: "parse", Result: output})
	refused(t, err, codes.InvalidArgument, invalidArgument, "reason")
	must[*kagziv1.ResumeWorkflowResponse](t)(w.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{RunId: w.ID(Paused)}))
	until(t, w, w.ID(Paused), hasEnded)
	if all := steps(t, w, w.ID(Overridden)); !slices.ContainsFunc(all, func(s *kagziv1.Step) bool { return s.Name == "charge-card" && s.OverriddenBy != "" }) {
		t.Errorf("the piece: %v", all)
	}
	audit := must[*kagziv1.ListAuditEventsResponse](t)(w.ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{SubjectId: proto.String(w.ID(Paused))})).Events
	if len(audit) != 3 || audit[0].Method != "ResumeWorkflow" || audit[1].Detail != "parse" || audit[2].Method != "PauseWorkflow" {
		t.Errorf("audit: %v", audit)
	}
}

func TestASignalIsDeliveredOnceAndKept(t *testing.T) {
	w := New(seed, begin)
	signal := &kagziv1.SignalWorkflowRequest{RunId: w.ID(Signalled), Name: "approval", SignalId: "s1", Payload: jsonPayload(`{"approved":true}`)}
	must[*kagziv1.SignalWorkflowResponse](t)(w.SignalWorkflow(ctx, signal))
	if again := must[*kagziv1.SignalWorkflowResponse](t)(w.SignalWorkflow(ctx, signal)); !again.AlreadyDelivered {
		t.Error("a repeated signal counts again")
	}
	if r := until(t, w, w.ID(Signalled), hasEnded); r.Status != completed {
		t.Errorf("after the signal: %v", r)
	}
	signals := must[*kagziv1.ListSignalsResponse](t)(w.ListSignals(ctx, &kagziv1.ListSignalsRequest{RunId: w.ID(Signalled)})).Signals
	if len(signals) != 1 || signals[0].GetStepName() != "wait-approval" {
		t.Errorf("signals: %v", signals)
	}
	if chatty := must[*kagziv1.ListSignalsResponse](t)(w.ListSignals(ctx, &kagziv1.ListSignalsRequest{RunId: w.ID(Chatty)})).Signals; len(chatty) != 3 {
		t.Errorf("the piece: %v", chatty)
	}
	signal.SignalId = "s2"
	_, err := w.SignalWorkflow(ctx, signal)
	refused(t, err, codes.FailedPrecondition, preconditionFailed, "run")
}

func TestEachWaitConsumesASignalOfItsOwn(t *testing.T) {
	w := New(seed, begin)
	p := &plan{kind: "refund.approval", queue: "orders", acts: []act{{name: "one", kind: wait, signal: "go"}, {name: "two", kind: wait, signal: "go"}}}
	id := w.begins(w.message(p, "default"), p, w.now).RunId
	for _, signal := range []string{"a", "b"} {
		must[*kagziv1.SignalWorkflowResponse](t)(w.SignalWorkflow(ctx, &kagziv1.SignalWorkflowRequest{RunId: id, Name: "go", Payload: jsonPayload(signal)}))
		w.Advance(time.Second)
		if s := w.byID[id].latest["one"]; s.Status != stepCompleted || string(s.Output.Data) != "a" {
			t.Errorf("the first wait: %v", s)
		}
	}
	if s := w.byID[id].latest["two"]; s.Status != stepCompleted || string(s.Output.Data) != "b" {
		t.Errorf("the second wait: %v", s)
	}
	if r := get(t, w, id); r.Status != completed {
		t.Errorf("after both: %v", r)
	}
}

// received is all that a stream sends until it ends.
func received[M any](t *testing.T, stream grpc.ServerStreamingClient[M]) []*M {
	t.Helper()
	var all []*M
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
}

func TestBulkChangesEachRunOfAFilterAndCountsTheRefusals(t *testing.T) {
	w := New(seed, begin)
	filter := &kagziv1.ListWorkflowsRequest{WorkflowType: proto.String("onboarding")}
	all, open := int64(0), int64(0)
	for _, r := range w.runs {
		if r.WorkflowType == "onboarding" {
			all++
			if !ended(r.Status) {
				open++
			}
		}
	}
	reports := received(t, must[grpc.ServerStreamingClient[kagziv1.BulkWorkflowsProgress]](t)(w.BulkWorkflows(ctx, &kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_TERMINATE, Filter: filter})))
	last := reports[len(reports)-1]
	if open < 5 || last.Done != open || last.Done+last.Failed != all || last.Matched != all || last.LastError == nil || last.LastRunId == "" {
		t.Errorf("terminate: %v of %d", last, all)
	}
	_, err := w.BulkWorkflows(ctx, &kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_RETRY})
	refused(t, err, codes.InvalidArgument, invalidArgument, "filter")
	retry := &kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_RETRY, Filter: &kagziv1.ListWorkflowsRequest{StatusFilter: terminated.Enum()}, Limit: 2}
	reports = received(t, must[grpc.ServerStreamingClient[kagziv1.BulkWorkflowsProgress]](t)(w.BulkWorkflows(ctx, retry)))
	if last := reports[len(reports)-1]; last.Done != 2 || last.Unchanged != 0 {
		t.Errorf("retry: %v", last)
	}
	reports = received(t, must[grpc.ServerStreamingClient[kagziv1.BulkWorkflowsProgress]](t)(w.BulkWorkflows(ctx, retry)))
	if last := reports[len(reports)-1]; last.Done != 2 || last.Unchanged != 2 {
		t.Errorf("the same retry again: %v", last)
	}
}

func TestWorkersAreListedDrainedAndTakenOffline(t *testing.T) {
	w := New(seed, begin)
	all := must[*kagziv1.ListWorkersResponse](t)(w.ListWorkers(ctx, &kagziv1.ListWorkersRequest{})).Workers
	if len(all) != 6 {
		t.Fatalf("%d workers", len(all))
	}
	for _, c := range []struct {
		status kagziv1.WorkerStatus
		n      int
	}{{online, 4}, {draining, 1}, {offline, 1}} {
		if got := must[*kagziv1.ListWorkersResponse](t)(w.ListWorkers(ctx, &kagziv1.ListWorkersRequest{StatusFilter: c.status.Enum()})).Workers; len(got) != c.n {
			t.Errorf("%d workers are %s, want %d", len(got), c.status, c.n)
		}
	}
	must[*kagziv1.ForceOfflineWorkerResponse](t)(w.ForceOfflineWorker(ctx, &kagziv1.ForceOfflineWorkerRequest{WorkerId: "orders-1"}))
	id := start(t, w, &kagziv1.StartWorkflowRequest{WorkflowType: "order", TaskQueue: "orders"})
	w.Advance(time.Second)
	if e := explained(t, w, id); e.Blocker != byNoWorker || e.Details[0] != "worker orders-0 is draining and takes nothing new" {
		t.Errorf("with nobody but one that drains: %v", e)
	}
	freed := must[*kagziv1.ForceOfflineWorkerResponse](t)(w.ForceOfflineWorker(ctx, &kagziv1.ForceOfflineWorkerRequest{WorkerId: "media-1"})).ReleasedRuns
	if h := must[*kagziv1.GetWorkerResponse](t)(w.GetWorker(ctx, &kagziv1.GetWorkerRequest{WorkerId: "media-1"})).Worker; freed != mediaSlots || h.Status != offline || h.ActiveWorkflowCount != 0 {
		t.Errorf("freed %d, %v", freed, h)
	}
	if r := get(t, w, w.ID(FanOut)); r.Status != pending {
		t.Errorf("a run of the worker: %v", r)
	}
	q := must[*kagziv1.GetQueueDepthResponse](t)(w.GetQueueDepth(ctx, &kagziv1.GetQueueDepthRequest{TaskQueue: proto.String("media")}))
	if len(q.Queues) != 1 || q.Queues[0].OnlineWorkers != 0 || q.Queues[0].UnservedByType["thumbnail"] != q.Queues[0].Pending {
		t.Errorf("its queue: %v", q)
	}
	must[*kagziv1.DrainWorkerResponse](t)(w.DrainWorker(ctx, &kagziv1.DrainWorkerRequest{WorkerId: "mailer-1"}))
	w.Advance(time.Minute)
	if h := must[*kagziv1.GetWorkerResponse](t)(w.GetWorker(ctx, &kagziv1.GetWorkerRequest{WorkerId: "mailer-1"})).Worker; h.Status != offline {
		t.Errorf("drained: %v", h)
	}
	_, err := w.DrainWorker(ctx, &kagziv1.DrainWorkerRequest{WorkerId: "mailer-1"})
	refused(t, err, codes.NotFound, isMissing, "worker")
	w.Advance(10 * time.Minute)
	if r := get(t, w, w.ID(FanOut)); r.Status == pending {
		t.Errorf("nobody took the fan-out again: %v", r)
	}
}

func TestCountsAddUp(t *testing.T) {
	w := New(seed, begin)
	w.Advance(90 * time.Second)
	stats := must[*kagziv1.GetStatsResponse](t)(w.GetStats(ctx, &kagziv1.GetStatsRequest{Namespace: proto.String("default")}))
	page := list(t, w, &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{IncludeTotalCount: true}}).Page
	sum := int64(0)
	for _, n := range stats.WorkflowsByStatus {
		sum += n
	}
	if stats.TotalWorkflows != page.TotalCount || sum != page.TotalCount || stats.TotalWorkers != 6 || stats.TotalSchedules != 6 || stats.EnabledSchedules != 5 {
		t.Errorf("stats %v, %d runs listed", stats, page.TotalCount)
	}
	if stats.RunsStartedPerSecond < 0.1 || stats.StepsCompletedPerSecond < 0.1 || stats.OldestPendingSeconds < 300 {
		t.Errorf("rates %v", stats)
	}
	for step, n := range map[time.Duration]int{time.Second: keptSeconds, time.Minute: keptMinutes} {
		a := must[*kagziv1.GetActivityResponse](t)(w.GetActivity(ctx, &kagziv1.GetActivityRequest{Step: durationpb.New(step)}))
		started := int64(0)
		for _, p := range a.Points {
			started += p.RunsStarted
		}
		if len(a.Points) != n || started < 80 || a.At.AsTime().After(w.Now()) || w.Now().Sub(a.At.AsTime()) >= step {
			t.Errorf("activity of %s: %d points, %d started, at %s", step, len(a.Points), started, a.At.AsTime())
		}
	}
	_, err := w.GetActivity(ctx, &kagziv1.GetActivityRequest{Step: durationpb.New(time.Hour)})
	refused(t, err, codes.InvalidArgument, invalidArgument, "step")
	types := must[*kagziv1.ListWorkflowTypesResponse](t)(w.ListWorkflowTypes(ctx, &kagziv1.ListWorkflowTypesRequest{})).WorkflowTypes
	if len(types) != len(catalog)+1 { // and the hostile one
		t.Errorf("types: %v", types)
	}
}

func TestTheServerTellsOfItself(t *testing.T) {
	w := New(seed, begin)
	if h := must[*kagziv1.HealthCheckResponse](t)(w.HealthCheck(ctx, &kagziv1.HealthCheckRequest{})); h.Status != kagziv1.ServingStatus_SERVING_STATUS_SERVING {
		t.Errorf("health: %v", h)
	}
	info := must[*kagziv1.GetServerInfoResponse](t)(w.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{}))
	sections := map[string]bool{}
	for _, f := range info.Facts {
		sections[f.Section] = true
	}
	if !sections["database"] || !sections["coordinator"] || !sections["settings"] || len(info.Methods) < 3 || info.OpenConnections == 0 {
		t.Errorf("info: %v", info)
	}
	if _, err := w.ExportWorkflow(ctx, &kagziv1.ExportWorkflowRequest{}); err == nil {
		t.Error("a capsule was exported")
	} else {
		refused(t, err, codes.Unimplemented, preconditionFailed, "")
	}
	if _, err := w.ImportWorkflow(ctx); err == nil {
		t.Error("a capsule can be imported")
	}
}

func TestNamespacesAreMadeChangedAndClosed(t *testing.T) {
	w := New(seed, begin)
	made := must[*kagziv1.CreateNamespaceResponse](t)(w.CreateNamespace(ctx, &kagziv1.CreateNamespaceRequest{Namespace: "lab", Retention: durationpb.New(time.Hour)})).Namespace
	must[*kagziv1.CreateNamespaceResponse](t)(w.CreateNamespace(ctx, &kagziv1.CreateNamespaceRequest{Namespace: "lab", Retention: durationpb.New(time.Hour)}))
	_, err := w.CreateNamespace(ctx, &kagziv1.CreateNamespaceRequest{Namespace: "lab"})
	refused(t, err, codes.AlreadyExists, isConflict, "namespace")
	changed := must[*kagziv1.UpdateNamespaceResponse](t)(w.UpdateNamespace(ctx, &kagziv1.UpdateNamespaceRequest{Namespace: "lab", Description: proto.String("trials"), Retention: durationpb.New(0)})).Namespace
	if changed.Description != "trials" || changed.Retention != nil || changed.Id != made.Id {
		t.Errorf("changed: %v", changed)
	}
	if names := must[*kagziv1.ListNamespacesResponse](t)(w.ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{})).Namespaces; len(names) != 3 || names[0].Namespace != "default" || names[1].Namespace != "lab" {
		t.Errorf("namespaces: %v", names)
	}
	must[*kagziv1.DisableNamespaceResponse](t)(w.DisableNamespace(ctx, &kagziv1.DisableNamespaceRequest{Namespace: "default"}))
	_, err = w.StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "order"})
	refused(t, err, codes.FailedPrecondition, preconditionFailed, "namespace")
	if e := explained(t, w, w.ID(Waiting)); e.Blocker != byNamespace {
		t.Errorf("explain: %v", e)
	}
	must[*kagziv1.EnableNamespaceResponse](t)(w.EnableNamespace(ctx, &kagziv1.EnableNamespaceRequest{Namespace: "default"}))
	if n := must[*kagziv1.GetNamespaceResponse](t)(w.GetNamespace(ctx, &kagziv1.GetNamespaceRequest{Namespace: "default"})).Namespace; !n.Enabled {
		t.Errorf("enabled: %v", n)
	}
	_, err = w.GetNamespace(ctx, &kagziv1.GetNamespaceRequest{Namespace: "nowhere"})
	refused(t, err, codes.NotFound, isMissing, "namespace")
}
