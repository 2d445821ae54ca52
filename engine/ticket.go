package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// Handoff offers waiting workers to a store that starts runs. The store may give a run to a waiting
// worker in the transaction that makes the run, so that start and claim are one commit. It need
// not.
type Handoff interface {
	// Offer returns the waiting poller that should get this run, or nil if none is waiting: the
	// slot that a claim made now would use for the run if nothing else were due. It is nil too when
	// the run is not due, or when the workers prefer another queue. It does not block.
	Offer(start *StartRun) Match
}

// Match is a claim slot that a store has taken for a run that it is about to make. Its worker has
// no QueueLimit and no TypeLimits. When the transaction is over, the store calls exactly one of
// Commit, Abort and Unknown; none of them blocks.
type Match interface {
	// Slot returns the worker and the token of the claim.
	Slot() ClaimSlot
	// Now returns the time of the claim.
	Now() time.Time
	// Types returns the workflow types that the worker runs: another due run of these types in the
	// queue may come first. The slice is shared: do not change it.
	Types() []string
	// Commit delivers the claimed run, once the claim is on disk.
	Commit(Task)
	// Abort says that nothing was claimed under the slot.
	Abort()
	// Unknown says that it is unknown whether something was claimed.
	Unknown(err error)
}

// Ticket is the place of one write in a sequence of writes, such as those of a worker for one run.
// The next write may be passed to the store before this one is answered, so that both can share a
// commit. The store still carries it out after this one, and refuses it if this one is refused.
//
// The caller that makes a Ticket passes it to a method of the store and calls Close with the
// result. If the write is refused before it reaches the store, it calls Close only.
type Ticket struct {
	prev     atomic.Pointer[Ticket] // the write that this one builds on; nil: none
	admitted chan struct{}
	admit    sync.Once
	failed   atomic.Bool
	onAdmit  func()
}

// NewTicket returns the ticket of a write that builds on the write of prev, which may be nil.
func NewTicket(prev *Ticket) *Ticket {
	t := &Ticket{admitted: make(chan struct{})}
	t.prev.Store(prev)
	return t
}

// OnAdmit sets a function that Admit calls once; it must not block. Call OnAdmit before passing the
// ticket on.
func (t *Ticket) OnAdmit(f func()) { t.onAdmit = f }

// Admitted returns a channel that is closed once the next write of the sequence may be passed to
// the store.
func (t *Ticket) Admitted() <-chan struct{} { return t.admitted }

// Admit is called by the store once every write passed to it from now on will be carried out after
// this one. A store that does not keep the order of its writes, or may delay this one, does not
// call it: then Close admits the next write. On a nil Ticket it does nothing.
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

// Err returns nil if the write may be carried out, or ErrPrevRefused if the one before it has
// failed. The store calls it inside the transaction, where the order is known. On a nil Ticket it
// returns nil.
func (t *Ticket) Err() error {
	if t == nil {
		return nil
	}
	if prev := t.prev.Load(); prev != nil && prev.failed.Load() {
		return ErrPrevRefused
	}
	return nil
}

// Prev returns the ticket that this one builds on; nil if there is none or this one was closed. On
// a nil Ticket it returns nil.
func (t *Ticket) Prev() *Ticket {
	if t == nil {
		return nil
	}
	return t.prev.Load()
}

// Resolve sets the result of the write, which Err of the next ticket reads. The store calls it each
// time it has carried the write out or given it up; the last call counts. On a nil Ticket it does
// nothing.
func (t *Ticket) Resolve(err error) {
	if t != nil {
		t.failed.Store(err != nil)
	}
}

// Close resolves and admits the ticket. The caller that made it calls Close once the store has
// answered.
func (t *Ticket) Close(err error) {
	t.Resolve(err)
	t.prev.Store(nil) // so that the last ticket does not keep a long sequence in memory
	t.Admit()
}

// ErrPrevRefused refuses a write whose predecessor in the sequence was refused.
var ErrPrevRefused = &Error{Kind: KindUnavailable,
	Message: "the operation that this one builds on was refused; nothing was changed"}

// Sequenced is embedded in the parameters of writes that may belong to a sequence.
type Sequenced struct {
	Ticket *Ticket // nil: the write belongs to no sequence
}

// GetTicket and SetTicket let code handle the parameters of different writes in the same way.
func (s Sequenced) GetTicket() *Ticket   { return s.Ticket }
func (s *Sequenced) SetTicket(t *Ticket) { s.Ticket = t }
