package server

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// did is what a server has done, with points of this length.
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

// busy is a server in a bubble whose counting has just begun.
func busy(t *testing.T, tell func(t *testing.T, s *Server)) {
	synctest.Test(t, func(t *testing.T) {
		s := door(&servertest.Books{})
		s.activity.begin(time.Now())
		tell(t, s)
	})
}

func TestWhatWasDoneIsInItsSecondAndItsMinute(t *testing.T) {
	busy(t, func(t *testing.T, s *Server) {
		begun := time.Now()
		if answer := did(t, s, time.Second); len(answer.Points) != 0 || !answer.At.AsTime().Equal(begun) {
			t.Errorf("a server that has just begun did %v", answer)
		}
		time.Sleep(1500 * time.Millisecond)
		s.count(runStarted)
		s.count(runStarted)
		s.count(runCompleted)
		s.count(runFailed)
		s.count(runStopped)
		s.count(stepCompleted)
		s.activity.wrote(10 * time.Millisecond)
		s.activity.fired(250 * time.Millisecond)
		if answer := did(t, s, time.Second); len(answer.Points) != 1 || answer.Points[0].RunsStarted != 0 {
			t.Errorf("the second under way is told: %v", answer)
		}
		time.Sleep(2 * time.Second)
		answer := did(t, s, time.Second)
		if len(answer.Points) != 3 || !answer.At.AsTime().Equal(begun.Add(3*time.Second)) {
			t.Fatalf("after 3.5 s it tells %d points up to %s", len(answer.Points), answer.At.AsTime().Sub(begun))
		}
		p := answer.Points[1]
		if p.RunsStarted != 2 || p.RunsCompleted != 1 || p.RunsFailed != 1 || p.RunsStopped != 1 || p.StepsCompleted != 1 || p.ScheduleLagMs != 250 {
			t.Errorf("the second in which it was done has %v", p)
		}
		if p.WriteP95Ms < 10 || p.WriteP95Ms > 11.25 {
			t.Errorf("a write of 10 ms counts as %v ms", p.WriteP95Ms)
		}
		for _, i := range []int{0, 2} {
			if p := answer.Points[i]; p.RunsStarted != 0 || p.WriteP95Ms != 0 || p.ScheduleLagMs != 0 {
				t.Errorf("second %d, in which nothing was done, has %v", i, p)
			}
		}
		time.Sleep(time.Second)
		if p := did(t, s, time.Second).Points[3]; p.WriteP95Ms != 0 {
			t.Errorf("a second without writes has %v", p)
		}
		if answer := did(t, s, time.Minute); len(answer.Points) != 0 {
			t.Errorf("the first minute is told before it is over: %v", answer)
		}
		time.Sleep(time.Minute)
		minutes := did(t, s, time.Minute).Points
		if len(minutes) != 1 || minutes[0].RunsStarted != 2 || minutes[0].WriteP95Ms < 10 || minutes[0].ScheduleLagMs != 250 {
			t.Errorf("the minute has %v", minutes)
		}
	})
}

func TestActivityGoesBackTenMinutesInSecondsAndADayInMinutes(t *testing.T) {
	busy(t, func(t *testing.T, s *Server) {
		for range 3000 { // 50 hours
			s.count(runStarted)
			time.Sleep(time.Minute)
		}
		for step, kept := range map[time.Duration]int{time.Second: 600, time.Minute: 1440} {
			points := did(t, s, step).Points
			sum := int64(0)
			for _, p := range points {
				sum += p.RunsStarted
			}
			if want := int64(time.Duration(kept) * step / time.Minute); len(points) != kept || sum != want {
				t.Errorf("in steps of %s there are %d points with %d runs, want %d with %d", step, len(points), sum, kept, want)
			}
		}
		time.Sleep(48 * time.Hour)
		for _, step := range []time.Duration{time.Second, time.Minute} {
			for i, p := range did(t, s, step).Points {
				if p.RunsStarted != 0 {
					t.Fatalf("after two days of rest point %d in steps of %s has %v", i, step, p)
				}
			}
		}
	})
}

func TestOnlyTwoStepsOfActivityAreKept(t *testing.T) {
	s := door(&servertest.Books{})
	for _, step := range []time.Duration{-time.Second, time.Millisecond, 2 * time.Second, time.Hour} {
		_, err := s.GetActivity(t.Context(), &kagziv1.GetActivityRequest{Step: durationpb.New(step)})
		if servertest.FieldOf(err) != "step" {
			t.Errorf("a step of %s: %v, want a refusal that names it", step, err)
		}
	}
	if answer, err := s.GetActivity(t.Context(), &kagziv1.GetActivityRequest{}); err != nil || answer.Step.AsDuration() != time.Second {
		t.Errorf("no step means %v, %v, want 1 s", answer, err)
	}
}

func TestTheEndOfARunCountsAsWhatItWas(t *testing.T) {
	for status, want := range map[engine.RunStatus]deed{
		engine.RunCompleted: runCompleted, engine.RunFailed: runFailed, engine.RunTimedOut: runFailed,
		engine.RunCancelled: runStopped, engine.RunTerminated: runStopped,
	} {
		if got := deedOf(status); got != want {
			t.Errorf("%s counts as %d, want %d", status, got, want)
		}
	}
}

func TestTheWritesOfWorkersAreCounted(t *testing.T) {
	busy(t, func(t *testing.T, s *Server) {
		b := s.store.(*servertest.Books)
		b.Verdict, b.Slow = engine.RunVerdict{Status: engine.RunFailed}, 10*time.Millisecond // which passes in the bubble
		if _, _, err := s.completeStep(t.Context(), &kagziv1.CompleteStepRequest{RunId: servertest.AnID, LeaseToken: aToken, StepId: "s"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.failStep(t.Context(), &kagziv1.FailStepRequest{RunId: servertest.AnID, LeaseToken: aToken, StepId: "s", Error: &kagziv1.ErrorDetail{}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.failWorkflow(t.Context(), &kagziv1.FailWorkflowRequest{RunId: servertest.AnID, LeaseToken: aToken, Error: &kagziv1.ErrorDetail{}}); err != nil {
			t.Fatal(err)
		}
		next := &kagziv1.StartWorkflowRequest{}
		if _, err := s.completeWorkflow(t.Context(), &kagziv1.CompleteWorkflowRequest{RunId: servertest.AnID, LeaseToken: aToken, ContinueAs: next}); err != nil {
			t.Fatal(err)
		}
		if n := s.activity.seconds.took.total; n != 4 {
			t.Errorf("%d of 4 writes were measured", n)
		}
		time.Sleep(time.Second)
		p := did(t, s, time.Second).Points[0]
		if p.StepsCompleted != 1 || p.RunsFailed != 1 || p.RunsCompleted != 1 || p.RunsStarted != 1 || p.WriteP95Ms < 10 {
			t.Errorf("counted %v", p)
		}
		if s.counters.finished() != 2 || s.counters.started() != 1 || s.counters.steps() != 1 {
			t.Error("the counters behind GetStats differ")
		}
	})
}

func TestWhatTheCoordinatorDidIsCounted(t *testing.T) {
	busy(t, func(t *testing.T, s *Server) {
		s.RunsExpired(engine.Expired{Runs: 5, TimedOut: make([]engine.ID, 3), Cancelled: make([]engine.ID, 2)})
		s.ScheduleFired(&engine.Schedule{}, engine.Fired{Runs: 2}, 0, 40*time.Millisecond)
		s.ScheduleFired(&engine.Schedule{}, engine.Fired{Runs: 5, Skipped: 1}, 5, -1) // all of them missed: no lateness
		s.ScheduleFired(&engine.Schedule{}, engine.Fired{Skipped: 1}, 0, time.Hour)   // nothing fired
		time.Sleep(time.Second)
		p := did(t, s, time.Second).Points[0]
		if p.RunsFailed != 3 || p.RunsStarted != 7 || p.ScheduleLagMs != 40 {
			t.Errorf("counted %v", p)
		}
		if events := s.events.past(0, 10); len(events) != 1 || events[0].Message != "schedule fired" {
			t.Errorf("noted %v, want the one that the log does not tell of", events)
		}
	})
}

func TestAQuantileIsWithinAnEighthOfWhatWasMeasured(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var h histogram
		var took []time.Duration
		for range 1 + random.IntN(1000) {
			d := time.Duration(1<<random.IntN(36)+random.IntN(1000)) * time.Microsecond
			took = append(took, d)
			h.add(d)
		}
		slices.Sort(took)
		for _, q := range []float64{0, 0.5, 0.95, 1} {
			want := took[int(q*float64(len(took)-1))]
			if got := h.quantile(q); got < want || got > want+want/fineness+time.Microsecond {
				t.Fatalf("quantile %v of %d lengths = %s, want %s and at most an eighth more", q, len(took), got, want)
			}
		}
		h.clear()
		if h != (histogram{}) {
			t.Fatal("something is left after clear")
		}
	}
	var h histogram
	h.add(-time.Second)
	h.add(1 << 62)
	if h.total != 2 || h.counts[0] != 1 || h.counts[buckets-1] != 1 {
		t.Error("what is out of bounds is not counted at them")
	}
}

func BenchmarkCounting(b *testing.B) {
	b.Run("count", func(b *testing.B) {
		s := New(servertest.StubStore{}, nil, Options{})
		b.ReportAllocs()
		for b.Loop() {
			s.count(stepCompleted)
		}
	})
	b.Run("wrote", func(b *testing.B) {
		s := New(servertest.StubStore{}, nil, Options{})
		b.ReportAllocs()
		for b.Loop() {
			s.wrote(time.Millisecond)
		}
	})
	b.Run("claimed", func(b *testing.B) {
		s := New(servertest.StubStore{}, nil, Options{})
		b.ReportAllocs()
		for b.Loop() {
			s.Claimed(time.Millisecond, 1, nil)
		}
	})
	b.Run("rung", func(b *testing.B) {
		s := New(servertest.StubStore{}, nil, Options{})
		b.ReportAllocs()
		for b.Loop() {
			s.Ring(engine.Ring{Kind: engine.RingQueue, Namespace: "n", Name: "q"})
		}
	})
}
