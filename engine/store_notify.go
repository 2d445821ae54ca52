package engine

import (
	"context"
	"time"
)

// Notifier tells listeners that something may have changed. The store that commits notifies them,
// after the commit. A notification is a hint: it may be lost, repeated or merged, and carries no
// data but names.
type Notifier interface {
	// Listen calls notify for each hint until ctx ends, from one goroutine at a time and without
	// waiting for anything but notify, which must not block. After a gap in listening it sends
	// NotifyAll once. Outcomes, where they are not nil, are called from the same goroutine and must
	// not block either.
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
	// ID: the run has ended; notified besides NotifyRun, for those whom nothing else concerns
	NotifyEnd
	// Name: the worker registered, changed its status, lost leases, or is to drain
	NotifyWorker
	// Namespace, Name: the schedule with that id was made, changed, deleted, or has fired
	NotifySchedule
	NotifyNamespace // Name: a person made the namespace or changed it
	// upkeep has something new to wait for: an attempt with a timeout, a deadline, a schedule
	NotifyTimer
	NotifyKeys // a key was made or revoked
)

// Notification is one hint.
type Notification struct {
	Kind      NotificationKind
	Namespace string
	Name      string
	ID        ID
	// Claimed may come with NotifyQueue: all runs that it is sent for were claimed in the commit
	// that made them, so that a claim finds none.
	Claimed bool
	// Registered comes with NotifyWorker where it says no more than that the worker is in the
	// register now, under an id that no other had: the server that it registered with knows that.
	// The notifications of other processes come without.
	Registered bool
}

// SideEffects is what a call has begun and ended beside what its answer tells, for those who count
// runs and report runs that nobody asked to fail.
type SideEffects struct {
	Handlers int  // of failures, that were started
	Ticks    int  // that had waited until their schedule had no open run, or was not paused any more, and were started
	Failed   []ID // whose worker was lost once too often
	Stopped  int  // that ended with their parent
}

// Empty says that there are none.
func (a *SideEffects) Empty() bool {
	return a.Handlers == 0 && a.Ticks == 0 && len(a.Failed) == 0 && a.Stopped == 0
}

// Add adds those of another call.
func (a *SideEffects) Add(b *SideEffects) {
	a.Handlers += b.Handlers
	a.Ticks += b.Ticks
	a.Failed = append(a.Failed, b.Failed...)
	a.Stopped += b.Stopped
}

// Ending is how a run ended, as far as those who wait for its result want to know.
type Ending struct {
	Namespace   string
	Status      RunStatus
	Output      Payload  // of one that COMPLETED
	Error       *Failure // of any other
	ContinuedAs ID       // the run it continued as; zero: none
	FinishedAt  time.Time
}
