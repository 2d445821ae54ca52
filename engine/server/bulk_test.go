package server

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// progress is all that a bulk change says.
func progress(t *testing.T, b *books, r *kagziv1.BulkWorkflowsRequest) []*kagziv1.BulkWorkflowsProgress {
	t.Helper()
	_, conn := serve(t, b)
	stream, err := kagziv1.NewWorkflowServiceClient(conn).BulkWorkflows(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var all []*kagziv1.BulkWorkflowsProgress
	for {
		p, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func manyRuns(n int) []engine.Run {
	runs := make([]engine.Run, n)
	for i := range runs {
		runs[n-1-i] = engine.Run{ID: someID(i), CreatedAt: began}
	}
	return runs
}

func TestABulkChangeReachesEachRunOnceAndCountsThoseThatRefuse(t *testing.T) {
	const n = 2*engine.MaxPage + 3
	b := &books{runs: manyRuns(n)}
	stubborn := b.runs[1500].ID
	b.refuse = func(id engine.ID) error {
		if id == stubborn {
			return engine.RunEnded(&engine.Run{ID: id, Status: engine.RunCompleted})
		}
		return nil
	}
	b.runs = append([]engine.Run{{ID: someID(n), CreatedAt: time.Now().Add(time.Hour)}}, b.runs...) // made after the call began
	all := progress(t, b, &kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_TERMINATE, Filter: &kagziv1.ListWorkflowsRequest{}, Reason: "why"})
	end := all[len(all)-1]
	if end.Matched != n || end.Done != n-1 || end.Failed != 1 || end.LastRunId != stubborn.String() || end.LastError.GetMetadata()["status"] != "COMPLETED" {
		t.Errorf("at the end %v, want %d done and one failed", end, n-1)
	}
	seen := map[engine.ID]bool{}
	for _, p := range b.asked {
		end := p.(engine.EndRunParams)
		if seen[end.RunID] || end.Reason != "why" || end.By.Name != "local" || end.AuditID.IsZero() || end.Grace != 0 {
			t.Fatalf("asked with %+v, again: %v", end, seen[end.RunID])
		}
		seen[end.RunID] = true
	}
	if len(seen) != n || len(b.pages) != 3 || !b.pages[0].Count || b.pages[1].Count {
		t.Errorf("%d runs changed in %d pages, want %d in 3, counted once", len(seen), len(b.pages), n)
	}
}

func TestABulkChangeStopsAtItsLimit(t *testing.T) {
	b := &books{runs: manyRuns(engine.MaxPage + 20), end: engine.RunEnd{Changed: true}}
	all := progress(t, b, &kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: &kagziv1.ListWorkflowsRequest{}, Limit: engine.MaxPage + 5})
	if end := all[len(all)-1]; end.Matched != engine.MaxPage+5 || end.Done != engine.MaxPage+5 || end.Unchanged != 0 || b.changes() != engine.MaxPage+5 {
		t.Errorf("at the end %v after %d changes, want %d", end, b.changes(), engine.MaxPage+5)
	}
	b = &books{}
	if all := progress(t, b, &kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: &kagziv1.ListWorkflowsRequest{}}); len(all) != 1 ||
		!proto.Equal(all[0], &kagziv1.BulkWorkflowsProgress{}) {
		t.Errorf("of nothing: %v", all)
	}
}

func TestARepeatedBulkRetryAsksForTheSame(t *testing.T) {
	request := &kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_RETRY, Filter: &kagziv1.ListWorkflowsRequest{}}
	b := &books{runs: manyRuns(3)}
	ends := func() *kagziv1.BulkWorkflowsProgress {
		all := progress(t, b, request)
		return all[len(all)-1]
	}
	if end := ends(); end.Done != 3 || end.Unchanged != 0 {
		t.Errorf("the first ends with %v, want 3 done", end)
	}
	b.repeat = true
	if end := ends(); end.Done != 3 || end.Unchanged != 3 {
		t.Errorf("the second ends with %v, want 3 done, all of them before", end)
	}
	ids := map[string]int{}
	for _, p := range b.asked {
		retry := p.(engine.RetryRunParams)
		if err := engine.CheckRequestID(retry.RequestID); err != nil || retry.Restart || retry.FromStep != "" || retry.Input != nil {
			t.Errorf("asked with %+v, %v", retry, err)
		}
		ids[retry.RequestID]++
	}
	if len(ids) != 3 {
		t.Errorf("request ids %v, want three, each twice", ids)
	}
}

func TestProgressIsSentWhileARunTakesLong(t *testing.T) {
	b := &books{runs: manyRuns(1)}
	release := make(chan struct{})
	b.refuse = func(engine.ID) error {
		<-release
		return nil
	}
	_, conn := serve(t, b)
	stream, err := kagziv1.NewWorkflowServiceClient(conn).BulkWorkflows(t.Context(), &kagziv1.BulkWorkflowsRequest{
		Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: &kagziv1.ListWorkflowsRequest{},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil || first.Matched != 1 || first.Done != 0 {
		t.Errorf("meanwhile: %v, %v", first, err)
	}
	close(release)
	var done []int64
	for {
		p, err := stream.Recv()
		if err != nil {
			break
		}
		done = append(done, p.Done)
	}
	if !slices.Contains(done, 1) {
		t.Errorf("afterwards: %v done", done)
	}
}
