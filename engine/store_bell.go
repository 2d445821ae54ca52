package engine

import (
	"context"
	"time"
)

// Bell tells whoever listens that something may have changed. The store that commits rings it, after the commit. A ring is a
// hint: it may be lost, repeated or merged; between processes nothing is ever sent in it but a name.
type Bell interface {
	// Listen calls ring for each hint until ctx ends, from one goroutine at a time and without waiting for anything but ring,
	// which must not block. After a gap in listening it rings RingAll once.
	Listen(ctx context.Context, ring func(Ring)) error
}

// RingKind says what a ring is about.
type RingKind uint8

const (
	RingAll       RingKind = iota // anything may have changed
	RingQueue                     // Namespace, Name: the queue has a run that is, or will be, due
	RingSlot                      // Namespace, Name: a lease of the queue has ended, which may free a slot under a limit
	RingRun                       // ID: the run or one of its steps changed
	RingEnd                       // ID: the run has ended; rung besides RingRun, for those whom nothing else concerns
	RingWorker                    // Name: the worker registered, changed its status, lost leases, or is to drain
	RingSchedule                  // Namespace, Name: the schedule with that id was made, changed, deleted, or has fired
	RingNamespace                 // Name: a person made the namespace or changed it
	RingTimer                     // upkeep has something new to wait for: an attempt with a timeout, a deadline, a schedule
	RingKeys                      // a key was made or revoked
	RingAside                     // Aside: a call began or ended runs that it was not asked for; rung in the process that committed alone
)

// Ring is one hint.
type Ring struct {
	Kind      RingKind
	Namespace string
	Name      string
	ID        ID
	// Taken may come with RingQueue: all runs that it is rung for were claimed in the commit that made them, so that whoever claims finds none.
	Taken bool
	// Registered comes with RingWorker where the ring says no more than that the worker is in the register now, under an id that no other had:
	// whoever it registered with knows that. The rings of other processes come without.
	Registered bool
	// Ending comes with RingEnd where the store that committed knows it without a look and the listener is in its process; otherwise nil:
	// whoever wants to know how the run ended looks. It is shared: nobody changes it.
	Ending *Ending
	// Aside comes with RingAside. It is shared: nobody changes it.
	Aside *Aside
}

// Aside is what a call has begun and ended besides what its answer tells, for whoever counts runs and tells of those that nobody asked to fail. Where rings are merged into
// RingAll, it is added up and rung besides.
type Aside struct {
	Handlers int  // of failures, that were started
	Ticks    int  // that had waited until their schedule had no open run, or was not paused any more, and were started
	Failed   []ID // whose worker was lost once too often
	Stopped  int  // that ended with their parent
}

// Empty says that nothing was begun or ended aside.
func (a *Aside) Empty() bool {
	return a.Handlers == 0 && a.Ticks == 0 && len(a.Failed) == 0 && a.Stopped == 0
}

// Add adds what another call has done aside.
func (a *Aside) Add(b *Aside) {
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
