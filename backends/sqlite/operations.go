package sqlite

import (
	"context"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
)

// transact runs an operation of package storelogic as one call of the writer. If the disk is nearly
// full, it refuses runs that a client starts.
func (s *Store) transact(ctx context.Context, c storelogic.Call, do func(storelogic.Tx) (any, error)) (any, error) {
	if c.StartsRuns && s.lacksRoom() {
		return nil, errExhausted
	}
	size := c.Size
	if c.Alone {
		size = maxGroupBytes + 1
	}
	return writeAs(ctx, s, &call{verb: c.Name, size: size, ticket: c.Ticket}, func(t *tx) (any, error) { return do(t) })
}
