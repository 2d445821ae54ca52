package world

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func list(t *testing.T, w *World, r *kagziv1.ListWorkflowsRequest) *kagziv1.ListWorkflowsResponse {
	t.Helper()
	return must[*kagziv1.ListWorkflowsResponse](t)(w.ListWorkflows(ctx, r))
}

func TestPagingOverAThousandRunsSeesEachOnceForthAndBack(t *testing.T) {
	w := Many(seed, begin, 600)
	for _, filter := range []*kagziv1.ListWorkflowsRequest{{}, {Statuses: []kagziv1.WorkflowStatus{completed}}, {TaskQueue: proto.String("orders")}} {
		var forth []string
		for request := proto.CloneOf(filter); ; {
			request.Page = proto.CloneOf(request.Page)
			if request.Page == nil {
				request.Page = &kagziv1.PageRequest{PageSize: 37, IncludeTotalCount: true}
			}
			page := list(t, w, request)
			for _, r := range page.Workflows {
				forth = append(forth, r.RunId)
			}
			if page.Page.HasMore != (page.Page.NextPageToken != "") {
				t.Fatalf("page %v", page.Page)
			}
			if !page.Page.HasMore {
				if int(page.Page.TotalCount) != len(forth) {
					t.Fatalf("total = %d, listed %d", page.Page.TotalCount, len(forth))
				}
				break
			}
			request.Page.PageToken = page.Page.NextPageToken
		}
		for i := 1; i < len(forth); i++ {
			if forth[i] >= forth[i-1] {
				t.Fatalf("place %d: %s after %s", i, forth[i], forth[i-1])
			}
		}
		back := backwards(t, w, filter)
		if len(back) != len(forth) {
			t.Fatalf("%d forth, %d back", len(forth), len(back))
		}
		for i := range forth {
			if forth[i] != back[i] {
				t.Fatalf("place %d: %s forth, %s back", i, forth[i], back[i])
			}
		}
	}
}

// backwards is the runs of a filter, newest first, by pages from the last one on.
func backwards(t *testing.T, w *World, filter *kagziv1.ListWorkflowsRequest) []string {
	t.Helper()
	var back []string
	request := proto.CloneOf(filter)
	request.Page = &kagziv1.PageRequest{PageSize: 41, Last: true}
	for {
		page := list(t, w, request)
		var ids []string
		for _, r := range page.Workflows {
			ids = append(ids, r.RunId)
		}
		back = append(ids, back...)
		if page.Page.PrevPageToken == "" {
			return back
		}
		request.Page = &kagziv1.PageRequest{PageSize: 41, PageToken: page.Page.PrevPageToken}
	}
}

func TestATokenIsGoodForItsOwnListOnly(t *testing.T) {
	w := New(seed, begin)
	token := list(t, w, &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 5}}).Page.NextPageToken
	for _, c := range []struct {
		request *kagziv1.ListWorkflowsRequest
		field   string
	}{
		{&kagziv1.ListWorkflowsRequest{WorkflowType: proto.String("order"), Page: &kagziv1.PageRequest{PageToken: token}}, "page_token"},
		{&kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageToken: "?"}}, "page_token"},
		{&kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageToken: token, Last: true}}, "page.last"},
		{&kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 1001}}, "page_size"},
		{&kagziv1.ListWorkflowsRequest{Namespace: "Not One"}, "namespace"},
		{&kagziv1.ListWorkflowsRequest{Search: proto.String("a b")}, "search"},
		{&kagziv1.ListWorkflowsRequest{Statuses: []kagziv1.WorkflowStatus{55}}, "statuses"},
	} {
		_, err := w.ListWorkflows(ctx, c.request)
		refused(t, err, codes.InvalidArgument, kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, c.field)
	}
}

func TestAPageKeepsItsPlaceWhileRunsAreStarted(t *testing.T) {
	w := New(seed, begin)
	one := list(t, w, &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 10}})
	want := list(t, w, &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 10, PageToken: one.Page.NextPageToken}})
	w.Advance(time.Minute)
	got := list(t, w, &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 10, PageToken: one.Page.NextPageToken}})
	if got.Workflows[0].RunId != want.Workflows[0].RunId {
		t.Errorf("the second page begins with %s, then with %s", want.Workflows[0].RunId, got.Workflows[0].RunId)
	}
}

func TestEachFilterOfRunsSelectsWhatItSays(t *testing.T) {
	w := Many(seed, begin, 300)
	gift, waiting := get(t, w, w.ID(Parent)), get(t, w, w.ID(Waiting))
	scheduled := must[*kagziv1.GetWorkflowScheduleResponse](t)(w.GetWorkflowSchedule(ctx, &kagziv1.GetWorkflowScheduleRequest{ScheduleId: "crm-sync"})).Schedule
	hour := timestamppb.New(begin.Add(-time.Hour))
	for _, c := range []struct {
		name    string
		request *kagziv1.ListWorkflowsRequest
		holds   func(*kagziv1.Workflow) bool
	}{
		{"status", &kagziv1.ListWorkflowsRequest{StatusFilter: failed.Enum()}, func(r *kagziv1.Workflow) bool { return r.Status == failed }},
		{"type", &kagziv1.ListWorkflowsRequest{WorkflowTypes: []string{"order", "thumbnail"}}, func(r *kagziv1.Workflow) bool { return r.WorkflowType == "order" || r.WorkflowType == "thumbnail" }},
		{"queue", &kagziv1.ListWorkflowsRequest{TaskQueues: []string{"media"}}, func(r *kagziv1.Workflow) bool { return r.TaskQueue == "media" }},
		{"after", &kagziv1.ListWorkflowsRequest{CreatedAfter: hour}, func(r *kagziv1.Workflow) bool { return r.CreatedAt.AsTime().After(hour.AsTime()) }},
		{"before", &kagziv1.ListWorkflowsRequest{CreatedBefore: hour}, func(r *kagziv1.Workflow) bool { return r.CreatedAt.AsTime().Before(hour.AsTime()) }},
		{"tags", &kagziv1.ListWorkflowsRequest{Tags: waiting.Tags}, func(r *kagziv1.Workflow) bool { return r.Tags["customer"] == waiting.Tags["customer"] }},
		{"parent", &kagziv1.ListWorkflowsRequest{ParentRunId: &gift.RunId}, func(r *kagziv1.Workflow) bool { return r.GetParentRunId() == gift.RunId }},
		{"schedule", &kagziv1.ListWorkflowsRequest{ScheduleId: &scheduled.ScheduleId}, func(r *kagziv1.Workflow) bool { return r.GetScheduleId() == scheduled.ScheduleId }},
		{"worker", &kagziv1.ListWorkflowsRequest{WorkerId: proto.String("media-1")}, func(r *kagziv1.Workflow) bool { return r.GetWorkerId() == "media-1" }},
		{"search", &kagziv1.ListWorkflowsRequest{Search: proto.String("batch-00001")}, func(r *kagziv1.Workflow) bool { return len(r.ExternalId) > 11 && r.ExternalId[:11] == "batch-00001" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := 0
			for i := range w.runCount() {
				if r := w.runAt(i); r.Namespace == "default" && c.holds(r.Workflow) {
					want++
				}
			}
			c.request.Page = &kagziv1.PageRequest{PageSize: 1000}
			got := list(t, w, c.request).Workflows
			if len(got) != want || want == 0 {
				t.Fatalf("%d runs, want %d", len(got), want)
			}
			for _, r := range got {
				if !c.holds(r) || r.Input != nil || r.Output != nil {
					t.Fatalf("listed %v", r)
				}
			}
		})
	}
}

func TestAHundredThousandRunsOpenFastAndEachCanBeRead(t *testing.T) {
	w := Many(seed, begin, 100_000)
	request := &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 3, Last: true, IncludeTotalCount: true}}
	last := list(t, w, request)
	if last.Page.TotalCount < 100_300 || last.Workflows[2].ExternalId != "batch-0000001" {
		t.Fatalf("last page %v", last)
	}
	for _, r := range last.Workflows {
		full := get(t, w, r.RunId)
		done := steps(t, w, r.RunId)
		if full.Input == nil || len(done) != int(full.StepCount) || len(done) == 0 {
			t.Errorf("run %v has %d steps", full, len(done))
		}
	}
	id := last.Workflows[0].RunId
	must[*kagziv1.PinWorkflowResponse](t)(w.PinWorkflow(ctx, &kagziv1.PinWorkflowRequest{RunId: id, Pinned: true}))
	if !get(t, w, id).Pinned {
		t.Error("a run of the archive cannot be pinned")
	}
	if _, err := w.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: id[:35] + "0"}); err == nil && id[35] != '0' {
		t.Error("a run that was never started is found")
	}
}

func BenchmarkManyOpens(b *testing.B) {
	for b.Loop() {
		Many(seed, begin, 100_000)
	}
}

func BenchmarkPageOfMany(b *testing.B) {
	w := Many(seed, begin, 100_000)
	request := &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 200, Last: true}}
	for b.Loop() {
		if _, err := w.ListWorkflows(ctx, request); err != nil {
			b.Fatal(err)
		}
	}
}
