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
	seldomEvery   = 5 * time.Second // what only the counters show
	minutesEvery  = time.Minute     // the series of minutes
	infoEvery     = 5 * time.Minute
	topQueues     = 8
	topFailures   = 8
	topFires      = 5
	runsPerMinute = 60
	// secondOver is after how long the second in which something happened is told: a server tells
	// those that are over. It leaves room for the way.
	secondOver = 2 * time.Second
)

// Overview is how the namespace and its server are. What the counters and the warnings are made of
// is followed from the beginning; Show adds what only the page shows, Hide leaves it out again.
type Overview struct {
	base
	// Version is that of this program, to be compared with the server's; empty compares nothing.
	Version string

	stats     *kagziv1.GetStatsResponse
	statsAsOf time.Time // when they were read, by the server's clock
	info      *kagziv1.GetServerInfoResponse
	me        *kagziv1.WhoAmIResponse
	sealed    bool // the server does not tell its activity, at least not to the caller
	seconds   series
	minutes   series
	queues    *Collection[*kagziv1.QueueDepth]
	schedules *Collection[*kagziv1.WorkflowSchedule]
	workers   *Collection[*kagziv1.Worker]
	failures  *Collection[*kagziv1.Workflow]

	readStats, readSeconds, readMinutes, readInfo *poller

	lastSecond *timer // until the second of the latest change can be read
}

// poller is a reader whose answer has been taken when it is done.
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
		if status.Code(err) == codes.Unimplemented { // a server without keys
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

// failing says whether a change may bring a failed run.
func failing(c Change) bool {
	return c.RunsChanged || anyRun(c, func(r *kagziv1.Workflow) bool {
		return slices.Contains(failedStatuses, r.GetStatus())
	})
}

var failedStatuses = []kagziv1.WorkflowStatus{
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT}

// poller makes a reader; call brings something and returns what keeps it.
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

// activity reads a series of the server's activity.
func (o *Overview) activity(step time.Duration, to *series) func(context.Context, string) (func(), error) {
	return func(ctx context.Context, _ string) (func(), error) {
		answer, err := o.link.api.GetActivity(ctx, &kagziv1.GetActivityRequest{Step: durationpb.New(step)})
		switch status.Code(err) {
		case codes.PermissionDenied, codes.Unimplemented:
			// it is of all namespaces together: only some may see it, and the rest is there without it
			return func() { o.sealed, *to = true, series{} }, nil
		}
		return func() {
			o.sealed, *to = false, series{at: moment(answer.GetAt()), step: step, points: answer.GetPoints()}
		}, err
	}
}

// Show follows what only the page shows too.
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

// Hide leaves out what only the page shows.
func (o *Overview) Hide() {
	o.shown = false
	o.readSeconds.every = seldomEvery
	o.failures.Hide()
}

// Close ends the model and waits for what it has under way.
func (o *Overview) Close() {
	o.queues.Close()
	o.schedules.Close()
	o.workers.Close()
	o.failures.Close()
	o.base.Close()
}

// Refresh reads everything again now.
func (o *Overview) Refresh() {
	for _, r := range []*poller{o.readStats, o.readSeconds, o.readMinutes, o.readInfo} {
		r.now()
	}
	o.queues.Refresh()
	o.schedules.Refresh()
	o.workers.Refresh()
	o.failures.Refresh()
}

// Stats counts everything in the namespace; nil until it has come.
func (o *Overview) Stats() *kagziv1.GetStatsResponse { return o.stats }

// OldestPending is how long the oldest run that is due has waited by now; 0 when none does. What
// waits causes no event, so what was read grows.
func (o *Overview) OldestPending() time.Duration {
	return aged(o.stats.GetOldestPendingSeconds(), o.statsAsOf, o.link.Now())
}

// OldestIn is the same of a queue of Queues.
func (o *Overview) OldestIn(q *kagziv1.QueueDepth) time.Duration {
	return Oldest(q, o.queues.AsOf(), o.link.Now())
}

// Oldest is how long the oldest run that is due in a queue has waited by now; asOf is when the queue was read.
func Oldest(q *kagziv1.QueueDepth, asOf, now time.Time) time.Duration {
	return aged(q.GetOldestPendingSeconds(), asOf, now)
}

// aged is a wait that has gone on since it was read; 0 stays 0.
func aged(seconds float64, asOf, now time.Time) time.Duration {
	wait := time.Duration(seconds * float64(time.Second))
	if wait <= 0 || asOf.IsZero() {
		return max(wait, 0)
	}
	return wait + max(now.Sub(asOf), 0)
}

// Info is what the server is; nil until it has come.
func (o *Overview) Info() *kagziv1.GetServerInfoResponse { return o.info }

// Me is who the server takes the caller for; nil until it has come, and of a server that has no keys.
func (o *Overview) Me() *kagziv1.WhoAmIResponse { return o.me }

// Err is why there is nothing to show; nil when there is something.
func (o *Overview) Err() error { return o.failure(o.stats != nil) }

// Queues are all queues of the namespace.
func (o *Overview) Queues() *Collection[*kagziv1.QueueDepth] { return o.queues }

// Workers are all workers of the namespace.
func (o *Overview) Workers() *Collection[*kagziv1.Worker] { return o.workers }

// Schedules are all schedules of the namespace.
func (o *Overview) Schedules() *Collection[*kagziv1.WorkflowSchedule] { return o.schedules }

// Deepest are the 8 queues in which most runs wait, deepest first.
func (o *Overview) Deepest() []*kagziv1.QueueDepth {
	queues := slices.Clone(o.queues.All())
	slices.SortStableFunc(queues, func(a, b *kagziv1.QueueDepth) int {
		return int(min(max(b.GetPending()-a.GetPending(), -1), 1))
	})
	return queues[:min(len(queues), topQueues)]
}

// Failures are the newest 8 runs that failed or timed out.
func (o *Overview) Failures() []*kagziv1.Workflow { return o.failures.All() }

// Fires are the 5 schedules that fire next, soonest first.
func (o *Overview) Fires() []*kagziv1.WorkflowSchedule {
	due := o.due()
	return due[:min(len(due), topFires)]
}

// More says whether there are others than Deepest, Failures and Fires give.
func (o *Overview) More() (queues, failures, fires bool) {
	return len(o.queues.All()) > topQueues || o.queues.More(), o.failures.More(), len(o.due()) > topFires ||
		o.schedules.More()
}

// due are the schedules that are going to fire, soonest first.
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

// Sealed says that the server does not tell its activity, at least not to the caller: what Activity
// and FailedLastHour give says nothing then.
func (o *Overview) Sealed() bool { return o.sealed }

// Activity is what the server did in a range up to now, oldest first: 300 seconds, 60 minutes or
// 1440 minutes. It is of all namespaces together.
func (o *Overview) Activity(r Range) []*kagziv1.ActivityPoint {
	if r == FiveMinutes {
		return o.seconds.last(int(r.points()), o.link.Now())
	}
	return o.minutes.last(int(r.points()), o.link.Now())
}

// FailedLastHour is how many runs failed on the server within the last hour, or since it was started.
func (o *Overview) FailedLastHour() int64 {
	var n int64
	for _, p := range o.minutes.last(runsPerMinute, o.link.Now()) {
		n += p.GetRunsFailed()
	}
	for _, p := range o.seconds.since(o.minutes.at) { // the minute that is not over
		n += p.GetRunsFailed()
	}
	return n
}

// Warnings are what needs somebody's eye, the worst first.
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
		if o.err != nil { // what went wrong may be over
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

// readLastSecond has the seconds read once more when the one that is under way is over: what is
// done in it is in no reading before, and when nothing happens after it there would be none.
func (o *Overview) readLastSecond() {
	o.lastSecond.stop()
	o.lastSecond = o.tasks.after(secondOver, func() {
		if o.link.Ready() && !o.sealed {
			o.readSeconds.want()
		}
	})
}
