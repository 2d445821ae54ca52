package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// Handoff offers the workers that wait, where runs are being started. A store that is given one may
// hand a run to a waiting worker in the transaction that makes the run, so that start and claim are
// one commit. It need not.
type Handoff interface {
	// Offer returns the waiting poller that should get this run, or nil if none is waiting: the
	// slot that a claim made now would use for the run if nothing else were due. It is nil too when
	// the run is not due, or when the workers prefer another queue. It does not block.
	Offer(start *StartRun) Match
}

// Match is a claim slot that a store has taken for a run that it is about to make. Nothing limits
// its worker. When the transaction is over, the store calls exactly one of Commit, Abort and
// Unknown; none of them blocks.
type Match interface {
	// Slot is the worker and the token, and Now the moment, of the claim.
	Slot() ClaimSlot
	Now() time.Time
	// Types is what the worker runs: something else of these types that is due in the run's queue
	// may come first. It is shared: nobody changes it.
	Types() []string
	// Commit hands the claimed run over, once that is on disk.
	Commit(Task)
	// Abort says that nothing was claimed under the slot.
	Abort()
	// Unknown says that nobody knows whether anything was.
	Unknown(err error)
}

// Ticket is the place of one write in a sequence of writes, such as what a worker does for one run.
// The next write is handed to the store before this one has come to its end, so that both may share
// a commit. It happens after this one all the same, and not at all when this one is refused.
//
// Whoever makes a Ticket gives it to a method of the store, and calls Close with what came of it.
// If the write is refused before it comes to a store, Close alone is enough.
type Ticket struct {
	prev     atomic.Pointer[Ticket] // the write that this one builds on; nil when on none
	admitted chan struct{}
	admit    sync.Once
	failed   atomic.Bool
	onAdmit  func()
}

// NewTicket makes the ticket of a write that builds on that of prev, which may be nil.
func NewTicket(prev *Ticket) *Ticket {
	t := &Ticket{admitted: make(chan struct{})}
	t.prev.Store(prev)
	return t
}

// OnAdmit has f called when the write has its place, by whoever gives it; f must not block. Call it
// before the ticket is handed on.
func (t *Ticket) OnAdmit(f func()) { t.onAdmit = f }

// Admitted is closed once the next write of the sequence may be handed to the store.
func (t *Ticket) Admitted() <-chan struct{} { return t.admitted }

// Admit is called by the store when whatever it is handed from now on will be carried out after
// this write. A store that does not keep an order, or not that of a write that may wait for others,
// never calls it: then the sequence goes on with the write's Close. A nil Ticket has no place.
func (t *Ticket) Admit() {
	if t != nil {
		t.admit.Do(t.admitOnce)
	}
}

func (t *Ticket) admitOnce() {
	close(t.admitted)
	if t.onAdmit != nil {
		t.onAdmit()
	}
}

// Err is nil when the write may be carried out, ErrPrevRefused when the one before it has failed.
// The store asks inside the transaction, where the order is known. A nil Ticket has no error.
func (t *Ticket) Err() error {
	if t == nil {
		return nil
	}
	if prev := t.prev.Load(); prev != nil && prev.failed.Load() {
		return ErrPrevRefused
	}
	return nil
}

// Prev is the ticket that this one builds on; nil when on none, or when it has come to its Close. A
// nil Ticket builds on none.
func (t *Ticket) Prev() *Ticket {
	if t == nil {
		return nil
	}
	return t.prev.Load()
}

// Resolve notes what the write has come to, for those behind it. The store calls it each time that
// it has carried the write out or has had to give it up; the last word counts. A nil Ticket
// resolves nothing.
func (t *Ticket) Resolve(err error) {
	if t != nil {
		t.failed.Store(err != nil)
	}
}

// Close is Resolve and Admit, by whoever made the ticket, once the store has answered.
func (t *Ticket) Close(err error) {
	t.Resolve(err)
	t.prev.Store(nil) // a long sequence is not kept by its last ticket
	t.Admit()
}

// ErrPrevRefused answers a write that was sent before its sender could know that the one it builds on was refused.
var ErrPrevRefused = &Error{Kind: KindUnavailable,
	Message: "the operation that this one builds on was refused; nothing was changed"}

// Sequenced is embedded in the parameters of writes that may have a place in a sequence.
type Sequenced struct {
	Ticket *Ticket // nil: the write builds on none, and none on it
}

// GetTicket and SetTicket are for code that handles the parameters of any write alike.
func (s Sequenced) GetTicket() *Ticket   { return s.Ticket }
func (s *Sequenced) SetTicket(t *Ticket) { s.Ticket = t }
