package model

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func (s *server) GetWorker(_ context.Context, r *kagziv1.GetWorkerRequest,
	_ ...grpc.CallOption) (*kagziv1.GetWorkerResponse, error) {
	if err := s.call("GetWorker"); err != nil {
		return nil, err
	}
	for _, w := range s.workers {
		if w.GetWorkerId() == r.GetWorkerId() {
			return &kagziv1.GetWorkerResponse{Worker: w}, nil
		}
	}
	return nil, status.Error(codes.NotFound, "no such worker")
}

// ListScheduleRuns answers with one run, whose id counts the calls.
func (s *server) ListScheduleRuns(_ context.Context, r *kagziv1.ListScheduleRunsRequest,
	_ ...grpc.CallOption) (*kagziv1.ListScheduleRunsResponse, error) {
	err := s.call("ListScheduleRuns " + r.GetScheduleId())
	id := runID(s.called("ListScheduleRuns " + r.GetScheduleId()))
	return &kagziv1.ListScheduleRunsResponse{Runs: []*kagziv1.Workflow{{RunId: id, ScheduleId: &r.ScheduleId}}}, err
}

func (s *server) PreviewSchedule(_ context.Context, r *kagziv1.PreviewScheduleRequest,
	_ ...grpc.CallOption) (*kagziv1.PreviewScheduleResponse, error) {
	err := s.call("PreviewSchedule " + r.GetCronExpr())
	time.Sleep(time.Second) // in the bubble
	return &kagziv1.PreviewScheduleResponse{Ticks: []*timestamppb.Timestamp{
		timestamppb.New(time.Unix(int64(len(r.GetCronExpr())), 0))}}, err
}

func TestAnItemIsReadWhileItIsShownAndSaysWhenItIsGone(t *testing.T) {
	worker := &kagziv1.Worker{WorkerId: "w-1"}
	withLink(t, func(s *server) {
		s.workers = []*kagziv1.Worker{worker}
	}, func(t *testing.T, s *server, u *ui, l *Link) {
		w := NewWorker(l, "w-1")
		defer w.Close()
		s.live(u, 20*time.Second)
		if n := s.called("GetWorker"); n != 0 {
			t.Fatalf("hidden it was read %d times", n)
		}
		w.Show()
		u.settle()
		if w.Value().GetWorkerId() != "w-1" || w.Err() != nil {
			t.Fatalf("value = %v, error %v", w.Value(), w.Err())
		}
		s.refuse = errDown
		s.live(u, 5*time.Second)
		if w.Err() != nil || w.Value() == nil {
			t.Fatalf("what was read once is not shown any more while the server is away: %v", w.Err())
		}
		s.refuse, s.workers = nil, nil
		s.live(u, 10*time.Second)
		if status.Code(w.Err()) != codes.NotFound {
			t.Fatalf("error of a worker that is gone = %v, want NotFound", w.Err())
		}
		w.Hide()
		before := s.called("GetWorker")
		s.live(u, 20*time.Second)
		if after := s.called("GetWorker"); after != before {
			t.Fatalf("hidden again it was read %d times", after-before)
		}
	})
}

func TestTheLatestRunIsAskedForOnceUntilTheCountsAreOthers(t *testing.T) {
	withLink(t, func(*server) {}, func(t *testing.T, s *server, u *ui, l *Link) {
		n := NewLatest(l)
		defer n.Close()
		u.settle()
		one := &kagziv1.WorkflowSchedule{ScheduleId: "one", TotalRuns: 4}
		never := &kagziv1.WorkflowSchedule{ScheduleId: "never"}
		for range 10 { // as each frame does
			n.View([]*kagziv1.WorkflowSchedule{never, one})
			u.settle()
		}
		s.live(u, time.Minute)
		if got, none := s.called("ListScheduleRuns one"), s.called("ListScheduleRuns never"); got != 1 || none != 0 {
			t.Fatalf("asked %d and %d times, want once and never", got, none)
		}
		s.tell(&kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{
			{RunId: runID(1), ScheduleId: new("one"), Note: "ended"}}})
		u.settle()
		if got := n.Run("one").GetNote(); got != "ended" {
			t.Fatalf("the run that changed is noted as %q", got)
		}
		n.View([]*kagziv1.WorkflowSchedule{{ScheduleId: "one", TotalRuns: 5}})
		u.settle()
		if got := n.Run("one").GetRunId(); got != runID(2) {
			t.Fatalf("after another run the latest is %q, want %q", got, runID(2))
		}
	})
}

func TestAPreviewWaitsForAPauseAndDropsWhatIsLate(t *testing.T) {
	withLink(t, func(*server) {}, func(t *testing.T, s *server, u *ui, l *Link) {
		p := NewPreview(l, 5)
		defer p.Close()
		for _, expr := range []string{"0", "0 1", "0 12"} {
			p.Want(expr, "")
			u.advance(100 * time.Millisecond)
		}
		if n := s.called("PreviewSchedule 0") + s.called("PreviewSchedule 0 1"); n != 0 {
			t.Fatalf("asked %d times while it was being typed", n)
		}
		u.advance(100 * time.Millisecond) // the question about "0 12" is under way for a second
		p.Want("0 12 *", "")
		u.advance(960 * time.Millisecond)
		if len(p.Ticks()) != 0 || !p.Asking() {
			t.Fatalf("the late answer about an earlier expression is shown: %v", p.Ticks())
		}
		u.advance(time.Second)
		if len(p.Ticks()) != 1 || p.Ticks()[0].GetSeconds() != int64(len("0 12 *")) || p.Asking() {
			t.Fatalf("ticks = %v, asking %t", p.Ticks(), p.Asking())
		}
		p.Want("", "")
		u.advance(time.Second)
		if p.Asking() || len(p.Ticks()) != 0 || s.called("PreviewSchedule ") != 0 {
			t.Fatal("an empty expression is asked about")
		}
	})
}

func TestFiguresOfANamespaceAreNotCountedAllTheTime(t *testing.T) {
	withLink(t, func(*server) {}, func(t *testing.T, s *server, u *ui, l *Link) {
		f := NewFigures(l)
		defer f.Close()
		u.settle()
		f.View([]string{"default", "staging"})
		u.settle()
		if n := s.called("GetStats"); n != 0 {
			t.Fatalf("hidden they were counted %d times", n)
		}
		f.Show()
		for range 12 {
			f.View([]string{"default", "staging"})
			s.live(u, 5*time.Second)
		}
		if n := s.called("GetStats"); n < 6 || n > 10 {
			t.Fatalf("two namespaces were counted %d times in a minute, want about 4 times each", n)
		}
		if f.Of("staging").GetRunningWorkflows() != 3 || f.Of("other") != nil {
			t.Fatalf("figures = %v, %v", f.Of("staging"), f.Of("other"))
		}
	})
}

func TestAChangedNamespaceIsACommand(t *testing.T) {
	old := &kagziv1.Namespace{Namespace: "shop",
		Keep: map[string]*durationpb.Duration{"failed": durationpb.New(48 * time.Hour),
			"completed": durationpb.New(time.Hour)}}
	a := Scope{}.UpdateNamespace(old, &kagziv1.UpdateNamespaceRequest{
		Description: new("the shop"), Retention: durationpb.New(0), FailureTaskQueue: new(""), Reason: "moved",
		Keep: &kagziv1.Keep{Keep: map[string]*durationpb.Duration{"failed": durationpb.New(96 * time.Hour)}},
	})
	const want = "kagzi namespace update shop --description 'the shop' --retention default --keep completed=default --keep failed=4d --failure-queue '' --reason moved"
	if got := a.CommandLine(); got != want {
		t.Fatalf("command line\n got %s\nwant %s", got, want)
	}
}
