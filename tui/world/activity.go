package world

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	keptSeconds = 600
	keptMinutes = 1440
)

// activity counts what the server did lately, second by second and minute by minute.
type activity struct {
	since            time.Time // when the server was started
	seconds, minutes []tally
	all              tally // since then
}

// tally is what happened in one second or minute.
type tally struct {
	number                                    int64 // of the second or minute, since 1970
	started, completed, failed, stopped, step int64
	write, lag                                float64 // milliseconds
}

func newActivity(since time.Time) activity {
	return activity{since: since, seconds: make([]tally, keptSeconds), minutes: make([]tally, keptMinutes)}
}

// count adds to the tallies of a moment.
func (a *activity) count(now time.Time, add func(*tally)) {
	add(tallyOf(a.seconds, now.Unix()))
	add(tallyOf(a.minutes, now.Unix()/60))
	add(&a.all)
}

// tallyOf is the place of a second or minute in its ring.
func tallyOf(ring []tally, number int64) *tally {
	t := &ring[number%int64(len(ring))]
	if t.number != number {
		*t = tally{number: number}
	}
	return t
}

func (a *activity) ended(now time.Time, status kagziv1.WorkflowStatus) {
	a.count(now, func(t *tally) {
		switch status {
		case completed:
			t.completed++
		case failed, timedOut:
			t.failed++
		default:
			t.stopped++
		}
	})
}

// stepped counts a step whose result took so many milliseconds to be durable.
func (a *activity) stepped(now time.Time, write float64) {
	a.count(now, func(t *tally) {
		t.step++
		t.write = max(t.write, write)
	})
}

// GetActivity is how much the server did lately, as a series.
func (w *World) GetActivity(ctx context.Context, request *kagziv1.GetActivityRequest, _ ...grpc.CallOption) (*kagziv1.GetActivityResponse, error) {
	return call(w, ctx, "AdminService/GetActivity", func() (*kagziv1.GetActivityResponse, error) {
		step, ring := time.Second, w.activity.seconds
		if request.Step != nil {
			step = request.Step.AsDuration()
		}
		switch step {
		case time.Second:
		case time.Minute:
			ring = w.activity.minutes
		default:
			return nil, invalid("step", "must be 1 s or 1 min, got %s", step)
		}
		width := int64(step / time.Second)
		last := w.now.Unix()/width - 1 // the last one that is over
		first := max(last-int64(len(ring))+1, (w.activity.since.Unix()+width-1)/width)
		response := &kagziv1.GetActivityResponse{At: stamp(time.Unix((last+1)*width, 0)), Step: durationpb.New(step)}
		for n := first; n <= last; n++ {
			t := tally{}
			if kept := ring[n%int64(len(ring))]; kept.number == n {
				t = kept
			}
			response.Points = append(response.Points, &kagziv1.ActivityPoint{
				RunsStarted: t.started, RunsCompleted: t.completed, RunsFailed: t.failed, RunsStopped: t.stopped, StepsCompleted: t.step,
				WriteP95Ms: t.write, ScheduleLagMs: t.lag,
			})
		}
		return response, nil
	})
}
