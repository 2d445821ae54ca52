package model

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	statsEvery    = time.Second
	seldomEvery   = 5 * time.Second // for the counters alone
	minutesEvery  = time.Minute     // for the series of minutes
	infoEvery     = 5 * time.Minute
	topQueues     = 8
	topFailures   = 8
	topFires      = 5
	runsPerMinute = 60
	// secondOver is the delay after which a second of activity can be loaded: a server reports only
	// complete seconds. It includes the network delay.
	secondOver = 2 * time.Second
)

// Overview is the state of the namespace and the server. The sources of the counters and warnings
// are followed from the start; Show adds what only the page needs, and Hide drops it.
type Overview struct {
	base
	// Version is this program's, to compare with the server's; empty: do not compare.
	Version string

	stats     *kagziv1.GetStatsResponse
	statsAsOf time.Time // time of the load, by the server's clock
	info      *kagziv1.GetServerInfoResponse
	me        *kagziv1.WhoAmIResponse
	sealed    bool // the server does not report its activity to this caller
	seconds   series
	minutes   series
	queues    *Collection[*kagziv1.QueueDepth]
	schedules *Collection[*kagziv1.WorkflowSchedule]
	workers   *Collection[*kagziv1.Worker]
	failures  *Collection[*kagziv1.Workflow]

	readStats, readSeconds, readMinutes, readInfo *poller

	lastSecond *timer // until the second of the latest change can be loaded
}

// poller is a reader whose result stores itself.
type poller = reader[func()]

// NewOverview follows the namespace of a link.
func NewOverview(l *Link) *Overview {
	o := &Overview{}
	o.base = join(l, o.heard)
	o.queues, o.schedules = NewQueues(l), NewSchedules(l)
	o.workers = newWorkers(l, func(c Change) bool { return c.WorkersChanged || c.Beat && o.shown })
	o.failures = newCollection(l, ofRuns(l, topFailures, failing, func(r *kagziv1.ListWorkflowsRequest) {
		r.Statuses = failedStatuses
	}))
	o.queues.Changed, o.schedules.Changed, o.workers.Changed, o.failures.Changed = o.change, o.change,
		o.change, o.change
	o.readStats = o.poller(statsEvery, func(ctx context.Context, namespace string) (func(), error) {
		answer, err := l.api.GetStats(ctx, &kagziv1.GetStatsRequest{Namespace: &namespace})
		return func() { o.stats, o.statsAsOf = answer, l.Now() }, err
	})
	o.readSeconds = o.poller(seldomEvery, o.activity(time.Second, &o.seconds))
	o.readMinutes = o.poller(minutesEvery, o.activity(time.Minute, &o.minutes))
	o.readInfo = o.poller(infoEvery, func(ctx context.Context, _ string) (func(), error) {
		answer, err := l.api.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
		if err != nil {
			return nil, err
		}
		me, err := l.api.WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
		if status.Code(err) == codes.Unimplemented { // the server has no keys
			me, err = nil, nil
		}
		return func() { o.info, o.me = answer, me }, err
	})
	o.queues.Show()
	o.schedules.Show()
	o.workers.Show()
	if l.Ready() {
		o.readAll()
	}
	return o
}

// failing reports whether a change may include a failed run.
func failing(c Change) bool {
	return c.RunsChanged || anyRun(c, func(r *kagziv1.Workflow) bool {
		return slices.Contains(failedStatuses, r.GetStatus())
	})
}

var failedStatuses = []kagziv1.WorkflowStatus{
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT}

// poller returns a reader; call loads data and returns a function that stores it.
func (o *Overview) poller(every time.Duration,
	call func(ctx context.Context, namespace string) (func(), error)) *poller {
	return &poller{
		tasks: o.tasks, every: every,
		prepare: func() func(context.Context) (func(), error) {
			namespace := o.link.Namespace()
			return func(ctx context.Context) (func(), error) { return call(ctx, namespace) }
		},
		done: func(keep func(), err error) {
			o.err = err
			if err == nil {
				keep()
			}
			o.change()
		},
	}
}

// activity loads a series of the server's activity.
func (o *Overview) activity(step time.Duration, to *series) func(context.Context, string) (func(), error) {
	return func(ctx context.Context, _ string) (func(), error) {
		answer, err := o.link.api.GetActivity(ctx, &kagziv1.GetActivityRequest{Step: durationpb.New(step)})
		switch status.Code(err) {
		case codes.PermissionDenied, codes.Unimplemented:
			// activity covers all namespaces: callers without access to all of them get the rest of
			// the page
			return func() { o.sealed, *to = true, series{} }, nil
		}
		return func() {
			o.sealed, *to = false, series{at: moment(answer.GetAt()), step: step, points: answer.GetPoints()}
		}, err
	}
}

// Show starts to follow what only the page needs.
func (o *Overview) Show() {
	o.shown = true
	o.readSeconds.every = statsEvery
	if o.link.Ready() && !o.sealed {
		o.readSeconds.now()
		o.readMinutes.want()
		o.readLastSecond()
	}
	o.workers.Show()
	o.failures.Show()
}

// Hide stops following what only the page needs.
func (o *Overview) Hide() {
	o.shown = false
	o.readSeconds.every = seldomEvery
	o.failures.Hide()
}

// Close ends the model and waits for its calls.
func (o *Overview) Close() {
	o.queues.Close()
	o.schedules.Close()
	o.workers.Close()
	o.failures.Close()
	o.base.Close()
}

// Refresh reloads everything now.
func (o *Overview) Refresh() {
	for _, r := range []*poller{o.readStats, o.readSeconds, o.readMinutes, o.readInfo} {
		r.now()
	}
	o.queues.Refresh()
	o.schedules.Refresh()
	o.workers.Refresh()
	o.failures.Refresh()
}

// Stats returns the counts of the namespace; nil until loaded.
func (o *Overview) Stats() *kagziv1.GetStatsResponse { return o.stats }

// OldestPending returns how long the oldest due run has waited by now; 0 if none waits. Waiting
// causes no event, so the loaded value is advanced by the time since.
func (o *Overview) OldestPending() time.Duration {
	return aged(o.stats.GetOldestPendingSeconds(), o.statsAsOf, o.link.Now())
}

// OldestIn returns the same for a queue of Queues.
func (o *Overview) OldestIn(q *kagziv1.QueueDepth) time.Duration {
	return Oldest(q, o.queues.AsOf(), o.link.Now())
}

// Oldest returns how long the oldest due run of a queue has waited by now; asOf is when the queue
// was loaded.
func Oldest(q *kagziv1.QueueDepth, asOf, now time.Time) time.Duration {
	return aged(q.GetOldestPendingSeconds(), asOf, now)
}

// aged advances a wait by the time since it was loaded; 0 stays 0.
func aged(seconds float64, asOf, now time.Time) time.Duration {
	wait := time.Duration(seconds * float64(time.Second))
	if wait <= 0 || asOf.IsZero() {
		return max(wait, 0)
	}
	return wait + max(now.Sub(asOf), 0)
}

// Info returns the facts about the server; nil until loaded.
func (o *Overview) Info() *kagziv1.GetServerInfoResponse { return o.info }

// Me returns the identity of the caller; nil until loaded, and if the server has no keys.
func (o *Overview) Me() *kagziv1.WhoAmIResponse { return o.me }

// Err returns why there is nothing to show; nil if there is something.
func (o *Overview) Err() error { return o.failure(o.stats != nil) }

// Queues returns all queues of the namespace.
func (o *Overview) Queues() *Collection[*kagziv1.QueueDepth] { return o.queues }

// Workers returns all workers of the namespace.
func (o *Overview) Workers() *Collection[*kagziv1.Worker] { return o.workers }

// Schedules returns all schedules of the namespace.
func (o *Overview) Schedules() *Collection[*kagziv1.WorkflowSchedule] { return o.schedules }

// Deepest returns the 8 queues with the largest backlog, largest first.
func (o *Overview) Deepest() []*kagziv1.QueueDepth {
	queues := slices.Clone(o.queues.All())
	slices.SortStableFunc(queues, func(a, b *kagziv1.QueueDepth) int {
		return int(min(max(b.GetPending()-a.GetPending(), -1), 1))
	})
	return queues[:min(len(queues), topQueues)]
}

// Failures returns the newest 8 runs that failed or timed out.
func (o *Overview) Failures() []*kagziv1.Workflow { return o.failures.All() }

// Fires returns the 5 schedules that fire next, soonest first.
func (o *Overview) Fires() []*kagziv1.WorkflowSchedule {
	due := o.due()
	return due[:min(len(due), topFires)]
}

// More reports whether there are more than Deepest, Failures and Fires return.
func (o *Overview) More() (queues, failures, fires bool) {
	return len(o.queues.All()) > topQueues || o.queues.More(), o.failures.More(), len(o.due()) > topFires ||
		o.schedules.More()
}

// due returns the schedules that will fire, soonest first.
func (o *Overview) due() []*kagziv1.WorkflowSchedule {
	var due []*kagziv1.WorkflowSchedule
	for _, s := range o.schedules.All() {
		if s.GetEnabled() && s.GetBroken() == "" && s.GetNextFireAt() != nil {
			due = append(due, s)
		}
	}
	slices.SortStableFunc(due, func(a, b *kagziv1.WorkflowSchedule) int {
		return a.GetNextFireAt().AsTime().Compare(b.GetNextFireAt().AsTime())
	})
	return due
}

// Sealed reports that the server does not report its activity to this caller. Activity and
// FailedLastHour then mean nothing.
func (o *Overview) Sealed() bool { return o.sealed }

// Activity returns the server's activity in a range up to now, oldest first: 300 seconds, 60
// minutes or 1440 minutes. It covers all namespaces.
func (o *Overview) Activity(r Range) []*kagziv1.ActivityPoint {
	if r == FiveMinutes {
		return o.seconds.last(int(r.points()), o.link.Now())
	}
	return o.minutes.last(int(r.points()), o.link.Now())
}

// FailedLastHour returns how many runs failed on the server within the last hour, or since its
// start if that is later.
func (o *Overview) FailedLastHour() int64 {
	var n int64
	for _, p := range o.minutes.last(runsPerMinute, o.link.Now()) {
		n += p.GetRunsFailed()
	}
	for _, p := range o.seconds.since(o.minutes.at) { // the current minute, which is not complete
		n += p.GetRunsFailed()
	}
	return n
}

// Warnings returns the warnings, most severe first.
func (o *Overview) Warnings() []Warning {
	return Warnings(Situation{
		Now: o.link.Now(), Skew: o.link.Skew(), RoundTrip: o.link.RoundTrip(), Health: o.link.Health(),
		Version: o.Version,
		Stats:   o.stats, StatsAsOf: o.statsAsOf, Info: o.info, Queues: o.queues.All(), Schedules: o.schedules.All(),
		Workers: o.workers.All(), WorkersAsOf: o.workers.AsOf(),
	})
}

func (o *Overview) heard(c Change) {
	if c.Moved {
		o.readStats.stop()
		o.stats = nil
		o.change()
		return
	}
	if c.Back {
		o.readAll()
		return
	}
	if someRuns(c) || c.WorkersChanged || c.SchedulesChanged {
		o.readStats.want()
		if !o.sealed {
			o.readSeconds.want()
			o.readMinutes.want()
			o.readLastSecond()
		}
	}
	if c.Beat {
		o.readInfo.want()
		if o.err != nil { // the error may be over
			o.readStats.want()
		}
	}
}

func (o *Overview) readAll() {
	for _, r := range []*poller{o.readStats, o.readSeconds, o.readMinutes, o.readInfo} {
		r.now()
	}
	o.readLastSecond()
}

// readLastSecond loads the seconds again when the current one is complete. No earlier load contains
// it, and without further changes there would be no later one.
func (o *Overview) readLastSecond() {
	o.lastSecond.stop()
	o.lastSecond = o.tasks.after(secondOver, func() {
		if o.link.Ready() && !o.sealed {
			o.readSeconds.want()
		}
	})
}
