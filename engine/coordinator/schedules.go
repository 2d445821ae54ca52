package coordinator

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/cron"
)

const (
	// dueSchedules limits the schedules of one read; the next read follows at once.
	dueSchedules = 10_000
	// firesAtOnce limits the runs that one transaction starts.
	firesAtOnce = 100
	// catchupGap is the pause when CatchupRate holds ticks back.
	catchupGap = 100 * time.Millisecond
)

// backlog records that MaxCatchup was applied to the missed ticks of a schedule from a tick on.
// While CatchupRate delays them, it is not applied to them again. It is dropped at a restart, after
// an outage, and as soon as the schedule is not due, because another server has caught up or its
// namespace is disabled.
type backlog struct {
	revision int64
	from     time.Time
}

// allowance is a token bucket for missed ticks, over all schedules. It holds at most one second's
// rate.
type allowance struct {
	rate  float64 // per second
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

// round holds the schedules that were read as due and are still to fire, and when the next other
// one is due.
type round struct {
	due  []engine.Schedule
	next time.Time
}

// noLaterThan makes the next read of due schedules no later than t.
func (r *round) noLaterThan(t time.Time) {
	if r.next.IsZero() || t.Before(r.next) {
		r.next = t
	}
}

// fireSchedules fires due schedules, the oldest tick first, in portions between which the other
// duties run. A schedule that fails although the store is healthy is tried again after
// Options.Interval and does not stop the others.
func (c *Coordinator) fireSchedules(ctx context.Context, now time.Time) (time.Time, error) {
	if len(c.round.due) == 0 {
		due, next, err := c.store.DueSchedules(ctx, now, dueSchedules)
		if err != nil {
			return time.Time{}, err
		}
		c.round = round{due, next}
		c.keepBacklogs(due)
		maps.DeleteFunc(c.unable, func(_ engine.ID, until time.Time) bool { return !until.After(c.now()) })
		if len(due) == dueSchedules {
			c.round.noLaterThan(now.Add(catchupGap))
		}
	}
	for begun := c.now(); len(c.round.due) > 0; {
		s := &c.round.due[0]
		c.round.due = c.round.due[1:]
		if err := c.fire(ctx, s, now); err != nil {
			c.round = round{}
			return time.Time{}, err
		}
		if len(c.round.due) > 0 && c.now().Sub(begun) >= portion {
			return now, nil
		}
	}
	return c.round.next, nil
}

// keepBacklogs drops the backlogs of schedules that are no longer due, if due holds all due
// schedules.
func (c *Coordinator) keepBacklogs(due []engine.Schedule) {
	switch {
	case c.schedules.failing:
		clear(c.backlogs)
	case len(c.backlogs) > 0 && len(due) < dueSchedules:
		still := make(map[engine.ID]backlog, len(c.backlogs))
		for i := range due {
			if b, known := c.backlogs[due[i].ID]; known {
				still[due[i].ID] = b
			}
		}
		c.backlogs = still
	}
}

// fire fires a due schedule. It returns an error only if the others would fail too.
func (c *Coordinator) fire(ctx context.Context, s *engine.Schedule, now time.Time) error {
	if until, unable := c.unable[s.ID]; unable {
		c.round.noLaterThan(now.Add(until.Sub(c.now())))
		return nil
	}
	params, missed := c.decide(s, now)
	if params == nil {
		c.round.noLaterThan(now.Add(catchupGap))
		return nil
	}
	params.Now = c.store.Now() // not earlier than a resume since now
	fired, err := c.store.FireSchedule(ctx, *params)
	if err != nil && (ctx.Err() != nil || engine.KindOf(err) == engine.KindUnavailable && c.store.Health(ctx) != nil) {
		return err
	}
	if err == nil && !fired.Stale {
		c.options.Observer.ScheduleFired(s, fired, missed, c.lateness(params, missed))
	}
	c.logFired(s, params, fired, missed, err)
	switch {
	case err != nil:
		c.unable[s.ID] = c.now().Add(c.options.Interval)
		c.round.noLaterThan(now.Add(c.options.Interval))
	case params.Broken != "" || params.Next.IsZero():
	case params.Next.After(now):
		c.round.noLaterThan(params.Next)
	default:
		c.round.noLaterThan(now.Add(catchupGap))
	}
	return nil
}

// decide returns what to do with a schedule's ticks up to now; nil if CatchupRate holds them back.
// missed is how many of the ticks that fire had been missed.
func (c *Coordinator) decide(s *engine.Schedule, now time.Time) (p *engine.FireScheduleParams, missed int) {
	p = &engine.FireScheduleParams{ScheduleID: s.ID, Revision: s.Revision, Expect: s.NextFireAt, Now: now}
	ticks, err := cron.Parse(s.CronExpr, s.TimeZone)
	if err != nil {
		p.Broken, p.Next = err.Error(), s.NextFireAt
		return p, 0
	}
	replay, newest, skipped := c.due(s, ticks, now)
	if len(replay) > 0 {
		missed = c.catchup.take(c.now(), min(len(replay), firesAtOnce))
		if missed == 0 && skipped == 0 {
			return nil, 0
		}
	}
	p.Skipped = skipped
	fires := replay[:missed]
	if missed < len(replay) {
		p.Next = replay[missed]
	} else {
		delete(c.backlogs, s.ID)
		fires = slices.Concat(fires, newest)
		p.Next, _ = ticks.Next(now)
	}
	for _, at := range fires {
		p.Ticks = append(p.Ticks, engine.Tick{At: at, RunID: engine.NewID(now)})
	}
	return p, missed
}

// due splits the due ticks of a schedule. All but the newest are missed, and the newest too if it is
// more than engine.OnTime old. replay holds the latest MaxCatchup of the missed ticks, oldest first;
// skipped counts the others. newest holds the newest tick if it is not missed. Ticks that became due
// while the rate delayed a backlog are admitted with it: of those, replay holds the next ones only,
// at least one more than one transaction fires.
func (c *Coordinator) due(s *engine.Schedule, ticks *cron.Schedule, now time.Time) (replay, newest []time.Time,
	skipped int64) {
	before := s.NextFireAt.Add(-time.Second)
	b, known := c.backlogs[s.ID]
	known = known && b.revision == s.Revision && !s.NextFireAt.Before(b.from)
	complete := true
	if known {
		replay = ticks.NextN(before, firesAtOnce+2)
		replay = slices.DeleteFunc(replay, func(t time.Time) bool { return t.After(now) })
		complete = len(replay) < firesAtOnce+2
	} else {
		replay, skipped = ticks.Missed(before, now, s.MaxCatchup+1)
	}
	if n := len(replay); complete && n > 0 && now.Sub(replay[n-1]) <= engine.OnTime {
		replay, newest = replay[:n-1], replay[n-1:]
	} else if !known && n > s.MaxCatchup {
		replay, skipped = replay[1:], skipped+1
	}
	if !known && len(replay) > 0 {
		c.backlogs[s.ID] = backlog{s.Revision, replay[0]}
	}
	return replay, newest, skipped
}

// lateness returns how late the newest tick is that was not missed; negative if there is none.
func (c *Coordinator) lateness(p *engine.FireScheduleParams, missed int) time.Duration {
	if len(p.Ticks) <= missed {
		return -1
	}
	return max(0, c.store.Now().Sub(p.Ticks[len(p.Ticks)-1].At))
}

func (c *Coordinator) logFired(s *engine.Schedule, p *engine.FireScheduleParams, fired engine.Fired, missed int,
	err error) {
	log := c.log.With("schedule", s.ID.String(), "namespace", s.Namespace)
	switch {
	case err != nil:
		log.Warn("schedule could not fire; trying again", "error", err)
	case fired.Stale:
	case p.Broken != "":
		log.Warn("schedule is broken and does not fire until it is updated", "reason", p.Broken)
	case missed > 0 || p.Skipped > 0:
		log.Info("schedule caught up", "runs", fired.Runs, "missed", missed, "skipped", fired.Skipped)
	case fired.Skipped > 0:
		log.Debug("tick skipped by the overlap policy", "skipped", fired.Skipped)
	}
}
