package e2e

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestStartsAreIdempotent(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		try := func(external, request string, reuse kagziv1.ExternalIdReuse,
			input string) (*kagziv1.StartWorkflowResponse, error) {
			return s.workflows().StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{
				WorkflowType: "t", ExternalId: external, RequestId: request, ExternalIdReuse: reuse,
				Input: text(input)})
		}
		first, err := try("order-1", "request-1", 0, "a")
		if err != nil || first.AlreadyExists {
			t.Fatalf("first: %v, %v", first, err)
		}
		again, err := try("order-1", "request-1", 0, "a")
		if err != nil || again.RunId != first.RunId || again.AlreadyExists {
			t.Errorf("the same request: %v, %v, want the first answer word for word", again, err)
		}
		_, err = try("order-1", "request-1", 0, "b")
		wantRefused(t, "the same request with other content", err, codes.FailedPrecondition, codeConflict, "")
		other, err := try("order-1", "request-2", 0, "b")
		if err != nil || other.RunId != first.RunId || !other.AlreadyExists {
			t.Errorf("the same external id: %v, %v, want the active run", other, err)
		}
		_, err = try("order-1", "", kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_REJECT, "b")
		wantRefused(t, "the same external id, which is to be new", err, codes.AlreadyExists, codeConflict, "")
		if got := detailOf(err).SubjectId; got != first.RunId {
			t.Errorf("the refusal names %q, want the run that is there", got)
		}

		w.complete(t, w.take(t), "done")
		if again, err := try("order-1", "request-1", 0, "a"); err != nil || again.RunId != first.RunId {
			t.Errorf("the same request after the end: %v, %v, want the same run", again, err)
		}
		if again, err := try("order-1", "", kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_NEVER, "c"); err != nil ||
			again.RunId != first.RunId || !again.AlreadyExists {
			t.Errorf("never to be used again: %v, %v, want the ended run", again, err)
		}
		next, err := try("order-1", "", 0, "c")
		if err != nil || next.RunId == first.RunId || next.AlreadyExists {
			t.Errorf("after the end: %v, %v, want a new run", next, err)
		}
		found, err := s.workflows().GetWorkflowByExternalId(
			ctx, &kagziv1.GetWorkflowByExternalIdRequest{ExternalId: "order-1"})
		if err != nil || found.Workflow.RunId != next.RunId {
			t.Errorf("by external id: %v, %v, want the newest", found, err)
		}
		elsewhere, err := s.workflows().StartWorkflow(
			ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "t", ExternalId: "order-1", Namespace: "other"})
		if err != nil || elsewhere.AlreadyExists {
			t.Errorf("the same id in another namespace: %v, %v, want a new run", elsewhere, err)
		}
	})
}

func TestABatchIsAnsweredInItsOrderAndOneBadStartFailsAlone(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		answer, err := s.workflows().StartWorkflows(
			within(t, time.Minute), &kagziv1.StartWorkflowsRequest{Requests: []*kagziv1.StartWorkflowRequest{
				{WorkflowType: "t", ExternalId: "a"},
				{WorkflowType: "", ExternalId: "b"},
				{WorkflowType: "t", ExternalId: "a"},
				{WorkflowType: "t", ExternalId: "a", ExternalIdReuse: kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_REJECT},
				{WorkflowType: "t", ExternalId: "c"},
			}})
		if err != nil || len(answer.Results) != 5 {
			t.Fatalf("batch: %v, %v", answer, err)
		}
		r := answer.Results
		if r[0].Started == nil || r[0].Started.AlreadyExists || r[4].Started == nil ||
			r[4].Started.RunId == r[0].Started.RunId {
			t.Errorf("the good ones: %v, %v", r[0], r[4])
		}
		if r[1].Error.GetCode() != codeInvalid || r[1].Error.GetMetadata()["field"] != "workflow_type" {
			t.Errorf("the bad one: %v", r[1])
		}
		if r[2].Started.GetRunId() != r[0].Started.GetRunId() || !r[2].Started.GetAlreadyExists() {
			t.Errorf("the repeated one: %v, want the first's run", r[2])
		}
		if r[3].Error.GetCode() != codeConflict {
			t.Errorf("the rejected one: %v", r[3])
		}
		if got := s.get(t, r[4].Started.RunId); got.ExternalId != "c" {
			t.Errorf("the last answer is about %v", got)
		}
	})
}

func TestWaitAndWatch(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run := s.start(t)
		if a, err := s.workflows().WaitWorkflow(
			ctx, &kagziv1.WaitWorkflowRequest{RunId: run, Wait: durationpb.New(30 * time.Millisecond)}); err != nil ||
			a.Finished || a.Workflow.Status != pending {
			t.Errorf("a wait that is too short: %v, %v, want the run as it stands", a, err)
		}
		w := s.register(t)
		task := w.take(t)
		w.completeStep(t, task, "before", "1")

		stream, err := s.workflows().WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: run})
		if err != nil {
			t.Fatal(err)
		}
		var snapshot []string
		for done := false; !done; {
			event, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range event.Steps {
				snapshot = append(snapshot, step.Name)
			}
			if event.Workflow != nil {
				snapshot = append(snapshot, event.Workflow.Status.String())
			}
			done = event.SnapshotDone
		}
		if want := []string{"before", running.String()}; !slices.Equal(snapshot, want) {
			t.Errorf("the snapshot is %v, want %v", snapshot, want)
		}
		waited := make(chan *kagziv1.Workflow, 1)
		go func() {
			if a, err := s.workflows().WaitWorkflow(ctx, &kagziv1.WaitWorkflowRequest{RunId: run}); err == nil &&
				a.Finished {
				waited <- a.Workflow
			}
		}()
		w.completeStep(t, task, "after", "2")
		w.complete(t, task, "done")
		wantOutput(t, receive(t, "the end of the wait", waited), "done")
		var changes []string
		last := ""
		for {
			event, err := stream.Recv()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range event.Steps {
				changes = append(changes, step.Name)
			}
			if event.Workflow != nil {
				last = event.Workflow.Status.String()
			}
			if event.SnapshotDone {
				t.Error("the snapshot is done twice")
			}
		}
		if !slices.Equal(changes, []string{"after"}) || last != completed.String() {
			t.Errorf("after the snapshot came steps %v and at last %s", changes, last)
		}
		wantTheRunAlone(t, s, run)
		late, err := s.workflows().WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: run})
		if err != nil {
			t.Fatal(err)
		}
		if err := drainStream(late.Recv); err != io.EOF {
			t.Errorf("watching an ended run ends with %v", err)
		}
		_, err = s.workflows().WaitWorkflow(ctx,
			&kagziv1.WaitWorkflowRequest{RunId: "0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b"})
		wantRefused(t, "waiting for no run", err, codes.NotFound, codeNotFound, "no run")
	})
}

// wantTheRunAlone fails unless a watch with run_only gets the ended run without steps and payloads.
func wantTheRunAlone(t *testing.T, s *Server, run string) {
	t.Helper()
	stream, err := s.workflows().WatchWorkflow(t.Context(), &kagziv1.WatchWorkflowRequest{RunId: run, RunOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var seen []*kagziv1.WatchWorkflowEvent
	for {
		event, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, event)
	}
	got := seen[0].GetWorkflow()
	if len(seen) != 2 || got.GetRunId() != run || got.GetOutput() != nil || got.GetInput() != nil ||
		len(seen[0].GetSteps()) > 0 || !seen[1].GetSnapshotDone() {
		t.Errorf("a watch of the run alone gets %v", seen)
	}
}

func TestListsAreFilteredAndPagedBothWays(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		began := time.Now()
		var runs []string // newest first
		for i := range 25 {
			runs = append(runs, s.start(t, func(r *kagziv1.StartWorkflowRequest) {
				r.WorkflowType, r.TaskQueue = fmt.Sprintf("type-%d", i%3), fmt.Sprintf("queue-%d", i%2)
				r.Tags, r.ExternalId = map[string]string{"parity": fmt.Sprint(i % 2), "n": fmt.Sprint(i)},
					fmt.Sprintf("order-%02d", i)
			}))
		}
		slices.Reverse(runs)
		list := func(r *kagziv1.ListWorkflowsRequest) (ids []string, page *kagziv1.PageInfo) {
			t.Helper()
			answer, err := s.workflows().ListWorkflows(ctx, r)
			if err != nil {
				t.Fatalf("list %v: %v", r, err)
			}
			for _, w := range answer.Workflows {
				if w.Input != nil {
					t.Error("a list carries payloads")
				}
				ids = append(ids, w.RunId)
			}
			return ids, answer.Page
		}
		var forward, backward []string
		request := &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 10, IncludeTotalCount: true}}
		var page *kagziv1.PageInfo
		for n := 1; ; n++ {
			var ids []string
			ids, page = list(request)
			forward = append(forward, ids...)
			if page.TotalCount != 25 || page.HasMore != (n < 3) || (page.PrevPageToken == "") != (n == 1) {
				t.Errorf("page %d says %v", n, page)
			}
			if page.NextPageToken == "" {
				break
			}
			request.Page.PageToken = page.NextPageToken
		}
		if !slices.Equal(forward, runs) {
			t.Errorf("forward: %v, want %v", forward, runs)
		}
		for token := page.PrevPageToken; token != ""; token = page.PrevPageToken {
			var ids []string
			ids, page = list(&kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 10, PageToken: token}})
			backward = append(ids, backward...)
		}
		if !slices.Equal(backward, runs[:20]) {
			t.Errorf("backward: %v, want %v", backward, runs[:20])
		}
		if _, err := s.workflows().ListWorkflows(
			ctx, &kagziv1.ListWorkflowsRequest{WorkflowTypes: []string{"x"},
				Page: &kagziv1.PageRequest{PageToken: request.Page.PageToken}}); detailOf(
			err).Metadata["field"] != "page_token" {
			t.Errorf("a token with another filter: %v, want it refused", err)
		}

		cancelIDs := runs[:2]
		for _, id := range cancelIDs {
			if _, err := s.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: id}); err != nil {
				t.Fatal(err)
			}
		}
		middle := s.get(t, runs[12]).CreatedAt
		for name, c := range map[string]struct {
			request *kagziv1.ListWorkflowsRequest
			want    int
		}{
			"status": {&kagziv1.ListWorkflowsRequest{StatusFilter: cancelled.Enum()}, 2},
			"statuses": {&kagziv1.ListWorkflowsRequest{
				Statuses: []kagziv1.WorkflowStatus{cancelled, pending}}, 25},
			"type":           {&kagziv1.ListWorkflowsRequest{WorkflowType: ptr("type-0")}, 9},
			"types":          {&kagziv1.ListWorkflowsRequest{WorkflowTypes: []string{"type-0", "type-1"}}, 17},
			"queue":          {&kagziv1.ListWorkflowsRequest{TaskQueue: ptr("queue-1")}, 12},
			"queues":         {&kagziv1.ListWorkflowsRequest{TaskQueues: []string{"queue-0", "queue-1"}}, 25},
			"a tag":          {&kagziv1.ListWorkflowsRequest{Tags: map[string]string{"parity": "1"}}, 12},
			"two tags":       {&kagziv1.ListWorkflowsRequest{Tags: map[string]string{"parity": "1", "n": "3"}}, 1},
			"a wrong tag":    {&kagziv1.ListWorkflowsRequest{Tags: map[string]string{"parity": "2"}}, 0},
			"external id":    {&kagziv1.ListWorkflowsRequest{Search: ptr("order-1")}, 10},
			"run id":         {&kagziv1.ListWorkflowsRequest{Search: ptr(runs[3])}, 1},
			"created after":  {&kagziv1.ListWorkflowsRequest{CreatedAfter: middle}, 12},
			"created before": {&kagziv1.ListWorkflowsRequest{CreatedBefore: middle}, 12},
			"created long ago": {&kagziv1.ListWorkflowsRequest{
				CreatedBefore: timestamppb.New(began.Add(-time.Hour))}, 0},
			"worker": {&kagziv1.ListWorkflowsRequest{WorkerId: ptr("nobody")}, 0},
			"parent": {&kagziv1.ListWorkflowsRequest{ParentRunId: ptr(runs[0])}, 0},
			"all together": {&kagziv1.ListWorkflowsRequest{
				StatusFilter: pending.Enum(), WorkflowType: ptr("type-1"), TaskQueue: ptr("queue-1"),
				Tags: map[string]string{"n": "7"}}, 1},
			"another namespace": {&kagziv1.ListWorkflowsRequest{Namespace: "other"}, 0},
		} {
			if ids, _ := list(c.request); len(ids) != c.want {
				t.Errorf("by %s: %d runs, want %d", name, len(ids), c.want)
			}
		}
		types, err := s.admin().ListWorkflowTypes(ctx, &kagziv1.ListWorkflowTypesRequest{})
		if err != nil || len(types.WorkflowTypes) != 3 || types.WorkflowTypes[0].TotalRuns != 9 ||
			types.WorkflowTypes[0].ActiveRuns != 8 {
			t.Errorf("types: %v, %v", types, err)
		}
		stats, err := s.admin().GetStats(ctx, &kagziv1.GetStatsRequest{Namespace: ptr("default")})
		if err != nil || stats.TotalWorkflows != 25 || stats.PendingWorkflows != 23 ||
			stats.WorkflowsByStatus["CANCELLED"] != 2 || stats.WorkflowsByType["type-0"] != 9 {
			t.Errorf("stats: %v, %v", stats, err)
		}
	})
}

func TestServerInfoAndHealth(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		info, err := s.admin().GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
		if err != nil || info.Backend == "" || info.SchemaVersion < 1 || info.HeartbeatIntervalMs != 60_000 ||
			info.LeaseMs != 180_000 || info.StartedAt == nil {
			t.Errorf("info: %v, %v", info, err)
		}
		health, err := s.admin().HealthCheck(ctx, &kagziv1.HealthCheckRequest{Service: ptr("kagzi.v1.WorkflowService")})
		if err != nil || health.Status != kagziv1.ServingStatus_SERVING_STATUS_SERVING || health.Timestamp == nil {
			t.Errorf("health: %v, %v", health, err)
		}
		_, err = s.admin().HealthCheck(ctx, &kagziv1.HealthCheckRequest{Service: ptr("no.such")})
		wantRefused(t, "the health of nothing", err, codes.NotFound, codeNotFound, "no.such")
		_, err = healthpb.NewHealthClient(s.Conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "no.such"})
		wantRefused(t, "the standard health of nothing", err, codes.NotFound, codeNotFound, "no.such")
	})
}
