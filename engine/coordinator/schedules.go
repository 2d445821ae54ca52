package coordinator

import (
	"context"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/cron"
)

const (
	// dueSchedules is how many schedules a turn looks at; those beyond wait for the next look, which is at once.
	dueSchedules = 10_000
	// firesAtOnce is how many runs one transaction starts.
	firesAtOnce = 100
	// catchupGap is the pause when the rate of catching up holds ticks back.
	catchupGap = 100 * time.Millisecond
)

// backlog remembers that the missed ticks of a schedule from one on were admitted, so that those which the rate delays meanwhile
// are not taken for missed once more. It is lost in a restart, after which they are.
type backlog struct {
	revision int64
	from     time.Time
}

// allowance is how many missed ticks may fire now, over all schedules. It grows with time up to what a second allows.
type allowance struct {
	rate  float64 // a second
	left  float64
	asked time.Time // by the monotonic clock
}

func (a *allowance) take(now time.Time, want int) int {
	if a.asked.IsZero() {
		a.left = a.rate
	} else {
		a.left = min(a.rate, a.left+a.rate*now.Sub(a.asked).Seconds())
	}
	a.asked = now
	n := min(want, int(a.left))
	a.left -= float64(n)
	return n
}

// fireSchedules fires what is due, the schedule whose tick is oldest first. A schedule that cannot fire stops none of the others.
func (c *Coordinator) fireSchedules(ctx context.Context, now time.Time) (time.Time, error) {
	due, next, err := c.store.DueSchedules(ctx, now, dueSchedules)
	if err != nil {
		return time.Time{}, err
	}
	soon := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if len(due) == dueSchedules {
		soon(now.Add(catchupGap))
	}
	for i := range due {
		s := &due[i]
		params, late := c.decide(s, now)
		if params == nil {
			soon(now.Add(catchupGap))
			continue
		}
		fired, err := c.store.FireSchedule(ctx, *params)
		if err != nil && (ctx.Err() != nil || engine.KindOf(err) == engine.KindUnavailable) {
			return time.Time{}, err
		}
		if err == nil && !fired.Stale {
			c.options.Observer.ScheduleFired(s, fired, late, c.lateness(params, late))
		}
		c.logFired(s, params, fired, late, err)
		switch {
		case err != nil:
			soon(now.Add(c.options.Interval))
		case params.Broken != "" || params.Next.IsZero():
		case params.Next.After(now):
			soon(params.Next)
		default:
			soon(now.Add(catchupGap))
		}
	}
	return next, nil
}

// decide says what becomes of a schedule's ticks up to now; nil when the rate holds them back. late is how many of those that
// fire were missed.
func (c *Coordinator) decide(s *engine.Schedule, now time.Time) (p *engine.FireScheduleParams, late int) {
	p = &engine.FireScheduleParams{ScheduleID: s.ID, Revision: s.Revision, Expect: s.NextFireAt, Now: now}
	ticks, err := cron.Parse(s.CronExpr, s.TimeZone)
	if err != nil {
		p.Broken, p.Next = err.Error(), s.NextFireAt
		return p, 0
	}
	onTime := now.Add(-engine.OnTime)
	missed, skipped := c.missed(s, ticks, onTime)
	if late = len(missed); late > 0 {
		late = c.catchup.take(time.Now(), min(late, firesAtOnce))
		if late == 0 && skipped == 0 {
			return nil, 0
		}
	}
	p.Skipped = skipped
	fires := missed[:late]
	if late < len(missed) {
		p.Next = missed[late]
	} else {
		delete(c.backlogs, s.ID)
		after := onTime
		if first := s.NextFireAt.Add(-time.Second); first.After(after) {
			after = first
		}
		fresh, _ := ticks.Missed(after, now, firesAtOnce) // never so many: a tick is a second
		fires = slices.Concat(fires, fresh)
		p.Next, _ = ticks.Next(now)
	}
	for _, at := range fires {
		p.Ticks = append(p.Ticks, engine.Tick{At: at, RunID: engine.NewID(now)})
	}
	return p, late
}

// missed is the ticks up to onTime that are to be replayed, the next ones of them at least, and how many are not.
func (c *Coordinator) missed(s *engine.Schedule, ticks *cron.Schedule, onTime time.Time) (replay []time.Time, skipped int64) {
	before := s.NextFireAt.Add(-time.Second)
	if !onTime.After(before) {
		return nil, 0
	}
	if b, known := c.backlogs[s.ID]; known && b.revision == s.Revision && !s.NextFireAt.Before(b.from) {
		replay = ticks.NextN(before, firesAtOnce+1)
		return slices.DeleteFunc(replay, func(t time.Time) bool { return t.After(onTime) }), 0
	}
	replay, skipped = ticks.Missed(before, onTime, s.MaxCatchup)
	if len(replay) > 0 {
		c.backlogs[s.ID] = backlog{s.Revision, replay[0]}
	}
	return replay, skipped
}

// lateness is how late the newest tick is that was not missed; negative when there is none.
func (c *Coordinator) lateness(p *engine.FireScheduleParams, missed int) time.Duration {
	if len(p.Ticks) <= missed {
		return -1
	}
	return max(0, c.store.Now().Sub(p.Ticks[len(p.Ticks)-1].At))
}

func (c *Coordinator) logFired(s *engine.Schedule, p *engine.FireScheduleParams, fired engine.Fired, late int, err error) {
	log := c.log.With("schedule", s.ID.String(), "namespace", s.Namespace)
	switch {
	case err != nil:
		log.Warn("schedule could not fire", "error", err)
	case fired.Stale:
	case p.Broken != "":
		log.Warn("schedule is broken and will not fire until it is updated", "reason", p.Broken)
	case late > 0 || fired.Skipped > 0:
		log.Info("schedule caught up", "runs", fired.Runs, "missed", late, "skipped", fired.Skipped)
	}
}
