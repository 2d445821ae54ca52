package engine

import "time"

// Handoff offers the workers that wait, where runs are being started. A store that is given one may hand a run to a waiting worker in the
// transaction that makes the run, so that start and claim are one commit. It need not.
type Handoff interface {
	// Offer returns the waiting poller that should get this run, or nil if none is waiting: the slot that a claim made now would use for the
	// run if nothing else were due. It is nil too when the run is not due, or when the workers prefer another queue. It does not block.
	Offer(start *StartRun) Match
}

// Match is a claim slot that a store has taken for a run that it is about to make. Nothing limits its worker. When the transaction is over,
// the store calls exactly one of Commit, Abort and Unknown; none of them blocks.
type Match interface {
	// Slot is the worker and the token, and Now the moment, of the claim.
	Slot() ClaimSlot
	Now() time.Time
	// Types is what the worker runs: something else of these types that is due in the run's queue may come first. It is shared: nobody changes it.
	Types() []string
	// Commit hands the claimed run over, once that is on disk.
	Commit(Task)
	// Abort says that nothing was claimed under the slot.
	Abort()
	// Unknown says that nobody knows whether anything was.
	Unknown(err error)
}
