package engine

import (
	"context"
	"time"
)

// Takers are the workers that wait for runs where some are being started. A store that is given them may hand a run to one of them in the
// transaction that makes it, so that start and claim are one commit; it may as well leave them alone.
type Takers interface {
	// Take is the grant that a claim made now would use for this run, were it the only one that is due; nil when there is none, or when nothing
	// is to be claimed now: the run is not due, or workers prefer another queue. It does not block.
	Take(start *StartRun) Taker
}

// Taker is a grant that a store has taken for a run that it is about to make. Nothing limits its worker. The store calls one of Give, Return and
// Doubt, once, when the transaction is over; none of them blocks.
type Taker interface {
	// Grant is the worker and the token, and Now the moment, of the claim.
	Grant() Grant
	Now() time.Time
	// Types is what the worker runs, for whatever else of these types is due in the run's queue may come first. It is shared: nobody changes it.
	Types() []string
	// Give hands the claimed run over, once that is on disk.
	Give(Task)
	// Return says that nothing was claimed under the grant.
	Return()
	// Doubt says that nobody knows whether anything was.
	Doubt(err error)
}

type takersKey struct{}

// WithTakers is ctx for a call of StartRuns whose runs these may take.
func WithTakers(ctx context.Context, t Takers) context.Context {
	return context.WithValue(ctx, takersKey{}, t)
}

// TakersOf is who may take what a call of StartRuns makes; nil when it names nobody.
func TakersOf(ctx context.Context) Takers {
	t, _ := ctx.Value(takersKey{}).(Takers)
	return t
}
