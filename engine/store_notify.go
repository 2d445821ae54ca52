package engine

import (
	"context"
	"time"
)

// Notifier tells listeners that something may have changed. The store that commits a change sends
// its notifications after the commit. A notification is a hint: it may be lost, repeated or merged,
// and it names what changed but carries no other data.
type Notifier interface {
	// Listen calls notify for each hint until ctx ends, from one goroutine at a time. It waits for
	// nothing but notify, which must not block. After a gap in listening it sends NotifyAll once.
	// If o is not nil, Listen calls it from the same goroutine; o must not block either.
	Listen(ctx context.Context, notify func(Notification), o Outcomes) error
}

// NotificationKind says what a notification is about.
type NotificationKind uint8

const (
	NotifyAll   NotificationKind = iota // anything may have changed
	NotifyQueue                         // Namespace, Name: the queue has a run that is, or will be, due
	// Namespace, Name: a lease of the queue has ended, which may free a slot under a limit
	NotifySlot
	NotifyRun // ID: the run or one of its steps changed
	// ID: the run has ended; sent in addition to NotifyRun, for listeners that need only endings
	NotifyEnd
	// Name: the worker registered, changed its status, lost leases, or was told to drain
	NotifyWorker
	// Namespace, Name: the schedule with that id was made, changed, deleted, or has fired
	NotifySchedule
	NotifyNamespace // Name: the namespace was made or changed by a request
	// upkeep has something new to wait for: an attempt with a timeout, a deadline, a schedule
	NotifyTimer
	NotifyKeys // a key was made or revoked
	// a run waits that some builds have diverged from: PauseDiverged may have something to do
	NotifyDiverged
	// Name, ID, Step: something has happened that this step of a run which the worker holds may wait
	// for: a signal came, or its child ended
	NotifyWait
)

// Notification is one hint.
type Notification struct {
	Kind      NotificationKind
	Namespace string
	Name      string
	ID        ID
	Step      string
	// Claimed may be set on NotifyQueue: every run that the notification is sent for was claimed in
	// the commit that made it, so a claim would find none of them.
	Claimed bool
	// Registered may be set on NotifyWorker: the only change is that the worker registered under an
	// id that was not in the register. The server that registered it knows this already.
	// Notifications from other processes never have it set.
	Registered bool
}

// SideEffects counts the runs that a call began or ended and that its answer does not tell. Metrics
// count them, and servers report the runs that failed without a request.
type SideEffects struct {
	Handlers int  // failure handlers started
	Ticks    int  // ticks started that were held back by an open run of their schedule, or by its pause
	Failed   []ID // runs whose worker was lost once too often
	Stopped  int  // runs that ended with their parent
}

// Empty says whether there are none.
func (a *SideEffects) Empty() bool {
	return a.Handlers == 0 && a.Ticks == 0 && len(a.Failed) == 0 && a.Stopped == 0
}

// Add adds the side effects of another call.
func (a *SideEffects) Add(b *SideEffects) {
	a.Handlers += b.Handlers
	a.Ticks += b.Ticks
	a.Failed = append(a.Failed, b.Failed...)
	a.Stopped += b.Stopped
}

// Ending holds what callers that wait for a run's result get to know about its end.
type Ending struct {
	Namespace   string
	Status      RunStatus
	Output      Payload  // if COMPLETED
	Error       *Failure // if it ended otherwise
	ContinuedAs ID       // the run it continued as; zero: none
	FinishedAt  time.Time
}
