package model

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// at returns a time some seconds after the beginning.
func at(seconds float64) *timestamppb.Timestamp {
	return timestamppb.New(time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second))))
}

// aStep returns an attempt of the n-th step; to 0: it has not ended.
func aStep(name string, n int64, attempt int32, s kagziv1.StepStatus, from, to float64) *kagziv1.Step {
	step := &kagziv1.Step{
		StepId: fmt.Sprintf("%s/%d", name, attempt), Name: name, Sequence: n, AttemptNumber: attempt, Status: s,
		Kind:      kagziv1.StepKind_STEP_KIND_FUNCTION,
		CreatedAt: at(from), StartedAt: at(from), IsLatest: true,
	}
	if to != 0 {
		step.FinishedAt = at(to)
	}
	return step
}

const (
	stepPending   = kagziv1.StepStatus_STEP_STATUS_PENDING
	stepRunning   = kagziv1.StepStatus_STEP_STATUS_RUNNING
	stepCompleted = kagziv1.StepStatus_STEP_STATUS_COMPLETED
	stepFailed    = kagziv1.StepStatus_STEP_STATUS_FAILED
)

// withRun runs a test with a shown run whose stream is open.
func withRun(t *testing.T, prepare func(*server), tell func(t *testing.T, s *server, u *ui, r *Run)) {
	t.Helper()
	withLink(t, prepare, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		r := NewRun(l, runID(1))
		defer r.Close()
		r.Show()
		u.settle()
		tell(t, s, u, r)
	})
}

func (s *server) tellRun(events ...*kagziv1.WatchWorkflowEvent) {
	for _, e := range events {
		s.runStreams[len(s.runStreams)-1].messages <- e
	}
}

func stepNames(r *Run) []string {
	var names []string
	for _, s := range r.Steps() {
		names = append(names, s.GetStepId())
	}
	return names
}

func TestRun_grows_step_by_step(t *testing.T) {
	withRun(t, nothing, func(t *testing.T, s *server, u *ui, r *Run) {
		if r.Loaded() || r.Workflow() != nil {
			t.Fatal("loaded before anything came")
		}
		s.tellRun(
			&kagziv1.WatchWorkflowEvent{Steps: []*kagziv1.Step{
				aStep("b", 2, 1, stepRunning, 2, 0), aStep("a", 1, 1, stepCompleted, 0, 1)}},
			&kagziv1.WatchWorkflowEvent{Workflow: aRun(1, running)}, &kagziv1.WatchWorkflowEvent{SnapshotDone: true})
		u.settle()
		if diff := cmp.Diff([]string{"a/1", "b/1"}, stepNames(r)); diff != "" || !r.Loaded() {
			t.Fatal(diff, r.Loaded())
		}
		superseded := aStep("b", 2, 1, stepFailed, 2, 3)
		superseded.IsLatest = false
		s.tellRun(&kagziv1.WatchWorkflowEvent{Steps: []*kagziv1.Step{
			aStep("b", 2, 2, stepRunning, 4, 0), superseded, superseded}})
		u.settle()
		if diff := cmp.Diff([]string{"a/1", "b/1", "b/2"}, stepNames(r)); diff != "" {
			t.Fatal(diff)
		}
		if r.Step("b/1").GetStatus() != stepFailed || len(r.Attempts("b")) != 2 || len(r.Lanes()) != 2 ||
			len(r.Lanes()[1].Spans) != 3 {
			t.Fatalf("lanes %+v", r.Lanes())
		}
	})
}

func TestRun_comes_back_with_what_has_changed_meanwhile(t *testing.T) {
	withRun(t, nothing, func(t *testing.T, s *server, u *ui, r *Run) {
		s.tellRun(&kagziv1.WatchWorkflowEvent{Steps: []*kagziv1.Step{
			aStep("a", 1, 1, stepRunning, 0, 0), aStep("gone", 2, 1, stepRunning, 0, 0)}},
			&kagziv1.WatchWorkflowEvent{Workflow: aRun(1, running)}, &kagziv1.WatchWorkflowEvent{SnapshotDone: true})
		u.settle()
		s.runStreams[0].end <- errDown
		u.settle()
		if !r.State().Down() || r.Workflow() == nil || r.Err() != nil {
			t.Fatalf("state %+v, error %v", r.State(), r.Err())
		}
		u.advance(time.Second)
		s.tellRun(&kagziv1.WatchWorkflowEvent{Steps: []*kagziv1.Step{aStep("a", 1, 1, stepCompleted, 0, 1)}})
		u.settle()
		if len(r.Steps()) != 2 {
			t.Fatalf("steps %v: some are gone before the snapshot is whole", stepNames(r))
		}
		s.tellRun(&kagziv1.WatchWorkflowEvent{Workflow: aRun(1, completed)},
			&kagziv1.WatchWorkflowEvent{SnapshotDone: true})
		s.runStreams[1].end <- io.EOF
		u.settle()
		if diff := cmp.Diff([]string{"a/1"}, stepNames(r)); diff != "" || r.State().Phase != Ended {
			t.Fatal(diff, r.State())
		}
		streams := s.called("WatchWorkflow")
		s.live(u, time.Minute)
		if s.called("WatchWorkflow") != streams {
			t.Fatal("the stream of a run that has ended was opened again")
		}
		s.tell(&kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{aRun(1, completed)}}) // it was pinned
		u.advance(2 * time.Second)
		if s.called("WatchWorkflow") != streams+1 {
			t.Fatal("a change after the end was not read")
		}
	})
}

func TestRun_that_is_deleted_says_so_and_keeps_what_was_known(t *testing.T) {
	withRun(t, nothing, func(t *testing.T, s *server, u *ui, r *Run) {
		s.tellRun(&kagziv1.WatchWorkflowEvent{Workflow: aRun(1, completed)})
		s.runStreams[0].end <- status.Error(codes.NotFound, "no run")
		s.live(u, time.Minute)
		if !r.Gone() || r.Workflow() == nil || len(s.runStreams) != 1 {
			t.Fatalf("gone %t, run %v, %d streams", r.Gone(), r.Workflow(), len(s.runStreams))
		}
	})
}

func TestRun_asks_why_it_waits_when_something_changes_and_when_it_is_to_go_on(t *testing.T) {
	withRun(t, func(s *server) {
		s.explain = &kagziv1.ExplainWorkflowResponse{
			Summary: "sleeps", NextAt: timestamppb.New(time.Date(2000, 1, 1, 0, 0, 30, 0, time.UTC))}
	}, func(t *testing.T, s *server, u *ui, r *Run) {
		s.tellRun(&kagziv1.WatchWorkflowEvent{Workflow: aRun(1, running)},
			&kagziv1.WatchWorkflowEvent{SnapshotDone: true})
		u.settle()
		if r.Explanation().GetSummary() != "sleeps" || s.called("ExplainWorkflow") != 1 {
			t.Fatalf("explained %v after %d calls", r.Explanation(), s.called("ExplainWorkflow"))
		}
		for range 40 { // changes in 4 s
			s.tellRun(&kagziv1.WatchWorkflowEvent{Workflow: aRun(1, running)})
			u.advance(100 * time.Millisecond)
		}
		u.advance(2 * time.Second)
		calls := s.called("ExplainWorkflow")
		if calls < 4 || calls > 6 {
			t.Fatalf("asked %d times in 4 s of changes, want about 5", calls)
		}
		s.live(u, 20*time.Second)
		if n := s.called("ExplainWorkflow"); n != calls {
			t.Fatalf("asked %d times although nothing changed", n-calls)
		}
		s.live(u, 10*time.Second) // past the 30 s at which it goes on
		if n := s.called("ExplainWorkflow"); n != calls+1 {
			t.Fatalf("asked %d times when it was to go on", n-calls)
		}
		s.tellRun(&kagziv1.WatchWorkflowEvent{Workflow: aRun(1, completed)})
		u.settle()
		if r.Explanation() != nil {
			t.Fatal("a run that has ended still waits for something")
		}
	})
}

func TestRun_that_has_ended_waits_for_nothing_though_the_answer_comes_late(t *testing.T) {
	withRun(t, func(s *server) { s.why = make(chan struct{}) }, func(t *testing.T, s *server, u *ui, r *Run) {
		s.tellRun(&kagziv1.WatchWorkflowEvent{Workflow: aRun(1, running)},
			&kagziv1.WatchWorkflowEvent{SnapshotDone: true})
		u.settle()
		s.tellRun(&kagziv1.WatchWorkflowEvent{Workflow: aRun(1, completed)})
		u.settle()
		close(s.why)
		u.settle()
		if r.Explanation() != nil || s.called("ExplainWorkflow") != 1 {
			t.Fatalf("explained %v after %d calls", r.Explanation(), s.called("ExplainWorkflow"))
		}
	})
}

func TestRun_reads_only_the_parts_on_the_screen(t *testing.T) {
	withRun(t, func(s *server) {
		s.signals = []*kagziv1.Signal{{Name: "go", ReceivedAt: at(1)}}
	}, func(t *testing.T, s *server, u *ui, r *Run) {
		s.tellRun(&kagziv1.WatchWorkflowEvent{Workflow: aRun(1, running)},
			&kagziv1.WatchWorkflowEvent{SnapshotDone: true})
		u.settle()
		if s.called("ListSignals")+s.called("ListAuditEvents")+s.called("ListWorkflows") != 0 {
			t.Fatal("parts were read that nobody sees")
		}
		child := aRun(7, running)
		child.ParentRunId = new(runID(1))
		s.put(child)
		r.SetParts(Signals | Children)
		u.settle()
		if len(r.Signals()) != 1 || s.called("ListAuditEvents") != 0 || r.Children().Len() != 1 {
			t.Fatalf("%d signals, %d children, %d audits read", len(r.Signals()), r.Children().Len(),
				s.called("ListAuditEvents"))
		}
		if got := r.Events(); len(got) < 2 || !slices.ContainsFunc(got, func(e Event) bool {
			return e.Kind == "signal received"
		}) {
			t.Fatalf("events %+v", got)
		}
	})
}

func TestRun_takes_10000_steps_in_any_order(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	withRun(t, nothing, func(t *testing.T, s *server, u *ui, r *Run) {
		var steps []*kagziv1.Step
		for i := range 10_000 {
			steps = append(steps, aStep(fmt.Sprint("s", i), int64(i+1), 1, stepCompleted, float64(i), float64(i)+0.5))
		}
		want := slices.Clone(steps)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for part := range slices.Chunk(steps, 500) {
			s.tellRun(&kagziv1.WatchWorkflowEvent{Steps: part})
		}
		u.settle()
		if !slices.Equal(r.Steps(), want) {
			t.Fatal("the steps are not in their order")
		}
		if lanes := r.Lanes(); len(lanes) != 10_000 || &lanes[0] != &r.Lanes()[0] {
			t.Fatal("the lanes are not kept")
		}
	})
}

func BenchmarkLanes_10000(b *testing.B) {
	var steps []*kagziv1.Step
	for i := range 10_000 {
		steps = append(steps, aStep(fmt.Sprint("s", i), int64(i+1), 1, stepCompleted, float64(i), float64(i)+0.5))
	}
	for b.Loop() {
		Lanes(steps)
	}
}

func TestLanes(t *testing.T) {
	sleep := aStep("nap", 3, 1, stepRunning, 6, 0)
	sleep.Kind = kagziv1.StepKind_STEP_KIND_SLEEP
	superseded := aStep("charge", 2, 1, stepFailed, 1, 2)
	superseded.IsLatest = false
	waiting := aStep("retry", 4, 1, stepPending, 7, 8)
	waiting.Error = &kagziv1.ErrorDetail{Type: "Declined", Message: "no money"}
	lost := aStep("lost", 5, 1, stepFailed, 1, 0) // ended with the next attempt, as it seems
	lost.IsLatest = false
	steps := []*kagziv1.Step{
		aStep("a", 1, 1, stepCompleted, 0, 1), superseded, aStep("charge", 2, 2, stepCompleted, 4, 5), sleep, waiting,
		lost, aStep("lost", 5, 2, stepRunning, 3, 0), aStep("bad", 6, 1, stepFailed, 1, 2),
	}
	tm := func(seconds float64) time.Time { return at(seconds).AsTime() }
	want := []Lane{
		{Name: "a", Step: steps[0], Spans: []Span{{Work, tm(0), tm(1), steps[0], false}}},
		{Name: "charge", Step: steps[2], Spans: []Span{
			{Work, tm(1), tm(2), superseded, true}, {Between, tm(2), tm(4), superseded, false},
			{Work, tm(4), tm(5), steps[2], false}}},
		{Name: "nap", Step: sleep, Open: true, Spans: []Span{{Rest, tm(6), time.Time{}, sleep, false}}},
		{Name: "retry", Step: waiting, Open: true, Note: "Declined: no money",
			Spans: []Span{{Work, tm(7), tm(8), waiting, true}, {Between, tm(8), time.Time{}, waiting, false}}},
		{Name: "lost", Step: steps[6], Open: true,
			Spans: []Span{{Work, tm(1), tm(3), lost, true}, {Work, tm(3), time.Time{}, steps[6], false}}},
		{Name: "bad", Step: steps[7], Failed: true, Spans: []Span{{Work, tm(1), tm(2), steps[7], true}}},
	}
	if diff := cmp.Diff(want, Lanes(steps), protocmp.Transform()); diff != "" {
		t.Fatal(diff)
	}
	if Lanes(nil) != nil {
		t.Fatal("no steps have lanes")
	}
}

func TestEvents(t *testing.T) {
	run := &kagziv1.Workflow{
		RunId: runID(1), WorkflowType: "order", Status: failed, CreatedAt: at(0), StartedAt: at(1), FinishedAt: at(9),
		ScheduleId: new("nightly"),
		Error:      &kagziv1.ErrorDetail{Message: "broke"},
	}
	overridden := aStep("fix", 2, 1, stepCompleted, 5, 6)
	overridden.OverriddenBy, overridden.OverrideReason = "ada", "by hand"
	got := Events(run, []*kagziv1.Step{aStep("a", 1, 2, stepFailed, 1, 3), overridden},
		[]*kagziv1.Signal{{Name: "go", ReceivedAt: at(2)}},
		[]*kagziv1.AuditEvent{{At: at(4), Actor: "ada", Method: "PauseWorkflow", Outcome: "ok", Reason: "look"}})
	var lines []string
	for _, e := range got {
		lines = append(lines, fmt.Sprintf("%d +%s %s | %s | %s", e.Sequence, render.Duration(e.Since), e.Kind,
			e.Subject, e.Detail))
	}
	want := []string{
		"1 +0s run created | order | by schedule nightly",
		"2 +1s run started | order | ",
		"3 +0s step started | a | attempt 2",
		"4 +1s signal received | go | " + render.PayloadLine(nil, payloadLine),
		"5 +1s step failed | a | attempt 2",
		"6 +1s by hand: PauseWorkflow | ada | look",
		"7 +1s step started | fix | ",
		"8 +1s step overridden | fix | overridden by ada: by hand",
		"9 +3s run failed | order | broke",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Fatal(diff)
	}
	if Events(nil, nil, nil, nil) != nil {
		t.Fatal("nothing has events")
	}
}
