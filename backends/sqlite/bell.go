package sqlite

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/engine"
)

// Notifier rings what this process commits: nobody else can be at work on the file, so nothing needs to leave the process.
func (s *Store) Listen(ctx context.Context, ring func(engine.Notification)) error {
	if s.looking() {
		return s.listenLooking(ctx, ring)
	}
	if err := s.bell.Listen(ctx, s.closed, ring); err != nil {
		return err
	}
	return dbfile.ErrClosed
}
