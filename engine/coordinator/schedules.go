package coordinator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/cron"
)

const (
	// dueSchedules limits the schedules of one read; the next read follows at once.
	dueSchedules = 10_000
	// firesAtOnce limits the runs that one transaction starts.
	firesAtOnce = 100
	// firesTogether is how many schedules fire concurrently, so that their commits are shared and
	// round trips to the database overlap.
	firesTogether = 100
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

// fireSchedules fires due schedules, those with the oldest ticks first and firesTogether at a time, in
// portions between which the other duties run. A schedule that fails although the store is healthy is
// tried again after Options.Interval and does not stop the others.
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
		together := c.round.due[:min(firesTogether, len(c.round.due))]
		c.round.due = c.round.due[len(together):]
		if err := c.fire(ctx, together, now); err != nil {
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

// fired is a due schedule with what was decided about its ticks, and the answer of the store.
type fired struct {
	schedule *engine.Schedule
	params   *engine.FireScheduleParams
	missed   int
	ideal    time.Time
	answer   engine.Fired
	err      error
}

// fire fires due schedules. It returns an error only if the others would fail too.
func (c *Coordinator) fire(ctx context.Context, due []engine.Schedule, now time.Time) (failed error) {
	var fires []*fired
	for i := range due {
		s := &due[i]
		if until, unable := c.unable[s.ID]; unable {
			c.round.noLaterThan(now.Add(until.Sub(c.now())))
			continue
		}
		f := &fired{schedule: s}
		if f.params, f.missed, f.ideal = c.decide(s, now); f.params == nil {
			c.round.noLaterThan(now.Add(catchupGap))
			continue
		}
		f.params.Now = c.store.Now() // not earlier than a resume since now
		fires = append(fires, f)
	}
	var group sync.WaitGroup
	for _, f := range fires {
		group.Go(func() { f.answer, f.err = c.store.FireSchedule(ctx, *f.params) })
	}
	group.Wait()
	for _, f := range fires {
		failed = cmp.Or(failed, c.haveFired(ctx, f, now))
	}
	return failed
}

// haveFired notes how a schedule fired, and when it is due again.
func (c *Coordinator) haveFired(ctx context.Context, f *fired, now time.Time) error {
	s, params, err := f.schedule, f.params, f.err
	if err != nil && (ctx.Err() != nil || engine.KindOf(err) == engine.KindUnavailable && c.store.Health(ctx) != nil) {
		return err
	}
	if err == nil && !f.answer.Stale {
		c.options.Observer.ScheduleFired(s, f.answer, f.missed, c.lateness(f.ideal))
	}
	c.logFired(s, params, f.answer, f.missed, err)
	switch {
	case err != nil:
		c.unable[s.ID] = c.now().Add(c.options.Interval)
		c.round.noLaterThan(now.Add(c.options.Interval))
	case params.Broken != "" || params.Next.IsZero():
	case params.Next.Add(params.Delay).After(now):
		c.round.noLaterThan(params.Next.Add(params.Delay))
	default:
		c.round.noLaterThan(now.Add(catchupGap))
	}
	return nil
}

// decide returns what to do with a schedule's ticks up to now; nil if CatchupRate holds them back.
// missed is how many of the ticks that fire had been missed, and ideal when the newest one had to
// fire if it was not missed.
func (c *Coordinator) decide(s *engine.Schedule, now time.Time) (p *engine.FireScheduleParams, missed int,
	ideal time.Time) {
	p = &engine.FireScheduleParams{ScheduleID: s.ID, Revision: s.Revision, Expect: s.NextFireAt, Now: now}
	ticks, err := cron.Parse(s.CronExpr, s.TimeZone)
	if err != nil {
		p.Broken, p.Next, p.Delay = err.Error(), s.NextFireAt, s.Delay
		return p, 0, ideal
	}
	replay, newest, skipped, until := c.due(s, ticks, now)
	if len(replay) > 0 {
		missed = c.catchup.take(c.now(), min(len(replay), firesAtOnce))
		if missed == 0 && skipped == 0 {
			return nil, 0, ideal
		}
	}
	p.Skipped = skipped
	fires := replay[:missed]
	if missed < len(replay) {
		p.Next = replay[missed]
	} else {
		delete(c.backlogs, s.ID)
		fires = slices.Concat(fires, newest)
		p.Next, _ = ticks.Next(until)
		for _, at := range newest {
			ideal = firesAt(s, ticks, at)
		}
	}
	if !p.Next.IsZero() {
		p.Delay = ticks.Delay(s.ID, p.Next, s.Jitter)
	}
	for _, at := range fires {
		p.Ticks = append(p.Ticks, engine.Tick{At: at, RunID: engine.NewID(now)})
	}
	return p, missed, ideal
}

// firesAt returns when a tick has to fire. The stored delay of the next tick may be that of an
// earlier jitter, and longer.
func firesAt(s *engine.Schedule, ticks *cron.Schedule, tick time.Time) time.Time {
	at := tick.Add(ticks.Delay(s.ID, tick, s.Jitter))
	if tick.Equal(s.NextFireAt) && s.FiresAt().After(at) {
		return s.FiresAt()
	}
	return at
}

// due splits the due ticks of a schedule. All but the newest are missed, and the newest too if it is
// more than engine.OnTime old. replay holds the latest MaxCatchup of the missed ticks, oldest first;
// skipped counts the others. newest holds the newest tick if it is not missed. Ticks that became due
// while the rate delayed a backlog are admitted with it: of those, replay holds the next ones only,
// at least one more than one transaction fires. A tick that jitter still delays is not due; until is
// before it, and otherwise now.
func (c *Coordinator) due(s *engine.Schedule, ticks *cron.Schedule, now time.Time) (replay, newest []time.Time,
	skipped int64, until time.Time) {
	before := s.NextFireAt.Add(-time.Second)
	until = now
	if latest, _ := ticks.Missed(before, now, 1); s.Jitter > 0 && len(latest) > 0 &&
		firesAt(s, ticks, latest[0]).After(now) { // those before have fired: delays end before the next tick
		until = latest[0].Add(-time.Second)
	}
	b, known := c.backlogs[s.ID]
	known = known && b.revision == s.Revision && !s.NextFireAt.Before(b.from)
	complete := true
	if known {
		replay = ticks.NextN(before, firesAtOnce+2)
		replay = slices.DeleteFunc(replay, func(t time.Time) bool { return t.After(until) })
		complete = len(replay) < firesAtOnce+2
	} else {
		replay, skipped = ticks.Missed(before, until, s.MaxCatchup+1)
	}
	if n := len(replay); complete && n > 0 && now.Sub(firesAt(s, ticks, replay[n-1])) <= engine.OnTime {
		replay, newest = replay[:n-1], replay[n-1:]
	} else if !known && n > s.MaxCatchup {
		replay, skipped = replay[1:], skipped+1
	}
	if !known && len(replay) > 0 {
		c.backlogs[s.ID] = backlog{s.Revision, replay[0]}
	}
	return replay, newest, skipped, until
}

// lateness returns how late the newest tick is that was not missed; negative if there is none.
func (c *Coordinator) lateness(ideal time.Time) time.Duration {
	if ideal.IsZero() {
		return -1
	}
	return max(0, c.store.Now().Sub(ideal))
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
