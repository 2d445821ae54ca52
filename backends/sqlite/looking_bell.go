package sqlite

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"

	_ "embed"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// glanceEvery is how often a store for looking only asks whether the file has changed, while somebody listens. A bell does not ring beyond
// its process, and SQLite has none. What is read is shared memory and what the system knows about the files; nothing is written.
const glanceEvery = 200 * time.Millisecond

// glance is a connection that notices changes by others: SQLite counts them for each connection apart.
type glance struct {
	path    string
	conn    *dbfile.Reader
	version int64
}

// listenLooking rings NotifyAll at once and then whenever the file has changed: nobody tells what was changed in it.
func (s *Store) listenLooking(ctx context.Context, ring func(engine.Notification)) error {
	g := &glance{path: s.path}
	defer g.close()
	again := time.NewTicker(glanceEvery)
	defer again.Stop()
	for {
		if g.changed(ctx) {
			ring(engine.Notification{Kind: engine.NotifyAll})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return dbfile.ErrClosed
		case <-again.C:
		}
	}
}

// changed says that the file is not as it was when this was asked last. A file that cannot be read now is asked about again.
func (g *glance) changed(ctx context.Context) bool {
	before := g.conn
	var err error
	if g.conn, err = dbfile.OpenReadOnly(g.path, g.conn); err != nil {
		g.conn = nil
		return false
	}
	version, err := g.conn.DataVersion(ctx)
	if err != nil {
		g.close()
		return false
	}
	changed := g.conn != before || version != g.version
	g.version = version
	return changed
}

func (g *glance) close() {
	if g.conn != nil {
		g.conn.Close()
		g.conn = nil
	}
}
