package server

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// progress holds all messages of a bulk change.
func progress(t *testing.T, b *servertest.Books, r *kagziv1.BulkWorkflowsRequest) []*kagziv1.BulkWorkflowsProgress {
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
		runs[n-1-i] = engine.Run{ID: servertest.SomeID(i), CreatedAt: servertest.Began}
	}
	return runs
}

func TestABulkChangeReachesEachRunOnceAndCountsThoseThatRefuse(t *testing.T) {
	const n = 2*engine.MaxPage + 3
	b := &servertest.Books{Runs: manyRuns(n)}
	stubborn := b.Runs[1500].ID
	b.Refuse = func(id engine.ID) error {
		if id == stubborn {
			return engine.RunEnded(&engine.Run{ID: id, Status: engine.RunCompleted})
		}
		return nil
	}
	// made after the call began
	b.Runs = append([]engine.Run{{ID: servertest.SomeID(n), CreatedAt: time.Now().Add(time.Hour)}}, b.Runs...)
	all := progress(t, b, &kagziv1.BulkWorkflowsRequest{
		Action: kagziv1.BulkAction_BULK_ACTION_TERMINATE, Filter: &kagziv1.ListWorkflowsRequest{}, Reason: "why"})
	end := all[len(all)-1]
	if end.Matched != n || end.Done != n-1 || end.Failed != 1 || end.LastRunId != stubborn.String() ||
		end.LastError.GetMetadata()["status"] != "COMPLETED" {
		t.Errorf("at the end %v, want %d done and one failed", end, n-1)
	}
	seen := map[engine.ID]bool{}
	for _, p := range b.Asked {
		end := p.(engine.EndRunParams)
		if seen[end.RunID] || end.Namespace != "default" || end.Reason != "why" || end.By.Name != "local" ||
			end.AuditID.IsZero() || end.Grace != 0 {
			t.Fatalf("asked with %+v, again: %v", end, seen[end.RunID])
		}
		seen[end.RunID] = true
	}
	if len(seen) != n || len(b.Pages) != 3 || !b.Pages[0].Count || b.Pages[1].Count {
		t.Errorf("%d runs changed in %d pages, want %d in 3, counted once", len(seen), len(b.Pages), n)
	}
}

func TestRunsStoppedDuringABulkStopAreNoFailures(t *testing.T) {
	for _, test := range []struct {
		name                  string
		action                kagziv1.BulkAction
		listed, met           engine.RunStatus
		done, unchanged, fail int64
	}{
		{"terminated with its parent", kagziv1.BulkAction_BULK_ACTION_CANCEL, engine.RunSleeping,
			engine.RunTerminated, 1, 1, 0},
		{"cancelled by another", kagziv1.BulkAction_BULK_ACTION_TERMINATE, engine.RunRunning,
			engine.RunCancelled, 1, 1, 0},
		{"came to its end", kagziv1.BulkAction_BULK_ACTION_CANCEL, engine.RunRunning, engine.RunCompleted, 0, 0, 1},
		{"was terminated before", kagziv1.BulkAction_BULK_ACTION_CANCEL, engine.RunTerminated,
			engine.RunTerminated, 0, 0, 1},
		{"is in the way of a retry", kagziv1.BulkAction_BULK_ACTION_RETRY, engine.RunSleeping,
			engine.RunTerminated, 0, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &servertest.Books{Runs: manyRuns(1)}
			b.Runs[0].Status = test.listed
			b.Refuse = func(id engine.ID) error { return engine.RunEnded(&engine.Run{ID: id, Status: test.met}) }
			all := progress(t, b, &kagziv1.BulkWorkflowsRequest{
				Action: test.action, Filter: &kagziv1.ListWorkflowsRequest{}})
			if end := all[len(all)-1]; end.Matched != 1 || end.Done != test.done || end.Unchanged != test.unchanged ||
				end.Failed != test.fail {
				t.Errorf("at the end %v, want %d done, %d of them before, and %d failed", end, test.done,
					test.unchanged, test.fail)
			}
		})
	}
}

func TestABulkChangeStopsAtItsLimit(t *testing.T) {
	b := &servertest.Books{Runs: manyRuns(engine.MaxPage + 20), End: engine.RunEnd{Changed: true}}
	all := progress(t, b, &kagziv1.BulkWorkflowsRequest{
		Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: &kagziv1.ListWorkflowsRequest{},
		Limit: engine.MaxPage + 5})
	if end := all[len(all)-1]; end.Matched != engine.MaxPage+5 || end.Done != engine.MaxPage+5 || end.Unchanged != 0 ||
		b.Changes() != engine.MaxPage+5 {
		t.Errorf("at the end %v after %d changes, want %d", end, b.Changes(), engine.MaxPage+5)
	}
	b = &servertest.Books{}
	if all := progress(t, b, &kagziv1.BulkWorkflowsRequest{
		Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: &kagziv1.ListWorkflowsRequest{}}); len(all) != 1 ||
		!proto.Equal(all[0], &kagziv1.BulkWorkflowsProgress{}) {
		t.Errorf("of nothing: %v", all)
	}
}

func TestARepeatedBulkRetryAsksForTheSame(t *testing.T) {
	request := &kagziv1.BulkWorkflowsRequest{
		Action: kagziv1.BulkAction_BULK_ACTION_RETRY, Filter: &kagziv1.ListWorkflowsRequest{}}
	b := &servertest.Books{Runs: manyRuns(3)}
	ends := func() *kagziv1.BulkWorkflowsProgress {
		all := progress(t, b, request)
		return all[len(all)-1]
	}
	if end := ends(); end.Done != 3 || end.Unchanged != 0 {
		t.Errorf("the first ends with %v, want 3 done", end)
	}
	b.Repeat = true
	if end := ends(); end.Done != 3 || end.Unchanged != 3 {
		t.Errorf("the second ends with %v, want 3 done, all of them before", end)
	}
	ids := map[string]int{}
	for _, p := range b.Asked {
		retry := p.(engine.RetryRunParams)
		if err := engine.CheckRequestID(retry.RequestID); err != nil || retry.Restart || retry.FromStep != "" ||
			retry.Input != nil {
			t.Errorf("asked with %+v, %v", retry, err)
		}
		ids[retry.RequestID]++
	}
	if len(ids) != 3 {
		t.Errorf("request ids %v, want three, each twice", ids)
	}
}

func TestABulkRetrySkipsRetriedRuns(t *testing.T) {
	b := &servertest.Books{Runs: manyRuns(4)}
	tried := b.Runs[3].ID
	b.Runs[1].RetriedFrom = tried // and is to be retried itself
	all := progress(t, b, &kagziv1.BulkWorkflowsRequest{
		Action: kagziv1.BulkAction_BULK_ACTION_RETRY, Filter: &kagziv1.ListWorkflowsRequest{}})
	if end := all[len(all)-1]; end.Done != 4 || end.Unchanged != 1 || end.Failed != 0 {
		t.Errorf("it ends with %v, want 4 done, one of them before", end)
	}
	for _, p := range b.Asked {
		if p.(engine.RetryRunParams).RunID == tried {
			t.Error("a run that was retried by hand is retried again")
		}
	}
}

func TestARetryUnlessRetriedAnswersTheExistingOne(t *testing.T) {
	first, second, newest := servertest.SomeID(0), servertest.SomeID(1), servertest.SomeID(2)
	for _, c := range []struct {
		status engine.RunStatus
		want   *kagziv1.RetryWorkflowResponse
	}{
		{engine.RunCompleted, &kagziv1.RetryWorkflowResponse{NewRunId: newest.String(), AlreadyRetried: true}},
		{engine.RunSleeping, &kagziv1.RetryWorkflowResponse{
			NewRunId: newest.String(), AlreadyRetried: true, AlreadyRunning: true}},
	} {
		b := &servertest.Books{Runs: []engine.Run{
			{ID: first, Status: engine.RunFailed}, {ID: second, Status: engine.RunFailed, RetriedFrom: first},
			{ID: newest, Status: c.status, RetriedFrom: first},
		}}
		ask := func(run engine.ID, unless bool) *kagziv1.RetryWorkflowResponse {
			answer, err := serverOver(b).RetryWorkflow(
				t.Context(), &kagziv1.RetryWorkflowRequest{RunId: run.String(), UnlessRetried: unless})
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		if got := ask(first, true); !proto.Equal(got, c.want) || b.Changes() != 0 {
			t.Errorf("%s: %v after %d changes, want %v and none", c.status, got, b.Changes(), c.want)
		}
		if ask(first, false); b.Changes() != 1 {
			t.Errorf("%s: who asks for a retry all the same gets none", c.status)
		}
		if ask(second, true); b.Changes() != 2 {
			t.Errorf("%s: a run that was not retried is left alone", c.status)
		}
	}
}

func TestProgressIsSentWhileARunTakesLong(t *testing.T) {
	b := &servertest.Books{Runs: manyRuns(2)}
	release := make(chan struct{})
	b.Refuse = func(engine.ID) error {
		<-release
		return nil
	}
	_, conn := serve(t, b)
	stream, err := kagziv1.NewWorkflowServiceClient(conn).BulkWorkflows(t.Context(), &kagziv1.BulkWorkflowsRequest{
		Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: &kagziv1.ListWorkflowsRequest{}, Limit: 1,
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

// bulkStream is the server's end of a bulk change.
type bulkStream struct {
	grpc.ServerStream
	ctx  context.Context
	send func(*kagziv1.BulkWorkflowsProgress) error
}

func (b *bulkStream) Context() context.Context                           { return b.ctx }
func (b *bulkStream) Send(progress *kagziv1.BulkWorkflowsProgress) error { return b.send(progress) }

func TestABulkChangeStopsWithTheServerAndWithItsCaller(t *testing.T) {
	gone := errors.New("the caller is gone")
	for _, c := range []struct {
		what string
		end  func(s *Server, hangUp func())
		want error
	}{
		{"the server stops", func(s *Server, _ func()) { close(s.stopping) }, wire.ErrStopping},
		{"nobody takes the progress", func(*Server, func()) { time.Sleep(bulkReport) }, gone},
		{"the call is given up", func(_ *Server, hangUp func()) { hangUp() }, context.Canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, release := &servertest.Books{Runs: manyRuns(10 * bulkAtOnce)}, make(chan struct{})
			for i := range b.Runs {
				b.Runs[i].CreatedAt = time.Now().Add(-time.Hour)
			}
			b.Refuse = func(engine.ID) error { <-release; return nil }
			s := New(b, nil, Options{Trusted: true})
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			stream := &bulkStream{ctx: ctx, send: func(*kagziv1.BulkWorkflowsProgress) error { return gone }}
			over := make(chan error, 1)
			go func() {
				over <- s.BulkWorkflows(&kagziv1.BulkWorkflowsRequest{
					Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: &kagziv1.ListWorkflowsRequest{},
				}, stream)
			}()
			synctest.Wait()
			c.end(s, hangUp)
			synctest.Wait()
			close(release)
			if err := <-over; !errors.Is(err, c.want) || b.Changes() != bulkAtOnce {
				t.Errorf("%s: %v after %d changes, want %v after the %d that were under way", c.what, err, b.Changes(),
					c.want, bulkAtOnce)
			}
		})
	}
}

// restless is a store whose lists say that there is more than they hold, and one of whose runs
// brings a defect to light.
type restless struct {
	*servertest.Books
	defect engine.ID
	broken bool // every list does
}

func (r restless) ListRuns(ctx context.Context, f engine.RunFilter, p engine.Page) ([]engine.Run,
	engine.PageInfo, error) {
	if r.broken {
		panic("of the list")
	}
	runs, info, err := r.Books.ListRuns(ctx, f, p)
	info.Total += 5
	return runs, info, err
}

func (r restless) CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	if p.RunID == r.defect {
		panic("of a run")
	}
	return r.Books.CancelRun(ctx, p)
}

func TestABulkChangeCountsAndSurvivesAPanic(t *testing.T) {
	const n = 7
	b := &servertest.Books{Runs: manyRuns(n), End: engine.RunEnd{Changed: true, Status: engine.RunCancelled}}
	store := &restless{Books: b, defect: b.Runs[3].ID}
	s := New(store, nil, Options{Trusted: true})
	var last *kagziv1.BulkWorkflowsProgress
	change := func(action kagziv1.BulkAction) error {
		return s.BulkWorkflows(&kagziv1.BulkWorkflowsRequest{Action: action, Filter: &kagziv1.ListWorkflowsRequest{}},
			&bulkStream{ctx: t.Context(), send: func(p *kagziv1.BulkWorkflowsProgress) error { last = p; return nil }})
	}
	if err := change(kagziv1.BulkAction_BULK_ACTION_CANCEL); err != nil {
		t.Fatal(err)
	}
	if last.Matched != n || last.Done != n-1 || last.Failed != 1 || last.LastRunId != store.defect.String() ||
		last.LastError.GetMessage() == "" ||
		strings.Contains(last.LastError.GetMessage(), "of a run") {
		t.Errorf("at the end %v, want %d done and one failed", last, n-1)
	}
	store.defect = engine.ID{}
	b.Refuse = func(id engine.ID) error {
		if id == b.Runs[0].ID {
			return engine.RunEnded(&engine.Run{ID: id, Status: engine.RunCompleted})
		}
		return nil
	}
	if err := change(kagziv1.BulkAction_BULK_ACTION_CANCEL); err != nil || last.Failed != 1 {
		t.Fatal(err, last)
	}
	if err := change(kagziv1.BulkAction_BULK_ACTION_RETRY); err != nil || last.Failed != 1 {
		t.Fatal(err, last)
	}
	if m := s.Metrics(); m.RunsStopped != 2*(n-1) || m.RunsStarted != n-1 {
		t.Errorf("%d runs stopped and %d started, want %d and %d", m.RunsStopped, m.RunsStarted, 2*(n-1), n-1)
	}
	store.broken = true
	if err := change(kagziv1.BulkAction_BULK_ACTION_CANCEL); err == nil || engine.KindOf(err) != engine.KindInternal {
		t.Errorf("of a list that brings a defect to light: %v", err)
	}
}
