package server

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestWhatHappensIsCountedForMetrics(t *testing.T) {
	busyServer(t, func(t *testing.T, s *Server) {
		b := s.store.(*servertest.Books)
		b.Slow = 10 * time.Millisecond // which passes in the bubble
		fail := &kagziv1.FailStepRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken, StepId: "s",
			Error: &kagziv1.ErrorDetail{}}
		for _, retry := range []bool{true, true, false} {
			b.StepVerdict = engine.Verdict{Retry: retry}
			if _, err := s.workers.FailStep(t.Context(), fail); err != nil {
				t.Fatal(err)
			}
		}
		// Of the steps that a worker noticed to run for too long, a repetition counts none, and no
		// other failure does.
		for _, c := range []struct {
			code    kagziv1.ErrorCode
			verdict engine.Verdict
		}{
			{kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, engine.Verdict{Retry: true, Failures: 1}},
			{kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, engine.Verdict{}},
			{kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, engine.Verdict{Retry: true}},
			{kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, engine.Verdict{Retry: true, Failures: 1}},
		} {
			b.StepVerdict, fail.Error.Code = c.verdict, c.code
			if _, err := s.workers.FailStep(t.Context(), fail); err != nil {
				t.Fatal(err)
			}
		}
		s.recorder.Count(metrics.StepCompleted)
		s.recorder.Count(metrics.RunStarted)
		s.recorder.Count(metrics.RunCompleted)
		s.recorder.Count(metrics.RunStopped)
		s.RunsExpired(engine.Expired{Runs: 6, TimedOut: make([]engine.ID, 3), Cancelled: make([]engine.ID, 2)})
		s.RunsDeleted(4)
		s.RunsDiverged(make([]engine.ID, 2))
		s.StepsTimedOut(make([]engine.TimedOutAttempt, 5))
		s.WorkerLost()
		s.LeasesLost(6)
		s.Claimed(time.Second, 7, nil)
		s.Claimed(2*time.Second, 0, errors.New("not now"))
		s.ScheduleFired(&engine.Schedule{}, engine.Fired{Runs: 2}, 0, 40*time.Millisecond)
		s.ScheduleFired(&engine.Schedule{}, engine.Fired{Runs: 5, Skipped: 1}, 5, -1)
		s.ScheduleFired(&engine.Schedule{}, engine.Fired{Skipped: 2}, 0, -1)
		s.SideEffects(&engine.SideEffects{Handlers: 20, Ticks: 3, Failed: make([]engine.ID, 40), Stopped: 50})
		s.Notify(engine.Notification{Kind: engine.NotifyAll})
		s.Notify(engine.Notification{Kind: engine.NotifyTimer})
		s.Notify(engine.Notification{Kind: engine.NotifyTimer})
		watched := servertest.SomeID(1)
		b.Runs = []engine.Run{{ID: watched, Status: engine.RunRunning}}
		stream := &servertest.Stream[kagziv1.WatchWorkflowEvent]{Ctx: t.Context()}
		go s.WatchWorkflow(&kagziv1.WatchWorkflowRequest{RunId: watched.String()}, stream) // ends with the test
		synctest.Wait()

		got := s.Metrics()
		want := metrics.Metrics{
			RunsStarted: 31, RunsCompleted: 1, RunsFailed: 43, RunsStopped: 53, RunsDeleted: 4, RunsDiverged: 2,
			StepsCompleted: 1, StepsRetried: 5, StepsFailed: 2, StepTimeouts: 7,
			RunsClaimed: 7, ClaimErrors: 1, WorkersLost: 1, LeasesLost: 6,
			ScheduleRuns: 10, TicksCaughtUp: 5, TicksSkipped: 3, RunWatchers: 1,
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(
			metrics.Metrics{}, "Commits", "Claims", "ScheduleLag", "Notifications", "Methods")); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		for name, l := range map[string]struct {
			got   metrics.Lengths
			count uint64
			sum   time.Duration
		}{"commits": {got.Commits, 7, 70 * time.Millisecond}, "claims": {got.Claims, 2, 3 * time.Second},
			"lags": {got.ScheduleLag, 1, 40 * time.Millisecond}} {
			if l.got.Count != l.count || l.got.Sum != l.sum {
				t.Errorf("%s = %d in %s, want %d in %s", name, l.got.Count, l.got.Sum, l.count, l.sum)
			}
		}
		if n := got.Notifications; n["all"] != 1 || n["timer"] != 2 || len(n) != int(engine.NotifyWait)+1 {
			t.Errorf("notifications = %v, want 1 of all, 2 of timer, and the other kinds", n)
		}
	})
}

func TestCountingForMetricsAllocatesNothing(t *testing.T) {
	s := New(servertest.StubStore{}, nil, Options{})
	s.recorder.Wrote(time.Millisecond) // the activity makes its room once
	if n := testing.AllocsPerRun(100, func() {
		s.recorder.Wrote(time.Millisecond)
		s.Claimed(time.Millisecond, 1, nil)
		s.recorder.StepFailed(true)
		s.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: "n", Name: "q"})
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// shelves is a store with two namespaces that counts its calls.
type shelves struct {
	servertest.StubStore
	asked  map[string]int
	slow   time.Duration
	health error
}

func (s *shelves) Health(ctx context.Context) error {
	if s.slow > 0 {
		<-ctx.Done() // it does not answer
		return ctx.Err()
	}
	return s.health
}

func (s *shelves) GetStats(context.Context, string, time.Time) (engine.Stats, error) {
	s.asked["Stats"]++
	time.Sleep(s.slow)
	return engine.Stats{Workers: 7}, nil
}

func (s *shelves) ListNamespaces(context.Context, engine.Page) ([]engine.Namespace, engine.PageInfo, error) {
	return []engine.Namespace{{Name: "a"}, {Name: "b"}}, engine.PageInfo{}, nil
}

func (s *shelves) GetQueueDepth(_ context.Context, namespace, _ string, _ time.Time) ([]engine.QueueDepth, error) {
	s.asked["GetQueueDepth"]++
	return []engine.QueueDepth{{Queue: "q" + namespace, Pending: 1}}, nil
}

func TestAReadingIsSharedForTwentyTimesAsLongAsItTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shelves{asked: map[string]int{}, slow: time.Second}
		s := New(store, matching.New(servertest.StubStore{}, nil), Options{})
		for range 3 {
			r, err := s.Read(t.Context())
			if err != nil || r.Stats.Workers != 7 || len(r.Queues) != 2 || r.Queues[1].Namespace != "b" ||
				r.Queues[1].Queue != "qb" || r.Description.Backend != "stub" {
				t.Fatalf("read %+v, %v", r, err)
			}
		}
		time.Sleep(19 * time.Second)
		if _, err := s.Read(t.Context()); err != nil || store.asked["Stats"] != 1 || store.asked["GetQueueDepth"] != 2 {
			t.Errorf("asked %v, %v, want once", store.asked, err)
		}
		time.Sleep(2 * time.Second)
		if _, err := s.Read(t.Context()); err != nil || store.asked["GetQueueDepth"] != 4 {
			t.Errorf("asked %v, %v, want twice", store.asked, err)
		}
	})
}

func TestAStoreThatDoesNotAnswerIsUnhealthyWithinFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shelves{slow: time.Hour}
		s := New(store, matching.New(servertest.StubStore{}, nil), Options{})
		for name, ask := range map[string]func(context.Context) error{"Healthy": s.Healthy, "Ready": s.Ready} {
			began := time.Now()
			if err := ask(t.Context()); err == nil || time.Since(began) > 5*time.Second {
				t.Errorf("%s = %v after %s, want an error within 5 s", name, err, time.Since(began))
			}
		}
	})
}

func TestAStoppingServerIsHealthyAndNotReady(t *testing.T) {
	store := &shelves{}
	s := New(store, matching.New(servertest.StubStore{}, nil), Options{})
	if err := errors.Join(s.Healthy(t.Context()), s.Ready(t.Context())); err != nil {
		t.Fatal(err)
	}
	methods := s.Metrics().Methods
	if !slices.ContainsFunc(methods, func(m metrics.MethodMetrics) bool { return m.Name == "WorkerService/Session" }) {
		t.Errorf("methods = %v, want all that are served", methods)
	}
	close(s.stopping)
	if err := s.Healthy(t.Context()); err != nil {
		t.Errorf("Healthy = %v, want nil", err)
	}
	if err := s.Ready(t.Context()); err == nil {
		t.Error("Ready = nil, want an error")
	}
	store.health = servertest.ErrBroken
	if err := s.Healthy(t.Context()); err == nil || err.Error() == servertest.ErrBroken.Error() {
		t.Errorf("Healthy = %v, want an error without what is secret in it", err)
	}
}
