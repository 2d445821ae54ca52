package world

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const seed = 1

var (
	begin = time.Date(2026, 11, 20, 12, 3, 20, 0, time.UTC)
	ctx   = context.Background()
)

// must is the answer of a call that has to succeed.
func must[A any](t *testing.T) func(A, error) A {
	return func(answer A, err error) A {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// refused checks the code of an error and of its detail, and what field or thing it names.
func refused(t *testing.T, err error, grpc codes.Code, code kagziv1.ErrorCode, about string) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != grpc {
		t.Fatalf("error = %v, want %v", err, grpc)
	}
	for _, d := range s.Details() {
		if d, ok := d.(*kagziv1.ErrorDetail); ok {
			if d.Code != code || d.Metadata["field"] != about && d.Subject != about {
				t.Fatalf("detail = %v, want %v about %q", d, code, about)
			}
			return
		}
	}
	t.Fatalf("error %v has no ErrorDetail", err)
}

func get(t *testing.T, w *World, id string) *kagziv1.Workflow {
	t.Helper()
	return must[*kagziv1.GetWorkflowResponse](t)(w.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: id})).Workflow
}

func explained(t *testing.T, w *World, id string) *kagziv1.ExplainWorkflowResponse {
	t.Helper()
	return must[*kagziv1.ExplainWorkflowResponse](t)(w.ExplainWorkflow(ctx, &kagziv1.ExplainWorkflowRequest{RunId: id}))
}

func steps(t *testing.T, w *World, id string) []*kagziv1.Step {
	t.Helper()
	return must[*kagziv1.ListStepsResponse](t)(w.ListSteps(ctx, &kagziv1.ListStepsRequest{RunId: id, Page: &kagziv1.PageRequest{PageSize: 1000}})).Steps
}

// script does this and that in a world.
func script(t *testing.T, w *World) {
	t.Helper()
	id := must[*kagziv1.StartWorkflowResponse](t)(w.StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "order", TaskQueue: "orders"})).RunId
	w.Advance(2 * time.Second)
	must[*kagziv1.CancelWorkflowResponse](t)(w.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: id, Grace: durationpb.New(time.Minute)}))
	must[*kagziv1.DrainWorkerResponse](t)(w.DrainWorker(ctx, &kagziv1.DrainWorkerRequest{WorkerId: "mailer-1"}))
	w.Advance(13 * time.Minute)
	must[*kagziv1.TriggerWorkflowScheduleResponse](t)(w.TriggerWorkflowSchedule(ctx, &kagziv1.TriggerWorkflowScheduleRequest{ScheduleId: "nightly-report"}))
	w.Advance(47 * time.Minute)
}

// everything is all that the lists of a world hold.
func everything(t *testing.T, w *World) []proto.Message {
	t.Helper()
	var all []proto.Message
	for _, namespace := range []string{"default", "staging"} {
		for token := ""; ; {
			list := must[*kagziv1.ListWorkflowsResponse](t)(w.ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{
				Namespace: namespace, Page: &kagziv1.PageRequest{PageSize: 1000, PageToken: token},
			}))
			for _, r := range list.Workflows {
				all = append(all, must[*kagziv1.GetWorkflowResponse](t)(w.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: namespace, RunId: r.RunId})),
					must[*kagziv1.ListStepsResponse](t)(w.ListSteps(ctx, &kagziv1.ListStepsRequest{Namespace: namespace, RunId: r.RunId, Page: &kagziv1.PageRequest{PageSize: 1000}})),
					must[*kagziv1.ListSignalsResponse](t)(w.ListSignals(ctx, &kagziv1.ListSignalsRequest{Namespace: namespace, RunId: r.RunId})))
			}
			if token = list.Page.NextPageToken; token == "" {
				break
			}
		}
	}
	return append(all,
		must[*kagziv1.ListWorkersResponse](t)(w.ListWorkers(ctx, &kagziv1.ListWorkersRequest{})),
		must[*kagziv1.ListWorkflowSchedulesResponse](t)(w.ListWorkflowSchedules(ctx, &kagziv1.ListWorkflowSchedulesRequest{})),
		must[*kagziv1.ListNamespacesResponse](t)(w.ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{})),
		must[*kagziv1.ListWorkflowTypesResponse](t)(w.ListWorkflowTypes(ctx, &kagziv1.ListWorkflowTypesRequest{})),
		must[*kagziv1.ListAuditEventsResponse](t)(w.ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{})),
		must[*kagziv1.GetQueueDepthResponse](t)(w.GetQueueDepth(ctx, &kagziv1.GetQueueDepthRequest{})),
		must[*kagziv1.GetStatsResponse](t)(w.GetStats(ctx, &kagziv1.GetStatsRequest{})),
		must[*kagziv1.GetActivityResponse](t)(w.GetActivity(ctx, &kagziv1.GetActivityRequest{})),
		must[*kagziv1.GetServerInfoResponse](t)(w.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})),
	)
}

func TestTwoWorldsOfOneSeedAreEqualAfterTheSameScript(t *testing.T) {
	if testing.Short() {
		t.Skip("all of it is one goroutine's: the race detector, for which the short run is, finds nothing in it")
	}
	a, b := New(seed, begin), New(seed, begin)
	script(t, a)
	script(t, b)
	one, two := everything(t, a), everything(t, b)
	if len(one) != len(two) {
		t.Fatalf("%d messages, then %d", len(one), len(two))
	}
	for i := range one {
		if !proto.Equal(one[i], two[i]) {
			t.Fatalf("message %d:\n%v\n%v", i, one[i], two[i])
		}
	}
	c := New(seed+1, begin)
	script(t, c)
	if c.runs[100].RunId == a.runs[100].RunId {
		t.Fatal("another seed makes the same world")
	}
}

func TestAWorldHasItsPiecesInPlaceAtItsBeginning(t *testing.T) {
	if testing.Short() {
		t.Skip("all of it is one goroutine's: the race detector, for which the short run is, finds nothing in it")
	}
	for _, at := range []time.Time{begin, begin.Add(7 * time.Hour), time.Date(2027, 3, 28, 0, 59, 59, 0, time.UTC)} {
		for seed := uint64(1); seed <= 5; seed++ {
			t.Logf("seed %d, begin %s", seed, at)
			checkPieces(t, New(seed, at))
		}
	}
}

func checkPieces(t *testing.T, w *World) {
	t.Helper()
	for _, c := range []struct {
		piece   Piece
		status  kagziv1.WorkflowStatus
		blocker kagziv1.ExplainWorkflowResponse_Blocker
	}{
		{Waiting, pending, byNoWorker}, {Busy, pending, byBusy}, {FanOut, inProgress, byNothing}, {Growing, inProgress, byNothing},
		{Sleeping, sleeping, byTimer}, {Signalled, sleeping, bySignal}, {Parent, sleeping, byChild}, {Retrying, pending, byRetry},
		{Paused, pending, byPause}, {Cancelling, inProgress, byNothing}, {Gated, pending, byKey}, {Delayed, pending, byStart},
		{Draining, inProgress, byNothing}, {Family, completed, byNothing}, {Overridden, failed, byNothing}, {Retried, completed, byNothing},
		{Chatty, completed, byNothing}, {Big, completed, byNothing}, {Text, completed, byNothing}, {Binary, completed, byNothing},
		{Failed, failed, byNothing}, {TimedOut, timedOut, byNothing}, {Cancelled, cancelled, byNothing}, {Terminated, terminated, byNothing},
		{Crashed, completed, byNothing}, {Hostile, failed, byNothing}, {Pinned, completed, byNothing},
	} {
		id := w.ID(c.piece)
		r, e := get(t, w, id), explained(t, w, id)
		if r.Status != c.status || e.Blocker != c.blocker {
			t.Errorf("%s is %s, %s: %q; want %s, %s", c.piece, word(r.Status), e.Blocker, e.Summary, word(c.status), c.blocker)
		}
		if text, err := proto.Marshal(r); err != nil || len(text) == 0 {
			t.Errorf("%s cannot go over a wire: %v", c.piece, err)
		}
	}
	open, all := len(w.open), len(w.runs)
	if open < 28 || open > 60 || all < 380 || all > 560 {
		t.Errorf("%d runs, %d of them open", all, open)
	}
	parallel := 0
	for _, s := range steps(t, w, w.ID(FanOut)) {
		if s.Status == stepRunning {
			parallel++
		}
	}
	if parallel < 30 {
		t.Errorf("the fan-out has %d steps running", parallel)
	}
	if n := len(get(t, w, w.ID(Big)).Input.Data); n < 300<<10 {
		t.Errorf("the big payload has %d bytes", n)
	}
}

func TestWhatAWorldHoldsIsConsistentAtAnyTime(t *testing.T) {
	if testing.Short() {
		t.Skip("all of it is one goroutine's: the race detector, for which the short run is, finds nothing in it")
	}
	w := New(seed, begin)
	for range 3 * 120 {
		w.Advance(30*time.Second + 7*time.Millisecond)
		checkWorld(t, w)
		if t.Failed() {
			t.Fatalf("at %s", w.Now())
		}
	}
	if n := len(w.open); n > 120 {
		t.Errorf("%d runs are open after three hours: the world does not keep up", n)
	}
	statuses := map[kagziv1.WorkflowStatus]int{}
	for _, r := range w.runs {
		statuses[r.Status]++
	}
	if statuses[failed] == 0 || statuses[completed] < 2000 {
		t.Errorf("after three hours: %v", statuses)
	}
}

func checkWorld(t *testing.T, w *World) {
	t.Helper()
	for _, r := range w.runs {
		if ended(r.Status) == slices.Contains(w.open, r) {
			t.Errorf("run %s is %s, among the open ones: %t", r.RunId, word(r.Status), !ended(r.Status))
		}
		if (r.Status == inProgress) != (r.holder != nil) {
			t.Errorf("run %s is %s, held: %t", r.RunId, word(r.Status), r.holder != nil)
		}
		checkSteps(t, r)
		if r.gated && w.runningOfKey(r) == 0 && !w.isNext(r) {
			t.Errorf("run %s stands in line for key %s, which nobody holds", r.RunId, r.ConcurrencyKey)
		}
		if !w.dispatching && w.isDue(r) && w.now.Sub(r.available) > time.Second && w.roomFor(r) != nil && (r.ConcurrencyKey == "" || w.runningOfKey(r) == 0) {
			t.Errorf("run %s (%s) is due since %s, and a worker has room", r.RunId, r.WorkflowType, r.available)
		}
	}
	for _, h := range w.workers {
		for _, r := range h.held {
			if r.holder != h {
				t.Errorf("worker %s holds run %s, which does not know", h.WorkerId, r.RunId)
			}
		}
		if h.Status == offline && len(h.held) > 0 {
			t.Errorf("worker %s is offline and holds %d runs", h.WorkerId, len(h.held))
		}
	}
}

// isNext says that a run of the same key is about to be handed out.
func (w *World) isNext(r *run) bool {
	return slices.ContainsFunc(w.open, func(other *run) bool { return sameKey(r, other) && !other.gated && other.holder == nil })
}

func checkSteps(t *testing.T, r *run) {
	t.Helper()
	latest := map[string]int{}
	for _, s := range r.steps {
		if s.IsLatest {
			latest[s.Name]++
		}
		if s.open() && (ended(r.Status) || !s.IsLatest) {
			t.Errorf("step %s of run %s (%s) is open", s.Name, r.RunId, word(r.Status))
		}
		if s.Sequence < 1 || s.Sequence > r.StepCount {
			t.Errorf("step %s of run %s has sequence %d of %d", s.Name, r.RunId, s.Sequence, r.StepCount)
		}
	}
	for name, n := range latest {
		if n != 1 {
			t.Errorf("step %s of run %s has %d latest attempts", name, r.RunId, n)
		}
	}
}

func TestWorkersAreLostAndComeBack(t *testing.T) {
	w := New(seed, begin)
	lost, back := 0, 0
	w.Advance(3 * time.Hour)
	for _, e := range w.events {
		switch e.Message {
		case "worker lost":
			lost++
		case "worker registered":
			back++
		}
	}
	if lost == 0 || back <= len(staffing) {
		t.Errorf("%d workers were lost, %d came", lost, back)
	}
	for _, r := range w.runs {
		for _, s := range r.steps {
			if s.interrupted() {
				return
			}
		}
	}
	t.Error("no step was ever interrupted")
}

func TestAnEmptyWorldHoldsNothingAndNothingHappens(t *testing.T) {
	w := Empty(begin)
	w.Advance(24 * time.Hour)
	list := must[*kagziv1.ListWorkflowsResponse](t)(w.ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{IncludeTotalCount: true}}))
	stats := must[*kagziv1.GetStatsResponse](t)(w.GetStats(ctx, &kagziv1.GetStatsRequest{}))
	workers := must[*kagziv1.ListWorkersResponse](t)(w.ListWorkers(ctx, &kagziv1.ListWorkersRequest{}))
	if len(list.Workflows) > 0 || list.Page.TotalCount > 0 || stats.TotalWorkflows+stats.TotalSchedules > 0 || len(workers.Workers) > 0 {
		t.Errorf("%v %v %v", list, stats, workers)
	}
	id := must[*kagziv1.StartWorkflowResponse](t)(w.StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "hello"})).RunId
	w.Advance(time.Minute)
	if e := explained(t, w, id); e.Blocker != byNoWorker {
		t.Errorf("explain = %v", e)
	}
}
