package engine

import (
	"context"
	"time"
)

// Notifier tells whoever listens that something may have changed. The store that commits notifies it, after the commit. A notification is a
// hint: it may be lost, repeated or merged; between processes nothing is ever sent in it but a name.
type Notifier interface {
	// Notifier calls notification for each hint until ctx ends, from one goroutine at a time and without waiting for anything but notification,
	// which must not block. After a gap in listening it sends NotifyAll once.
	Listen(ctx context.Context, notify func(Notification)) error
}

// NotificationKind says what a notification is about.
type NotificationKind uint8

const (
	NotifyAll         NotificationKind = iota // anything may have changed
	NotifyQueue                               // Namespace, Name: the queue has a run that is, or will be, due
	NotifySlot                                // Namespace, Name: a lease of the queue has ended, which may free a slot under a limit
	NotifyRun                                 // ID: the run or one of its steps changed
	NotifyEnd                                 // ID: the run has ended; notified besides NotifyRun, for those whom nothing else concerns
	NotifyWorker                              // Name: the worker registered, changed its status, lost leases, or is to drain
	NotifySchedule                            // Namespace, Name: the schedule with that id was made, changed, deleted, or has fired
	NotifyNamespace                           // Name: a person made the namespace or changed it
	NotifyTimer                               // upkeep has something new to wait for: an attempt with a timeout, a deadline, a schedule
	NotifyKeys                                // a key was made or revoked
	NotifySideEffects                         // Aside: a call began or ended runs that it was not asked for; notified in the process that committed alone
)

// Notification is one hint.
type Notification struct {
	Kind      NotificationKind
	Namespace string
	Name      string
	ID        ID
	// Taken may come with NotifyQueue: all runs that it is notified for were claimed in the commit that made them, so that whoever claims finds none.
	Claimed bool
	// Registered comes with NotifyWorker where the notification says no more than that the worker is in the register now, under an id that no other had:
	// whoever it registered with knows that. The notifications of other processes come without.
	Registered bool
	// Ending comes with NotifyEnd where the store that committed knows it without a look and the listener is in its process; otherwise nil:
	// whoever wants to know how the run ended looks. It is shared: nobody changes it.
	Ending *Ending
	// Aside comes with NotifySideEffects. It is shared: nobody changes it.
	SideEffects *SideEffects
}

// Aside is what a call has begun and ended besides what its answer tells, for whoever counts runs and tells of those that nobody asked to fail. Where notifications are merged into
// NotifyAll, it is added up and notified besides.
type SideEffects struct {
	Handlers int  // of failures, that were started
	Ticks    int  // that had waited until their schedule had no open run, or was not paused any more, and were started
	Failed   []ID // whose worker was lost once too often
	Stopped  int  // that ended with their parent
}

// Empty says that nothing was begun or ended aside.
func (a *SideEffects) Empty() bool {
	return a.Handlers == 0 && a.Ticks == 0 && len(a.Failed) == 0 && a.Stopped == 0
}

// Add adds what another call has done aside.
func (a *SideEffects) Add(b *SideEffects) {
	a.Handlers += b.Handlers
	a.Ticks += b.Ticks
	a.Failed = append(a.Failed, b.Failed...)
	a.Stopped += b.Stopped
}

// Ending is what a run has come to, as far as those who wait for its result want to know.
type Ending struct {
	Namespace   string
	Status      RunStatus
	Output      Payload  // of one that COMPLETED
	Error       *Failure // of any other
	ContinuedAs ID       // the run that goes on for it; zero: none
	FinishedAt  time.Time
}
