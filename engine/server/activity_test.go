package server

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// did returns a server's activity in points of this length.
func did(t *testing.T, s *Server, step time.Duration) *kagziv1.GetActivityResponse {
	t.Helper()
	answer, err := s.GetActivity(t.Context(), &kagziv1.GetActivityRequest{Step: durationpb.New(step)})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Step.AsDuration() != step {
		t.Fatalf("step = %s, want %s", answer.Step.AsDuration(), step)
	}
	return answer
}

// busyServer is a server in a bubble whose counting has just begun.
func busyServer(t *testing.T, tell func(t *testing.T, s *Server)) {
	synctest.Test(t, func(t *testing.T) {
		s := serverOver(&servertest.Books{})
		tell(t, s)
	})
}

func TestOnlyTwoStepsOfActivityAreKept(t *testing.T) {
	s := serverOver(&servertest.Books{})
	for _, step := range []time.Duration{-time.Second, time.Millisecond, 2 * time.Second, time.Hour} {
		_, err := s.GetActivity(t.Context(), &kagziv1.GetActivityRequest{Step: durationpb.New(step)})
		if servertest.FieldOf(err) != "step" {
			t.Errorf("a step of %s: %v, want a refusal that names it", step, err)
		}
	}
	if answer, err := s.GetActivity(t.Context(), &kagziv1.GetActivityRequest{}); err != nil ||
		answer.Step.AsDuration() != time.Second {
		t.Errorf("no step means %v, %v, want 1 s", answer, err)
	}
}

func TestTheWritesOfWorkersAreCounted(t *testing.T) {
	busyServer(t, func(t *testing.T, s *Server) {
		b := s.store.(*servertest.Books)
		// which passes in the bubble
		b.Verdict, b.Slow = engine.RunVerdict{Status: engine.RunFailed}, 10*time.Millisecond
		if _, err := s.workers.CompleteStep(t.Context(),
			&kagziv1.CompleteStepRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken,
				StepId: "s"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.workers.FailStep(t.Context(),
			&kagziv1.FailStepRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken, StepId: "s",
				Error: &kagziv1.ErrorDetail{}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.workers.FailWorkflow(t.Context(),
			&kagziv1.FailWorkflowRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken,
				Error: &kagziv1.ErrorDetail{}}); err != nil {
			t.Fatal(err)
		}
		next := &kagziv1.StartWorkflowRequest{}
		if _, err := s.workers.CompleteWorkflow(
			t.Context(), &kagziv1.CompleteWorkflowRequest{
				RunId: servertest.AnID, LeaseToken: servertest.AToken, ContinueAs: next}); err != nil {
			t.Fatal(err)
		}
		if n := s.recorder.Metrics().Commits.Count; n != 4 {
			t.Errorf("%d of 4 writes were measured", n)
		}
		time.Sleep(time.Second)
		p := did(t, s, time.Second).Points[0]
		if p.StepsCompleted != 1 || p.RunsFailed != 1 || p.RunsCompleted != 1 || p.RunsStarted != 1 ||
			p.WriteP95Ms < 10 {
			t.Errorf("counted %v", p)
		}
		if s.recorder.Mark().Finished != 2 || s.recorder.Mark().Started != 1 || s.recorder.Mark().Steps != 1 {
			t.Error("the counters behind GetStats differ")
		}
	})
}

func TestWhatTheCoordinatorDidIsCounted(t *testing.T) {
	busyServer(t, func(t *testing.T, s *Server) {
		s.RunsExpired(engine.Expired{Runs: 5, TimedOut: make([]engine.ID, 3), Cancelled: make([]engine.ID, 2)})
		s.ScheduleFired(&engine.Schedule{}, engine.Fired{Runs: 2}, 0, 40*time.Millisecond)
		s.ScheduleFired(&engine.Schedule{}, engine.Fired{Runs: 5, Skipped: 1}, 5, -1) // all of them missed: no lateness
		s.ScheduleFired(&engine.Schedule{}, engine.Fired{Skipped: 1}, 0, time.Hour)   // nothing fired
		time.Sleep(time.Second)
		p := did(t, s, time.Second).Points[0]
		if p.RunsFailed != 3 || p.RunsStarted != 7 || p.ScheduleLagMs != 40 {
			t.Errorf("counted %v", p)
		}
		if events := s.recorder.Events.Past(0, 10); len(events) != 1 || events[0].Message != "schedule fired" {
			t.Errorf("noted %v, want the one that the log does not tell of", events)
		}
	})
}

func BenchmarkCounting(b *testing.B) {
	b.Run("count", func(b *testing.B) {
		s := New(servertest.StubStore{}, nil, Options{})
		b.ReportAllocs()
		for b.Loop() {
			s.recorder.Count(metrics.StepCompleted)
		}
	})
	b.Run("wrote", func(b *testing.B) {
		s := New(servertest.StubStore{}, nil, Options{})
		b.ReportAllocs()
		for b.Loop() {
			s.recorder.Wrote(time.Millisecond)
		}
	})
	b.Run("claimed", func(b *testing.B) {
		s := New(servertest.StubStore{}, nil, Options{})
		b.ReportAllocs()
		for b.Loop() {
			s.Claimed(time.Millisecond, 1, nil)
		}
	})
	b.Run("notified", func(b *testing.B) {
		s := New(servertest.StubStore{}, nil, Options{})
		b.ReportAllocs()
		for b.Loop() {
			s.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: "n", Name: "q"})
		}
	})
}
