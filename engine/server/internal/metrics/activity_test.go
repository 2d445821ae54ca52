package metrics

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// busy is a recorder in a bubble whose counting has just begun.
func busy(t *testing.T, tell func(t *testing.T, r *Recorder)) {
	synctest.Test(t, func(t *testing.T) { tell(t, NewRecorder(&Events{}, slog.New(slog.DiscardHandler), time.Now)) })
}

// activityAt returns the activity up to a time.
type activityAt struct {
	points []*kagziv1.ActivityPoint
	at     time.Time
}

// done returns the activity in points of this length.
func done(r *Recorder, step time.Duration) activityAt {
	points, underWay := r.Activity(step == time.Minute)
	return activityAt{points, time.Now().Add(-underWay)}
}

func TestWhatWasDoneIsInItsSecondAndItsMinute(t *testing.T) {
	busy(t, func(t *testing.T, r *Recorder) {
		begun := time.Now()
		if answer := done(r, time.Second); len(answer.points) != 0 || !answer.at.Equal(begun) {
			t.Errorf("a server that has just begun did %v", answer)
		}
		time.Sleep(1500 * time.Millisecond)
		r.Count(RunStarted)
		r.Count(RunStarted)
		r.Count(RunCompleted)
		r.Count(RunFailed)
		r.Count(RunStopped)
		r.Count(StepCompleted)
		r.activity.wrote(10 * time.Millisecond)
		r.activity.fired(250 * time.Millisecond)
		if answer := done(r, time.Second); len(answer.points) != 1 || answer.points[0].RunsStarted != 0 {
			t.Errorf("the second under way is told: %v", answer)
		}
		time.Sleep(2 * time.Second)
		answer := done(r, time.Second)
		if len(answer.points) != 3 || !answer.at.Equal(begun.Add(3*time.Second)) {
			t.Fatalf("after 3.5 s it tells %d points up to %s", len(answer.points), answer.at.Sub(begun))
		}
		p := answer.points[1]
		if p.RunsStarted != 2 || p.RunsCompleted != 1 || p.RunsFailed != 1 || p.RunsStopped != 1 ||
			p.StepsCompleted != 1 || p.ScheduleLagMs != 250 {
			t.Errorf("the second in which it was done has %v", p)
		}
		if p.WriteP95Ms < 10 || p.WriteP95Ms > 11.25 {
			t.Errorf("a write of 10 ms counts as %v ms", p.WriteP95Ms)
		}
		for _, i := range []int{0, 2} {
			if p := answer.points[i]; p.RunsStarted != 0 || p.WriteP95Ms != 0 || p.ScheduleLagMs != 0 {
				t.Errorf("second %d, in which nothing was done, has %v", i, p)
			}
		}
		time.Sleep(time.Second)
		if p := done(r, time.Second).points[3]; p.WriteP95Ms != 0 {
			t.Errorf("a second without writes has %v", p)
		}
		if answer := done(r, time.Minute); len(answer.points) != 0 {
			t.Errorf("the first minute is told before it is over: %v", answer)
		}
		time.Sleep(time.Minute)
		minutes := done(r, time.Minute).points
		if len(minutes) != 1 || minutes[0].RunsStarted != 2 || minutes[0].WriteP95Ms < 10 ||
			minutes[0].ScheduleLagMs != 250 {
			t.Errorf("the minute has %v", minutes)
		}
	})
}

func TestActivityGoesBackTenMinutesInSecondsAndADayInMinutes(t *testing.T) {
	busy(t, func(t *testing.T, r *Recorder) {
		for range 3000 { // 50 hours
			r.Count(RunStarted)
			time.Sleep(time.Minute)
		}
		for step, kept := range map[time.Duration]int{time.Second: 600, time.Minute: 1440} {
			points := done(r, step).points
			sum := int64(0)
			for _, p := range points {
				sum += p.RunsStarted
			}
			if want := int64(time.Duration(kept) * step / time.Minute); len(points) != kept || sum != want {
				t.Errorf("in steps of %s there are %d points with %d runs, want %d with %d", step, len(points), sum,
					kept, want)
			}
		}
		time.Sleep(48 * time.Hour)
		for _, step := range []time.Duration{time.Second, time.Minute} {
			for i, p := range done(r, step).points {
				if p.RunsStarted != 0 {
					t.Fatalf("after two days of rest point %d in steps of %s has %v", i, step, p)
				}
			}
		}
	})
}

func TestTheEndOfARunIsCountedByItsStatus(t *testing.T) {
	for status, want := range map[engine.RunStatus]Counted{
		engine.RunCompleted: RunCompleted, engine.RunFailed: RunFailed, engine.RunTimedOut: RunFailed,
		engine.RunCancelled: RunStopped, engine.RunTerminated: RunStopped,
	} {
		if got := RunEnded(status); got != want {
			t.Errorf("%s counts as %d, want %d", status, got, want)
		}
	}
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
