package metrics

import (
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	keptSeconds = 600
	keptMinutes = 1440
)

// Counted is something that a server acknowledges and counts.
type Counted uint8

const (
	RunStarted Counted = iota
	RunCompleted
	RunFailed  // timed out ones included
	RunStopped // cancelled or terminated
	StepCompleted
	numCounted // how many kinds there are
)

// RunEnded returns what to count for the end of a run.
func RunEnded(status engine.RunStatus) Counted {
	switch status {
	case engine.RunCompleted:
		return RunCompleted
	case engine.RunCancelled, engine.RunTerminated:
		return RunStopped
	}
	return RunFailed
}

// activity counts what was done lately, in memory. It has no timer: points of past time are
// completed when the next thing is counted or read.
type activity struct {
	mu      sync.Mutex
	clock   func() time.Time // nil: time.Now
	begun   time.Time        // by the clock; unset: nothing was counted or read yet
	seconds series
	minutes series
}

// begin starts the first second and the first minute.
func (a *activity) begin(now time.Time) {
	a.begun = now
	a.seconds = series{step: time.Second, kept: keptSeconds}
	a.minutes = series{step: time.Minute, kept: keptMinutes}
}

func (a *activity) now() time.Time {
	if a.clock != nil {
		return a.clock()
	}
	return time.Now()
}

// at advances both series to now and returns the time since they began. The lock is held.
func (a *activity) at(now time.Time) time.Duration {
	if a.begun.IsZero() {
		a.begin(now)
	}
	elapsed := now.Sub(a.begun)
	a.seconds.reach(elapsed)
	a.minutes.reach(elapsed)
	return elapsed
}

// count records that something was done n times.
func (a *activity) count(d Counted, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at(a.now())
	a.seconds.now.counts[d] += uint32(n)
	a.minutes.now.counts[d] += uint32(n)
}

// wrote records how long a worker waited until its write was durable.
func (a *activity) wrote(took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at(a.now())
	a.seconds.took.add(took)
	a.minutes.took.add(took)
}

// fired records how late a tick fired.
func (a *activity) fired(late time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at(a.now())
	ms := float32(max(late, 0).Seconds() * 1000)
	a.seconds.now.lag, a.minutes.now.lag = ms, ms
}

// point counts what was done within one step of time.
type point struct {
	counts [numCounted]uint32
	p95    float32 // milliseconds
	lag    float32 // milliseconds
}

// series holds the latest points in order of time. The current one is separate until its time is
// over.
type series struct {
	step time.Duration
	kept int64

	now    point
	took   histogram // within now
	number int64     // of now, from 0
	past   []point   // indexed by their number modulo kept
}

// reach completes the points whose time is over.
func (s *series) reach(elapsed time.Duration) {
	number := int64(elapsed / s.step)
	if number <= s.number {
		return
	}
	if s.past == nil {
		s.past = make([]point, s.kept)
	}
	s.now.p95 = float32(s.took.quantile(0.95).Seconds() * 1000)
	s.past[s.number%s.kept] = s.now
	for quiet := max(s.number+1, number-s.kept); quiet < number; quiet++ {
		s.past[quiet%s.kept] = point{}
	}
	s.now, s.number = point{}, number
	s.took.clear()
}

// points returns the completed points, oldest first.
func (s *series) points() []*kagziv1.ActivityPoint {
	var points []*kagziv1.ActivityPoint
	for number := max(0, s.number-s.kept); number < s.number; number++ {
		p := &s.past[number%s.kept]
		points = append(points, &kagziv1.ActivityPoint{
			RunsStarted: int64(p.counts[RunStarted]), RunsCompleted: int64(p.counts[RunCompleted]),
			RunsFailed:  int64(p.counts[RunFailed]),
			RunsStopped: int64(p.counts[RunStopped]), StepsCompleted: int64(p.counts[StepCompleted]),
			WriteP95Ms: float64(p.p95), ScheduleLagMs: float64(p.lag),
		})
	}
	return points
}

// Count records that something was acknowledged.
func (r *Recorder) Count(d Counted) { r.CountN(d, 1) }

// CountN records that something was acknowledged n times.
func (r *Recorder) CountN(d Counted, n int) {
	r.counters[d].Add(int64(n))
	r.activity.count(d, n)
}

// Wrote records how long a worker waited until its write was durable.
func (r *Recorder) Wrote(took time.Duration) {
	r.meters.commits.add(took)
	r.activity.wrote(took)
}

// Activity returns what was done lately, by second or by minute, oldest first. It leaves out the
// current step of time; underWay is how much of it has passed.
func (r *Recorder) Activity(byMinute bool) (points []*kagziv1.ActivityPoint, underWay time.Duration) {
	a := &r.activity
	from := &a.seconds
	if byMinute {
		from = &a.minutes
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	underWay = a.at(a.now()) % from.step
	return from.points(), underWay
}
